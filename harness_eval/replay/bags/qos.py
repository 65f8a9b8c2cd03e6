"""What publishers offered, in every form in which bags have written it. Pure.

Foxy to Iron keep a text of YAML in the metadata, with numbers; newer ones nested YAML, with
names; a topic without publishers has an empty text. Nothing is decided by it in a replay, so what
cannot be understood is ``unknown`` and never an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

MAX_QOS_TEXT = 100_000
"""Longest text that is read; a recorder writes about 300 characters for each publisher."""

_HISTORY = ('system_default', 'keep_last', 'keep_all')
_RELIABILITY = ('system_default', 'reliable', 'best_effort')
_DURABILITY = ('system_default', 'transient_local', 'volatile')
UNKNOWN = 'unknown'


@dataclass(frozen=True)
class OfferedQos:
    """What one publisher offered.

    Attributes:
        history: ``keep_last``, ``keep_all``, ``system_default`` or ``unknown``.
        depth: Length of its queue; 0: not known.
        reliability: ``reliable``, ``best_effort``, ``system_default`` or ``unknown``.
        durability: ``volatile``, ``transient_local``, ``system_default`` or ``unknown``.
    """

    history: str = UNKNOWN
    depth: int = 0
    reliability: str = UNKNOWN
    durability: str = UNKNOWN


def offered_qos(value: Any) -> tuple[OfferedQos, ...]:
    """Read QoS profiles.

    Args:
        value: What stands in the metadata: a text of YAML, or what YAML gave already.
    """
    if isinstance(value, str):
        if not value.strip() or len(value) > MAX_QOS_TEXT:
            return ()
        try:
            value = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError, RecursionError):
            return ()
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return ()
    return tuple(_one(profile) for profile in value if isinstance(profile, dict))


def _one(profile: dict[Any, Any]) -> OfferedQos:
    depth = profile.get('depth')
    return OfferedQos(
        history=_name(profile.get('history'), _HISTORY),
        depth=depth if isinstance(depth, int) and depth >= 0 else 0,
        reliability=_name(profile.get('reliability'), _RELIABILITY),
        durability=_name(profile.get('durability'), _DURABILITY),
    )


def _name(value: Any, names: tuple[str, ...]) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return names[value] if 0 <= value < len(names) else UNKNOWN
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        return _name(int(value[:9]), names)
    if isinstance(value, str):
        # Some write the whole name of the enumeration: RMW_QOS_POLICY_HISTORY_KEEP_LAST.
        value = value.strip().lower()
        return next((name for name in names if value.endswith(name)), UNKNOWN)
    return UNKNOWN
