"""Which topics a configuration names, and of which types they are."""

from __future__ import annotations

from collections.abc import Mapping

from harness_eval.config import Config
from harness_eval.contract import HarnessEvalError
from harness_eval.message_types import CAMERA_INFO
from harness_eval.ros.taps import message_class, UnknownTypeError


def require_types(config: Config) -> None:
    """Make sure that completions can be heard.

    Raises:
        HarnessEvalError: A message type of ``completions`` is not installed.
    """
    for source in config.completions:
        if source.action is None:
            try:
                message_class(source.type)
            except UnknownTypeError as error:
                raise HarnessEvalError(f'completions: {source.topic}: {error}') from error


def configured_types(config: Config, topics: Mapping[str, str]) -> dict[str, str]:
    """The message types that ``capture`` settles, by resolved topic.

    Args:
        config: The configuration.
        topics: What :func:`harness_eval.requests.resolved_topics` gave.
    """
    found: dict[str, str] = {}
    for view in config.capture.views.values():
        found[topics[view.topic]] = view.message_type
        if view.camera_info is not None:
            found[topics[view.camera_info]] = CAMERA_INFO
    for state in config.capture.states.values():
        if state.type is not None:
            found.setdefault(topics[state.topic], state.type)
    return found


def always_on(config: Config, topics: Mapping[str, str]) -> set[str]:
    """The resolved topics that are listened to all the time.

    Args:
        config: The configuration.
        topics: What :func:`harness_eval.requests.resolved_topics` gave.
    """
    views, states = config.capture.views.values(), config.capture.states.values()
    names = [view.topic for view in views if view.always_on]
    names += [state.topic for state in states if state.always_on]
    return {topics[name] for name in names}
