"""Reading recordings: rosbag2 (MCAP, sqlite3; split, packed) and rosbag1, a window at a time."""

from harness_eval.replay.bags.bag import Bag, BagMessage, BagTopic, Definition
from harness_eval.replay.bags.bag_types import decoder_for
from harness_eval.replay.bags.completions import read_completions
from harness_eval.replay.bags.csv_completions import completions_from_csv
from harness_eval.replay.bags.opening import open_bag
from harness_eval.replay.bags.qos import OfferedQos
from harness_eval.replay.bags.topics import absolute_name, resolve_topic

__all__ = [
    'Bag',
    'BagMessage',
    'BagTopic',
    'Definition',
    'OfferedQos',
    'absolute_name',
    'completions_from_csv',
    'decoder_for',
    'open_bag',
    'read_completions',
    'resolve_topic',
]
