"""The completions that a bag recorded, from every source that the configuration names."""

from __future__ import annotations

from harness_eval.completions import CompletionReader
from harness_eval.config import Config
from harness_eval.contract import DecodeError
from harness_eval.decode import Decoder
from harness_eval.replay.bags.bag import Bag
from harness_eval.replay.bags.topics import resolve_topic
from harness_eval.replay.results import Skipped
from harness_eval.replay.sources import SourceError
from harness_eval.runs import Completion

MAX_MALFORMED = 20
"""Most malformed messages of one source that are named one by one."""

_HIDDEN = (
    'the status of an action is a hidden topic, which `ros2 bag record` takes only with '
    '--include-hidden-topics'
)


def read_completions(
    bag: Bag, config: Config, decoder: Decoder, namespace: str = ''
) -> tuple[list[tuple[Completion, int]], list[Skipped]]:
    """Read the completions of a bag.

    Nothing is judged here: a completion that comes twice is given twice, and its stamp may be
    hours from its receipt. Of a goal of an action that had ended before the recording began, a
    bag shows no more than a node that was started then, so it is not taken.

    Args:
        bag: The bag.
        config: Its ``completions`` say where they come from.
        decoder: Knows the types, see :func:`harness_eval.replay.bags.decoder_for`.
        namespace: The namespace that the evaluator had, or would have had.

    Returns:
        Completions with their receipts (nanoseconds), in order of receipt, of one receipt in the
        order of the configuration; and notes on sources that are not in the bag
        (``no_such_topic``, ``wrong_type``, ``unknown_type``) and on messages that cannot be read
        (the kind of the error), which name topic and time; ``bag_damaged`` where fewer messages
        are found than there should be.
    """
    found: list[tuple[Completion, int]] = []
    skipped: list[Skipped] = []
    for source in config.completions:
        reader = CompletionReader(source, decoder, max(bag.start, 1))
        try:
            described = resolve_topic(bag.topics, reader.topic, (reader.type,), namespace)
            decoder.typestore_for(reader.type)
        except SourceError as error:
            text = f'no completions from here: {error.message}'
            if source.action is not None:
                text += '; ' + _HIDDEN
            skipped.append(Skipped(bag.name, error.kind, text))
            continue
        except DecodeError as error:
            text = f'the completions on {reader.topic} cannot be read: {error.message}'
            skipped.append(Skipped(bag.name, error.kind, text))
            continue
        topic = described.name
        malformed = came = 0
        for message in bag.messages((topic,)):
            came += 1
            try:
                found += [(one, message.receipt) for one in _read(reader, message.data)]
            except DecodeError as error:
                malformed += 1
                if malformed <= MAX_MALFORMED:
                    where = f'{topic} at {message.receipt / 1e9:.3f} s'
                    skipped.append(Skipped(bag.name, error.kind, f'{where}: {error.message}'))
        if malformed > MAX_MALFORMED:
            more = malformed - MAX_MALFORMED
            skipped.append(
                Skipped(bag.name, 'malformed_message', f'{topic}: {more} more cannot be read')
            )
        if described.count is not None and came < described.count and not bag.skipped:
            # A damaged index hides messages without any other sign.
            skipped.append(
                Skipped(
                    bag.name,
                    'bag_damaged',
                    f'{topic} has {described.count} messages by what the bag says of itself, but '
                    f'{came} are found; runs may be missing. Copy the bag again',
                )
            )
    found.sort(key=lambda one: one[1])  # stable
    return found, skipped


def _read(reader: CompletionReader, data: bytes) -> list[Completion]:
    try:
        return reader.read(data)
    except AttributeError as error:
        raise DecodeError(
            'wrong_definition', f'{reader.type} is defined otherwise in the bag: {error}'
        ) from None
