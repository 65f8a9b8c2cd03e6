"""What people write today: typed subscriptions that decode every picture of every camera.

``python -m benchmarks.nodes.always_on N`` subscribes to ``/camera_0`` … and keeps the newest
picture of each as BGR, ready for a judgement that may come.
"""

from __future__ import annotations

import sys
import time

import cv2
import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Image


def main() -> None:
    """Decode until interrupted, and print how many pictures came every second or so."""
    rclpy.init()
    node = rclpy.create_node('always_on')
    newest: dict[int, np.ndarray] = {}
    seen = 0

    def subscribe(number: int) -> None:
        def received(message: Image) -> None:
            nonlocal seen
            picture = np.frombuffer(message.data, np.uint8)
            picture = picture.reshape(message.height, message.width, 3)
            newest[number] = cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
            seen += 1

        node.create_subscription(Image, f'/camera_{number}', received, qos_profile_sensor_data)

    for number in range(int(sys.argv[1])):
        subscribe(number)
    print('ready', flush=True)
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except Exception:
        time.sleep(0.5)  # a signal shuts the context down on another thread
        if rclpy.ok():
            raise
    finally:
        rclpy.try_shutdown()
    print(f'pictures {seen}', flush=True)


if __name__ == '__main__':
    main()
