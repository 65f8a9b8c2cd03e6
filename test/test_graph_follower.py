"""A followed graph ends up level with the server, whatever the transport does."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
import pytest

from harness_eval.graph_follower import (
    Answer,
    FIRST_DELAY,
    GraphFollower,
    LAST_DELAY,
    MAX_BUFFERED,
    Question,
)
from harness_eval.scene_graph import Op, OpKind, SceneGraph, Update


def update(revision: int, graph_id: str = 'g') -> Update:
    """Order matters in these: each moves one thing to a place that only it knows."""
    ops = (
        Op(OpKind.REMOVE_NODE, 'thing'),
        Op(OpKind.ADD_EDGE, 'thing', 'on', f'{graph_id} {revision}'),
    )
    return Update('run', f'u{revision}', ops, graph_id, revision)


def updates(*revisions: int, graph_id: str = 'g') -> tuple[Update, ...]:
    return tuple(update(revision, graph_id) for revision in revisions)


@dataclass
class Server:
    """What answers the questions: all updates of one graph, a page at a time."""

    graph_id: str = 'g'
    released: int = 0
    page: int = 500
    asked: list[Question] = field(default_factory=list)

    def answer(self, question: Question) -> Answer:
        self.asked.append(question)
        first = question.after_revision + 1
        last = min(self.released, first + self.page - 1)
        same = question.graph_id in ('', self.graph_id)
        page = updates(*range(first, last + 1), graph_id=self.graph_id) if same else ()
        return Answer(self.graph_id, self.released, page)

    def settle(self, follower: GraphFollower, now: float = 0.0) -> float:
        """Let the follower ask until it has nothing to ask; return the time when it is done."""
        for _ in range(1000):
            question = follower.next_question(now)
            if question is not None:
                follower.answer(question, self.answer(question), now)
            elif follower.level:
                return now
            else:
                now += FIRST_DELAY
        raise AssertionError(f'not level after 1000 rounds: {follower}')


def followed(server: Server, **options: float) -> GraphFollower:
    follower = GraphFollower(SceneGraph(), **options)
    server.settle(follower)
    return follower


def is_level_with(follower: GraphFollower, server: Server) -> bool:
    expected = SceneGraph(server.graph_id)
    for item in updates(*range(1, server.released + 1), graph_id=server.graph_id):
        expected.apply(item)
    graph = follower.graph
    return (graph.graph_id, graph.revision, graph.query()) == (
        expected.graph_id,
        expected.revision,
        expected.query(),
    )


def test_a_late_start_gets_everything_page_by_page() -> None:
    server = Server(released=1203, page=500)
    follower = followed(server)
    assert is_level_with(follower, server)
    assert [question.after_revision for question in server.asked] == [0, 500, 1000]
    assert follower.counters.gaps_healed == 0


def test_an_update_that_is_next_needs_no_server() -> None:
    server = Server(released=2)
    follower = followed(server)
    server.asked.clear()
    assert follower.offer(update(3))
    assert follower.graph.revision == 3
    assert follower.next_question(1.0) is None


def test_updates_from_the_first_on_are_followed_before_any_server_answers() -> None:
    follower = GraphFollower(SceneGraph())
    assert [follower.offer(item) for item in updates(2, 1, 3)] == [False, True, True]
    assert (follower.graph.graph_id, follower.graph.revision) == ('g', 3)
    assert not follower.level
    assert follower.next_question(0.0) is not None


def test_updates_from_the_middle_wait_for_the_server() -> None:
    follower = GraphFollower(SceneGraph())
    assert not follower.offer(update(7))
    assert (follower.graph.graph_id, follower.graph.revision, follower.buffered) == ('', 0, 1)
    server = Server(released=7)
    server.settle(follower)
    assert is_level_with(follower, server)


def test_a_gap_is_asked_for_at_once_and_healed_in_order() -> None:
    server = Server(released=2)
    follower = followed(server)
    assert not follower.offer(update(4))
    assert not follower.offer(update(5))
    server.released = 5
    question = follower.next_question(0.0)
    assert question is not None
    assert (question.graph_id, question.after_revision) == ('g', 2)
    assert follower.answer(question, Answer('g', 5, updates(3)), 0.0)
    assert is_level_with(follower, server)
    assert follower.level
    assert follower.counters.gaps_healed == 1


def test_a_gap_that_the_topic_fills_by_itself_is_healed_too() -> None:
    follower = followed(Server(released=2))
    assert [follower.offer(item) for item in updates(5, 4, 3)] == [False, False, True]
    assert follower.graph.revision == 5
    assert follower.level
    assert follower.counters.gaps_healed == 1


def test_old_updates_are_ignored_and_counted() -> None:
    server = Server(released=3)
    follower = followed(server)
    before = follower.graph.query()
    assert [follower.offer(item) for item in updates(1, 3, 3)] == [False] * 3
    assert follower.graph.query() == before
    assert follower.counters.duplicates == 3
    assert follower.counters.applied == 3


def test_an_update_that_waits_twice_is_applied_once() -> None:
    follower = followed(Server(released=0))
    for item in updates(2, 2, 1, 1):
        follower.offer(item)
    assert follower.graph.revision == 2
    assert follower.counters.applied == 2


def test_the_graph_of_a_new_ledger_replaces_the_old_one() -> None:
    follower = followed(Server(released=5))
    new = Server('h', released=2)
    assert not follower.offer(update(2, 'h'))
    assert follower.graph.graph_id == 'g'
    new.settle(follower)
    assert is_level_with(follower, new)
    assert follower.counters.resets == 1


def test_a_new_ledger_without_updates_empties_the_graph() -> None:
    follower = followed(Server(released=5))
    new = Server('h', released=0)
    follower.server_appeared(1.0)
    new.settle(follower, 1.0)
    assert (follower.graph.graph_id, follower.graph.query()) == ('h', ((), ()))


def test_updates_of_a_graph_that_the_server_does_not_have_are_dropped() -> None:
    server = Server(released=5)
    follower = followed(server)
    for revision in (1, 2, 6):
        follower.offer(update(revision, 'older'))
    server.settle(follower)
    assert is_level_with(follower, server)
    assert follower.buffered == 0
    assert follower.counters.resets == 0


def test_an_update_that_came_while_the_question_was_out_is_kept() -> None:
    follower = followed(Server(released=5))
    follower.server_appeared(1.0)
    question = follower.next_question(1.0)
    assert question is not None
    # The new ledger's first update overtakes the answer of the server that goes down.
    follower.offer(update(1, 'h'))
    follower.answer(question, Answer('g', 5), 1.0)
    assert follower.buffered == 1
    new = Server('h', released=1)
    new.settle(follower, 1.0)
    assert is_level_with(follower, new)


def test_an_invented_revision_does_not_keep_the_graph_waiting() -> None:
    server = Server(released=5)
    follower = followed(server)
    follower.offer(update(1000))
    assert not follower.level
    server.settle(follower)
    assert follower.level
    assert is_level_with(follower, server)


def test_a_server_that_was_rolled_back_is_believed() -> None:
    follower = followed(Server(released=9))
    restored = Server(released=4)
    follower.server_appeared(1.0)
    restored.settle(follower, 1.0)
    assert is_level_with(follower, restored)
    assert follower.counters.rollbacks == 1


def test_an_answer_that_the_topic_has_overtaken_changes_nothing() -> None:
    follower = followed(Server(released=5))
    follower.server_appeared(1.0)
    question = follower.next_question(1.0)
    assert question is not None
    follower.offer(update(6))
    assert not follower.answer(question, Answer('g', 5), 1.0)
    assert follower.graph.revision == 6
    assert follower.counters.rollbacks == 0


def test_an_unreadable_update_is_asked_for_again() -> None:
    follower = followed(Server(released=2))
    follower.note_unreadable('g', 3)
    question = follower.next_question(0.0)
    assert question is not None
    assert follower.answer(question, Answer('g', 3, updates(3)), 0.0)
    assert follower.level
    assert follower.counters.gaps_healed == 1


def test_an_unreadable_update_of_another_graph_makes_the_server_say_which_one_is_present() -> None:
    follower = followed(Server(released=2), resync_period=0.0)
    follower.note_unreadable('h', 1)
    new = Server('h', released=1)
    new.settle(follower)
    assert is_level_with(follower, new)


def test_an_answer_that_holds_more_than_was_asked_for_does_no_harm() -> None:
    follower = followed(Server(released=2))
    follower.server_appeared(1.0)
    question = follower.next_question(1.0)
    assert question is not None
    extra = (*updates(1, 2, 3), *updates(3, 4, graph_id='h'))
    assert follower.answer(question, Answer('g', 3, extra), 1.0)
    assert is_level_with(follower, Server(released=3))
    assert follower.level


@pytest.mark.parametrize(('graph_id', 'revision'), [('', 1), ('g', 0), ('', 0)])
def test_an_update_that_was_never_released_is_refused(graph_id: str, revision: int) -> None:
    for follower in (GraphFollower(SceneGraph()), followed(Server(released=2))):
        with pytest.raises(ValueError, match='it was not released'):
            follower.offer(update(revision, graph_id))
        assert follower.counters.duplicates == 0


def test_without_an_answer_the_delay_doubles_up_to_its_limit() -> None:
    follower = GraphFollower(SceneGraph())
    now, asked = 0.0, []
    while len(asked) < 9:
        question = follower.next_question(now)
        if question is not None:
            asked.append(now)
            follower.unanswered(question, now)
        now += 0.01
    delays = [later - earlier for earlier, later in pairwise(asked)]
    expected = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, LAST_DELAY, LAST_DELAY]
    assert delays == pytest.approx(expected, abs=0.02)
    assert follower.counters.unanswered == 9
    assert not follower.answering


@pytest.mark.parametrize('answer', [Answer('', 0), Answer('g', 9), Answer('g', 9, updates(8))])
def test_an_answer_that_does_not_help_is_not_asked_for_again_at_once(answer: Answer) -> None:
    follower = followed(Server(released=2))
    follower.offer(update(9))
    question = follower.next_question(0.0)
    assert question is not None
    assert not follower.answer(question, answer, 0.0)
    assert follower.next_question(0.9 * FIRST_DELAY) is None
    assert follower.next_question(FIRST_DELAY) is not None


def test_two_servers_that_contradict_each_other_cause_no_storm() -> None:
    servers = [Server('g', released=3), Server('h', released=3)]
    follower = GraphFollower(SceneGraph(), resync_period=0.0)
    now = 0.0
    while now < 10.0:
        question = follower.next_question(now)
        if question is not None:
            server = servers[len(servers[0].asked + servers[1].asked) % 2]
            follower.answer(question, server.answer(question), now)
        now += 0.01
    assert len(servers[0].asked) + len(servers[1].asked) < 20


def test_only_one_question_is_out_at_a_time_and_it_expires() -> None:
    follower = GraphFollower(SceneGraph(), reply_timeout=2.0)
    question = follower.next_question(0.0)
    assert question is not None
    assert follower.next_question(1.0) is None
    assert follower.expired(1.9) is None
    assert follower.expired(2.0) is question
    assert not follower.answer(question, Answer('g', 1, updates(1)), 2.0)
    assert follower.graph.revision == 0
    assert follower.next_question(2.0 + FIRST_DELAY) is not None


@pytest.mark.parametrize(('period', 'asked'), [(10.0, True), (0.0, False)])
def test_the_server_is_asked_now_and_then_although_nothing_is_missing(
    period: float, asked: bool
) -> None:
    follower = followed(Server(released=1), resync_period=period)
    assert follower.next_question(9.9) is None
    assert (follower.next_question(10.0) is not None) is asked


def test_what_waits_is_bounded_and_still_heals() -> None:
    server = Server(released=0)
    follower = followed(server)
    for revision in range(2, MAX_BUFFERED + 12):
        follower.offer(update(revision))
    assert follower.buffered == MAX_BUFFERED
    assert follower.counters.dropped == 10
    assert follower.offer(update(1))
    assert follower.graph.revision == MAX_BUFFERED + 1
    server.released = MAX_BUFFERED + 11
    server.settle(follower)
    assert is_level_with(follower, server)


events = st.lists(
    st.one_of(
        st.tuples(st.just('release'), st.integers(1, 4)),
        # Counted back from the newest, so that duplicates, gaps and reordering all happen.
        st.tuples(st.just('topic'), st.integers(0, 6)),
        st.tuples(st.just('stale'), st.integers(0, 6)),
        st.tuples(st.just('answer'), st.booleans()),
        st.tuples(st.just('new ledger'), st.integers(0, 4)),
        st.tuples(st.just('rollback'), st.integers(1, 3)),
        st.tuples(st.just('unreadable'), st.integers(0, 3)),
    ),
    max_size=40,
)


@given(events, st.integers(1, 3))
def test_any_stream_ends_level_with_the_server(stream: list[tuple[str, int]], page: int) -> None:
    servers = [Server('g0', page=page)]
    follower = GraphFollower(SceneGraph(), resync_period=1.0)
    now = 0.0
    for what, number in stream:
        server = servers[-1]
        now += 0.05
        if what == 'release':
            server.released += number
        elif what == 'topic' and server.released > number:
            follower.offer(update(server.released - number, server.graph_id))
        elif what == 'stale' and servers[0].released > number:
            follower.offer(update(servers[0].released - number, servers[0].graph_id))
        elif what == 'answer':
            question = follower.next_question(now)
            if question is not None and number:
                follower.answer(question, server.answer(question), now)
            elif question is not None:
                follower.unanswered(question, now)
        elif what == 'new ledger':
            servers.append(Server(f'g{len(servers)}', number, page))
        elif what == 'rollback':
            server.released = max(0, server.released - number)
        elif what == 'unreadable' and server.released > number:
            follower.note_unreadable(server.graph_id, server.released - number)
    # Whatever was lost on the way: the next periodic question finds it.
    now = servers[-1].settle(follower, now + 10.0)
    servers[-1].settle(follower, now)
    assert is_level_with(follower, servers[-1])
