"""Writes what the cell senses to a rosbag2 bag, as ``ros2 bag record`` would have: no ROS needed.

Messages get a time of receipt a little after their stamp, as on a robot, and are written in order
of receipt.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import cv2
import numpy as np

from harness_eval.cases import completion_message, COMPLETION_TOPIC, COMPLETION_TYPE
from harness_eval.decode import Decoder
from harness_eval.demo.cameras import intrinsics, Picture
from harness_eval.demo.cell import JointReading
from harness_eval.runs import Completion

_IMAGE: Final = 'sensor_msgs/msg/Image'
_COMPRESSED: Final = 'sensor_msgs/msg/CompressedImage'
_INFO: Final = 'sensor_msgs/msg/CameraInfo'
_JOINTS: Final = 'sensor_msgs/msg/JointState'
_SECOND: Final = 1_000_000_000
# Nanoseconds from a stamp to its receipt, shortest and longest.
_CAMERA_DELAY: Final = (15_000_000, 45_000_000)
_JOINTS_DELAY: Final = (500_000, 3_000_000)
_COMPLETION_DELAY: Final = (500_000, 4_000_000)


class Recording:
    """A bag that is being written; a context manager.

    Args:
        folder: Of the bag; must not be there yet.
        jpeg: Quality (1 to 100) of JPEG views on ``…/image_raw/compressed``; None: raw ones on
            ``…/image_raw``.
        seed: Of the delays.
    """

    def __init__(self, folder: Path, jpeg: int | None, seed: int) -> None:
        """Prepare it; nothing is written before the block is entered."""
        from rosbags.rosbag2 import StoragePlugin, Writer
        from rosbags.rosbag2.enums import CompressionFormat, CompressionMode

        self._decoder = Decoder()
        self._jpeg = jpeg
        self._rng = np.random.default_rng(seed)
        self._writer = Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP)
        self._writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        self._connections: dict[str, Any] = {}
        self._waiting: list[tuple[int, int, str, str, bytes]] = []

    def __enter__(self) -> Recording:
        """Begin to write."""
        self._writer.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Write what waits, and the index."""
        self.flush()
        self._writer.close()

    def picture(self, camera: str, taken: int, picture: Picture, stamp: int) -> None:
        """Record a picture with its camera_info.

        Args:
            camera: Which one took it.
            taken: When, nanoseconds.
            picture: ``HxWx3 uint8, RGB``.
            stamp: When the camera says that it took it, nanoseconds.
        """
        receipt = taken + self._delay(_CAMERA_DELAY)
        header = self._header(stamp, f'cell_{camera}_optical_frame')
        topic = f'/cell/{camera}/image_raw'
        if self._jpeg is None:
            message = self._decoder.new(
                _IMAGE,
                header=header,
                height=picture.shape[0],
                width=picture.shape[1],
                encoding='rgb8',
                is_bigendian=0,
                step=3 * picture.shape[1],
                data=picture.reshape(-1),
            )
            self._add(topic, _IMAGE, receipt, message)
        else:
            options = [cv2.IMWRITE_JPEG_QUALITY, self._jpeg]
            _, data = cv2.imencode('.jpg', np.ascontiguousarray(picture[:, :, ::-1]), options)
            message = self._decoder.new(
                _COMPRESSED,
                header=header,
                format='rgb8; jpeg compressed bgr8',
                data=np.asarray(data, dtype=np.uint8).reshape(-1),
            )
            self._add(f'{topic}/compressed', _COMPRESSED, receipt, message)
        self._add(f'/cell/{camera}/camera_info', _INFO, receipt, self._info(camera, header))

    def joints(self, stamp: int, readings: Sequence[JointReading]) -> None:
        """Record the joints; nanoseconds."""
        message = self._decoder.new(
            _JOINTS,
            header=self._header(stamp, ''),
            name=[reading.name for reading in readings],
            position=np.array([reading.position for reading in readings]),
            velocity=np.array([reading.velocity for reading in readings]),
            effort=np.array([reading.effort for reading in readings]),
        )
        self._add('/joint_states', _JOINTS, stamp + self._delay(_JOINTS_DELAY), message)

    def completion(self, completion: Completion) -> None:
        """Record that a run, or a segment of one, has ended."""
        receipt = completion.stamp + self._delay(_COMPLETION_DELAY)
        data = completion_message(completion, self._decoder)
        self._waiting.append(
            (receipt, len(self._waiting), COMPLETION_TOPIC, COMPLETION_TYPE, data)
        )

    def flush(self) -> None:
        """Write what waits; nothing that is recorded later may have been received earlier."""
        for receipt, _, topic, kind, data in sorted(self._waiting, key=lambda one: one[:2]):
            connection = self._connections.get(topic)
            if connection is None:
                connection = self._connections[topic] = self._writer.add_connection(
                    topic, kind, typestore=self._decoder.typestore_for(kind)
                )
            self._writer.write(connection, receipt, data)
        self._waiting.clear()

    def _add(self, topic: str, kind: str, receipt: int, message: Any) -> None:
        data = self._decoder.serialize(kind, message)
        self._waiting.append((receipt, len(self._waiting), topic, kind, data))

    def _delay(self, limits: tuple[int, int]) -> int:
        return int(self._rng.integers(*limits))

    def _header(self, stamp: int, frame_id: str) -> Any:
        seconds, nanoseconds = divmod(stamp, _SECOND)
        time = self._decoder.new('builtin_interfaces/msg/Time', sec=seconds, nanosec=nanoseconds)
        return self._decoder.new('std_msgs/msg/Header', stamp=time, frame_id=frame_id)

    def _info(self, camera: str, header: Any) -> Any:
        lens = intrinsics(camera)
        (x, y), f = lens.centre, lens.focal
        region = self._decoder.new(
            'sensor_msgs/msg/RegionOfInterest',
            x_offset=0,
            y_offset=0,
            height=0,
            width=0,
            do_rectify=False,
        )
        return self._decoder.new(
            _INFO,
            header=header,
            height=lens.height,
            width=lens.width,
            distortion_model='plumb_bob',
            d=np.zeros(5),
            k=np.array([f, 0.0, x, 0.0, f, y, 0.0, 0.0, 1.0]),
            r=np.eye(3).reshape(-1),
            p=np.array([f, 0.0, x, 0.0, 0.0, f, y, 0.0, 0.0, 0.0, 1.0, 0.0]),
            binning_x=0,
            binning_y=0,
            roi=region,
        )
