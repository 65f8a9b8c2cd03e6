"""An oracle of the tests, told what is true through its attribute ``truth``."""

from __future__ import annotations

from harness_eval.oracle import OracleRequest

truth: bool | None = None
asked: list[OracleRequest] = []


async def answer(request: OracleRequest) -> bool | None:
    """Say what the test has set."""
    asked.append(request)
    return truth
