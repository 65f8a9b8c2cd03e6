"""The cell while it lives: one thread in which time passes, tools move and cameras look.

Threads: everything that touches the simulation or OpenGL runs in the cell's own thread. The
methods that other threads may call put a job into its queue and wait for the answer. Whatever the
cell senses is handed to a :class:`Sink` in the cell's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
import queue
import threading
import time
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from harness_eval.contract import Status
from harness_eval.demo.cameras import CAMERAS, Cameras, Picture
from harness_eval.demo.cell import Cell, CONTROL_PERIOD, JointReading
from harness_eval.demo.faults import Fault
from harness_eval.demo.tools import Motion, run_tool
from harness_eval.demo.truth import graph_truth, truth

Answer = TypeVar('Answer')

WRONG_CLOCK: Final = 2_500_000_000
"""Nanoseconds by which the camera of the clock fault is ahead."""

FAULTY_CAMERA: Final = {
    Fault.CAMERA_DEAD: 'wrist',
    Fault.CAMERA_FROZEN: 'front',
    Fault.CAMERA_CLOCK_WRONG: 'wrist',
}
"""Which camera a fault concerns."""

_LONGEST_TICK: Final = 0.1  # s; a stalled machine does not make the cell race afterwards
_CALL_TIMEOUT: Final = 60.0  # s


class Sink(Protocol):
    """Where what the cell senses goes. All methods are called in the cell's thread."""

    def wants(self, camera: str) -> bool:
        """Whether anybody looks through this camera; if not, no picture is rendered."""
        ...

    def picture(self, camera: str, stamp: int, picture: Picture) -> None:
        """Take a picture, ``HxWx3 uint8, RGB``; ``stamp`` in nanoseconds."""
        ...

    def joints(self, stamp: int, readings: Sequence[JointReading]) -> None:
        """Take the joints; ``stamp`` in nanoseconds."""
        ...

    def passed(self, simulated: int) -> None:
        """Take note that simulated time has come to this many nanoseconds."""
        ...


@dataclass(frozen=True)
class Pace:
    """How fast things go.

    Attributes:
        speed: Simulated seconds in a second while a tool moves; otherwise 1.
        frame_period: Seconds between pictures.
        joint_period: Seconds between readings of the joints.
    """

    speed: float = 4.0
    frame_period: float = 0.1
    joint_period: float = 0.02


