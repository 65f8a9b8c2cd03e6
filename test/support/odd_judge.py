"""A service of type ``Judge`` in a process of its own, which does what its parameter says.

``answer`` is the JSON of the fields of the response; ``delay`` seconds come before it. With the
delay -1 it hangs for good. It writes ``asked`` to its standard output whenever it is asked.
"""

from __future__ import annotations

import json
import math
import time
from typing import Any

import rclpy
from rclpy.node import Node

from harness_eval_msgs.srv import Judge


class OddJudge(Node):
    """Offers ``judge``."""

    def __init__(self) -> None:
        super().__init__('odd_judge')
        self.answer = json.loads(self.declare_parameter('answer', '{}').value)
        self.delay = self.declare_parameter('delay', 0.0).value
        self.create_service(Judge, 'judge', self.judge)

    def judge(self, request: Any, response: Any) -> Any:
        print('asked', flush=True)  # noqa: T201
        while self.delay < 0.0:
            time.sleep(0.05)
        time.sleep(self.delay)
        fields = {'score': math.nan, 'cost': math.nan, **self.answer}
        for name, value in fields.items():
            setattr(response, name, value)
        return response


rclpy.init()
node = OddJudge()
print('ready', flush=True)  # noqa: T201
rclpy.spin(node)
