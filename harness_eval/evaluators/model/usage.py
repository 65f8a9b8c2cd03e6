"""What answers of a model used, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness_eval.config.evaluators import PriceSettings
from harness_eval.lines import clean_line

PER = 1_000_000
"""Prices are for so many tokens."""

_MAX_ID = 100


@dataclass(frozen=True)
class Usage:
    """Tokens of one answer, as its server counted them.

    Attributes:
        sent: Tokens of the question, ``cached`` included.
        cached: Those of them that the server had cached.
        answered: Tokens of the answer, hidden reasoning included.
    """

    sent: int
    cached: int
    answered: int


@dataclass(frozen=True)
class Used:
    """What the server says about one answer besides the answer.

    Attributes:
        usage: Its tokens; ``None`` if the server does not say, or not in whole numbers.
        model: Which model answered; empty if the server does not say.
        request_id: How the server calls the exchange; empty if it does not say.
    """

    usage: Usage | None = None
    model: str = ''
    request_id: str = ''


@dataclass
class Tally:
    """What one judgement used, over all its answers. Belongs to one judgement alone.

    Attributes:
        answers: Each answer that came, also those that could not be read.
        prices: What tokens cost, if that is known.
    """

    answers: list[Used] = field(default_factory=list)
    prices: PriceSettings | None = None

    @property
    def cost(self) -> float | None:
        """Price of all answers; ``None`` without prices, or if tokens of one are not known."""
        if self.prices is None or not self.answers:
            return None
        cost = 0.0
        for used in self.answers:
            if used.usage is None:
                return None
            cost += cost_of(used.usage, self.prices)
        return cost

    @property
    def route(self) -> str:
        """Which models answered, each named once, in the order of their first answer."""
        return ', '.join(dict.fromkeys(used.model for used in self.answers if used.model))

    def note(self) -> str:
        """All of it in one line; empty if no answer came."""
        if not self.answers:
            return ''
        parts = []
        known = [used.usage for used in self.answers if used.usage is not None]
        if known:
            sent, cached, answered = (
                sum(getattr(usage, name) for usage in known)
                for name in ('sent', 'cached', 'answered')
            )
            parts.append(f'{sent} tokens in ({cached} cached), {answered} out')
        if len(known) < len(self.answers):
            parts.append('tokens not counted by the server')
        if self.cost is not None:
            parts.append(f'cost {self.cost:.6g}')
        ids = [used.request_id for used in self.answers if used.request_id]
        if ids:
            parts.append(f'request {", ".join(ids)}')
        if self.route:
            parts.append(f'answered by {self.route}')
        return '; '.join(parts)


def cost_of(usage: Usage, prices: PriceSettings) -> float:
    """Price of the tokens of one answer; cached ones are paid as such, not twice."""
    cached = prices.input if prices.cached_input is None else prices.cached_input
    fresh = usage.sent - usage.cached
    total = fresh * prices.input + usage.cached * cached + usage.answered * prices.output
    return total / PER


def read_used(body: Any, request_id: str = '') -> Used:
    """Read what a response says of itself; whatever is not well-formed is not known.

    Args:
        body: The body of the response, read from JSON.
        request_id: From the headers; without it the ``id`` in the body serves.
    """
    if not isinstance(body, dict):
        return Used(request_id=clean_line(request_id, _MAX_ID))
    named = request_id or _text(body.get('id'))
    return Used(
        usage=_usage(body.get('usage')),
        model=clean_line(_text(body.get('model')), _MAX_ID),
        request_id=clean_line(named, _MAX_ID),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ''


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    details = value.get('prompt_tokens_details')
    cached = _count(details.get('cached_tokens') or 0) if isinstance(details, dict) else 0
    sent = _count(value.get('prompt_tokens'))
    answered = _count(value.get('completion_tokens'))
    if sent is None or cached is None or answered is None or cached > sent:
        return None
    return Usage(sent, cached, answered)


def _count(value: Any) -> int | None:
    good = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if good else None
