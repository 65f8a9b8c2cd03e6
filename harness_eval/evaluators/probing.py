"""Asks whether an evaluator could judge now, without a question and without cost.

An evaluator may bring a ``probe()`` of its own (:class:`Probeable`); for the kinds that reach out
of this process there is one function each below. A probe may block: it runs on a thread that may
be given up, never on the one that hears completions.

| kind | what is looked at |
| --- | --- |
| checks | nothing: they are always there |
| plugin | it is imported, in a process of its own if it judges in one |
| model | ``GET base_url/models`` with the key: is it accepted, is the model among them |
| endpoint | ``OPTIONS`` of its address with the token |
| service | the ROS graph |
| rubric, vote, cascade | the evaluators that they ask |
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
import importlib.util
import json
import os
import pickle
import subprocess
import sys
import time
from typing import Any, Protocol, runtime_checkable

from harness_eval.config.evaluators import (
    CascadeSettings,
    EndpointSettings,
    EvaluatorSettings,
    ModelSettings,
    PluginSettings,
    ServiceSettings,
    VoteSettings,
)
from harness_eval.contract import EvaluationError, Evaluator, EvaluatorError
from harness_eval.evaluators.faults import as_evaluation_error, describe
from harness_eval.evaluators.http_post import PostTarget, reach, reference_of
from harness_eval.evaluators.isolation import search_path
from harness_eval.evaluators.strict_json import read_json
from harness_eval.lines import clean_line

PROBE_TIMEOUT = 10.0
"""Seconds that a probe of something that answers at once may take."""
IMPORT_TIMEOUT = 120.0
"""Seconds that the import of an isolated plugin may take; a large model is loaded with it."""
NAMES_SHOWN = 5
"""Models of a server that an error names."""

JUDGE_SERVICE = 'harness_eval_msgs/srv/Judge'

_IN_CHILD = """
import json, pickle, sys
from harness_eval.contract import EvaluationError
evaluator = pickle.load(sys.stdin.buffer)
try:
    told = {'found': evaluator.probe()}
except EvaluationError as error:
    told = {'kind': error.kind, 'message': error.message}
print('\\n' + json.dumps(told), flush=True)
"""


@runtime_checkable
class Probeable(Protocol):
    """An evaluator that can say itself whether it could judge now."""

    def probe(self) -> str:
        """Look whether it could judge; it may block for some seconds.

        Returns:
            What was found, in a few words.

        Raises:
            EvaluatorError: It could not; with what to do.
        """
        ...


@dataclass(frozen=True)
class Probed:
    """What a probe came to.

    Attributes:
        found: What was found, in a few words; empty if it could not judge.
        fault: Why it could not judge; None if it could.
    """

    found: str = ''
    fault: EvaluationError | None = None


Services = Callable[[str], Mapping[str, int]]
"""How many servers each type has under the name of a ROS 2 service, by type."""


class Prober:
    """Probes the evaluators of a configuration. Thread-safe; it keeps nothing.

    Args:
        settings: Their settings by name.
        evaluator: Gives the evaluator of a name.
        services: Looks at the ROS graph; None where there is none.
        timeout: Seconds of one probe over a network.
    """

    def __init__(
        self,
        settings: Mapping[str, EvaluatorSettings],
        evaluator: Callable[[str], Evaluator],
        services: Services | None = None,
        timeout: float = PROBE_TIMEOUT,
    ) -> None:
        self._settings = settings
        self._evaluator = evaluator
        self._services = services
        self._timeout = timeout

    def probe(self, name: str) -> Probed:
        """Probe one evaluator; whatever it raises is a fault.

        Args:
            name: A key of the settings.
        """
        return self._guarded(name, lambda: self._look(name, self._settings[name]))

    def glance(self, name: str) -> Probed:
        """Probe one evaluator without importing anything of the user's; else as :meth:`probe`."""
        settings = self._settings[name]
        if settings.named:
            return self._guarded(name, lambda: self._named(settings, self.glance))
        if not isinstance(settings, PluginSettings):
            return self.probe(name)
        package = settings.ref.partition(':')[0].partition('.')[0]
        try:
            known = importlib.util.find_spec(package) is not None
        except (ImportError, ValueError):
            known = False
        if known:
            return Probed(found=f'there is a {package}; it is imported when it is first asked')
        return Probed(
            fault=EvaluatorError(
                'plugin_import',
                f'there is no {package!r} on the path of this process; source its workspace, or '
                'correct ref',
                evaluator=name,
            )
        )

    def _look(self, name: str, settings: EvaluatorSettings) -> str:
        if settings.named:
            return self._named(settings, self.probe)
        if isinstance(settings, ModelSettings):
            return asyncio.run(probe_model(settings, name, self._timeout))
        if isinstance(settings, EndpointSettings):
            return asyncio.run(probe_endpoint(settings, name, self._timeout))
        if isinstance(settings, ServiceSettings):
            return probe_service(settings, self._services)
        evaluator = self._evaluator(name)
        if not isinstance(evaluator, Probeable):
            return 'always there'
        if settings.isolated:
            return probe_in_child(evaluator, IMPORT_TIMEOUT)
        return evaluator.probe()

    def _guarded(self, name: str, look: Callable[[], str]) -> Probed:
        try:
            return Probed(found=clean_line(look()))
        except BaseException as error:  # a plugin may call sys.exit() when it is imported
            return Probed(fault=as_evaluation_error(error, name))

    def _named(self, settings: EvaluatorSettings, look: Callable[[str], Probed]) -> str:
        names = [name for _, named in settings.named for name in named]
        fault = together(settings, {name: look(name).fault for name in names})
        if fault is not None:
            raise fault
        return f'asks {", ".join(names)}'


