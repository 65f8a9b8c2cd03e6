"""Plays the runs of one bag in a cell and records what its sensors give around each end.

Time is simulated and stands still between the runs, while a person puts things back; pictures are
rendered only around the end of a segment, since nobody looks at the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from harness_eval.contract import Status
from harness_eval.demo.cameras import CAMERAS, Cameras, Picture
from harness_eval.demo.cell import Cell, CONTROL_PERIOD, Vector
from harness_eval.demo.episode_plan import Episode, Session
from harness_eval.demo.faults import Fault
from harness_eval.demo.live import FAULTY_CAMERA, WRONG_CLOCK
from harness_eval.demo.mishaps import befall
from harness_eval.demo.recording import Recording
from harness_eval.demo.tools import Motion, PEG_SEGMENTS, run_tool
from harness_eval.demo.truth import truth
from harness_eval.runs import Completion

BEFORE: Final = 0.2
"""Seconds before the end of a segment from which on pictures are recorded."""
AFTER: Final = 0.7
"""Seconds after the end until which everything is recorded."""
AFTER_SPOILT: Final = 3.6
"""The same where a camera gives nothing to judge: until the capture has to give up."""

_TICK: Final = round(CONTROL_PERIOD * 1e9)
_JOINTS_PERIOD: Final = 20_000_000
_BEGINS: Final = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z
_A_DAY: Final = 86_400_000_000_000
_PAUSE: Final = (5.0, 25.0)  # s in which a person puts things back
_NEVER_COMPLETE: Final = (Fault.CAMERA_DEAD, Fault.CAMERA_FROZEN)


@dataclass(frozen=True)
class Ended:
    """What really became of one segment.

    Attributes:
        run_id: Of its run.
        segment: Its number.
        tool: What ran.
        truth: Whether the post-condition held while the cameras looked.
        wrong: What went wrong, in words; empty if nothing did.
    """

    run_id: str
    segment: int
    tool: str
    truth: Status
    wrong: str


class EpisodePlayer:
    """Plays a session. Make, use and close it in one thread: it holds OpenGL contexts.

    Args:
        session: What to play.
        recording: Where what is sensed goes.
        frame_rate: Pictures of each camera in a second.
    """

    def __init__(self, session: Session, recording: Recording, frame_rate: float) -> None:
        """Build the cell and its cameras."""
        self._session = session
        self._recording = recording
        self._frame_period = max(1, round(1e9 / frame_rate / _TICK)) * _TICK
        self._cell = Cell(session.seed)
        self._cameras = Cameras(self._cell, session.seed, session.noise)
        self._lamps = np.array(self._cell.model.light_diffuse)
        self._head = np.array(self._cell.model.vis.headlight.diffuse)
        self._ambient = np.array(self._cell.model.vis.headlight.ambient)
        self._rng = np.random.default_rng(session.seed)
        self._now = _BEGINS + session.number * _A_DAY
        self._fault = Fault.NONE
        self._frozen: Picture | None = None

    def close(self) -> None:
        """Give the OpenGL contexts back."""
        self._cameras.close()

    def play(self) -> Iterator[Ended]:
        """Play the runs in order."""
        for number, episode in enumerate(self._session.episodes, start=1):
            self._prepare(episode)
            run_id = f'{self._session.name}-{number:02}-{episode.step.tool}'
            yield from self._play_run(run_id, number, episode)
            self._recording.flush()

    def _prepare(self, episode: Episode) -> None:
        self._now += round(self._rng.uniform(*_PAUSE) * 1e9) // _TICK * _TICK
        cell = self._cell
        if episode.step.reset:
            cell.reset()
        cell.model.light_diffuse[:] = episode.light * self._lamps
        cell.model.vis.headlight.diffuse[:] = episode.light * self._head
        cell.model.vis.headlight.ambient[:] = episode.light * self._ambient
        self._fault = episode.step.fault
        cell.uncover()
        if self._fault is Fault.CAMERA_OCCLUDED:
            cell.cover()
        self._frozen = None
        if self._fault is Fault.CAMERA_FROZEN:
            self._frozen = self._cameras.picture(FAULTY_CAMERA[self._fault])

    def _play_run(self, run_id: str, number: int, episode: Episode) -> Iterator[Ended]:
        step = episode.step
        for segment in range(PEG_SEGMENTS):
            rng = np.random.default_rng([self._session.seed, number, segment])
            last = step.tool != 'insert_peg' or segment == PEG_SEGMENTS - 1
            completion = self._execute(run_id, segment, episode, rng, last)
            self._look_on(completion.stamp)
            came_to = truth(self._cell, step.tool, step.arguments)
            yield Ended(run_id, segment, step.tool, came_to, episode.wrong)
            if came_to is not Status.PROCESS or step.fault.spoils_view:
                return

    def _execute(
        self, run_id: str, segment: int, episode: Episode, rng: np.random.Generator, last: bool
    ) -> Completion:
        """Run the tool, or its segment, and say that it ended."""
        step = episode.step
        mishap = episode.mishap
        if mishap.comes_first:
            self._pass(befall(self._cell, mishap, rng))
        motion = run_tool(self._cell, step.tool, step.arguments, segment, step.fault, rng)
        past = self._pass(motion)
        if last and not mishap.comes_first and mishap.value != 'none':
            past = self._pass(befall(self._cell, mishap, rng))
        self._record_past(past)
        completion = Completion(
            run_id, step.tool, segment, self._now, tuple(sorted(step.arguments.items()))
        )
        self._recording.completion(completion)
        return completion

    def _pass(self, motion: Motion) -> list[tuple[int, Vector]]:
        """Let the motion come to its end.

        Returns:
            The last states of the simulation that the sensors may have looked at, with their time.
        """
        past: deque[tuple[int, Vector]] = deque(maxlen=round(BEFORE * 1e9 / _JOINTS_PERIOD))
        for _ in motion:
            self._cell.advance(CONTROL_PERIOD)
            self._now += _TICK
            if self._now % _JOINTS_PERIOD == 0:
                past.append((self._now, self._cell.state()))
        return list(past)

    def _record_past(self, past: list[tuple[int, Vector]]) -> None:
        present = self._cell.state()
        for stamp, state in past:
            self._cell.show(state)
            self._sense(stamp)
        self._cell.show(present)

    def _look_on(self, end: int) -> None:
        """Record what the sensors give after the end."""
        after = AFTER_SPOILT if self._fault in _NEVER_COMPLETE else AFTER
        while self._now < end + round(after * 1e9):
            self._cell.advance(CONTROL_PERIOD)
            self._now += _TICK
            self._sense(self._now)

    def _sense(self, stamp: int) -> None:
        if stamp % _JOINTS_PERIOD == 0:
            self._recording.joints(stamp, self._cell.joints())
        if stamp % self._frame_period == 0:
            for camera in CAMERAS:
                self._look(camera, stamp)

    def _look(self, camera: str, stamp: int) -> None:
        faulty = FAULTY_CAMERA.get(self._fault) == camera
        if faulty and self._fault is Fault.CAMERA_DEAD:
            return
        picture = self._frozen if faulty and self._frozen is not None else None
        if picture is None:
            picture = self._cameras.picture(camera)
        wrong = WRONG_CLOCK if faulty and self._fault is Fault.CAMERA_CLOCK_WRONG else 0
        self._recording.picture(camera, stamp, picture, stamp + wrong)
