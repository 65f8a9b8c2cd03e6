"""What it takes to ask at all: the SDK, the key and the certificates."""

from __future__ import annotations

import importlib
import os
import ssl
import threading
from typing import Any

from harness_eval.evaluators.model.errors import ModelError


class Access:
    """Gives what every question needs. Thread-safe.

    Args:
        key_env: Name of the environment variable that holds the key.
        ref: How errors name the evaluator.
    """

    def __init__(self, key_env: str, ref: str) -> None:
        self._key_env = key_env
        self._ref = ref
        self._lock = threading.Lock()
        self._trust: ssl.SSLContext | None = None

    def check(self) -> None:
        """See that a question could be asked; what takes long the first time is done here.

        Raises:
            ModelError: ``missing_library``, ``no_key``.
        """
        self.libraries()
        self.key()
        self.trusted()

    def key(self) -> str:
        """The key, from the environment as it is now.

        Raises:
            ModelError: ``no_key``: the variable is not set, empty, or holds what is no key.
        """
        key = os.environ.get(self._key_env, '').strip()
        if not key:
            raise self._no_key(
                'is not set or is empty; set it where this process is started, to any text if the '
                'server asks for none'
            )
        if not key.isascii() or not key.isprintable() or ' ' in key:
            raise self._no_key('holds white space or characters that no key has')
        return key

    def libraries(self) -> tuple[Any, Any]:
        """The modules ``openai`` and ``httpx2``, imported when they are first needed.

        Raises:
            ModelError: ``missing_library``.
        """
        try:
            return importlib.import_module('openai'), importlib.import_module('httpx2')
        except ImportError:
            raise ModelError(
                'missing_library',
                'an evaluator of the kind model needs the library openai, version 3 or later; '
                'install it, for example as harness_eval[model]',
                evaluator=self._ref,
            ) from None

    def trusted(self) -> ssl.SSLContext:
        """The certificates of the system, read once: that takes longer than all the rest."""
        with self._lock:
            if self._trust is None:
                self._trust = ssl.create_default_context()
            return self._trust

    def _no_key(self, why: str) -> ModelError:
        return ModelError(
            'no_key',
            f'the environment variable {self._key_env} (api_key_env) {why}',
            evaluator=self._ref,
        )
