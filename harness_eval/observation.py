"""From the captured frames to the observation that an evaluator is given, and its digest.

States are read and images checked at once, so that nobody is asked about a message that cannot be
read; the pixels of a view are decoded when an evaluator first looks at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
import hashlib
import json
import struct
from typing import Any, TYPE_CHECKING

import numpy as np

from harness_eval.contract import (
    CameraInfo,
    CaptureError,
    DecodeError,
    EvaluationRequest,
    Image,
    Observation,
    State,
    View,
)
from harness_eval.decode import Decoder, ImageFacts
from harness_eval.field_path import FieldPath
from harness_eval.lines import printable
from harness_eval.times import seconds

if TYPE_CHECKING:
    from harness_eval.capture import Captured, Frame
    from harness_eval.config.models import CaptureSettings, Config, StateSettings

CAMERA_INFO_SUFFIX = '/camera_info'
"""What the stream of a view's intrinsics is called, behind the name of the view; no view or state
can be called so."""

_LINE_LENGTH = 200
_VALUES_SHOWN = 4
_LENGTH = struct.Struct('>Q')


def build_observation(
    captured: Captured,
    config: Config,
    decoder: Decoder,
    *,
    topics: Mapping[str, str] | None = None,
) -> Observation:
    """Make the observation from the chosen frames.

    Args:
        captured: The frames, by the names of views and states; the intrinsics of the view
            ``front`` come as the stream ``front/camera_info``.
        config: The settings, for field paths and reductions.
        decoder: Reads the messages.
        topics: What streams' topics are called in the observation, where that differs from the
            frames (after a remapping, or in a bag).

    Raises:
        CaptureError: ``unknown_stream`` for a frame that the settings do not know,
            ``stale`` for one from before the end, ``bad_field_path``.
        DecodeError: A message that is not what the settings say; names the view or state.
    """
    settings = config.capture
    frames = captured.frames
    for stream in frames:
        _check_known(stream, settings)
    names = {**{stream: frame.topic for stream, frame in frames.items()}, **(topics or {})}
    views = {
        stream: _view(
            frame,
            names[stream],
            captured.t_end,
            decoder,
            frames.get(stream + CAMERA_INFO_SUFFIX),
        )
        for stream, frame in frames.items()
        if stream in settings.views
    }
    states = {
        stream: _state(frame, names[stream], captured.t_end, decoder, settings.states[stream])
        for stream, frame in frames.items()
        if stream in settings.states
    }
    return Observation(views, states, captured.t_end, captured.spread)


def owner_of(stream: str) -> str:
    """The view or state that a stream belongs to: intrinsics belong to their view."""
    return stream.removesuffix(CAMERA_INFO_SUFFIX)


def _check_known(stream: str, settings: CaptureSettings) -> None:
    if owner_of(stream) not in settings.views and stream not in settings.states:
        known = ', '.join([*settings.views, *settings.states]) or 'none'
        raise CaptureError(
            'unknown_stream',
            f'a frame of {printable(stream, _LINE_LENGTH)} was captured, but the configuration '
            f'has no such view or state; it has {known}',
        )


def _view(frame: Frame, topic: str, t_end: int, decoder: Decoder, info: Frame | None) -> View:
    what = f'view {frame.stream} ({printable(topic, _LINE_LENGTH)})'
    age = _age(frame, t_end, what)
    with _naming(what):
        facts = decoder.image_facts(frame.type, frame.data)
    camera_info = None if info is None else _camera_info(info, facts, t_end, decoder, what)

    def decode() -> Image:
        with _naming(what):
            return decoder.image(frame.type, frame.data)

    of_frame = f', frame {frame.frame_id}' if frame.frame_id else ''
    return View(
        name=frame.stream,
        topic=topic,
        type=frame.type,
        frame_id=frame.frame_id,
        stamp=frame.stamp,
        age=age,
        stamp_source=frame.stamp_source,
        summary=printable(
            f'{frame.stream}: {facts.width}x{facts.height} {facts.encoding} from {topic}'
            f'{of_frame}, {_when(frame, age)}',
            _LINE_LENGTH,
        ),
        decode=decode,
        camera_info=camera_info,
    )


def _camera_info(
    info: Frame, facts: ImageFacts, t_end: int, decoder: Decoder, view: str
) -> CameraInfo:
    what = f'camera_info of {view}'
    _age(info, t_end, what)
    with _naming(what):
        intrinsics = decoder.camera_info(info.type, info.data)
        if (intrinsics.width, intrinsics.height) != (facts.width, facts.height):
            # Poses computed from it would be wrong, and look right.
            raise DecodeError(
                'camera_info_mismatch',
                f'it describes {intrinsics.width}x{intrinsics.height} pixels, the image has '
                f'{facts.width}x{facts.height}; configure the camera_info of this very image',
            )
    return intrinsics


def _state(
    frame: Frame, topic: str, t_end: int, decoder: Decoder, settings: StateSettings
) -> State:
    what = f'state {frame.stream} ({printable(topic, _LINE_LENGTH)})'
    age = _age(frame, t_end, what)
    try:
        path = FieldPath.parse(settings.field)
    except ValueError as error:
        raise CaptureError('bad_field_path', f'{what}: {error}') from None
    with _naming(what):
        value = decoder.reading(frame.type, frame.data, path, settings.reduce)
    reduced = f'{settings.reduce} of ' if settings.reduce else ''
    return State(
        name=frame.stream,
        topic=topic,
        type=frame.type,
        frame_id=frame.frame_id,
        stamp=frame.stamp,
        age=age,
        stamp_source=frame.stamp_source,
        value=value,
        summary=printable(
            f'{frame.stream}: {_shown(value)}, {reduced}{path} from {topic}, {_when(frame, age)}',
            _LINE_LENGTH,
        ),
    )


def _age(frame: Frame, t_end: int, what: str) -> float:
    if frame.stamp < t_end:
        raise CaptureError(
            'stale',
            f'{what}: its frame is {seconds(t_end - frame.stamp):.3f} s older than the '
            'end of the execution; only what comes after it is evidence',
        )
    return seconds(frame.stamp - t_end)


def _when(frame: Frame, age: float) -> str:
    receipt = ' (stamped on receipt)' if frame.stamp_source == 'receipt' else ''
    return f'{age:.3f} s after the end{receipt}'


def _shown(value: float | tuple[float, ...]) -> str:
    if isinstance(value, float):
        return f'{value:.6g}'
    shown = ', '.join(f'{number:.6g}' for number in value[:_VALUES_SHOWN])
    more = f', … ({len(value)} values)' if len(value) > _VALUES_SHOWN else ''
    return f'[{shown}{more}]'


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Let an error of the decoder say which view or state it is about."""
    try:
        yield
    except DecodeError as error:
        raise DecodeError(error.kind, f'{what}: {error.message}') from error


