"""Who waits for a turn and who has one: the limits of one evaluator, without threads or clock."""

from __future__ import annotations

from collections import OrderedDict

from harness_eval.calls.call import Call


class Line:
    """Calls that wait, in order, and calls that are under way. Pure; the caller has the lock.

    A call under way holds a slot until it is over or its deadline has passed: one that hangs
    beyond it holds none, so that others have their turn.

    Args:
        slots: Most calls under way; ``None``: no limit.
    """

    def __init__(self, slots: int | None) -> None:
        self._slots = slots
        self._waiting: OrderedDict[int, Call] = OrderedDict()
        self._under_way: dict[int, Call] = {}

    @property
    def waiting(self) -> int:
        """Calls that wait for their turn."""
        return len(self._waiting)

    @property
    def under_way(self) -> int:
        """Calls that hold a slot."""
        return len(self._under_way)

    def __bool__(self) -> bool:
        return bool(self._waiting or self._under_way)

    def enter(self, call: Call) -> None:
        """Have a call wait behind all others."""
        self._waiting[call.number] = call

    def enter_again(self, call: Call) -> None:
        """Have a call that was under way wait before all others."""
        self._under_way.pop(call.number, None)
        self._waiting[call.number] = call
        self._waiting.move_to_end(call.number, last=False)

    def leave(self, call: Call) -> None:
        """Have a call wait no more. One under way keeps its slot."""
        self._waiting.pop(call.number, None)

    def free(self, call: Call) -> None:
        """Take the slot of a call back."""
        self._under_way.pop(call.number, None)

    def begin(self, now: float, timeout: float) -> Call | None:
        """Give the next call a slot, and its deadline if it has none; ``None``: none may begin.

        Args:
            now: Steady seconds.
            timeout: Seconds from a call's beginning to its deadline.
        """
        if self._slots is not None and len(self._under_way) >= self._slots:
            return None
        call = next((call for call in self._waiting.values() if call.ready), None)
        if call is None:
            return None
        del self._waiting[call.number]
        self._under_way[call.number] = call
        call.tried = now
        if call.began is None:
            call.began = now
            call.deadline = now + timeout
        return call

    def overdue(self, now: float) -> Call | None:
        """A call under way whose deadline has passed; its slot is free then."""
        call = next((c for c in self._under_way.values() if c.deadline <= now), None)
        if call is not None:
            self.free(call)
        return call

    def out_of_patience(self, until: float) -> Call | None:
        """Take a call out of the line that does not wait beyond a time."""
        call = next((c for c in self._waiting.values() if c.patience <= until), None)
        if call is not None:
            self.leave(call)
        return call

    def take_waiting(self) -> list[Call]:
        """Take all calls that wait out of the line."""
        calls = list(self._waiting.values())
        self._waiting.clear()
        return calls

    def next_time(self) -> float | None:
        """Steady seconds at which the next deadline passes or patience ends."""
        times = [call.deadline for call in self._under_way.values()]
        times += [call.patience for call in self._waiting.values()]
        return min(times, default=None)