def together(
    settings: EvaluatorSettings, faults: Mapping[str, EvaluationError | None]
) -> EvaluatorError | None:
    """Say what the faults of the evaluators that another one asks mean for it.

    Args:
        settings: Those of a ``rubric``, ``vote`` or ``cascade``.
        faults: The fault of each evaluator that it asks, or None.
    """
    broken = {name: fault for name, fault in faults.items() if fault is not None}
    if isinstance(settings, VoteSettings):
        tolerated = len(faults) - settings.needed
    elif isinstance(settings, CascadeSettings) and settings.on_error == 'next':
        tolerated = len(faults) - 1
    else:
        tolerated = 0
    if len(broken) <= tolerated:
        return None
    name, fault = next(iter(broken.items()))
    return EvaluatorError(fault.kind, clean_line(f'{name}, which it asks: {fault.message}'))


async def probe_model(settings: ModelSettings, name: str, timeout: float) -> str:
    """Ask the server for its models; this costs nothing.

    A server without such a list (404 and its like) is there, which is all that can be known.

    Raises:
        EvaluatorError: ``missing_library``, ``no_key``, ``unauthorized``, ``model_absent``,
            ``unreachable``, ``judge_timeout``, or what the status means.
    """
    from harness_eval.evaluators.model.access import Access
    from harness_eval.evaluators.model.bounded import bounded, Packed, TooLong
    from harness_eval.evaluators.model.http_faults import connection_error, hidden, status_error

    access = Access(settings.api_key_env, name)
    _, httpx = access.libraries()
    key = access.key()

    async def asked() -> Any:
        async with httpx.AsyncClient(
            verify=access.trusted(), follow_redirects=False, event_hooks={'response': [bounded]}
        ) as client:
            return await client.get(
                f'{settings.base_url.rstrip("/")}/models',
                headers={'Authorization': f'Bearer {key}', 'Accept-Encoding': 'identity'},
                timeout=None,
            )

    try:
        response = await asyncio.wait_for(asked(), timeout)
    except (asyncio.TimeoutError, TimeoutError):
        raise EvaluatorError(
            'judge_timeout', f'the server did not list its models within {timeout:g} s'
        ) from None
    except (TooLong, Packed):
        return 'the server is there; its list of models cannot be read'
    except httpx.HTTPError as error:
        raise connection_error(error) from None
    if response.status_code in (404, 405, 501):
        return f'the server is there (it lists no models, HTTP {response.status_code})'
    if response.status_code != 200:
        raise status_error(
            response.status_code,
            hidden(response.text, key),
            dict(response.headers),
            key_env=settings.api_key_env,
            hide=key,
            now=time.time(),
        )
    return _listed(settings.model, response.content, lambda text: hidden(text, key))