def input_digest(request: EvaluationRequest, frames: Mapping[str, Frame]) -> str:
    """Digest everything that a judge is given.

    Equal digests mean equal questions: the post-condition with its checks and reference pictures,
    its rubric, what may be answered and reported, and every frame byte for byte with its age.
    Each field goes in with its length in front, so that nothing can move from one field to the
    next unseen.

    Args:
        request: What the evaluator is given.
        frames: The frames that its observation was made from, by stream.

    Returns:
        SHA-256, 64 hexadecimal digits.
    """
    condition = request.post_condition
    fields: list[Any] = [
        b'harness_eval input 1',
        condition.text,
        _canonical([_plain(check) for check in condition.checks]),
        _canonical(list(condition.failure_kinds)),
        'process' if condition.process_allowed else '',
        [_reference(name, condition.references[name]) for name in sorted(condition.references)],
        [
            [
                stream,
                frames[stream].topic,
                frames[stream].type,
                frames[stream].stamp_source,
                str(frames[stream].stamp - request.observation.t_end),
                frames[stream].data,
            ]
            for stream in sorted(frames)
        ],
        [
            [name, repr(request.observation.states[name].value)]
            for name in sorted(request.observation.states)
        ],
    ]
    # Added only where there are such, so that questions without them keep the digest they had.
    if condition.rubric is not None:
        fields.append(['rubric', condition.rubric.version, condition.rubric.digest])
    if condition.report:
        fields.append(['report', _canonical([vars(output) for output in condition.report])])
    if condition.regions:
        fields.append(['regions', _canonical(_plain_regions(condition.regions))])
    digest = hashlib.sha256()
    for part in _pieces(fields):
        digest.update(part)
    return digest.hexdigest()


def _reference(name: str, picture: Image) -> list[Any]:
    pixels = np.ascontiguousarray(picture)
    little = pixels.astype(pixels.dtype.newbyteorder('<'), copy=False)
    return [name, str(little.dtype.str), repr(tuple(pixels.shape)), little.tobytes()]


def _plain(check: Any) -> Any:
    dump = getattr(check, 'model_dump', None)
    return dump(mode='json') if callable(dump) else check


def _plain_regions(regions: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        evaluator: {view: list(region) for view, region in of_views.items()}
        for evaluator, of_views in regions.items()
    }


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(',', ':'), ensure_ascii=True)


def _pieces(field: Any) -> Iterable[bytes]:
    """Write nested fields so that no two trees are written alike."""
    if isinstance(field, list):
        yield b'l' + _LENGTH.pack(len(field))
        for item in field:
            yield from _pieces(item)
    elif isinstance(field, str):
        data = field.encode('utf-8', 'surrogatepass')
        yield b's' + _LENGTH.pack(len(data))
        yield data
    else:
        yield b'b' + _LENGTH.pack(len(field))
        yield field
