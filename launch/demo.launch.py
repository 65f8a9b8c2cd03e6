"""Watch the simulated cell being judged: ``ros2 launch harness_eval demo.launch.py``.

The same as ``make demo``: evaluator, scene graph and cell in processes of their own. Everything
ends when the cell has played its scenario.
"""

import os
from pathlib import Path
import shutil

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.action import Action
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    OpaqueFunction,
    SetEnvironmentVariable,
    Shutdown,
)
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

FAST_DDS_2 = ('humble', 'iron', 'jazzy')
"""Distributions with Fast DDS 2; later ones have Fast DDS 3."""


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; the rest follows when their values are known."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                'output',
                default_value='demo-output',
                description='Folder for summary.json, the evidence pictures and the record; what '
                'an earlier demo left there is replaced',
            ),
            DeclareLaunchArgument(
                'seed', default_value='0', description='Seed of the cell, its noise and its faults'
            ),
            DeclareLaunchArgument(
                'namespace',
                default_value='',
                description='Namespace of the nodes, and so of all their relative names',
            ),
            DeclareLaunchArgument(
                'log_level',
                default_value='warn',
                choices=['debug', 'info', 'warn', 'error', 'fatal'],
                description='What the nodes log at least',
            ),
            OpaqueFunction(function=start_demo),
        ]
    )


def start_demo(context: LaunchContext) -> list[Action]:
    """Make the nodes from the values of the arguments."""
    share = Path(get_package_share_directory('harness_eval'))
    output = Path(LaunchConfiguration('output').perform(context)).resolve()
    # A record of an earlier demo would make its runs known already.
    record = output / 'record'
    shutil.rmtree(record, ignore_errors=True)
    record.mkdir(parents=True)

    # What is set already wins. Camera images are larger than the shared memory that Fast DDS
    # takes by default (Fast DDS 3 warns of the name of the variable that Fast DDS 2 reads); and
    # the cell is rendered without a screen.
    fast_dds = 'FASTRTPS' if os.environ.get('ROS_DISTRO') in FAST_DDS_2 else 'FASTDDS'
    variables = {
        f'{fast_dds}_DEFAULT_PROFILES_FILE': str(share / 'config' / 'fastdds.xml'),
        'MUJOCO_GL': 'egl',
        'OMP_NUM_THREADS': '1',
    }
    environment: list[Action] = [
        SetEnvironmentVariable(name, os.environ.get(name, value))
        for name, value in variables.items()
    ]
    evaluation = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(share / 'launch' / 'harness_eval.launch.py')),
        launch_arguments={
            'config': str(share / 'config' / 'demo.yaml'),
            'ledger_url': f'sqlite:///{record / "ledger.sqlite3"}',
            'evidence_dir': str(record / 'cases'),
            'namespace': LaunchConfiguration('namespace'),
            'log_level': LaunchConfiguration('log_level'),
        }.items(),
    )
    # No name: two nodes live in this process, and a name would be given to both.
    cell = Node(
        package='harness_eval',
        executable='demo_cell',
        namespace=LaunchConfiguration('namespace'),
        arguments=['--output', str(output), '--seed', LaunchConfiguration('seed')],
        ros_arguments=['--log-level', LaunchConfiguration('log_level')],
        output='screen',
        on_exit=Shutdown(reason='the demo is over'),
    )
    return [*environment, evaluation, cell]
