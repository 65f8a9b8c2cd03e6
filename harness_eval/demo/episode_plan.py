"""What the episodes of a seed are: which runs, in which order, and what goes wrong in each.

Planning touches no simulator: the same seed and count give the same plan on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from harness_eval.demo.faults import Fault, Mishap
from harness_eval.demo.scenario import SCENARIO, Step

RUNS_PER_BAG: Final = 20

_BOTTLE: Final = {'target': 'bottle'}
_TOOLS: Final = ('survey_cell', 'pick_object', 'place_object', 'open_drawer', 'insert_peg')
_CAMERA_FAULTS: Final = tuple(fault for fault in Fault if fault.spoils_view)
_LIGHT: Final = (0.6, 1.4)  # of the light that the checks were written in
_NOISE: Final = (0.8, 4.0)  # grey levels
_DEMO_NOISE: Final = 1.6


@dataclass(frozen=True)
class Episode:
    """One run.

    Attributes:
        step: What is run, and which of its faults happens.
        mishap: What happens beside it.
        light: Brightness of the lamps, 1 is that of the demo.
    """

    step: Step
    mishap: Mishap = Mishap.NONE
    light: float = 1.0

    @property
    def wrong(self) -> str:
        """What goes wrong, in words; empty if nothing does."""
        wrong = [what.value for what in (self.step.fault, self.mishap) if what.value != 'none']
        return ' and '.join(wrong)


@dataclass(frozen=True)
class Session:
    """The runs of one bag, all in one cell.

    Attributes:
        name: Of the bag.
        number: From 0.
        seed: Of all that is left to chance.
        noise: Standard deviation of the cameras' noise, grey levels.
        episodes: In order.
    """

    name: str
    number: int
    seed: int
    noise: float
    episodes: tuple[Episode, ...]


def plan(count: int, seed: int) -> list[Session]:
    """Plan a number of runs.

    Args:
        count: How many at least; a run that needs another one before it comes with that one.
        seed: Of all that is left to chance.

    Raises:
        ValueError: The count is not positive.
    """
    if count < 1:
        raise ValueError(f'expected a positive number of runs, found {count}')
    deals = _deals(np.random.default_rng(seed))
    sessions: list[Session] = []
    left = count
    while left > 0:
        episodes: list[Episode] = []
        while len(episodes) < min(RUNS_PER_BAG, left):
            episodes.extend(next(deals))
        left -= len(episodes)
        number = len(sessions)
        rng = np.random.default_rng([seed, number])
        sessions.append(
            Session(
                name=f'episodes_{number:04}',
                number=number,
                seed=int(rng.integers(2**31)),
                noise=float(rng.uniform(*_NOISE)),
                episodes=tuple(episodes),
            )
        )
    return sessions


def demo_session(seed: int, name: str) -> Session:
    """The scenario of the demo as the runs of one bag.

    Args:
        seed: Of all that is left to chance.
        name: Of the bag.
    """
    # Plain dictionaries, since sessions travel to other processes.
    steps = [replace(step, arguments=dict(step.arguments)) for step in SCENARIO]
    return Session(name, 0, seed, _DEMO_NOISE, tuple(map(Episode, steps)))


def _deals(rng: np.random.Generator) -> Iterator[list[Episode]]:
    """Deal what can happen from a shuffled deck, again and again, so that nothing is left out."""
    while True:
        deck = _deck(rng)
        for place in rng.permutation(len(deck)):
            light = float(rng.uniform(*_LIGHT))
            yield [replace(episode, light=light) for episode in deck[place]]


def _deck(rng: np.random.Generator) -> list[tuple[Episode, ...]]:
    deck = [
        _one('survey_cell'),
        _one('survey_cell', mishap=Mishap.THING_DISPLACED),
        _one('survey_cell', mishap=Mishap.THING_TOPPLED),
        _one('survey_cell', mishap=Mishap.DRAWER_LEFT_OPEN),
        _one('pick_object'),
        _one('pick_object', Fault.MISSED_GRASP),
        _one('pick_object', Fault.SLIP),
        _one('pick_object', Fault.WRONG_OBJECT),
        _one('pick_object', mishap=Mishap.HELD_LOW),
        _one('place_object'),
        _one('place_object', Fault.OFF_TARGET),
        _one('place_object', Fault.KNOCKED_OVER),
        _one('place_object', mishap=Mishap.NUDGED),
        _one('open_drawer'),
        _one('open_drawer', Fault.HALF_OPEN),
        _one('open_drawer', mishap=Mishap.PUSHED_BACK),
        _one('insert_peg'),
        _one('insert_peg', Fault.PEG_ON_RIM),
        _one('insert_peg', Fault.PEG_BLOCKED),
        _one('insert_peg', mishap=Mishap.DRAWN_OUT),
    ]
    # One camera fails in a deck, in one tool or another.
    fault = _CAMERA_FAULTS[int(rng.integers(len(_CAMERA_FAULTS)))]
    deck.append(_one(_TOOLS[int(rng.integers(len(_TOOLS)))], fault))
    return deck


def _one(
    tool: str, fault: Fault = Fault.NONE, mishap: Mishap = Mishap.NONE
) -> tuple[Episode, ...]:
    arguments = _BOTTLE if tool in ('pick_object', 'place_object') else {}
    if tool == 'place_object':
        before = Episode(Step('pick_object', _BOTTLE, reset=True))
        return before, Episode(Step(tool, arguments, fault), mishap)
    return (Episode(Step(tool, arguments, fault, reset=True), mishap),)
