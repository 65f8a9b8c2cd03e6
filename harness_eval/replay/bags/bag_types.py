"""A decoder for one bag: the types that it defines go before those known anyway."""

from __future__ import annotations

from collections.abc import Collection, Mapping
import os

from harness_eval.contract import DecodeError
from harness_eval.decode import Decoder
from harness_eval.replay.bags.bag import Bag
from harness_eval.replay.results import Skipped


def decoder_for(
    bag: Bag,
    topics: Collection[str] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> tuple[Decoder, list[Skipped]]:
    """Make a decoder that knows the types of a bag.

    The definitions in the bag come first: they are those of the messages in it. A type that
    neither it nor anything else defines is an error when it is needed, and only then.

    Args:
        bag: The bag.
        topics: Absolute names of the topics that will be decoded; None: all.
        environment: Where installed types are looked for (``AMENT_PREFIX_PATH``).

    Returns:
        The decoder, to be used for this bag alone; and a note for each definition that cannot be
        used (``bad_definition``, ``conflicting_definition``).
    """
    decoder = Decoder.from_environment(environment)
    skipped = []
    carried = bag.definitions
    chosen = bag.topics.keys() if topics is None else topics & bag.topics.keys()
    for type_name in sorted({bag.topics[name].type for name in chosen}):
        definition = carried.get(type_name)
        if definition is None:
            continue
        try:
            decoder.register(type_name, definition.text, definition.form)
        except DecodeError as error:
            skipped.append(Skipped(bag.name, error.kind, error.message))
    return decoder, skipped
