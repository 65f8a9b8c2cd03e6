"""What a session of pytest judges: found when it is first needed, and judged once.

Importing this imports nothing heavy, since pytest does so in every project.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness_eval.replay.judged_once import JudgedOnce, Listed, Unlisted
    from harness_eval.replay.results import Skipped

CASE_FILE = 'case.json'
METADATA_FILE = 'metadata.yaml'


class CannotJudge(Exception):
    """What keeps segments from being judged, in words for a person."""


class JudgedSession:
    """The segments of a session; nothing is read before it is needed.

    Attributes:
        nowhere: Patterns that mean nothing, once ``files`` are known.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._judgements: JudgedOnce | CannotJudge | None = None
        self._files: dict[Path, Path] | None = None
        self._by_source: dict[Path, tuple[list[Listed], list[Unlisted]]] | None = None
        self.nowhere: list[Skipped] = []

    @property
    def judgements(self) -> JudgedOnce:
        """The segments.

        Raises:
            CannotJudge: The settings are wrong.
        """
        if self._judgements is None:
            try:
                self._judgements = self._listed()
            except CannotJudge as error:
                self._judgements = error
        if isinstance(self._judgements, CannotJudge):
            raise self._judgements
        return self._judgements

    @property
    def files(self) -> dict[Path, Path]:
        """The file that stands for each source, with the source."""
        if self._files is None:
            from harness_eval.replay.sources import CaseSource, find_sources

            sources, self.nowhere = find_sources(self._patterns())
            self._files = {}
            for source in sources:
                file = source.path
                if isinstance(source, CaseSource):
                    file = source.path / CASE_FILE
                elif source.path.is_dir():
                    file = _file_of_bag(source.path)
                self._files[file.resolve()] = source.path.resolve()
        return self._files

    def of_file(self, path: Path) -> tuple[list[Listed], list[Unlisted]]:
        """What is listed of the source that a file stands for, and what is not.

        Raises:
            CannotJudge: The settings are wrong.
        """
        judgements = self.judgements
        if self._by_source is None:
            self._by_source = {source: ([], []) for source in self.files.values()}
            for one in judgements.listed:
                self._by_source[one.source.path.resolve()][0].append(one)
            for lost in judgements.unlisted:
                if lost.source is not None:
                    self._by_source[lost.source.path.resolve()][1].append(lost)
        return self._by_source[self.files[path.resolve()]]

    def _patterns(self) -> list[str]:
        root = self._config.rootpath
        return [str(root / line) for line in self._config.getini('harness_eval_cases')]

    def _listed(self) -> JudgedOnce:
        from harness_eval.config import ConfigError, load_config
        from harness_eval.contract import EvaluationError
        from harness_eval.replay.judged_once import JudgedOnce

        for setting in ('harness_eval_config', 'harness_eval_cases'):
            if not self._config.getini(setting):
                raise CannotJudge(f'{setting} is not set, for example in pytest.ini')
        answers = self._config.getini('harness_eval_answers')
        if answers not in ('recorded', 'live'):
            raise CannotJudge(f'harness_eval_answers is recorded or live, not {answers!r}')
        root = self._config.rootpath
        labels = self._config.getini('harness_eval_labels')
        try:
            config = load_config(root / self._config.getini('harness_eval_config'))
            return JudgedOnce(config, self._patterns(), root / labels if labels else None, answers)
        except (ConfigError, EvaluationError) as error:
            raise CannotJudge(str(error)) from None


def _file_of_bag(folder: Path) -> Path:
    from harness_eval.replay.sources import bag_files

    metadata = folder / METADATA_FILE
    return metadata if metadata.is_file() else bag_files(folder)[0]


_SESSION = pytest.StashKey[JudgedSession]()


def session_of(config: pytest.Config) -> JudgedSession:
    """What the session with these settings judges."""
    return config.stash.setdefault(_SESSION, JudgedSession(config))
