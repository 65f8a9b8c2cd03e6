"""A pipeline with a fake world around it: one thread, fake clocks, a real ledger, real cases.

Nothing happens by itself. What the pipeline posts and spawns waits in two queues until the test
runs it, in the order that it wants; judges answer when the test says so; time passes when the test
says so. ``crash`` drops everything in memory, as ``kill -9`` does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from cdr_messages import IMAGE, image_of, JOINT_STATE, joint_state
import numpy as np
import sqlalchemy as sa

from harness_eval.capture import TopicFacts
from harness_eval.cases import CaseStore
from harness_eval.config import Config, load_config
from harness_eval.contract import EvaluationError, EvaluationRequest, LedgerError, Status, Verdict
from harness_eval.decode import Decoder
from harness_eval.ledger import Ledger, LedgerReader, REJECTED, UpdateRecord
from harness_eval.pipeline import Pipeline
from harness_eval.runs import Completion, Outcome, Run, SegmentState
from harness_eval.scene_graph import Op, OpKind, Update
from harness_eval.stages import Event, Stage

MESSAGES = Path(__file__).parents[2] / 'harness_eval_msgs' / 'msg'
COMPLETION = 'harness_eval_msgs/msg/ToolCompletion'
SECOND = 10**9
START = 1_700_000_000 * SECOND

SUCCESS = Verdict(Status.SUCCESS, ('seen',))
FAILURE = Verdict(Status.FAILURE, ('not seen',), failure_reason='not there')
PROCESS = Verdict(Status.PROCESS, ('half way',))

YAML = """
evaluation:
  required_tools: [pick, insert, bare]
  segment_tools: [insert]
  max_segments: 3
  evaluator: judge
  evaluators: {{judge: {{kind: plugin, ref: "nowhere:nothing"}}}}
  post_conditions:
    pick: "The {{target}} is held."
    insert: "The peg is in."
    bare: "All is well."
  tools:
    pick:
      arguments: [target, place]
      on_success:
        - {{add_edge: ["{{target}}", "held_by", "gripper"]}}
    bare: {{views: [front]}}
capture:
  views: {{front: {{topic: cell/front}}}}
  states: {{gripper: {{topic: joints, field: "position[name=finger]", stamp: {stamp}}}}}
  settle: 0.3
  timeout: 3.0
