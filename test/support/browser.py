"""A headless Chromium, driven over WebDriver with nothing but the standard library."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
import json
from pathlib import Path
import shutil
import subprocess
import tempfile
import time
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

CHROMIUM = ('chromium', 'chromium-browser', 'google-chrome')
DRIVER = 'chromedriver'
OPTIONS = (
    '--headless=new',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--disable-dev-shm-usage',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
)
TIMEOUT = 60.0


def missing() -> str:
    """Say what a browser test needs and this machine does not have; empty if nothing."""
    if not any(map(shutil.which, CHROMIUM)):
        return f'there is none of {", ".join(CHROMIUM)}'
    return '' if shutil.which(DRIVER) else f'there is no {DRIVER}'


class Browser:
    """One window.

    Args:
        address: Of the session at the driver.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    def open(self, path: Path, hash_: str = '') -> None:
        """Show a file and wait until it is loaded."""
        self._post('url', {'url': 'about:blank'})  # else another hash would load nothing anew
        self.logs()
        self._post('url', {'url': path.as_uri() + (f'#{hash_}' if hash_ else '')})

    def run(self, script: str, *arguments: object) -> Any:
        """Run a script in the page and give what it returns."""
        return self._post('execute/sync', {'script': script, 'args': list(arguments)})

    def logs(self) -> tuple[list[str], list[str]]:
        """What the console said, and what was asked of any network, since the last time."""
        console = [entry['message'] for entry in self._post('se/log', {'type': 'browser'})]
        events = [
            json.loads(entry['message'])['message']
            for entry in self._post('se/log', {'type': 'performance'})
        ]
        asked = [
            event['params']['request']['url']
            for event in events
            if event['method'] == 'Network.requestWillBeSent'
        ]
        return console, asked

    def screenshot(self) -> bytes:
        """What the window shows, as PNG."""
        return base64.b64decode(_ask(f'{self._address}/screenshot'))

    def emulate(self, command: str, **parameters: object) -> Any:
        """Send a command of the DevTools protocol."""
        return self._post('goog/cdp/execute', {'cmd': command, 'params': parameters})

    def _post(self, command: str, data: object) -> Any:
        return _ask(f'{self._address}/{command}', data)


@contextmanager
def browsing(width: int = 1280, height: int = 900, dark: bool = False) -> Iterator[Browser]:
    """A browser with a window of that many CSS pixels, until the end of the block."""
    chromium = next(filter(None, map(shutil.which, CHROMIUM)))
    options = {
        'binary': chromium,
        'mobileEmulation': {
            'deviceMetrics': {'width': width, 'height': height, 'pixelRatio': 1.0}
        },
    }
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, _driver() as driver:
        arguments = [*OPTIONS, f'--user-data-dir={profile}', f'--window-size={width},{height}']
        wanted = {
            'goog:chromeOptions': {**options, 'args': arguments},
            'goog:loggingPrefs': {'browser': 'ALL', 'performance': 'ALL'},
        }
        session = _ask(f'{driver}/session', {'capabilities': {'alwaysMatch': wanted}})
        address = f'{driver}/session/{session["sessionId"]}'
        try:
            browser = Browser(address)
            if dark:
                feature = {'name': 'prefers-color-scheme', 'value': 'dark'}
                browser.emulate('Emulation.setEmulatedMedia', features=[feature])
            yield browser
        finally:
            _ask(address, method='DELETE')


@contextmanager
def _driver() -> Iterator[str]:
    command = [str(shutil.which(DRIVER)), '--port=0']
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            port = next(
                line.rstrip().rstrip('.').rpartition(' ')[2]
                for line in process.stdout
                if 'on port' in line and 'successfully' in line
            )
            yield f'http://127.0.0.1:{port}'
        finally:
            process.terminate()
            process.communicate()


def _ask(address: str, data: object = None, method: str | None = None) -> Any:
    body = None if data is None else json.dumps(data).encode()
    request = Request(address, body, {'Content-Type': 'application/json'}, method=method)
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            with urlopen(request, timeout=TIMEOUT) as answer:
                return json.load(answer)['value']
        except HTTPError as error:
            raise RuntimeError(error.read().decode(errors='replace')[:2000]) from None
        except URLError:
            if time.monotonic() > deadline:
                raise
