"""The way in: one object that turns CDR bytes into what the rest of the package needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TYPE_CHECKING

from harness_eval.contract import CameraInfo, DecodeError, Image
from harness_eval.decode import camera_info, compressed, fields, header, raw_image
from harness_eval.decode.facts import HeaderFacts, ImageFacts
from harness_eval.decode.typestore import MessageTypes, normalized, TypeDefinition
from harness_eval.decode.values import empty_sequences
from harness_eval.field_path import FieldPath
from harness_eval.message_types import CAMERA_INFO, COMPRESSED_IMAGE, IMAGE

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

_PADDING = 3
"""Most bytes that pad a message to a multiple of four."""

_RESERVED = 8
"""Most bytes that rmw_fastrtps reserves, and never writes, for each sequence that is empty."""


class Decoder:
    """Decodes messages of any type from their CDR bytes, without ROS.

    Every method may be called on any thread. The only exception that leaves one is
    :class:`~harness_eval.contract.DecodeError`, whatever the bytes are.

    Args:
        types: The message types that it knows; default: the standard ones alone.
    """

    def __init__(self, types: MessageTypes | None = None) -> None:
        """Decode the types given."""
        self._types = types or MessageTypes()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Decoder:
        """Know the standard types and those that are installed.

        Args:
            environment: Usually ``os.environ``; ``AMENT_PREFIX_PATH`` and ``ROS_DISTRO`` count.
        """
        return cls(MessageTypes.from_environment(environment))

    def register(self, type_name: str, definition: str, form: str = 'ros2msg') -> None:
        """Learn a type from its definition, as a bag carries it.

        Raises:
            DecodeError: ``bad_definition``, ``conflicting_definition``, ``unknown_type`` (no name
                of a type).
        """
        self._types.register(type_name, definition, form)

    def message(self, type_name: str, data: bytes) -> Any:
        """Decode a whole message.

        Returns:
            A dataclass with the fields of the message; sequences of numbers are NumPy arrays that
            share memory with ``data`` and cannot be written.

        Raises:
            DecodeError: ``unknown_type``, ``bad_definition``, ``malformed_message``.
        """
        name = normalized(type_name)
        store = self._types.store(name)
        order = header.CdrReader(data, name).order
        # A view, so that slicing the bytes copies none of a picture.
        stream = memoryview(data)[header.ENCAPSULATION :]
        try:
            definition = store.get_msgdef(name)
            read = definition.deserialize_cdr_le if order == '<' else definition.deserialize_cdr_be
            message, end = read(stream, 0, definition.cls, store)
            spare = len(stream) - end
            if spare > _PADDING and spare > _PADDING + _RESERVED * empty_sequences(message):
                raise ValueError(f'{spare} bytes are left over')
            return message
        # The reader is generated code over untrusted bytes: whatever it raises means the same.
        except Exception as error:
            raise DecodeError(
                'malformed_message',
                f'{name}: the {len(data)} bytes are no such message ({error}); '
                'does the publisher use another version of the type?',
            ) from None

    def serialize(self, type_name: str, message: Any) -> bytes:
        """Encode a message as little-endian CDR.

        Args:
            type_name: Type of the message.
            message: What :meth:`message` gives or :meth:`new` makes.

        Raises:
            DecodeError: ``unknown_type``, ``bad_definition``, ``unserializable_message``.
        """
        name = normalized(type_name)
        store = self._types.store(name)
        try:
            return bytes(store.serialize_cdr(message, name, little_endian=True))
        except Exception as error:
            raise DecodeError(
                'unserializable_message', f'{name}: the message cannot be encoded: {error}'
            ) from None

    def new(self, type_name: str, **members: Any) -> Any:
        """Make a message; sequences of numbers are NumPy arrays of the type's element.

        Raises:
            DecodeError: ``unknown_type``, ``bad_definition``.
            TypeError: A field is missing or does not exist.
        """
        name = normalized(type_name)
        return self._types.store(name).types[name](**members)

    def typestore_for(self, type_name: str) -> Typestore:
        """Give the type store that holds a type and all that it is made of, for writing bags.

        Raises:
            DecodeError: ``unknown_type``, ``bad_definition``.
        """
        return self._types.store(normalized(type_name))

    def definition(self, type_name: str) -> TypeDefinition:
        """Give what a bag says of a type.

        Raises:
            DecodeError: ``unknown_type``, ``bad_definition``.
        """
        return self._types.definition(normalized(type_name))

    def stamp(self, type_name: str, data: bytes) -> HeaderFacts | None:
        """Read the header that a message begins with, in microseconds.

        Returns:
            Stamp, frame and where the content begins; None if messages of the type do not begin
            with a ``std_msgs/Header``.

        Raises:
            DecodeError: ``unknown_type``, ``bad_definition``, ``malformed_message``.
        """
        if type_name == IMAGE:
            return header.image_header(type_name, data)[0]
        if type_name == COMPRESSED_IMAGE:
            return header.compressed_header(type_name, data)[0]
        name = normalized(type_name)
        alignment = self._types.header_alignment(name)
        return None if alignment is None else header.header_facts(name, data, alignment)

    def image_facts(self, type_name: str, data: bytes) -> ImageFacts:
        """Check an image message as far as that is possible without decoding its pixels.

        Returns:
            Its size and encoding.

        Raises:
            DecodeError: ``not_an_image``, ``malformed_message``, ``malformed_image``,
                ``unsupported_encoding``.
        """
        name = normalized(type_name)
        if name == IMAGE:
            return raw_image.check(name, data).facts
        if name == COMPRESSED_IMAGE:
            return compressed.check(name, data).facts
        raise DecodeError(
            'not_an_image', f'{name} is not an image; expected {IMAGE} or {COMPRESSED_IMAGE}'
        )

    def image(self, type_name: str, data: bytes) -> Image:
        """Decode a ``sensor_msgs/Image`` or ``CompressedImage``.

        Returns:
            ``HxWx3 uint8, BGR`` for colour; ``HxW`` uint8, uint16 or float32 otherwise. It may
            share memory with ``data``.

        Raises:
            DecodeError: ``not_an_image``, ``malformed_message``, ``malformed_image``,
                ``unsupported_encoding``.
        """
        name = normalized(type_name)
        if name == IMAGE:
            return raw_image.decode(name, data)
        if name == COMPRESSED_IMAGE:
            return compressed.decode(name, data)
        raise DecodeError(
            'not_an_image', f'{name} is not an image; expected {IMAGE} or {COMPRESSED_IMAGE}'
        )

    def camera_info(self, type_name: str, data: bytes) -> CameraInfo:
        """Decode a ``sensor_msgs/CameraInfo``, with its region of interest and binning applied.

        Raises:
            DecodeError: ``not_a_camera_info``, ``malformed_message``, ``uncalibrated_camera``.
        """
        if normalized(type_name) != CAMERA_INFO:
            raise DecodeError('not_a_camera_info', f'{type_name} is not {CAMERA_INFO}')
        return camera_info.intrinsics(self.message(type_name, data))

    def reading(
        self, type_name: str, data: bytes, path: FieldPath, reduce: str | None = None
    ) -> float | tuple[float, ...]:
        """Decode one reading; see :func:`harness_eval.decode.fields.reading`."""
        return fields.reading(self.message(type_name, data), path, reduce)

    def text(self, type_name: str, data: bytes, path: FieldPath) -> str:
        """Decode one text; see :func:`harness_eval.decode.fields.text`."""
        return fields.text(self.message(type_name, data), path)

    def time(self, type_name: str, data: bytes, path: FieldPath) -> int:
        """Decode one stamp, nanoseconds; see :func:`harness_eval.decode.fields.time_of`."""
        return fields.time_of(self.message(type_name, data), path)
