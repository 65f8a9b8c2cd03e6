"""The launch files: their arguments and commands, read without ``launch`` and built with it."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
import re
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

ARGUMENTS = {
    'harness_eval.launch.py': [
        'config',
        'namespace',
        'use_sim_time',
        'autostart',
        'use_respawn',
        'ledger_url',
        'evidence_dir',
        'log_level',
        'params_file',
    ],
    'demo.launch.py': ['output', 'seed', 'namespace', 'log_level'],
}

WRITTEN_OUT = (ast.Constant, ast.List)

WITHOUT_LAUNCH = (
    'launch and launch_ros are not installed (the ROS wheels have none, an installed ROS 2 has): '
    'the launch files were only read, not built'
)


def tree(name: str) -> ast.Module:
    return ast.parse((ROOT / 'launch' / name).read_text())


def calls(name: str, function: str) -> list[ast.Call]:
    """Calls of a function in a launch file, in the order of the source."""
    found = [
        node
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == function
    ]
    return sorted(found, key=lambda node: node.lineno)


def keywords(call: ast.Call) -> dict[str, Any]:
    """Keyword arguments of a call that are written out as constants."""
    return {
        k.arg: ast.literal_eval(k.value)
        for k in call.keywords
        if k.arg
        and all(isinstance(n, (ast.expr_context, *WRITTEN_OUT)) for n in ast.walk(k.value))
    }


def declared(name: str) -> dict[str, dict[str, Any]]:
    return {
        ast.literal_eval(call.args[0]): keywords(call)
        for call in calls(name, 'DeclareLaunchArgument')
    }


@pytest.mark.parametrize('name', ARGUMENTS)
def test_a_launch_file_declares_its_arguments_and_no_others(name: str) -> None:
    assert list(declared(name)) == ARGUMENTS[name]


@pytest.mark.parametrize('name', ARGUMENTS)
def test_every_argument_has_a_default_and_says_what_it_is(name: str) -> None:
    for argument, options in declared(name).items():
        assert isinstance(options['default_value'], str), argument
        assert len(options['description'].split()) >= 4, argument
        if 'choices' in options:
            assert options['default_value'] in options['choices'], argument


def test_a_configuration_used_is_a_configuration_declared() -> None:
    # A typing error here shows itself in `ros2 launch` only when the line is reached.
    for name in ARGUMENTS:
        used = {
            ast.literal_eval(call.args[0])
            for function in ('LaunchConfiguration', 'value')
            for call in calls(name, function)
            if isinstance(call.args[0], ast.Constant)
        }
        assert used <= set(ARGUMENTS[name]), name


def test_what_is_started_is_installed_as_a_command() -> None:
    installed = set(re.findall(r"'([a-z_-]+) = [\w.]+:main'", (ROOT / 'setup.py').read_text()))
    started = {keywords(call)['executable'] for call in calls('demo.launch.py', 'Node')}
    started |= {ast.literal_eval(c.args[0]) for c in calls('harness_eval.launch.py', 'node')}
    assert started == {'evaluator_node', 'scene_graph_node', 'demo_cell'}
    assert started <= installed


def test_what_the_demo_hands_on_is_an_argument_of_the_other_file() -> None:
    (include,) = calls('demo.launch.py', 'IncludeLaunchDescription')
    handed = next(k.value for k in include.keywords if k.arg == 'launch_arguments')
    (dictionary,) = [node for node in ast.walk(handed) if isinstance(node, ast.Dict)]
    names = {ast.literal_eval(key) for key in dictionary.keys if key is not None}
    assert names <= set(ARGUMENTS['harness_eval.launch.py'])


@pytest.mark.parametrize('name', ARGUMENTS)
def test_a_launch_file_uses_public_names_of_launch_only(name: str) -> None:
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.ImportFrom):
            words = [*(node.module or '').split('.'), *(alias.name for alias in node.names)]
            assert not [word for word in words if word.startswith('_')], ast.unparse(node)
        elif isinstance(node, ast.Attribute):
            assert not node.attr.startswith('_'), ast.unparse(node)


@pytest.fixture
def launch() -> Any:
    for module in ('launch', 'launch_ros'):
        # A folder of this name, as ours, is found as a namespace package; it is not the module.
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None:
            pytest.skip(WITHOUT_LAUNCH)
    import launch

    return launch


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name.replace('.', '_'), ROOT / 'launch' / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize('name', ARGUMENTS)
def test_launch_itself_sees_the_same_arguments(launch: Any, name: str) -> None:
    description = loaded(name).generate_launch_description()
    assert [a.name for a in description.get_launch_arguments()] == ARGUMENTS[name]


def test_launch_itself_makes_the_two_nodes(launch: Any) -> None:
    module = loaded('harness_eval.launch.py')
    context = launch.LaunchContext()
    for argument in module.generate_launch_description().get_launch_arguments():
        argument.execute(context)
    context.launch_configurations['config'] = '/robot/evaluation.yaml'
    nodes = module.start_nodes(context)
    assert [(node.node_package, node.node_executable) for node in nodes] == [
        ('harness_eval', 'evaluator_node'),
        ('harness_eval', 'scene_graph_node'),
    ]
