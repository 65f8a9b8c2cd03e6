"""From a file to a validated :class:`~harness_eval.config.models.Config`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
import os
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness_eval.config.document import Document
from harness_eval.config.draft import Draft, read_draft
from harness_eval.config.errors import ConfigError, MAX_PROBLEMS, Problem
from harness_eval.config.includes import load_document, resolve
from harness_eval.config.models import Config, ToolSettings
from harness_eval.config.places import KeyPath
from harness_eval.config.rules import broken_rules
from harness_eval.config.shape import Finding, findings


def load_config(path: Path | str, *, evaluator: str | None = None) -> Config:
    """Load a configuration file with everything that it includes.

    Args:
        path: The YAML file.
        evaluator: Name of the evaluator to use for tools that name none, instead of
            ``evaluation.evaluator``; it must be one of ``evaluation.evaluators``.

    Returns:
        The validated configuration: ``evaluation.tools`` has an entry for each required tool, in
        their order, with its post-condition merged in; every reference picture exists.

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
    references: dict[tuple[str, str], Path] = {}
    problems += _find_references(document, draft, references)
    if problems or config is None:
        raise ConfigError(_in_order(problems, document)[:MAX_PROBLEMS])
    return _complete(config, evaluator, references)


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
            place = document.place(where)
            try:
                path = resolve(text, place.source.directory)
            except ValueError as error:
                yield place.problem(str(error))
                continue
            if not path.is_file() or not os.access(path, os.R_OK):
                fault = 'cannot be read' if path.is_file() else 'is not there'
                yield place.problem(
                    f'expected a picture file, found that {path.name!r} {fault}; a path starts '
                    f'at the folder of {place.source.name}'
                )
                continue
            found[tool, name] = path.absolute()


def _in_order(problems: list[Problem], document: Document) -> list[Problem]:
    """Sort by line, the main file first; each problem once."""
    unique = list(dict.fromkeys(problems))
    main = document.source.name
    return sorted(unique, key=lambda problem: (problem.file != main, problem.file, problem.line))


def _complete(
    config: Config, evaluator: str | None, references: Mapping[tuple[str, str], Path]
) -> Config:
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
            }
        )
    complete = config.model_copy(
        update={'evaluation': evaluation.model_copy(update={'tools': tools, 'evaluator': default})}
    )
    complete._reference_paths = dict(references)
    return complete
