"""The table of docs/architecture.md is true: imports point down it, and only some know ROS."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
import re

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / 'harness_eval'
PAGE = (ROOT / 'docs' / 'architecture.md').read_text('utf-8')
# A replay with an evaluator of the kind service asks it as the shell does, and only then.
EXEMPT = {('replay/judges.py', 'harness_eval.cli.services')}
KNOW_ROS = {'ros', 'client', 'cli', 'demo'}


@cache
def rows() -> list[list[str]]:
    """Names of modules in each row of the table, from the innermost to the outermost."""
    table = PAGE[PAGE.index('| module |') :].partition('\n\n')[0].splitlines()[2:]
    return [re.findall(r'`([\w*]+)/?`', row.split('|')[1]) for row in table]


@cache
def row_of(module: str) -> int | None:
    """The row that names a part of the package; None if no row does."""
    for number, names in enumerate(rows()):
        if any(re.fullmatch(name.replace('*', r'\w*'), module) for name in names):
            return number
    return None


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix('.py')


def imports(text: str) -> Iterator[str]:
    """Modules that a source imports when it runs; what only a type checker reads is left out."""
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and 'TYPE_CHECKING' in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        waiting += ast.iter_child_nodes(node)


@cache
def sources() -> dict[Path, list[str]]:
    """What each file of the package imports."""
    return {path: list(imports(path.read_text('utf-8'))) for path in PACKAGE.rglob('*.py')}


def test_every_name_of_the_table_is_a_part_of_the_package() -> None:
    parts = set(map(part_of, sources()))
    named = [name for names in rows() for name in names]
    assert len(named) > 40
    assert [
        n for n in named if not any(re.fullmatch(n.replace('*', r'\w*'), p) for p in parts)
    ] == []


def test_imports_point_down_the_table_only() -> None:
    upwards = []
    for path, modules in sources().items():
        here = row_of(part_of(path))
        for module in modules:
            inner = module.split('.')[1:2] if module.startswith('harness_eval.') else []
            there = row_of(inner[0]) if inner else None
            name = path.relative_to(PACKAGE).as_posix()
            if here is None or there is None or (name, module) in EXEMPT:
                continue
            if there > here:
                upwards.append(f'{name} imports {module}')
    assert upwards == []


def test_few_parts_know_ros() -> None:
    known = {
        part_of(path)
        for path, modules in sources().items()
        if any(module.split('.')[0] == 'rclpy' for module in modules)
    }
    assert known <= KNOW_ROS
    assert 'ros' in known


def test_what_only_a_type_checker_reads_is_no_import() -> None:
    source = 'import a\nif TYPE_CHECKING:\n    import b\ndef f():\n    from c.d import e\n'
    assert sorted(imports(source)) == ['a', 'c.d']
