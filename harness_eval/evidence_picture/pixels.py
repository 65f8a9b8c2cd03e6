"""Any picture of the contract as pixels that can be shown, and as a JPEG of bounded size."""

from __future__ import annotations

import numpy as np

from harness_eval.contract import Image

_UNREADABLE = (70, 40, 40)
"""BGR of pixels without a value in a depth image."""


def visible(picture: Image) -> Image:
    """Make any picture of the contract one that can be shown.

    Depth and deep grey are stretched between their 1st and 99th percentile; pixels without a
    value (not finite, or zero in a 16-bit image) are dark blue.

    Args:
        picture: ``HxWx3 uint8, BGR``; ``HxW`` uint8, uint16 or float32.

    Returns:
        ``HxWx3 uint8, BGR``.
    """
    if picture.ndim == 3:
        return picture
    if picture.dtype == np.uint8:
        return np.repeat(picture[..., None], 3, axis=2)
    values = picture.astype(np.float32)
    known = np.isfinite(values) if picture.dtype.kind == 'f' else picture > 0
    grey = np.zeros(picture.shape, np.uint8)
    if known.any():
        low, high = (float(bound) for bound in np.percentile(values[known], (1, 99)))
        span = high - low if high > low else 1.0
        scaled = np.clip((values[known] - low) / span, 0.0, 1.0)
        # A picture of one single value is shown in the middle, neither black nor white.
        grey[known] = np.rint(scaled * 235 + 20) if high > low else 128
    shown = np.repeat(grey[..., None], 3, axis=2)
    shown[~known] = _UNREADABLE
    return shown


def encode_jpeg(image: Image, quality: int = 85, max_bytes: int = 300_000) -> bytes:
    """Encode a picture, first in less quality and then smaller, until it is small enough.

    Args:
        image: ``HxWx3`` or ``HxW``, uint8.
        quality: Highest quality, 1..100.
        max_bytes: Most bytes that the file may have.

    Raises:
        ValueError: Not even a picture of 16 pixels fits, or the pixels are not uint8.
    """
    import cv2

    if image.dtype != np.uint8 or not image.size:
        raise ValueError(f'expected pixels of uint8, found {image.shape} of {image.dtype}')
    least = min(quality, 40)
    while True:
        for step in range(quality, least - 1, -15):
            encoded = cv2.imencode('.jpg', image, [cv2.IMWRITE_JPEG_QUALITY, step])[1]
            if encoded.size <= max_bytes:
                return encoded.tobytes()
        height, width = image.shape[:2]
        if max(height, width) <= 16:
            raise ValueError(f'a picture cannot be made to fit into {max_bytes} bytes')
        size = (max(1, width * 3 // 4), max(1, height * 3 // 4))
        image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA))
