"""The base of every settings class: strict, immutable, unknown keys refused."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """Validated settings: unknown keys are refused and nothing can be changed afterwards."""

    model_config = ConfigDict(extra='forbid', frozen=True, strict=False)
