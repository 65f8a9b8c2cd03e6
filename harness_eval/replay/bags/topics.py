"""From the name of a topic in the configuration to a topic of a bag. Pure.

A name in the configuration is what a node is given: relative to its namespace, private to it
(``~/``) or absolute. A bag has absolute names only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches

from harness_eval.replay.bags.bag import BagTopic
from harness_eval.replay.sources import SourceError

NODE = 'harness_eval'
"""Name of the evaluator node, for private names."""

_MOST_NAMED = 10


def absolute_name(name: str, namespace: str = '') -> str:
    """The absolute name of a topic.

    Args:
        name: As in the configuration.
        namespace: The namespace that the evaluator had, or would have had.
    """
    if name.startswith('/'):
        return name
    if name.startswith('~/'):
        name = f'{NODE}/{name[2:]}'
    return '/' + '/'.join(part for part in (namespace.strip('/'), name) if part)


def resolve_topic(
    topics: Mapping[str, BagTopic],
    name: str,
    types: Collection[str] = (),
    namespace: str = '',
) -> BagTopic:
    """Find the topic of a bag that a name in the configuration means.

    Args:
        topics: The topics of the bag.
        name: As in the configuration.
        types: Message types that will do; empty: any.
        namespace: The namespace that the evaluator had, or would have had.

    Raises:
        SourceError: ``no_such_topic`` or ``wrong_type``; the message names the topics that would
            fit.
    """
    wanted = absolute_name(name, namespace)
    found = topics.get(wanted)
    if found is not None and (not types or found.type in types):
        return found
    expected = ' or '.join(sorted(types))
    if found is not None:
        raise SourceError(
            'wrong_type',
            f'{wanted} is of the type {found.type or "unknown"} in the bag, expected {expected}; '
            + _fitting(topics, wanted, types),
        )
    raise SourceError(
        'no_such_topic', f'{wanted} is not in the bag; {_fitting(topics, wanted, types)}'
    )


def _fitting(topics: Mapping[str, BagTopic], wanted: str, types: Collection[str]) -> str:
    fitting = [name for name, topic in topics.items() if not types or topic.type in types]
    of = f' of the type {" or ".join(sorted(types))}' if types else ''
    if not fitting:
        return f'no topic{of} is'
    # First those whose names are most alike.
    alike = get_close_matches(wanted, fitting, n=_MOST_NAMED, cutoff=0.0)
    more = len(fitting) - len(alike)
    return (
        f'the topics{of} there are {", ".join(alike)}'
        + (f' and {more} more' if more else '')
        + '; name one of them in the configuration, or give the namespace'
    )
