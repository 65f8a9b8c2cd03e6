"""The missing exit code for robot tools: did what just ended really work?"""

__version__ = '0.1.0'
