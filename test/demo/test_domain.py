"""The demo finds a ROS domain that nobody is on."""

from __future__ import annotations

import socket

from harness_eval.demo import domain as domain_module
from harness_eval.demo.domain import free_domain


def test_two_demos_get_two_domains() -> None:
    with free_domain() as first, free_domain() as second:
        assert first != second
        assert {first, second} <= set(range(1, 101))


def test_a_domain_that_a_participant_is_on_is_passed_over() -> None:
    with free_domain() as expected:
        pass
    # What the first participant of a domain does: it holds the domain's first unicast port.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as participant:
        participant.bind(('', domain_module._DISCOVERY_PORT + 250 * expected + 10))
        with free_domain() as found:
            assert found != expected
