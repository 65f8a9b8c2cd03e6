"""Messages of the standard types as CDR bytes, made without ROS."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness_eval.decode import Decoder
from harness_eval.decode.typestore import MessageTypes

IMAGE = 'sensor_msgs/msg/Image'
COMPRESSED = 'sensor_msgs/msg/CompressedImage'
CAMERA_INFO = 'sensor_msgs/msg/CameraInfo'
JOINT_STATE = 'sensor_msgs/msg/JointState'
LASER_SCAN = 'sensor_msgs/msg/LaserScan'

TYPES = MessageTypes()
DECODER = Decoder(TYPES)


def to_bytes(type_name: str, message: Any, big_endian: bool = False) -> bytes:
    """Encode a message in either byte order."""
    store = TYPES.store(type_name)
    return bytes(store.serialize_cdr(message, type_name, little_endian=not big_endian))


def new(type_name: str, **members: Any) -> Any:
    """Make a message object."""
    return DECODER.new(type_name, **members)


def header(stamp: int = 5_000_000_007, frame_id: str = 'camera') -> Any:
    """Make a header; the stamp is in nanoseconds."""
    sec, nanosec = divmod(stamp, 1_000_000_000)
    time = new('builtin_interfaces/msg/Time', sec=sec, nanosec=nanosec)
    return new('std_msgs/msg/Header', stamp=time, frame_id=frame_id)


def raw_image(
    data: bytes,
    width: int,
    height: int,
    encoding: str,
    step: int,
    *,
    big_endian_pixels: bool = False,
    big_endian: bool = False,
    **of_header: Any,
) -> bytes:
    """Encode a ``sensor_msgs/Image``, plausible or not."""
    message = new(
        IMAGE,
        header=header(**of_header),
        height=height,
        width=width,
        encoding=encoding,
        is_bigendian=int(big_endian_pixels),
        step=step,
        data=np.frombuffer(data, np.uint8),
    )
    return to_bytes(IMAGE, message, big_endian)


def image_of(array: np.ndarray[Any, Any], encoding: str, padding: int = 0, **more: Any) -> bytes:
    """Encode an array ``HxW`` or ``HxWxC`` as it is, every row with so many bytes behind it."""
    rows = np.ascontiguousarray(array).reshape(array.shape[0], -1)
    packed = rows.view(np.uint8).reshape(array.shape[0], -1)
    padded = np.pad(packed, ((0, 0), (0, padding)), constant_values=0xA5)
    return raw_image(
        padded.tobytes(), array.shape[1], array.shape[0], encoding, padded.shape[1], **more
    )


def compressed_image(form: str, data: bytes, **of_header: Any) -> bytes:
    """Encode a ``sensor_msgs/CompressedImage``."""
    message = new(
        COMPRESSED, header=header(**of_header), format=form, data=np.frombuffer(data, np.uint8)
    )
    return to_bytes(COMPRESSED, message)


def joint_state(positions: dict[str, float], **of_header: Any) -> bytes:
    """Encode a ``sensor_msgs/JointState``."""
    message = new(
        JOINT_STATE,
        header=header(**of_header),
        name=list(positions),
        position=np.array(list(positions.values()), np.float64),
        velocity=np.empty(0),
        effort=np.empty(0),
    )
    return to_bytes(JOINT_STATE, message)


def laser_scan(ranges: list[float], **of_header: Any) -> bytes:
    """Encode a ``sensor_msgs/LaserScan``."""
    numbers = dict.fromkeys(
        (
            'angle_min', 'angle_max', 'angle_increment', 'time_increment',
            'scan_time', 'range_min', 'range_max',
        ),
        0.0,
    )  # fmt: skip
    message = new(
        LASER_SCAN,
        header=header(**of_header),
        ranges=np.array(ranges, np.float32),
        intensities=np.empty(0, np.float32),
        **numbers,
    )
    return to_bytes(LASER_SCAN, message)


def camera_info(
    width: int = 640,
    height: int = 480,
    k: tuple[float, ...] = (500.0, 0.0, 320.0, 0.0, 510.0, 240.0, 0.0, 0.0, 1.0),
    binning: tuple[int, int] = (0, 0),
    roi: tuple[int, int, int, int] = (0, 0, 0, 0),
    **of_header: Any,
) -> bytes:
    """Encode a ``sensor_msgs/CameraInfo``; ``roi`` is x, y, width, height."""
    region = new(
        'sensor_msgs/msg/RegionOfInterest',
        x_offset=roi[0],
        y_offset=roi[1],
        width=roi[2],
        height=roi[3],
        do_rectify=False,
    )
    message = new(
        CAMERA_INFO,
        header=header(**of_header),
        height=height,
        width=width,
        distortion_model='plumb_bob',
        d=np.array([0.1, -0.2, 0.001, 0.002, 0.0]),
        k=np.array(k),
        r=np.eye(3).ravel(),
        p=np.zeros(12),
        binning_x=binning[0],
        binning_y=binning[1],
        roi=region,
    )
    return to_bytes(CAMERA_INFO, message)
