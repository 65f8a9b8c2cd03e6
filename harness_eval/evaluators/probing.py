"""Asks whether an evaluator could judge now, without a question and without cost.

An evaluator may bring a ``probe()`` of its own
(:class:`~harness_eval.evaluators.probes.Probeable`); for the kinds that reach out of this process
:mod:`~harness_eval.evaluators.probes` has one function each. A probe may block: it runs on a
thread that may be given up, never on the one that hears completions.

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
from harness_eval.evaluators.faults import as_evaluation_error
from harness_eval.evaluators.probes import (
    probe_endpoint,
    probe_in_child,
    probe_model,
    probe_service,
    Probeable,
    Services,
)
from harness_eval.lines import clean_line

PROBE_TIMEOUT = 10.0
"""Seconds that a probe of something that answers at once may take."""
IMPORT_TIMEOUT = 120.0
"""Seconds that the import of an isolated plugin may take; a large model is loaded with it."""


@dataclass(frozen=True)
class Probed:
    """What a probe came to.

    Attributes:
        found: What was found, in a few words; empty if it could not judge.
        fault: Why it could not judge; None if it could.
    """

    found: str = ''
    fault: EvaluationError | None = None


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
