"""Cameras that publish ``rgb8`` pictures: ``python -m benchmarks.nodes.cameras N W H RATE``.

Each camera has a phase of its own, as cameras that nobody synchronises have. Only a few bytes
change from picture to picture, so that publishing costs little more than the copies it needs.
"""

from __future__ import annotations

import array
import heapq
import random
import sys
import time

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Image


def main() -> None:
    """Publish until interrupted."""
    count, width, height = (int(text) for text in sys.argv[1:4])
    period = 1.0 / float(sys.argv[4])
    rclpy.init()
    node = rclpy.create_node('cameras')
    publishers = [
        node.create_publisher(Image, f'/camera_{number}', qos_profile_sensor_data)
        for number in range(count)
    ]
    noise = random.Random(0)
    message = Image(height=height, width=width, encoding='rgb8', step=width * 3)
    message.data = array.array('B', noise.randbytes(width * height * 3))
    message.header.frame_id = 'camera'
    start = time.monotonic()
    due = [(start + noise.random() * period, number) for number in range(count)]
    heapq.heapify(due)
    print('ready', flush=True)
    frames = 0
    try:
        while True:
            when, number = due[0]
            time.sleep(max(0.0, when - time.monotonic()))
            frames += 1
            message.data[:8] = array.array('B', frames.to_bytes(8, 'little'))
            stamp = message.header.stamp
            stamp.sec, stamp.nanosec = divmod(time.time_ns(), 10**9)
            publishers[number].publish(message)
            heapq.heapreplace(due, (when + period, number))
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        rclpy.try_shutdown()


if __name__ == '__main__':
    main()