class LiveCell:
    """Runs a cell in a thread of its own.

    Args:
        sink: Where what it senses goes.
        now: Gives stamps: nanoseconds of the ROS clock, or None for simulated time.
        seed: Of the cell, its noise and its tools' errors.
        pace: How fast things go.
    """

    def __init__(
        self,
        sink: Sink,
        now: Callable[[], int] | None,
        seed: int = 0,
        pace: Pace = Pace(),
    ) -> None:
        """Prepare the thread; nothing is built before :meth:`start`."""
        self._sink = sink
        self._now = now
        self._seed = seed
        self._pace = pace
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._motion: tuple[Motion, Future[None]] | None = None
        self._spoilt = Fault.NONE
        self._last: dict[str, Picture] = {}
        self._simulated = 0
        self._owed = 0.0
        self._stopping = threading.Event()
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name='demo_cell', daemon=True)

    def start(self) -> None:
        """Build the cell and let time pass; returns when it lives.

        Raises:
            Exception: Whatever kept the cell or its cameras from being made.
        """
        self._thread.start()
        self._ready.result(_CALL_TIMEOUT)

    def stop(self) -> None:
        """End the thread and give its OpenGL contexts back."""
        self._stopping.set()
        self._thread.join(5.0)

    # For other threads.

    def run_tool(
        self,
        tool: str,
        arguments: Mapping[str, str],
        segment: int = 0,
        fault: Fault = Fault.NONE,
        seed: int = 0,
    ) -> None:
        """Run one tool, or one of its segments, to its end. It says nothing about success.

        Raises:
            KeyError: Unknown tool, unknown object or missing argument.
        """
        done: Future[None] = Future()

        def begin() -> None:
            rng = np.random.default_rng([self._seed, seed, segment])
            motion = run_tool(self._cell, tool, arguments, segment, fault, rng)
            self._motion = (motion, done)

        self._call(begin)
        done.result(_CALL_TIMEOUT)

    def spoil(self, fault: Fault) -> None:
        """Begin a fault of a camera, or with another fault end those of the cameras."""

        def begin() -> None:
            self._spoilt = fault
            self._cell.uncover()
            if fault is Fault.CAMERA_OCCLUDED:
                self._cell.cover()
            if fault is Fault.CAMERA_FROZEN:
                camera = FAULTY_CAMERA[fault]
                self._last[camera] = self._cameras.picture(camera)

        self._call(begin)

    def reset(self) -> None:
        """Put everything back and end the faults of the cameras, as a person would."""

        def put_back() -> None:
            self._spoilt = Fault.NONE
            self._cell.reset()

        self._call(put_back)

    def truth(self, tool: str, arguments: Mapping[str, str]) -> Status:
        """Ask the oracle; see :func:`harness_eval.demo.truth.truth`."""
        return self._call(lambda: truth(self._cell, tool, arguments))

    def graph_truth(self) -> frozenset[tuple[str, str, str]]:
        """Ask the oracle for the relations that hold; see ``truth.graph_truth``."""
        return self._call(lambda: graph_truth(self._cell))

    def _call(self, function: Callable[[], Answer]) -> Answer:
        answer: Future[Answer] = Future()

        def job() -> None:
            try:
                answer.set_result(function())
            except Exception as error:
                answer.set_exception(error)

        self._jobs.put(job)
        return answer.result(_CALL_TIMEOUT)

    # In the cell's thread.

    def _run(self) -> None:
        try:
            self._cell = Cell(self._seed)
            self._cameras = Cameras(self._cell, self._seed)
        except Exception as error:
            self._ready.set_exception(error)
            return
        self._ready.set_result(None)
        try:
            self._live()
        finally:
            self._cameras.close()

    def _live(self) -> None:
        before = time.monotonic()
        next_frame = before
        while not self._stopping.is_set():
            self._do_jobs()
            now = time.monotonic()
            self._pass(min(now - before, _LONGEST_TICK))
            before = now
            stamp = self._simulated if self._now is None else self._now()
            self._sink.joints(stamp, self._cell.joints())
            if now >= next_frame:
                # Both cameras are triggered at once, so their pictures carry one stamp.
                for camera in CAMERAS:
                    self._look(camera, stamp)
                next_frame = max(next_frame + self._pace.frame_period, time.monotonic())
            spent = time.monotonic() - now
            self._stopping.wait(max(0.0, self._pace.joint_period - spent))

    def _do_jobs(self) -> None:
        while True:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return
            job()

    def _pass(self, seconds: float) -> None:
        """Let wall time pass in the cell, faster while a tool moves."""
        self._owed += seconds * (self._pace.speed if self._motion else 1.0)
        while self._owed >= CONTROL_PERIOD:
            self._owed -= CONTROL_PERIOD
            self._step_motion()
            self._cell.advance(CONTROL_PERIOD)
            self._simulated += round(CONTROL_PERIOD * 1e9)
            self._sink.passed(self._simulated)

    def _step_motion(self) -> None:
        if self._motion is None:
            return
        motion, done = self._motion
        try:
            next(motion)
        except StopIteration:
            self._motion = None
            self._owed = min(self._owed, CONTROL_PERIOD)
            done.set_result(None)
        except Exception as error:
            self._motion = None
            done.set_exception(error)

    def _look(self, camera: str, stamp: int) -> None:
        faulty = FAULTY_CAMERA.get(self._spoilt) == camera
        if faulty and self._spoilt is Fault.CAMERA_DEAD:
            return
        if not self._sink.wants(camera):
            # The next one to look must not be shown a picture from long ago.
            if not (faulty and self._spoilt is Fault.CAMERA_FROZEN):
                self._last.pop(camera, None)
            return
        picture: Any = None
        if faulty and self._spoilt is Fault.CAMERA_FROZEN:
            picture = self._last.get(camera)
        if picture is None:
            picture = self._last[camera] = self._cameras.picture(camera)
        if faulty and self._spoilt is Fault.CAMERA_CLOCK_WRONG:
            stamp += WRONG_CLOCK
        self._sink.picture(camera, stamp, picture)
