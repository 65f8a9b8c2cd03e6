"""``kill -9`` at every transition: nothing lost, nothing twice, nothing without success."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import os
from pathlib import Path
import signal
import time
from typing import Any

from child_node import ChildNode
from evaluation_world import Ears
from fake_cell import cell_yaml, FakeCell
import pytest

from harness_eval.ledger import LedgerReader
from harness_eval.runs import OutcomeKind, Run, SegmentState
from harness_eval_msgs.msg import SceneGraphOp, SceneGraphUpdate

SUPPORT = Path(__file__).parents[1] / 'support'

MOMENTS = [
    ('hold', 'after'),
    ('RECEIVED', 'after'),
    ('CAPTURED', 'before'),
    ('CAPTURED', 'after'),
    ('STARTED', 'after'),
    ('decide', 'before'),
    ('decide', 'after'),
    ('published', 'before'),
    ('published', 'after'),
]


class KilledWorld(Ears):
    """A cell, ears, and one evaluator process after the other on the same ledger."""

    def __init__(self, ros: Any, folder: Path, start: Callable[..., ChildNode]) -> None:
        super().__init__(ros)
        self.ros = ros
        self._start = start
        ros.spin(ros.adopt(FakeCell(context=ros.context)))
        config = folder / 'evaluation.yaml'
        # A process takes longer to start on a busy machine than the cell's proposals would wait.
        config.write_text(cell_yaml().replace('hold_timeout: 3.0', 'hold_timeout: 100.0'))
        self._url = f'sqlite:///{folder}/ledger.sqlite3'
        self._parameters = {
            'config': config,
            'ledger_url': self._url,
            'evidence_dir': folder / 'evidence',
        }
        self._endpoints: set[bytes] = set()
        self._reader: LedgerReader | None = None

    def begin(self, step: str = '', when: str = '') -> ChildNode:
        """Start a process that kills itself; wait until it hears what is reported."""
        child = self._child = self._start(
            'killed_evaluator',
            parameters=self._parameters,
            env={
                'KILL_STEP': step,
                'KILL_WHEN': when,
                'PYTHONPATH': os.pathsep.join([str(SUPPORT), os.environ.get('PYTHONPATH', '')]),
            },
        )

        def heard() -> bool:
            assert child.alive, child.log()
            # Endpoints of the processes before it linger for some seconds after a crash.
            fresh = [
                {bytes(e.endpoint_gid) for e in of(topic)} - self._endpoints
                for of, topic in (
                    (self.node.get_subscriptions_info_by_topic, 'scene_graph/proposed'),
                    (self.node.get_subscriptions_info_by_topic, 'tool_completions'),
                    (self.node.get_publishers_info_by_topic, 'harness_eval/outcomes'),
                )
            ]
            if all(fresh):
                self._endpoints.update(*fresh)
            return all(fresh)

        self.ros.wait(heard, what='the new process')
        return child

    def propose(self, run_id: str) -> None:
        """Propose an update of a run, and wait until it is on record."""
        node = SceneGraphOp(op=SceneGraphOp.ADD_NODE, subject=run_id)
        update = SceneGraphUpdate(run_id=run_id, update_id='held', ops=[node])
        self._insist(
            lambda: self.proposals.publish(update), lambda: self.reader.updates_of(run_id)
        )

    def report(self, run_id: str) -> None:
        """Report the end of a run, and wait until it is on record."""
        completion = self.completion(run_id)
        self._insist(lambda: self.completions.publish(completion), lambda: self.reader.run(run_id))

    def _insist(self, publish: Callable[[], None], done: Callable[[], Any]) -> None:
        """Publish again what a process that was only just discovered did not hear."""
        until = 0.0

        def heard() -> Any:
            nonlocal until
            if time.monotonic() > until:
                until = time.monotonic() + 2.0
                publish()
            return done()

        try:
            self.ros.wait(heard, what='what was published on record')
        except AssertionError as error:
            raise AssertionError(f'{error}; the process wrote:\n{self._child.log()}') from None

    @property
    def reader(self) -> LedgerReader:
        """A reader of the ledger, which the processes write one after the other."""
        if self._reader is None:
            self._reader = LedgerReader(self._url)
        return self._reader

    def released(self) -> list[tuple[int, str, str]]:
        """Revision, run and name of everything that is released."""
        return [(u.revision, u.run_id, u.update_id) for u in self.reader.released(0, 1000)[2]]

    def heard(self) -> set[tuple[int, str, str]]:
        """The same for all that was ever published as released."""
        return {(u.revision, u.run_id, u.update_id) for u in self.updates}

    def settled(self, run_id: str) -> Run:
        """Wait for a run to have an outcome on record; report its end if that was lost."""

        def found() -> Run | None:
            run = self.reader.run(run_id)
            if run is None:
                return None
            return run if run.last is not None and run.last.outcome is not None else None

        if self.reader.run(run_id) is None:
            self.report(run_id)
        settled: Run = self.ros.wait(found, what=f'the outcome of {run_id} on record')
        return settled

    def told(self, run_id: str) -> None:
        """Wait for the outcome of a run, and for what it released, to be heard."""
        self.outcome(run_id)
        released = {one for one in self.released() if one[1] == run_id}
        self.ros.wait(lambda: released <= self.heard(), what=f'what {run_id} released')


@pytest.fixture
def world(
    ros: Any, tmp_path: Path, subprocess_node: Callable[..., ChildNode]
) -> Iterator[KilledWorld]:
    made = KilledWorld(ros, tmp_path, subprocess_node)
    yield made
    made.reader.close()


@pytest.mark.timeout(400)  # nine processes that start, die and start again
def test_killed_at_every_transition(world: KilledWorld) -> None:
    names = []
    for step, when in MOMENTS:
        child = world.begin(step, when)
        for name in names[-1:]:  # of the process before
            world.settled(name)
            world.told(name)
        name = f'run {when} {step}'
        names.append(name)
        world.propose(name)
        if step != 'hold':
            world.report(name)
        assert child.wait_for_end() == -signal.SIGKILL, child.log()
        if step != 'published':
            assert name not in {o.run_id for o in world.outcomes}
    world.begin()
    runs = {name: world.settled(name) for name in names}
    released = world.released()
    assert world.heard() <= set(released)
    assert [revision for revision, _, _ in released] == list(range(1, len(released) + 1))
    assert len({(run, update) for _, run, update in released}) == len(released)

    lost = {'run after RECEIVED', 'run before CAPTURED'}  # the views were never noted as stored
    for name, run in runs.items():
        of_run = [update for _, of, update in released if of == name]
        assert run.last is not None
        outcome = run.last.outcome
        assert outcome is not None
        if name in lost:
            assert (outcome.kind, outcome.error_kind) == (OutcomeKind.ERROR, 'evidence_lost')
            assert of_run == []
        else:
            assert run.state is SegmentState.SUCCESS
            assert of_run == ['harness_eval:on_success:0', 'held']
        heard = {(o.attempt, o.error_kind) for o in world.outcomes if o.run_id == name}
        assert heard <= {(1, outcome.error_kind)}, 'nobody ever heard anything else of it'
