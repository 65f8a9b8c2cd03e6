"""Names of the message types that this package treats in a way of their own."""

from __future__ import annotations

IMAGE = 'sensor_msgs/msg/Image'
COMPRESSED_IMAGE = 'sensor_msgs/msg/CompressedImage'
CAMERA_INFO = 'sensor_msgs/msg/CameraInfo'
GOAL_STATUS = 'action_msgs/msg/GoalStatusArray'
TOOL_COMPLETION = 'harness_eval_msgs/msg/ToolCompletion'
