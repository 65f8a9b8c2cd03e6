"""What setup.py, package.xml, the pins and the modules say of the package agrees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
import os
from pathlib import Path
import re
import sys
from typing import Any
import xml.etree.ElementTree as ET

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
import pytest
from setuptools import Distribution

import harness_eval

ROOT = Path(__file__).parents[1]

ROSDEP_KEYS = {
    'networkx': 'python3-networkx',
    'numpy': 'python3-numpy',
    'opencv-python-headless': 'python3-opencv',
    'pydantic': 'python3-pydantic',
    'pyyaml': 'python3-yaml',
    'rich': 'python3-rich',
    'sqlalchemy': 'python3-sqlalchemy',
    'typer': 'python3-typer',
}
WITHOUT_ROSDEP_KEY = {'mcap', 'rosbags'}

IMPORT_NAMES = {
    'backports': 'backports-zstd',
    'cv2': 'opencv-python-headless',
    'markupsafe': 'jinja2',
    'sklearn': 'scikit-learn',
    'typing_extensions': 'pydantic',
    'yaml': 'pyyaml',
}
"""Where a module is not called like its distribution, or is brought by another one."""


@pytest.fixture(scope='module')
def distribution() -> Distribution:
    """What setup.py declares."""
    # setuptools' own way to read a setup.py without doing anything.
    from distutils.core import run_setup

    before = Path.cwd()
    os.chdir(ROOT)
    try:
        return run_setup('setup.py', stop_after='init')
    finally:
        os.chdir(before)


@pytest.fixture(scope='module')
def manifest() -> ET.Element:
    """What package.xml declares."""
    return ET.parse(ROOT / 'package.xml').getroot()


def needed(manifest: ET.Element, *kinds: str) -> set[str]:
    """Names that package.xml gives for these kinds of dependency."""
    return {element.text or '' for kind in kinds for element in manifest.iter(kind)}


def required(distribution: Any) -> dict[str, Requirement]:
    """What pip is told to install for the package to run, OpenCV included."""
    lines = [*distribution.install_requires, *distribution.extras_require['opencv']]
    return {canonicalize_name(r.name): r for r in map(Requirement, lines)}


def test_every_place_names_the_same_version(distribution: Any, manifest: ET.Element) -> None:
    messages = ET.parse(ROOT / 'harness_eval_msgs' / 'package.xml').getroot()
    changes = re.findall(
        r'^(\d+\.\d+\.\d+) \(', (ROOT / 'CHANGELOG.rst').read_text(), re.MULTILINE
    )
    assert {
        'setup.py': distribution.get_version(),
        'package.xml': manifest.findtext('version'),
        'messages': messages.findtext('version'),
        'CHANGELOG.rst': changes[0],
    } == dict.fromkeys(
        ('setup.py', 'package.xml', 'messages', 'CHANGELOG.rst'), harness_eval.__version__
    )


def test_setup_py_and_package_xml_ask_for_the_same_python_packages(
    distribution: Any, manifest: ET.Element
) -> None:
    asked_of_pip = set(required(distribution)) - WITHOUT_ROSDEP_KEY
    asked_of_rosdep = {n for n in needed(manifest, 'depend', 'exec_depend') if 'python3-' in n}
    assert {ROSDEP_KEYS[name] for name in asked_of_pip} == asked_of_rosdep


def test_what_rosdep_cannot_install_is_said_in_the_readme(distribution: Any) -> None:
    assert set(required(distribution)) >= WITHOUT_ROSDEP_KEY
    readme = (ROOT / 'README.md').read_text()
    assert [name for name in WITHOUT_ROSDEP_KEY if name not in readme] == []


@pytest.mark.parametrize('python', ['3.10', '3.11', '3.12', '3.13'])
def test_the_pins_are_versions_that_setup_py_accepts(distribution: Any, python: str) -> None:
    lines = (ROOT / 'setup' / 'requirements.txt').read_text().splitlines()
    environment = {**default_environment(), 'python_version': python}
    pins: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith('#'):
            pin = Requirement(line)
            if pin.marker is None or pin.marker.evaluate(environment):
                (specifier,) = pin.specifier
                assert specifier.operator == '==', line
                assert canonicalize_name(pin.name) not in pins, f'{line}: pinned twice'
                pins[canonicalize_name(pin.name)] = specifier.version
    declared = [
        *distribution.install_requires,
        *(line for extra in distribution.extras_require.values() for line in extra),
    ]
    for requirement in map(Requirement, declared):
        version = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f'{requirement} does not accept {version}'


@pytest.mark.parametrize('distro', ['jazzy', 'kilted'])
def test_the_wheels_of_a_distribution_are_pinned_and_its_own(distro: str) -> None:
    lines = (ROOT / 'setup' / f'ros-{distro}.txt').read_text().split()
    assert len(lines) > 100
    assert [
        line for line in lines if not re.fullmatch(rf'ros-{distro}-[a-z0-9-]+==[0-9.]+', line)
    ] == []
    assert f'ros-{distro}-rclpy' in {line.partition('==')[0] for line in lines}


def imported(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the top-level packages that the modules of a folder import, and where."""
    for path in sorted(folder.rglob('*.py')):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((alias.name.partition('.')[0], path) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition('.')[0], path


@pytest.mark.parametrize('folder', ['harness_eval', 'launch'])
def test_whatever_is_imported_is_declared(
    distribution: Any, manifest: ET.Element, folder: str
) -> None:
    ros = needed(manifest, 'depend', 'exec_depend')
    pip = set(required(distribution)) | {
        canonicalize_name(Requirement(line).name)
        for extra in ('demo', 'replay', 'dask')
        for line in distribution.extras_require[extra]
    }
    pip.add('pytest')  # which imports its plugin itself
    undeclared = {
        f'{name} ({path.relative_to(ROOT)})'
        for name, path in imported(ROOT / folder)
        if name not in sys.stdlib_module_names
        and name != 'harness_eval'
        and name not in ros
        and canonicalize_name(IMPORT_NAMES.get(name, name)) not in pip
    }
    assert undeclared == set()


def test_every_folder_with_modules_is_installed(distribution: Any) -> None:
    folders = {
        '.'.join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / 'harness_eval').rglob('*.py')
    }
    assert folders == set(distribution.packages)