def _listed(model: str, data: bytes, hide: Callable[[str], str]) -> str:
    try:
        names = [one['id'] for one in read_json(data)['data'] if isinstance(one['id'], str)]
    except (ValueError, TypeError, KeyError):
        return 'the server is there; its list of models cannot be read'
    if not names:
        return 'the server and the key are good; it lists no models'
    # Some servers put a folder before the name, or a tag behind it.
    if any(model in (one, one.rpartition('/')[2], one.partition(':')[0]) for one in names):
        return f'the server, the key and the model {model} are there'
    shown = ', '.join(clean_line(hide(one), 60) for one in sorted(names)[:NAMES_SHOWN])
    more = f' and {len(names) - NAMES_SHOWN} more' if len(names) > NAMES_SHOWN else ''
    raise EvaluatorError(
        'model_absent',
        f'expected the model {model!r}, the server has {shown}{more}; correct the name or load it',
    )


async def probe_endpoint(settings: EndpointSettings, name: str, timeout: float) -> str:
    """Ask what may be asked at the address (``OPTIONS``), with the token.

    Raises:
        EvaluatorError: ``endpoint_unauthorized``, ``endpoint_failed`` (a gateway without its
            server), or as :func:`~harness_eval.evaluators.http_post.reach`.
    """
    target = PostTarget(
        url=settings.url,
        token_env=settings.token_env or '',
        ca_file=settings.ca_file or '',
        timeout=timeout,
        ref=reference_of(settings.url, name),
    )
    status = await reach(target)
    if status in (401, 403, 407):
        what = (
            f'the token in {target.token_env}' if target.token_env else 'no token: set token_env'
        )
        raise EvaluatorError('endpoint_unauthorized', f'HTTP {status}: it does not accept {what}')
    if status in (500, 502, 503, 504):
        raise EvaluatorError(
            'endpoint_failed', f'HTTP {status}: it could not answer now; see to the server'
        )
    # Any other status, also a refusal of OPTIONS, shows that somebody is there.
    return f'it answers (OPTIONS: HTTP {status})'


def probe_service(settings: ServiceSettings, services: Services | None) -> str:
    """Look into the ROS graph.

    Raises:
        EvaluatorError: ``no_ros``, ``service_absent``, ``service_type``, ``service_ambiguous``.
    """
    name = settings.service
    if services is None:
        raise EvaluatorError('no_ros', 'a ROS 2 service is seen by a node, and there is none here')
    found = services(name)
    count = found.get(JUDGE_SERVICE, 0)
    if not count and found:
        raise EvaluatorError(
            'service_type',
            f'expected {name} of type {JUDGE_SERVICE}, found {", ".join(sorted(found))}',
        )
    if not count:
        raise EvaluatorError(
            'service_absent',
            f'nobody offers {name} of type {JUDGE_SERVICE}; start it, or correct its name',
        )
    if count > 1:
        raise EvaluatorError('service_ambiguous', f'{count} nodes offer {name}; leave one of them')
    return f'{name} is offered'


def probe_in_child(evaluator: Probeable, timeout: float) -> str:
    """Probe an evaluator in a process of its own, since its code may crash.

    Raises:
        EvaluatorError: ``evaluator_crashed``, ``judge_timeout``, or what its probe raises.
    """
    try:
        child = subprocess.run(
            [sys.executable, '-c', _IN_CHILD],
            input=pickle.dumps(evaluator),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout,
            env={**os.environ, 'PYTHONPATH': search_path()},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EvaluatorError(
            'judge_timeout', f'its process did not import it within {timeout:g} s'
        ) from None
    except OSError as error:
        raise EvaluatorError('no_process', f'no process: {describe(error)}') from None
    lines = child.stdout.splitlines()
    try:
        told = json.loads(lines[-1])
        found = told.get('found')
        if found is None:
            raise EvaluatorError(str(told['kind']), str(told['message']))
        return str(found)
    except (IndexError, ValueError, KeyError, AttributeError):
        raise EvaluatorError(
            'evaluator_crashed', f'its process ended with code {child.returncode} when importing'
        ) from None
