"""What needs rclpy: nodes, sources, camera taps and the conversion of messages."""
