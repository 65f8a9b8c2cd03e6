"""A request that can travel to another process: the same fields, the pictures decoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from harness_eval.contract import DecodeError, EvaluationRequest, Image, View


@dataclass(frozen=True)
class _Decoded:
    image: Image

    def __call__(self) -> Image:
        return self.image


@dataclass(frozen=True)
class _Undecodable:
    kind: str
    message: str

    def __call__(self) -> Image:
        raise DecodeError(self.kind, self.message)


def snapshot(request: EvaluationRequest) -> EvaluationRequest:
    """Make a request that can be pickled and says the same.

    A view holds a way to decode its message, which is bound to this process; the copy holds the
    picture. A picture that cannot be decoded raises the same :class:`DecodeError` there, and only
    if it is asked for.
    """
    seen = request.observation
    observation = replace(
        seen,
        views={name: _portable(view) for name, view in seen.views.items()},
        states=dict(seen.states),
    )
    asked = request.post_condition
    post_condition = replace(asked, references=dict(asked.references))
    return EvaluationRequest(post_condition, observation)


def _portable(view: View) -> View:
    decode: Callable[[], Image]
    try:
        decode = _Decoded(view.image)
    except DecodeError as error:
        decode = _Undecodable(error.kind, error.message)
    return replace(view, decode=decode)
