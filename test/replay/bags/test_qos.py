"""QoS profiles in every form in which bags have written them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import pytest
import yaml

from harness_eval.replay.bags.qos import offered_qos, OfferedQos

HUMBLE = """\
- history: 1
  depth: 10
  reliability: 2
  durability: 2
  deadline:
    sec: 9223372036
    nsec: 854775807
  lifespan:
    sec: 9223372036
    nsec: 854775807
  liveliness: 1
  liveliness_lease_duration:
    sec: 9223372036
    nsec: 854775807
  avoid_ros_namespace_conventions: false"""
JAZZY = [
    {
        'history': 'keep_last',
        'depth': 10,
        'reliability': 'best_effort',
        'durability': 'volatile',
        'deadline': {'sec': 9223372036, 'nsec': 854775807},
        'avoid_ros_namespace_conventions': False,
    }
]
EXPECTED = (OfferedQos('keep_last', 10, 'best_effort', 'volatile'),)


@pytest.mark.parametrize(
    'value',
    [
        HUMBLE,
        yaml.safe_load(HUMBLE),
        JAZZY,
        JAZZY[0],
        yaml.safe_dump(JAZZY),
        HUMBLE.replace('history: 1', 'history: "1"'),
        HUMBLE.replace('reliability: 2', 'reliability: RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT'),
    ],
)
def test_numbers_names_and_texts_mean_the_same(value: Any) -> None:
    assert offered_qos(value) == EXPECTED


def test_each_publisher_has_its_own() -> None:
    both = offered_qos(HUMBLE + '\n' + HUMBLE.replace('durability: 2', 'durability: 1'))
    assert [one.durability for one in both] == ['volatile', 'transient_local']


@pytest.mark.parametrize(
    'value', ['', '  ', None, [], '[]', 'a: [', '\0', 7, '- 7', 'x' * 200_000]
)
def test_what_says_nothing_gives_nothing(value: Any) -> None:
    assert offered_qos(value) == ()


def test_what_is_not_known_is_unknown() -> None:
    odd = [{'history': 9, 'depth': -1, 'reliability': None, 'durability': 'best_available'}]
    assert offered_qos(odd) == (OfferedQos(),)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(('history', 'depth', 'durability', 'x')), inner)
    ),
)


@given(plain | st.text())
def test_nothing_raises(value: Any) -> None:
    assert all(isinstance(one, OfferedQos) for one in offered_qos(value))
