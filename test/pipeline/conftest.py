"""The fake world of the pipeline's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pipeline_world import World
import pytest


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """A function that makes the world of a test."""
    made: list[World] = []

    def make(**options: Any) -> World:
        made.append(World(tmp_path, **options))
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """The world of a test, with default settings."""
    return make_world()
