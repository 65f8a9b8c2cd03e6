"""Checks evaluators for real: whether they could judge, and with ``live`` by a tiny question."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
import queue
import threading
import time

import numpy as np

from harness_eval.config import Config
from harness_eval.config.evaluators import EndpointSettings, ModelSettings, ServiceSettings
from harness_eval.contract import (
    Abstention,
    EvaluationError,
    EvaluationRequest,
    EvaluatorError,
    Image,
    Observation,
    PostCondition,
    Status,
    Verdict,
    View,
)
from harness_eval.evaluators import Judges
from harness_eval.evaluators.faults import as_evaluation_error
from harness_eval.evaluators.probing import Probed, Prober
from harness_eval.message_types import IMAGE

PROBE_DEADLINE = 30.0
"""Seconds after which a probe that hangs, for example in an import, is given up."""

SIDE = 64
"""Pixels of the picture of a live question: small, and larger than what models refuse."""

ASKED_LIVE = (ModelSettings, EndpointSettings, ServiceSettings)
"""The kinds that a live question says more about than a probe."""

Outcome = Verdict | EvaluationError

QUESTION = 'The picture shows one plain green area and nothing else.'


@dataclass(frozen=True)
class Judge:
    """One evaluator as it was found.

    Attributes:
        name: Its name in the configuration.
        kind: What kind it is.
        target: Who or what judges.
        used: Whether a required tool is judged by it, itself or through another one.
        probed: What probing it came to.
        asked: What a live question came to; None if none was asked.
    """

    name: str
    kind: str
    target: str
    used: bool
    probed: Probed
    asked: Probed | None = None

    @property
    def came_to(self) -> Probed:
        """What counts: an answer to a question says more than any probe."""
        return self.probed if self.asked is None else self.asked


def check_judges(
    config: Config, judges: Judges, prober: Prober, *, live: bool
) -> tuple[Judge, ...]:
    """Check every evaluator of a configuration, all at the same time.

    Args:
        config: The configuration.
        judges: Its evaluators.
        prober: Probes them.
        live: Whether to ask each that is not on this machine one tiny question; it may cost.
    """
    settings = config.evaluation.evaluators
    used = used_evaluators(config)
    results: queue.SimpleQueue[tuple[str, Probed, Probed | None]] = queue.SimpleQueue()

    def check(name: str) -> None:
        probed = prober.probe(name)
        asked = None
        if live and isinstance(settings[name], ASKED_LIVE):
            asked = _asked(judges, name, sees=isinstance(settings[name], ModelSettings))
        results.put((name, probed, asked))

    found: dict[str, tuple[Probed, Probed | None]] = {}
    for name in settings:
        threading.Thread(target=check, args=(name,), daemon=True, name='doctor').start()
    patience = PROBE_DEADLINE + (max(one.timeout for one in settings.values()) if live else 0.0)
    for name, probed, asked in _within(results, len(settings), patience):
        found[name] = (probed, asked)
    hung = Probed(
        fault=EvaluatorError(
            'judge_timeout', f'nothing came of a probe within {patience:g} s; see what it hangs in'
        )
    )
    return tuple(
        Judge(name, one.kind, one.target, name in used, *found.get(name, (hung, None)))
        for name, one in settings.items()
    )


def used_evaluators(config: Config) -> frozenset[str]:
    """Names of the evaluators that required tools are judged by, and of those that these ask."""
    names = {config.evaluator_of(tool) for tool in config.evaluation.tools}
    left = list(names)
    while left:
        settings = config.evaluation.evaluators[left.pop()]
        asked = {name for _, named in settings.named for name in named} - names
        names |= asked
        left += asked
    return frozenset(names)


def tiny_request() -> EvaluationRequest:
    """A question that every judge which can take pictures can answer."""

    def decode() -> Image:
        picture: Image = np.full((SIDE, SIDE, 3), (40, 200, 40), np.uint8)
        return picture

    view = View(
        name='plain',
        topic='plain',
        type=IMAGE,
        frame_id='',
        stamp=1,
        age=0.0,
        stamp_source='header',
        summary='plain: a green picture made up by the doctor',
        decode=decode,
    )
    return EvaluationRequest(
        PostCondition(text=QUESTION), Observation({'plain': view}, {}, t_end=1, spread=0.0)
    )


def _asked(judges: Judges, name: str, *, sees: bool) -> Probed:
    """Ask one tiny question; a model has to answer it rightly, any other judge just to answer."""
    answer: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
    try:
        judges.calls(name).call(tiny_request(), answer.put)
        outcome = answer.get()
    except Exception as error:
        return Probed(fault=as_evaluation_error(error, name))
    abstained = isinstance(outcome, Abstention)
    if isinstance(outcome, EvaluationError) and not abstained:
        return Probed(fault=as_evaluation_error(outcome, name))
    said = outcome.status.value if isinstance(outcome, Verdict) else f'nothing ({outcome.kind})'
    if sees and said != Status.SUCCESS.value:
        return Probed(
            fault=EvaluatorError(
                'blind',
                f'it was shown plain green, asked whether that is green, and answered {said}; '
                'choose a model that takes pictures, and a server that hands them on',
                evaluator=name,
            )
        )
    return Probed(found=f'it was shown a picture, and answered {said}')


def _within(
    results: queue.SimpleQueue[tuple[str, Probed, Probed | None]], count: int, seconds: float
) -> Iterable[tuple[str, Probed, Probed | None]]:
    deadline = time.monotonic() + seconds
    for _ in range(count):
        try:
            yield results.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return