scene_graph: {scene_graph}
evidence: {evidence}
"""


def decoder() -> Decoder:
    """A decoder that knows the completion, without a ROS installation."""
    made = Decoder()
    made.register(COMPLETION, (MESSAGES / 'ToolCompletion.msg').read_text())
    return made


DECODER = decoder()


class FaultyLedger(Ledger):
    """A ledger that fails when the test wants.

    Attributes:
        fault: Asked with the number of each transaction, or look at the record: ``before`` fails
            it, ``after`` lets it come through and reports it as failed, ``locked`` fails it if it
            writes, anything else lets it be.
        transactions: How many there were.
        writes: How many of them were to write.
    """

    transactions = 0
    writes = 0
    fault: Callable[[int], str] = staticmethod(lambda number: '')

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sa.Connection]:
        self.writes += 1
        if self.fault(self.transactions + 1) == 'locked':
            raise LedgerError('ledger_unavailable', 'the test has the lock', retryable=True)
        with self._faulty(super().transaction(durable=durable)) as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        with self._faulty(super().reading()) as connection:
            yield connection

    @contextmanager
    def _faulty(self, real: AbstractContextManager[sa.Connection]) -> Iterator[sa.Connection]:
        self.transactions += 1
        fault = self.fault(self.transactions)
        if fault == 'before':
            raise LedgerError('ledger_unavailable', 'the test wants it so', retryable=True)
        with real as connection:
            yield connection
        if fault == 'after':
            raise LedgerError('ledger_unavailable', 'the test says so', retryable=True)


class Call:
    """A judge that was asked and has not answered."""

    def __init__(self, request: EvaluationRequest, on_done: Callable[[Any], None]) -> None:
        self.request = request
        self.on_done = on_done
        self.cancelled = False

    def cancel(self) -> bool:
        self.cancelled = True
        return True


class FakeJudge:
    """Stands in for ``JudgeCalls``; the test answers."""

    evaluator = 'judge of the test'

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def call(self, request: EvaluationRequest, on_done: Callable[[Any], None]) -> Call:
        made = Call(request, on_done)
        self.calls.append(made)
        return made


class World:
    """The world around a pipeline, and its effects.

    Attributes:
        outcomes: Published outcomes.
        updates: Published updates and rejections.
        events: Published steps.
        told: What waiters were told.
        spawned: Work that waits for a thread.
        audible: Whether anybody can hear what is published.
    """

    def __init__(
        self,
        folder: Path,
        *,
        scene_graph: str = '{}',
        evidence: str = '{}',
        stamp: str = 'header',
        cases: Any = None,
    ) -> None:
        self.folder = folder
        path = folder / 'evaluation.yaml'
        path.write_text(YAML.format(scene_graph=scene_graph, evidence=evidence, stamp=stamp))
        self.config: Config = load_config(path)
        self.url = f'sqlite:///{folder}/ledger.sqlite3'
        self.evidence = folder / 'evidence'
        self.ros = START
        self.steady = 1000.0
        self.posted: deque[Callable[[], None]] = deque()
        self.spawned: deque[Callable[[], None]] = deque()
        self.outcomes: list[Outcome] = []
        self.updates: list[UpdateRecord] = []
        self.events: list[Event] = []
        self.told: list[Outcome] = []
        self.pictures: list[Outcome] = []
        self.taps: frozenset[str] = frozenset()
        self.audible = True
        self.topic_facts = TopicFacts(publishers=1)
        self._given_cases = cases
        self._picture = 0
        self._reader: LedgerReader | None = None
        self.start()

    # --- life -------------------------------------------------------------------------------

    def start(self, *, resume: bool = True) -> None:
        """A process begins."""
        self.judge = FakeJudge()
        self.ledger = FaultyLedger(self.url)
        self.cases = self._given_cases or CaseStore(
            self.evidence, self.config.evidence.max_bytes, DECODER
        )
        self.pipeline = Pipeline(
            self.config,
            self.ledger,
            self.cases,
            self.judges(),
            DECODER,
            self,
            oracles=self.oracles(),
        )
        if resume:
            self.pipeline.resume()

    def judges(self) -> dict[str, Any]:
        """Who judges, by name; a test may know better."""
        return {'judge': self.judge}

    def oracles(self) -> dict[str, Any]:
        """Who knows the truth, by tool; a test may know better."""
        return {}

    def crash(self, **options: Any) -> None:
        """``kill -9`` and a new process: all that is in memory is gone."""
        self.posted.clear()
        self.spawned.clear()
        self.ledger._opened = False  # nobody notes that its use has come to an end
        self.ledger.close()
        self.start(**options)

    def close(self) -> None:
        """End."""
        if self._reader is not None:
            self._reader.close()
        self.ledger.close()

    # --- what comes in ------------------------------------------------------------------------

    def end(
        self,
        run_id: str,
        tool: str = 'pick',
        segment: int = 0,
        *,
        stamp: int | None = None,
        wait: bool = True,
        **arguments: str,
    ) -> Completion:
        """A run ends now."""
        if tool == 'pick' and not arguments:
            arguments = {'target': f'object of {run_id}'[:100]}
        completion = Completion(
            run_id,
            tool,
            segment,
            self.ros if stamp is None else stamp,
            tuple(arguments.items()),
        )
        self.report(completion, wait=wait)
        return completion

    def report(self, completion: Completion, *, wait: bool = True) -> None:
        """A completion comes in."""
        self.pipeline.completion(completion, self.ros, self.told.append if wait else None)

    def propose(self, run_id: str, update_id: str = 'u', subject: str = 'node') -> Update:
        """Somebody proposes that a node exists."""
        update = Update(run_id, update_id, (Op(OpKind.ADD_NODE, subject),))
        self.pipeline.propose(update)
        return update

    def wait(self, seconds: float) -> None:
        """Time passes on both clocks."""
        self.ros += round(seconds * SECOND)
        self.steady += seconds
        self.pipeline.tick()

    def show(
        self, *, finger: float = 0.02, topics: tuple[str, ...] = ('front', 'gripper')
    ) -> None:
        """The camera and the joints publish, stamped now."""
        self._picture += 1
        if 'front' in topics:
            pixels = np.full((6, 8, 3), self._picture % 251, np.uint8)
            picture = image_of(pixels, 'bgr8', stamp=self.ros)
            self.pipeline.frame('cell/front', IMAGE, picture, self.ros)
        if 'gripper' in topics:
            joints = joint_state({'finger': finger}, stamp=self.ros)
            self.pipeline.frame('joints', JOINT_STATE, joints, self.ros)

    def see(self) -> None:
        """Two pictures after the settling time: one to compare with, one to take."""
        self.wait(0.31)
        self.show()
        self.wait(0.03)
        self.show()

    def drain(self) -> None:
        """Run everything that waits to be run."""
        while self.posted or self.spawned:
            self.step()

    def step(self) -> None:
        """Run the next thing that waits: posted calls first."""
        (self.posted or self.spawned).popleft()()

    def judged(
        self, answer: Verdict | EvaluationError = SUCCESS, run_id: str | None = None
    ) -> None:
        """The judge answers the oldest question (about a run)."""
        call = next(c for c in self.judge.calls if run_id is None or self._is_of(c, run_id))
        self.judge.calls.remove(call)
        call.on_done(answer)
        self.drain()

    def _is_of(self, call: Call, run_id: str) -> bool:
        return f'object of {run_id} ' in call.request.post_condition.text

    def run(
        self,
        run_id: str,
        answer: Verdict | EvaluationError = SUCCESS,
        tool: str = 'pick',
        **more: Any,
    ) -> Outcome:
        """A whole run, from its end to its outcome."""
        self.end(run_id, tool, **more)
        self.see()
        self.drain()
        self.judged(answer)
        return self.outcomes[-1]

    # --- what is on record ----------------------------------------------------------------------

    def on_record(self, run_id: str) -> Run | None:
        """The run as the ledger has it."""
        return self.reader().run(run_id)

    def state(self, run_id: str) -> SegmentState | None:
        """State of the run as the ledger has it."""
        run = self.on_record(run_id)
        return None if run is None else run.state

    def reader(self) -> LedgerReader:
        """A reader of the ledger."""
        if self._reader is None:
            self._reader = LedgerReader(self.url)
        return self._reader

    def released(self) -> list[tuple[int, str, str]]:
        """Revision, run and name of every released update, as the ledger has them."""
        _, _, found = self.reader().released(0, 1000)
        return [(u.revision, u.run_id, u.update_id) for u in found]

    def passed(self) -> list[tuple[int, str, str]]:
        """The same for every update that was published as released."""
        return [
            (r.update.revision, r.update.run_id, r.update.update_id)
            for r in self.updates
            if r.state != REJECTED
        ]

    def refused(self) -> list[tuple[str, str, str]]:
        """Run, name and kind of reason of every published rejection."""
        return [
            (r.update.run_id, r.update.update_id, r.reason.partition(':')[0])
            for r in self.updates
            if r.state == REJECTED
        ]

    def labels(self) -> list[tuple[str, str]]:
        """Run and label of every published outcome."""
        return [(o.run_id, o.label) for o in self.outcomes]

    def stages(self, run_id: str) -> list[Stage]:
        """Published steps of a run."""
        return [e.stage for e in self.events if e.run_id == run_id]

    # --- effects --------------------------------------------------------------------------------

    def ros_now(self) -> int:
        return self.ros

    def steady_now(self) -> float:
        return self.steady

    def post(self, call: Callable[[], None]) -> None:
        self.posted.append(call)

    def spawn(self, work: Callable[[], None]) -> None:
        self.spawned.append(work)

    def spare(self, work: Callable[[], None]) -> None:
        self.spawn(work)

    def facts(self, topic: str) -> TopicFacts:
        return self.topic_facts

    def tap(self, topics: frozenset[str]) -> None:
        self.taps = topics

    def event(self, event: Event) -> None:
        self.events.append(event)

    def outcome(self, outcome: Outcome) -> bool:
        if self.audible:
            self.outcomes.append(outcome)
        return self.audible

    def update(self, record: UpdateRecord) -> bool:
        if self.audible:
            self.updates.append(record)
        return self.audible

    def picture(self, outcome: Outcome, observation: Any) -> None:
        self.pictures.append(outcome)
