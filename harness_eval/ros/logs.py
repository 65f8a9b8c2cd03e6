"""What the core logs through ``logging`` appears in the log of the node."""

from __future__ import annotations

import logging
from typing import Any

from harness_eval.lines import redact


class _Public(logging.Formatter):
    """Names files by base name, also in tracebacks, and leaves out what no log may hold."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record."""
        return redact(super().format(record))


class _ToRos(logging.Handler):
    def __init__(self, logger: Any) -> None:
        super().__init__()
        self.setFormatter(_Public())
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; rclpy wants one call site for each severity."""
        try:
            text = self.format(record)
            if record.levelno >= logging.ERROR:
                self._logger.error(text)
            elif record.levelno >= logging.WARNING:
                self._logger.warning(text)
            elif record.levelno >= logging.INFO:
                self._logger.info(text)
            else:
                self._logger.debug(text)
        except Exception:
            self.handleError(record)


def bridge_logging(logger: Any) -> None:
    """Send what the package logs to a node's logger, in place of an earlier node's."""
    root = logging.getLogger('harness_eval')
    for handler in list(root.handlers):
        if isinstance(handler, _ToRos):
            root.removeHandler(handler)
    root.addHandler(_ToRos(logger))
    root.setLevel(logging.INFO)
    root.propagate = False
