"""Fifty runs at once on real threads: only the pipeline's own thread touches the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
import random
import threading
import time
from typing import Any

from cdr_messages import IMAGE, image_of, JOINT_STATE, joint_state
import numpy as np
from pipeline_world import DECODER, YAML
import pytest
import sqlalchemy as sa

from harness_eval.calls import JudgeCalls
from harness_eval.capture import TopicFacts
from harness_eval.cases import CaseStore
from harness_eval.config import load_config
from harness_eval.contract import EvaluationRequest
from harness_eval.judging import Thresholds
from harness_eval.ledger import Ledger, LedgerReader, RELEASED, UpdateRecord
from harness_eval.pipeline import Pipeline
from harness_eval.ros.loop import Loop
from harness_eval.runs import Completion, Outcome
from harness_eval.scene_graph import Op, OpKind, Update

RUNS = 50
TIMEOUT = 30.0


class SlowJudge:
    """Answers after a while; every fifth run fails, every seventh raises."""

    ref = 'slow judge'

    def evaluate(self, request: EvaluationRequest) -> bool:
        number = int(request.post_condition.text.split()[1])
        time.sleep(random.Random(number).random() * 0.05)
        assert request.observation.views['front'].image.shape == (6, 8, 3)
        if number % 7 == 3:
            raise RuntimeError('down')
        return number % 5 != 0


class WatchedLedger(Ledger):
    """Notes who uses it."""

    users: set[str]

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sa.Connection]:
        self.users = {*getattr(self, 'users', set()), threading.current_thread().name}
        with super().transaction(durable=durable) as connection:
            yield connection


class RealEffects:
    """Real threads and clocks; notes what is shown, and by whom."""

    def __init__(self) -> None:
        self.loop: Loop | None = None
        self.outcomes: list[Outcome] = []
        self.updates: list[UpdateRecord] = []
        self.users: set[str] = set()
        self.faults: list[BaseException] = []

    def _used(self) -> None:
        self.users.add(threading.current_thread().name)

    def ros_now(self) -> int:
        return time.time_ns()

    def steady_now(self) -> float:
        return time.monotonic()

    def post(self, call: Callable[[], None]) -> None:
        assert self.loop is not None
        self.loop.post(call)

    def spawn(self, work: Callable[[], None]) -> None:
        self._used()
        delay = random.random() * 0.02

        def later() -> None:
            time.sleep(delay)
            work()

        threading.Thread(target=later, name='spawned', daemon=True).start()

    def spare(self, work: Callable[[], None]) -> None:
        self.spawn(work)

    def facts(self, topic: str) -> TopicFacts:
        self._used()
        return TopicFacts(publishers=1)

    def tap(self, topics: frozenset[str]) -> None:
        self._used()

    def event(self, event: Any) -> None:
        self._used()

    def outcome(self, outcome: Outcome) -> bool:
        self._used()
        self.outcomes.append(outcome)
        return True

    def update(self, record: UpdateRecord) -> bool:
        self._used()
        self.updates.append(record)
        return True

    def picture(self, outcome: Outcome, observation: Any) -> None:
        time.sleep(random.random() * 0.01)


@pytest.mark.parametrize('keep', ['all', 'none'])
def test_many_runs_at_once_are_each_decided_once_and_released_in_order(
    tmp_path: Path, keep: str
) -> None:
    path = tmp_path / 'evaluation.yaml'
    path.write_text(
        YAML.format(
            scene_graph='{}', evidence=f'{{keep: {keep}, max_bytes: 200kB}}', stamp='header'
        )
    )
    config = load_config(path)
    effects = RealEffects()
    url = f'sqlite:///{tmp_path}/ledger.sqlite3'
    ledger = WatchedLedger(url)
    ledger.users = set()
    settings = config.evaluation.evaluators['judge']
    judge = JudgeCalls(SlowJudge(), settings, Thresholds())
    pipeline = Pipeline(
        config,
        ledger,
        CaseStore(tmp_path / 'evidence', config.evidence.max_bytes, DECODER),
        {'judge': judge},
        DECODER,
        effects,
    )
    effects.loop = loop = Loop(
        pipeline.tick,
        effects.ros_now,
        pipeline.wakeup,
        lambda: pipeline.capturing,
        effects.faults.append,
    )
    loop.start()
    loop.post(pipeline.resume)
    told: list[Outcome] = []

    def begin(number: int, now: int) -> None:
        name = f'run {number}'
        pipeline.propose(Update(name, 'u', (Op(OpKind.ADD_NODE, name),)))
        completion = Completion(name, 'pick', 0, now, (('target', str(number)),))
        pipeline.completion(completion, now, told.append)

    deadline = time.monotonic() + TIMEOUT
    begun = 0
    picture = 0
    while len(told) < RUNS and time.monotonic() < deadline:
        now = time.time_ns()
        if begun < RUNS:
            loop.post(partial(begin, begun, now))
            begun += 1
        picture += 1
        pixels = np.full((6, 8, 3), picture % 251, np.uint8)
        image = image_of(pixels, 'bgr8', stamp=now)
        joints = joint_state({'finger': 0.02}, stamp=now)
        loop.post(partial(pipeline.frame, 'cell/front', IMAGE, image, now))
        loop.post(partial(pipeline.frame, 'joints', JOINT_STATE, joints, now))
        threading.Event().wait(0.01)  # the cameras run at 100 Hz
    assert loop.stop()
    assert len(told) == RUNS
    assert effects.faults == []
    assert effects.users == {'harness_eval'}
    assert ledger.users == {'harness_eval'}

    labels = {outcome.run_id: outcome.label for outcome in effects.outcomes}
    assert len(effects.outcomes) == RUNS
    for number in range(RUNS):
        expected = 'error evaluator_raised' if number % 7 == 3 else 'success'
        expected = expected if number % 5 or number % 7 == 3 else 'failure'
        assert labels[f'run {number}'] == expected
    released = [record.update for record in effects.updates if record.state == RELEASED]
    assert [update.revision for update in released] == list(range(1, len(released) + 1))
    wanted = [name for name, label in sorted(labels.items()) if label == 'success']
    assert sorted({update.run_id for update in released}) == wanted
    order = [int(update.run_id.split()[1]) for update in released]
    assert order == sorted(order)
    reader = LedgerReader(url)
    assert reader.released(0, 1000)[2] == released
    reader.close()
    ledger.close()
