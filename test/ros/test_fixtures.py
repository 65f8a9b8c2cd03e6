"""The fixtures that the other ROS tests stand on."""

from __future__ import annotations

import threading

import pytest
from ros_domain import own_domain
from ros_world import RosWorld
from std_msgs.msg import String
from std_srvs.srv import Trigger


def test_two_domains_held_at_once_differ() -> None:
    with own_domain() as first, own_domain() as second:
        assert first != second
        assert {first, second} <= set(range(1, 101))


def test_a_message_travels_between_two_spun_nodes(ros: RosWorld) -> None:
    talker = ros.node('talker')
    listener = ros.node('listener', spin=True)
    received = ros.collect(listener, String, 'chat')
    publisher = talker.create_publisher(String, 'chat', 10)
    ros.wait(publisher.get_subscription_count, what='the listener to be discovered')
    publisher.publish(String(data='hello'))
    assert ros.wait(lambda: received, what='the message')[0].data == 'hello'


def test_two_worlds_do_not_hear_each_other(ros: RosWorld) -> None:
    with own_domain() as domain:
        other = RosWorld(domain)
        try:
            received = ros.collect(ros.node('listener', spin=True), String, 'chat')
            near = ros.node('near').create_publisher(String, 'chat', 10)
            far = other.node('far').create_publisher(String, 'chat', 10)
            ros.wait(near.get_subscription_count, what='the listener to be discovered')
            far.publish(String(data='from another world'))
            near.publish(String(data='from this one'))
            ros.wait(lambda: received, what='a message')
            assert [message.data for message in received] == ['from this one']
            assert far.get_subscription_count() == 0
        finally:
            other.close()


def test_a_service_is_called_while_both_nodes_spin(ros: RosWorld) -> None:
    server = ros.node('server', spin=True)

    def answer(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.message = 'done'
        return response

    server.create_service(Trigger, 'work', answer)
    client = ros.node('caller', spin=True).create_client(Trigger, 'work')
    assert ros.call(client, Trigger.Request()).message == 'done'


def test_waiting_in_vain_says_for_what(ros: RosWorld) -> None:
    with pytest.raises(AssertionError, match=r'in vain for the second coming: got 0'):
        ros.wait(lambda: 0, timeout=0.02, what='the second coming')


def test_an_exception_in_a_callback_fails_the_wait(ros_domain_id: int) -> None:
    world = RosWorld(ros_domain_id)
    node = world.node('fragile', spin=True)
    node.create_timer(0.01, lambda: 1 / 0)
    with pytest.raises(AssertionError, match='ZeroDivisionError'):
        world.wait(lambda: False, what='nothing')
    with pytest.raises(AssertionError, match='ZeroDivisionError'):
        world.close()


def test_no_thread_outlives_its_world(ros_domain_id: int) -> None:
    before = set(threading.enumerate())
    world = RosWorld(ros_domain_id)
    world.spin(world.node('one'), world.node('two'), threads=3)
    world.wait(lambda: set(threading.enumerate()) - before, what='the spinning thread')
    world.close()
    assert not {t for t in threading.enumerate() if t.name.startswith('Thread')} - before
