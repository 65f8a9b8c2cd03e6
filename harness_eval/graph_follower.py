"""Keeps a scene graph level with the released updates, whatever the transport does to them.

Pure: no ROS, no threads, no clock; the time comes in as seconds of a steady clock. The caller
hands in what arrives on the topic and the answers of the server that has all updates, and sends
the questions that come out.

Rules:

- An update that is the next one is applied at once. An old one is a duplicate and ignored.
- One further ahead is a gap: it is kept, and the server is asked for what lies between.
- One of another graph is kept, and the server is asked which graph is the present one. The
  server alone can replace a graph that is followed. The first graph after the start may also
  begin with its revision 1 from the topic: there is nothing that it could contradict.
- A server whose newest revision lies before one that it already gave out was rolled back (its
  ledger was restored from a copy). The graph is built again from what the server has now.
- Nothing is asked while an answer is outstanding; what fails is asked again after a delay that
  doubles.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness_eval.scene_graph import SceneGraph, Update

MAX_BUFFERED = 4000
"""Updates kept while something is missing before them; the server has what is dropped."""

FIRST_DELAY = 0.1
"""Seconds until the first repetition of a question."""

LAST_DELAY = 5.0
"""Most seconds between repetitions of a question."""


@dataclass(frozen=True, eq=False)
class Question:
    """What to ask the server: the updates of ``graph_id`` after ``after_revision``.

    Attributes:
        graph_id: The graph that is followed; empty: none yet.
        after_revision: The last revision applied.
        waiting: Graph and revision of the updates that waited when this was asked. One that the
            answer does not know of was never released.
        asked_at: Seconds of the steady clock.
    """

    graph_id: str
    after_revision: int
    waiting: frozenset[tuple[str, int]]
    asked_at: float


@dataclass(frozen=True)
class Answer:
    """What the server answered.

    Attributes:
        graph_id: The present graph; empty: the server has none yet.
        last_revision: Its newest released revision.
        updates: Updates of it, normally beginning after the revision asked for.
    """

    graph_id: str
    last_revision: int
    updates: tuple[Update, ...] = ()


@dataclass
class Counters:
    """What happened since the start.

    Attributes:
        applied: Updates applied.
        duplicates: Updates ignored because they were old.
        gaps_healed: Times that missing updates were found and applied.
        resets: Times that another graph replaced the one followed.
        rollbacks: Times that the server had forgotten updates.
        dropped: Updates not kept because too many were waiting.
        unanswered: Questions that got no answer.
    """

    applied: int = 0
    duplicates: int = 0
    gaps_healed: int = 0
    resets: int = 0
    rollbacks: int = 0
    dropped: int = 0
    unanswered: int = 0


@dataclass
class GraphFollower:
    """Applies released updates to a graph, each once and in order.

    Args:
        graph: The graph; only this object may change it.
        resync_period: Seconds after which the server is asked even if nothing seems to be
            missing; 0: never.
        reply_timeout: Seconds until a question counts as unanswered.
    """

    graph: SceneGraph
    resync_period: float = 10.0
    reply_timeout: float = 2.0
    counters: Counters = field(default_factory=Counters)
    _buffer: dict[tuple[str, int], Update] = field(default_factory=dict)
    _newest: int = 0
    _gap: bool = False
    _answered: bool = False
    _answered_at: float = 0.0
    _question: Question | None = None
    _answering: bool = False
    _not_before: float = float('-inf')
    _delay: float = FIRST_DELAY

    @property
    def level(self) -> bool:
        """Whether the server has answered and nothing is known to be missing."""
        return self._answered and not self._buffer and self.graph.revision >= self._newest

    @property
    def answering(self) -> bool:
        """Whether the last question was answered."""
        return self._answering

    @property
    def buffered(self) -> int:
        """Number of updates that wait for one before them, or for the server's word."""
        return len(self._buffer)

    @property
    def newest(self) -> int:
        """Newest revision of the graph known to exist."""
        return max(self._newest, self.graph.revision)

    def is_old(self, graph_id: str, revision: int) -> bool:
        """Whether an update is part of the graph already; counts it if so."""
        old = graph_id == self.graph.graph_id and 0 < revision <= self.graph.revision
        self.counters.duplicates += old
        return old

    def offer(self, update: Update) -> bool:
        """Take an update that arrived by itself.

        Args:
            update: A released update.

        Returns:
            Whether the graph changed.

        Raises:
            ValueError: It has no graph or no revision, so it was never released.
        """
        if not update.graph_id or not update.revision:
            raise ValueError(
                f'update {update.update_id!r} of run {update.run_id!r} has graph_id '
                f'{update.graph_id!r} and revision {update.revision}: it was not released'
            )
        if self.is_old(update.graph_id, update.revision):
            return False
        if not self.graph.graph_id and update.revision == 1:
            self._begin(update.graph_id)
        self._keep(update)
        return self._drain()

    def note_unreadable(self, graph_id: str, revision: int) -> None:
        """Take note of an update that arrived but cannot be used, so that the server is asked.

        Args:
            graph_id: Its graph.
            revision: Its revision.
        """
        if graph_id == self.graph.graph_id:
            self._newest = max(self._newest, revision)
            self._gap = True
        else:
            self._answered = False

    def next_question(self, now: float) -> Question | None:
        """What to ask now, if anything. The caller sends it or calls :meth:`unanswered`."""
        if self._question is not None or now < self._not_before:
            return None
        due = self.resync_period > 0.0 and now - self._answered_at >= self.resync_period
        if self.level and not due:
            return None
        self._question = Question(
            self.graph.graph_id,
            self.graph.revision,
            frozenset(self._buffer),
            now,
        )
        return self._question

    def expired(self, now: float) -> Question | None:
        """The outstanding question if its time is over; it then counts as unanswered."""
        question = self._question
        if question is None or now - question.asked_at < self.reply_timeout:
            return None
        self.unanswered(question, now)
        return question

    def unanswered(self, question: Question, now: float) -> None:
        """Give up a question, if it is outstanding; it is asked again after a delay."""
        if question is self._question:
            self._question = None
            self._answering = False
            self.counters.unanswered += 1
            self._back_off(now)

    def server_appeared(self, now: float) -> None:
        """A server came up: ask it, for it may be a new one with another graph."""
        self._question = None
        self._answered = False
        self._ask_at(now)

    def answer(self, question: Question, answer: Answer, now: float) -> bool:
        """Take the server's answer. Without effect if the question is not outstanding.

        Args:
            question: What was asked.
            answer: What came back.
            now: Seconds of the steady clock.

        Returns:
            Whether the graph changed.
        """
        if question is not self._question:
            return False
        if not answer.graph_id:
            self.unanswered(question, now)
            return False
        self._question = None
        self._answered = self._answering = True
        self._answered_at = now
        replaced = self._follow(question, answer)
        self._newest = answer.last_revision
        for key in question.waiting:
            if key[0] != answer.graph_id or key[1] > answer.last_revision:
                self._buffer.pop(key, None)
        for update in answer.updates:
            if update.graph_id == answer.graph_id and update.revision > self.graph.revision:
                self._buffer[update.graph_id, update.revision] = update
        applied = self._drain()
        if self.level or applied:
            self._ask_at(now)
        else:
            self._back_off(now)
        return replaced or applied

    def _follow(self, question: Question, answer: Answer) -> bool:
        """Change to the server's graph if it is another one; return whether it is."""
        if answer.graph_id != self.graph.graph_id:
            self.counters.resets += bool(self.graph.graph_id)
            self._begin(answer.graph_id)
            return True
        asked_of_it = question.graph_id == answer.graph_id
        if asked_of_it and answer.last_revision < question.after_revision:
            self.counters.rollbacks += 1
            self._begin(answer.graph_id)
            return True
        return False

    def _begin(self, graph_id: str) -> None:
        self.graph.reset(graph_id)
        self._newest = 0
        self._gap = False

    def _keep(self, update: Update) -> None:
        is_next = update.revision == self.graph.revision + 1
        if update.graph_id == self.graph.graph_id:
            self._newest = max(self._newest, update.revision)
            self._gap |= not is_next
        if len(self._buffer) >= MAX_BUFFERED and not is_next:
            self.counters.dropped += 1
        else:
            self._buffer.setdefault((update.graph_id, update.revision), update)

    def _drain(self) -> bool:
        """Apply what is next, as far as it goes."""
        graph = self.graph
        applied = 0
        while (update := self._buffer.pop((graph.graph_id, graph.revision + 1), None)) is not None:
            graph.apply(update)
            applied += 1
        self.counters.applied += applied
        ahead = any(graph_id == graph.graph_id for graph_id, _ in self._buffer)
        if self._gap and not ahead and graph.revision >= self._newest:
            self.counters.gaps_healed += 1
            self._gap = False
        return applied > 0

    def _ask_at(self, now: float) -> None:
        self._not_before = now
        self._delay = FIRST_DELAY

    def _back_off(self, now: float) -> None:
        self._not_before = now + self._delay
        self._delay = min(2.0 * self._delay, LAST_DELAY)
