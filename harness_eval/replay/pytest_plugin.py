"""Judges cases and bags in pytest. Does nothing, and imports nothing, in a project without it.

Settings (``pytest.ini``, ``pyproject.toml``; paths are relative to the root of the tests):

* ``harness_eval_config``: the YAML to judge by.
* ``harness_eval_cases``: cases, folders of cases and bags; paths or globs.
* ``harness_eval_labels``: CSV file of what really happened.
* ``harness_eval_answers``: ``recorded`` (default) or ``live``.
* ``harness_eval_collect``: whether each segment is a test of its own; so does ``--harness-eval``.

A test function with the fixture ``eval_case`` runs once for each segment, and with
``@pytest.mark.eval_cases(tool='pick_object')`` for those of one tool.

Threading and processes: with pytest-xdist each worker judges what its own tests ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TYPE_CHECKING

import pytest

from harness_eval.replay.pytest_session import CannotJudge, CASE_FILE, METADATA_FILE, session_of

if TYPE_CHECKING:
    from harness_eval.replay.eval_case import EvalCase
    from harness_eval.replay.judged_once import Listed, Unlisted

_FIXTURE = 'eval_case'
_MARK = 'eval_cases'
_SUFFIXES = ('.mcap', '.db3', '.bag', '.zstd')


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings."""
    group = parser.getgroup('harness_eval')
    group.addoption(
        '--harness-eval',
        action='store_true',
        help='make each segment of the cases and bags in harness_eval_cases a test',
    )
    parser.addini('harness_eval_config', 'the configuration to judge by', default='')
    parser.addini('harness_eval_cases', 'cases and bags: paths or globs', 'linelist', default=[])
    parser.addini('harness_eval_labels', 'CSV file of what really happened', default='')
    parser.addini('harness_eval_answers', 'recorded or live', default='recorded')
    parser.addini('harness_eval_collect', 'each segment is a test', 'bool', default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark, and have cases looked for that lie elsewhere than the tests."""
    config.addinivalue_line(
        'markers',
        f'{_MARK}(tool=None, run=None): run {_FIXTURE} for the segments of this tool, of runs '
        'whose id matches this pattern',
    )
    if _collects(config) and config.args_source is not pytest.Config.ArgsSource.ARGS:
        _add_sources(config)


def _collects(config: pytest.Config) -> bool:
    return bool(config.getoption('--harness-eval') or config.getini('harness_eval_collect'))


def _add_sources(config: pytest.Config) -> None:
    """Collect the sources as well where nobody has said what to collect."""
    session = session_of(config)
    files = session.files
    for pattern in session.nowhere:
        raise pytest.UsageError(f'harness_eval_cases: {pattern.message}')
    looked_at = [(config.invocation_params.dir / arg).resolve() for arg in config.args]
    for path in files:
        above = [place for place in looked_at if path.is_relative_to(place)]
        if not above:
            config.args.append(str(path))
        elif all(_left_out(path.relative_to(place), config) for place in above):
            raise pytest.UsageError(
                f'harness_eval_cases: {path.parent.name} lies in a folder that norecursedirs '
                'leaves out; move it, or change norecursedirs'
            )


def _left_out(path: Path, config: pytest.Config) -> bool:
    patterns = config.getini('norecursedirs')
    return any(fnmatchcase(name, one) for name in path.parts[:-1] for one in patterns)


# --- a test for each segment ---------------------------------------------------------------------


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a case or a bag."""
    if file_path.name not in (CASE_FILE, METADATA_FILE) and file_path.suffix not in _SUFFIXES:
        return None
    if not _collects(parent.config) or file_path.resolve() not in session_of(parent.config).files:
        return None
    source: pytest.Collector = _Source.from_parent(parent, path=file_path)
    return source


class _Source(pytest.File):
    """A case or a bag."""

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each of its segments, and one for whatever cannot be read of it."""
        session = session_of(self.config)
        try:
            listed, unlisted = session.of_file(self.path)
        except CannotJudge as error:
            raise self.CollectError(str(error)) from None
        for one in listed:
            item: _Segment = _Segment.from_parent(self, name=one.name)
            item.listed = one
            item.extra_keyword_matches.add(one.completion.tool)
            yield item
        for lost in unlisted:
            broken: _Broken = _Broken.from_parent(self, name=lost.name)
            broken.unlisted = lost
            yield broken


class _Item(pytest.Item):
    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """In words alone if the segment is at fault, with a traceback if we are."""
        if isinstance(excinfo.value, CannotJudge):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where it comes from."""
        return self.path, None, self.name


class _Segment(_Item):
    """One segment: what it is judged as must not contradict what is known of it."""

    listed: Listed

    def runtest(self) -> None:
        """Judge it, and hold the outcome against the truth, else against the record."""
        from harness_eval.replay.eval_case import EvalCase

        case = EvalCase(session_of(self.config).judgements, self.listed)
        self.user_properties.append(('tool', case.tool))
        _hold(case, self)


class _Broken(_Item):
    """Something that cannot be read."""

    unlisted: Unlisted

    def runtest(self) -> None:
        """Tell why."""
        raise CannotJudge(f'{self.unlisted.kind}: {self.unlisted.message}')


def _hold(case: EvalCase, item: pytest.Item) -> None:
    from harness_eval.contract import EvaluationError
    from harness_eval.replay.eval_case import (
        contradicts,
        said,
        told,
        truth_in_words,
        unchanged,
    )
    from harness_eval.runs import OutcomeKind

    try:
        result = case.result
    except EvaluationError as error:
        raise CannotJudge(str(error)) from None
    outcome = result.outcome
    item.user_properties.append(('outcome', said(outcome)))
    if result.truth is None and result.recorded is not None:
        if not unchanged(result):
            raise CannotJudge(told(result, f'expected {said(result.recorded)}, as on record'))
        return
    if outcome.kind is OutcomeKind.ERROR:
        raise CannotJudge(told(result, 'expected a verdict'))
    if outcome.verdict is None:
        pytest.skip(f'{said(outcome)}: {outcome.message}')
    if result.truth is None:
        pytest.skip(f'{said(outcome)}, and neither a truth nor a record to hold it against')
    if contradicts(result):
        raise CannotJudge(told(result, f'expected {truth_in_words(result.truth)}'))


# --- the fixture ---------------------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each segment that it asks for."""
    if _FIXTURE not in metafunc.fixturenames:
        return
    marks = list(metafunc.definition.iter_markers(_MARK))
    try:
        session = session_of(metafunc.config)
        wanted = [one for one in session.judgements.listed if _is_wanted(one, marks)]
        unlisted = session.judgements.unlisted
        if not wanted and not unlisted:
            raise CannotJudge(
                f'no segment is there for {metafunc.definition.name}: harness_eval_cases has '
                f'{len(session.judgements.listed)} segments, and none of them is what its mark '
                f'{_MARK} asks for'
            )
    except CannotJudge as error:
        # Whoever runs the test is told; the tests beside it are collected all the same.
        metafunc.parametrize(_FIXTURE, [str(error)], ids=['not_configured'], indirect=True)
        return
    values: list[Listed | str] = [*wanted]
    values += [f'{one.kind}: {one.message}' for one in unlisted]
    ids = [f'{one.source.name}:{one.name}' for one in wanted]
    ids += [_name_of(one) for one in unlisted]
    metafunc.parametrize(_FIXTURE, values, ids=ids, indirect=True)


@pytest.fixture
def eval_case(request: pytest.FixtureRequest) -> EvalCase:
    """One segment of the cases and bags of the project; see :class:`EvalCase`."""
    from harness_eval.replay.eval_case import EvalCase

    if isinstance(request.param, str):
        pytest.fail(request.param, pytrace=False)
    return EvalCase(session_of(request.config).judgements, request.param)


def _is_wanted(one: Listed, marks: Iterable[pytest.Mark]) -> bool:
    for mark in marks:
        if mark.args or not set(mark.kwargs) <= {'tool', 'run'}:
            raise CannotJudge(
                f'the mark {_MARK} takes tool=… and run=…, found {mark.args} {mark.kwargs}'
            )
        tool, run = mark.kwargs.get('tool'), mark.kwargs.get('run')
        if tool is not None and one.completion.tool != tool:
            return False
        if run is not None and not fnmatchcase(one.completion.run_id, run):
            return False
    return True


def _name_of(one: Unlisted) -> str:
    return one.name if one.source is None else f'{one.source.name}:{one.name}'