def test_every_command_is_a_function_that_exists(distribution: Any) -> None:
    commands = {}
    for line in distribution.entry_points['console_scripts']:
        name, _, target = (part.strip() for part in line.partition('='))
        commands[name] = target
    assert set(commands) == {'evaluator_node', 'scene_graph_node', 'harness-eval', 'demo_cell'}
    for target in commands.values():
        module, _, function = target.partition(':')
        path = ROOT / Path(*module.split('.'))
        file = path / '__init__.py' if path.is_dir() else path.with_suffix('.py')
        tree = ast.parse(file.read_text())
        defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
        defined |= {
            alias.asname or alias.name
            for n in tree.body
            if isinstance(n, ast.ImportFrom)
            for alias in n.names
        }
        assert function in defined, target


def test_every_file_to_install_exists(distribution: Any) -> None:
    installed = [file for _, files in distribution.data_files for file in files]
    assert [file for file in installed if not (ROOT / file).is_file()] == []
    assert {'launch/harness_eval.launch.py', 'launch/demo.launch.py', 'package.xml'} <= set(
        installed
    )
    assert {f'config/{p.name}' for p in (ROOT / 'config').iterdir() if p.is_file()} <= set(
        installed
    )


def test_the_command_on_the_path_can_be_executed() -> None:
    script = ROOT / 'bin' / 'harness-eval'
    assert os.access(script, os.X_OK)
    assert script.read_text().startswith('#!/usr/bin/env python3\n')


def test_the_licence_is_there_in_full(manifest: ET.Element) -> None:
    assert manifest.findtext('license') == 'Apache-2.0'
    text = (ROOT / 'LICENSE').read_text()
    assert 'Apache License' in text
    assert 'END OF TERMS AND CONDITIONS' in text


DOCUMENTS = [
    path for folder in ('.', 'docs', 'examples') for path in sorted((ROOT / folder).glob('*.md'))
]


@pytest.mark.parametrize('document', DOCUMENTS, ids=lambda path: path.name)
def test_whatever_a_document_links_to_is_there(document: Path) -> None:
    links = re.findall(r'\]\(([^)\s]+)\)', document.read_text(encoding='utf-8'))
    missing = []
    for link in links:
        name, _, anchor = link.partition('#')
        if ':' in name:
            continue  # another host's
        target = document.parent / name if name else document
        text = target.read_text(encoding='utf-8') if anchor and target.exists() else ''
        if not target.exists() or (anchor and anchor not in anchors(text)):
            missing.append(link)
    assert missing == []


def anchors(markdown: str) -> set[str]:
    """Names by which the headings of a page can be linked to, as GitHub makes them."""
    headings = re.findall(r'^#+ (.+)$', markdown, re.MULTILINE)
    return {re.sub(r'[^\w\- ]', '', heading).lower().replace(' ', '-') for heading in headings}


@pytest.mark.parametrize('folder', ['.', 'harness_eval_msgs'])
def test_the_changelog_is_well_formed(folder: str) -> None:
    docutils = pytest.importorskip('docutils.core', reason='docutils is not installed')
    text = (ROOT / folder / 'CHANGELOG.rst').read_text(encoding='utf-8')
    # Anything that docutils so much as warns of is raised.
    docutils.publish_doctree(text, settings_overrides={'halt_level': 2, 'report_level': 5})
