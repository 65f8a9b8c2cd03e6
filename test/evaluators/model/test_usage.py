"""Tokens and money."""

from __future__ import annotations

from typing import Any

import pytest

from harness_eval.config.evaluators import PriceSettings
from harness_eval.evaluators.model.usage import cost_of, read_used, Tally, Usage, Used

PRICES = PriceSettings(input=3.0, cached_input=0.3, output=15.0)


def test_cached_tokens_are_paid_once_and_at_their_price() -> None:
    assert cost_of(Usage(1000, 400, 50), PRICES) == pytest.approx(
        (600 * 3.0 + 400 * 0.3 + 50 * 15.0) / 1e6
    )


def test_without_a_price_of_their_own_cached_tokens_cost_as_others() -> None:
    prices = PriceSettings(input=3.0, output=15.0)
    assert cost_of(Usage(1000, 400, 50), prices) == cost_of(Usage(1000, 0, 50), prices)


@pytest.mark.parametrize(
    'usage',
    [
        None,
        [],
        {},
        {'prompt_tokens': 5},
        {'prompt_tokens': '5', 'completion_tokens': 1},
        {'prompt_tokens': True, 'completion_tokens': 1},
        {'prompt_tokens': -5, 'completion_tokens': 1},
        {'prompt_tokens': 5.0, 'completion_tokens': 1},
        {
            'prompt_tokens': 5,
            'completion_tokens': 1,
            'prompt_tokens_details': {'cached_tokens': 6},
        },
    ],
)
def test_usage_that_is_not_well_formed_is_not_known_and_has_no_cost(usage: Any) -> None:
    used = read_used({'usage': usage, 'model': 'm', 'id': 'x'})
    assert used == Used(None, 'm', 'x')
    assert Tally([used], PRICES).cost is None
    assert Tally([used]).note() == 'tokens not counted by the server; request x; answered by m'


def test_no_detail_about_cached_tokens_means_none() -> None:
    body = {'usage': {'prompt_tokens': 5, 'completion_tokens': 1, 'prompt_tokens_details': None}}
    assert read_used(body).usage == Usage(5, 0, 1)


def test_a_tally_adds_up_and_names_each_model_once() -> None:
    used = [Used(Usage(10, 4, 2), 'a', '1'), Used(Usage(20, 0, 3), 'b', '2'), Used(None, 'a')]
    tally = Tally(used[:2], PRICES)
    assert tally.cost == pytest.approx(cost_of(Usage(30, 4, 5), PRICES))
    assert tally.note().startswith('30 tokens in (4 cached), 5 out; cost ')
    assert Tally(used).route == 'a, b'


def test_nothing_used_is_nothing_to_say() -> None:
    assert (Tally().note(), Tally(prices=PRICES).cost) == ('', None)
