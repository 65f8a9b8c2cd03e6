#!/usr/bin/env python3
"""A judge of your own as a ROS 2 service: is the view bright, and is something in the gripper?

    python3 examples/judge_server.py --ros-args -p view:=front -p state:=gripper_opening

In the configuration of the evaluator node:

    evaluators:
      judge: {kind: service, service: judge}

It sees what every evaluator sees, and answers with a verdict, a score, an abstention or an error.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import cv2
import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node

from harness_eval_msgs.srv import Judge

HOLDING = 0.005
"""Metres that the fingers are apart when something is between them."""
DARKEST = 10.0
"""Mean grey value (0 to 255) of a picture in which nothing can be seen."""


class JudgeServer(Node):
    """Offers the service ``judge``."""

    def __init__(self) -> None:
        """Begin to answer."""
        super().__init__('judge_server')
        self.view = self.declare_parameter('view', 'front').value
        self.state = self.declare_parameter('state', 'gripper_opening').value
        self.create_service(Judge, 'judge', self.judge)
        self.get_logger().info('ready to judge')

    def judge(self, request: Any, response: Any) -> Any:
        """Answer one question. An exception here would leave the caller without an answer."""
        response.score = response.cost = math.nan  # NaN says that there is none; 0.0 is a score
        try:
            self.look(request, response)
        except Exception as error:
            response = Judge.Response(error=f'{type(error).__name__}: {error}')
        return response

    def look(self, request: Any, response: Any) -> None:
        """Fill in what is seen."""
        views = {view.name: picture(view.image) for view in request.views}
        states = {state.name: list(state.values) for state in request.states}
        if self.view not in views or self.state not in states:
            response.error = (
                f'I need the view {self.view!r} and the state {self.state!r}; '
                f'I was given {json.dumps([*views, *states])}'
            )
            return
        brightness = float(np.mean(views[self.view]))
        opening = states[self.state][0]
        response.evidence = [
            f'{self.view} has a mean brightness of {brightness:.1f}',
            f'{self.state} is {opening:.4f} m',
        ]
        if brightness < DARKEST:
            response.status = Judge.Response.ABSTAIN
        elif opening > HOLDING:
            response.status = Judge.Response.SUCCESS
        else:
            response.status = Judge.Response.FAILURE
            response.failure_reason = f'the fingers touch: {opening:.4f} m'
            response.failure_kind = 'post_condition'


def picture(image: Any) -> Any:
    """A picture as ``HxWx3 uint8, BGR``, ``HxW uint8`` or ``HxW uint16`` (depth in mm)."""
    decoded = cv2.imdecode(np.frombuffer(image.data, np.uint8), cv2.IMREAD_UNCHANGED)
    if decoded is None:
        raise ValueError('a picture that cannot be decoded')
    return decoded


def main() -> int:
    """Serve until Ctrl-C."""
    rclpy.init()
    server = JudgeServer()
    try:
        rclpy.spin(server)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        server.destroy_node()
        rclpy.try_shutdown()
    return 0


if __name__ == '__main__':
    sys.exit(main())
