"""Whether the plugins that a configuration names can be found, with and without importing them.

To import a module runs it, so without being asked only its file is looked for and its text is
read: what it makes at its top level are the names that it has.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
import importlib
import importlib.machinery
from operator import attrgetter
from pathlib import Path

from harness_eval.config import Config
from harness_eval.config.evaluators import PluginSettings
from harness_eval.lines import describe


def missing_plugins(config: Config, *, run: bool) -> Iterator[str]:
    """Tell of each plugin that cannot be found, one line each.

    Args:
        config: A loaded configuration.
        run: Import the modules; otherwise none of their code is run.
    """
    told = set()
    for key, ref in _named(config):
        module, _, name = ref.partition(':')
        fault = _import_fault(module, name) if run else _search_fault(module, name)
        line = f'{key}: expected a plugin that can be found, found that {fault}'
        if fault and line not in told:
            told.add(line)
            yield line


def _named(config: Config) -> Iterator[tuple[str, str]]:
    for name, settings in config.evaluation.evaluators.items():
        if isinstance(settings, PluginSettings):
            yield f'evaluation.evaluators.{name}.ref', settings.ref
    for tool, chosen in config.evaluation.tools.items():
        if chosen.report is not None and chosen.report.source is not None:
            yield f'evaluation.tools.{tool}.report.from', chosen.report.source
        if chosen.oracle is not None and chosen.oracle.kind == 'plugin':
            yield f'evaluation.tools.{tool}.oracle.ref', chosen.oracle.ref


def _import_fault(module: str, name: str) -> str:
    try:
        found = importlib.import_module(module)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a module that ends the process is one that cannot be imported
        return f'module {module!r} cannot be imported: {describe(error)}'
    try:
        attrgetter(name)(found)
    except AttributeError:
        return _no_name(module, name)
    return ''


def _search_fault(module: str, name: str) -> str:
    spec = _spec(module)
    if spec is None:
        return (
            f'there is no module {module!r} on the path of Python; install its package, source '
            'its workspace, or put its folder on PYTHONPATH'
        )
    origin = spec.origin or ''
    if not origin.endswith('.py'):
        return ''  # compiled: its names are known only when it is imported
    try:
        tree = ast.parse(Path(origin).read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        return f'module {module!r} cannot be read: {describe(error)}'
    made = set(_names(tree))
    first = name.partition('.')[0]
    # A module may make its names in ways that no reader sees.
    return '' if first in made or made & {'*', '__getattr__'} else _no_name(module, first)


def _spec(module: str) -> importlib.machinery.ModuleSpec | None:
    """Find a module without importing the packages that it lies in."""
    path: list[str] | None = None
    spec = None
    importlib.invalidate_caches()
    name = ''
    for part in module.split('.'):
        name = f'{name}.{part}' if name else part
        spec = _builtin(name) or importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or ())
    return spec


def _builtin(name: str) -> importlib.machinery.ModuleSpec | None:
    return importlib.machinery.BuiltinImporter.find_spec(name)


def _names(tree: ast.Module) -> Iterator[str]:
    """Every name that a module may bind at its top level, in whatever branch."""
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield alias.asname or alias.name.partition('.')[0]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        todo.extend(ast.iter_child_nodes(node))


def _no_name(module: str, name: str) -> str:
    return f'module {module!r} has no {name!r}'
