"""Start the evaluator and the scene graph: ``ros2 launch harness_eval harness_eval.launch.py``.

``config:=/path/of/your.yaml`` says what is judged and how; ``--show-args`` lists the rest. An
argument that is left empty is not handed on, so that ``params_file`` may set it.
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

RESPAWN_DELAY = 2.0
"""Seconds; a node that ends at once must not fill the log."""


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; the nodes follow when their values are known."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                'config',
                default_value='',
                description='Path of the YAML file with tools, post-conditions, evaluators and '
                'views; without one, here or in params_file, the evaluator does not start',
            ),
            DeclareLaunchArgument(
                'namespace',
                default_value='',
                description='Namespace of the nodes, and so of all their relative names',
            ),
            DeclareLaunchArgument(
                'use_sim_time',
                default_value='false',
                choices=['true', 'false'],
                description='Take the time from /clock',
            ),
            DeclareLaunchArgument(
                'autostart',
                default_value='true',
                choices=['true', 'false'],
                description='Let the evaluator configure and activate itself; false: leave it to '
                'a lifecycle manager',
            ),
            DeclareLaunchArgument(
                'use_respawn',
                default_value='false',
                choices=['true', 'false'],
                description='Start a node again when it has ended',
            ),
            DeclareLaunchArgument(
                'ledger_url',
                default_value='',
                description='Where the record is kept, as sqlite:////path; empty: below ROS_HOME',
            ),
            DeclareLaunchArgument(
                'evidence_dir',
                default_value='',
                description='Folder in which judged cases are kept; empty: below ROS_HOME',
            ),
            DeclareLaunchArgument(
                'log_level',
                default_value='info',
                choices=['debug', 'info', 'warn', 'error', 'fatal'],
                description='What the nodes log at least',
            ),
            DeclareLaunchArgument(
                'params_file',
                default_value='',
                description='ROS 2 parameter file for both nodes; the other arguments win over it',
            ),
            OpaqueFunction(function=start_nodes),
        ]
    )


def start_nodes(context: LaunchContext) -> list[Node]:
    """Make the two nodes from the values of the arguments."""

    def value(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    files = [value('params_file')] if value('params_file') else []
    shared = {'use_sim_time': value('use_sim_time') == 'true'}
    own = {name: value(name) for name in ('config', 'ledger_url', 'evidence_dir') if value(name)}
    respawn = value('use_respawn') == 'true'

    def node(executable: str, name: str, parameters: dict[str, object]) -> Node:
        return Node(
            package='harness_eval',
            executable=executable,
            name=name,
            namespace=value('namespace'),
            parameters=[*files, {**shared, **parameters}],
            ros_arguments=['--log-level', value('log_level')],
            output='screen',
            respawn=respawn,
            respawn_delay=RESPAWN_DELAY,
        )

    autostart = value('autostart') == 'true'
    return [
        node('evaluator_node', 'harness_eval', {**own, 'autostart': autostart}),
        node('scene_graph_node', 'scene_graph', {}),
    ]
