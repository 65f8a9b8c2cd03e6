"""From a file to a validated :class:`~harness_eval.config.models.Config`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
import os
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness_eval.config.document import Document
from harness_eval.config.draft import Draft, read_draft
from harness_eval.config.errors import ConfigError, MAX_PROBLEMS, Problem
from harness_eval.config.evaluators import EndpointSettings
from harness_eval.config.files import resolve
from harness_eval.config.includes import load_document
from harness_eval.config.models import Config, ToolSettings
from harness_eval.config.places import KeyPath, Place
from harness_eval.config.rubric_files import read_rubric
from harness_eval.config.rules import broken_rules
from harness_eval.config.shape import Finding, findings
from harness_eval.config.tool_judging import RubricSettings


@dataclass
class _Files:
    """What the configuration names and what stands elsewhere.

    Attributes:
        references: Files of reference pictures by tool and name.
        rubrics: Rubrics that stand in files, by tool.
        certificates: Files of certificates by evaluator.
    """

    references: dict[tuple[str, str], Path] = field(default_factory=dict)
    rubrics: dict[str, RubricSettings] = field(default_factory=dict)
    certificates: dict[str, Path] = field(default_factory=dict)


def load_config(path: Path | str, *, evaluator: str | None = None) -> Config:
    """Load a configuration file with everything that it includes.

    Args:
        path: The YAML file.
        evaluator: Name of the evaluator to use for tools that name none, instead of
            ``evaluation.evaluator``; it must be one of ``evaluation.evaluators``.

    Returns:
        The validated configuration: ``evaluation.tools`` has an entry for each required tool, in
        their order, with its post-condition and its rubric merged in; every file that it names
        exists.

    Raises:
        ConfigError: With everything that is wrong.
    """
    document = load_document(Path(path))
    _drop_unused_tools(document)
    draft = read_draft(document.data, evaluator)
    problems = list(document.problems)
    config, shape = _validate(document.data)
    for where, message in [*shape, *islice(broken_rules(draft), MAX_PROBLEMS)]:
        problems.append(document.problem(where, message))
    files = _Files()
    problems += _find_references(document, draft, files.references)
    problems += _read_rubrics(document, draft, files.rubrics)
    problems += _find_certificates(document, draft, files.certificates)
    if problems or config is None:
        raise ConfigError(_in_order(problems, document)[:MAX_PROBLEMS])
    return _complete(config, evaluator, files)


def _drop_unused_tools(document: Document) -> None:
    """Leave out tools that an included file knows and that this robot does not require.

    A tool of the main file that is not required is refused instead: there it is a mistake.
    """
    evaluation = document.data.get('evaluation')
    if not isinstance(evaluation, dict) or not isinstance(evaluation.get('tools'), dict):
        return
    required = evaluation.get('required_tools')
    required = required if isinstance(required, list) else []
    for name in list(evaluation['tools']):
        source = document.place(('evaluation', 'tools', name)).source
        if name not in required and source is not document.source:
            del evaluation['tools'][name]


def _validate(data: Mapping[str, Any]) -> tuple[Config | None, list[Finding]]:
    try:
        return Config.model_validate(data), []
    except ValidationError as error:
        return None, list(islice(findings(error, Config, data), MAX_PROBLEMS))


def _find_references(
    document: Document, draft: Draft, found: dict[tuple[str, str], Path]
) -> Iterator[Problem]:
    """Fill ``found`` with the files of the reference pictures and yield those that are missing."""
    for tool, settings in draft.tools.items():
        for name, text in settings.references.items() if settings is not None else ():
            where: KeyPath = ('evaluation', 'tools', tool, 'references', name)
            try:
                found[tool, name] = _file(text, document.place(where), 'a picture file')
            except ValueError as error:
                yield document.problem(where, str(error))


def _read_rubrics(
    document: Document, draft: Draft, found: dict[str, RubricSettings]
) -> Iterator[Problem]:
    """Fill ``found`` with the rubrics that stand in files and yield what is wrong with those."""
    for tool, settings in draft.tools.items():
        rubric = settings.rubric if settings is not None else None
        if rubric is None or rubric.file is None:
            continue
        where: KeyPath = ('evaluation', 'tools', tool, 'rubric', 'file')
        try:
            path = _file(rubric.file, document.place(where), 'the file of a rubric')
            found[tool] = read_rubric(path, rubric.version)
        except ValueError as error:
            yield document.problem(where, str(error))
        except ConfigError as error:
            yield from error.problems


def _find_certificates(
    document: Document, draft: Draft, found: dict[str, Path]
) -> Iterator[Problem]:
    """Fill ``found`` with the files of certificates and yield those that are missing."""
    for name, settings in draft.evaluators.items():
        if isinstance(settings, EndpointSettings) and settings.ca_file is not None:
            where: KeyPath = ('evaluation', 'evaluators', name, 'ca_file')
            try:
                found[name] = _file(
                    settings.ca_file, document.place(where), 'a file of certificates'
                )
            except ValueError as error:
                yield document.problem(where, str(error))


def _file(text: str, place: Place, what: str) -> Path:
    """Find a file that the configuration names.

    Raises:
        ValueError: It is not there, or cannot be read; the message names no folder.
    """
    path = resolve(text, place.source.directory)
    if not path.is_file() or not os.access(path, os.R_OK):
        fault = 'cannot be read' if path.is_file() else 'is not there'
        raise ValueError(
            f'expected {what}, found that {path.name!r} {fault}; a path starts at the folder of '
            f'{place.source.name}'
        )
    return path.absolute()


def _in_order(problems: list[Problem], document: Document) -> list[Problem]:
    """Sort by line, the main file first; each problem once."""
    unique = list(dict.fromkeys(problems))
    main = document.source.name
    return sorted(unique, key=lambda problem: (problem.file != main, problem.file, problem.line))


def _complete(config: Config, evaluator: str | None, files: _Files) -> Config:
    """Fill in what a file may leave out."""
    evaluation = config.evaluation
    default = evaluator or evaluation.evaluator
    tools = {}
    for name in evaluation.required_tools:
        base = evaluation.tools.get(name, ToolSettings())
        tools[name] = base.model_copy(
            update={
                'post_condition': base.post_condition or evaluation.post_conditions.get(name),
                'evaluator': base.evaluator or default,
                'rubric': files.rubrics.get(name, base.rubric),
            }
        )
    evaluators = dict(evaluation.evaluators)
    for name, path in files.certificates.items():
        evaluators[name] = evaluators[name].model_copy(update={'ca_file': str(path)})
    changed = {'tools': tools, 'evaluator': default, 'evaluators': evaluators}
    complete = config.model_copy(update={'evaluation': evaluation.model_copy(update=changed)})
    complete._reference_paths = dict(files.references)
    return complete
