"""What can be told of a message without decoding all of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HeaderFacts:
    """The leading ``std_msgs/Header`` of a message.

    Attributes:
        stamp: Nanoseconds since the epoch; 0 if the driver left it unset.
        frame_id: Coordinate frame, empty if there is none.
        payload_offset: Where in the bytes the content begins that tells one message from the next
            under another stamp: at the pixels of an image, behind the header of any other type.
    """

    stamp: int
    frame_id: str
    payload_offset: int


@dataclass(frozen=True)
class ImageFacts:
    """Size and encoding of an image message whose pixels were not decoded.

    Attributes:
        width: Pixels in a row.
        height: Number of rows.
        encoding: As the message names it, for example ``rgb8`` or ``rgb8; jpeg compressed bgr8``.
        offset: Where in the bytes the pixels (or the compressed file) begin.
        size: Number of bytes of the pixels (or the compressed file).
    """

    width: int
    height: int
    encoding: str
    offset: int
    size: int
