"""The record that ``runs`` and ``show`` read, with or without a running node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
import os
from pathlib import Path
from typing import Annotated, Optional

import typer

from harness_eval.cli.screen import refuse
from harness_eval.contract import LedgerError
from harness_eval.ledger import LedgerReader
from harness_eval.ros.places import default_evidence_dir, node_folder, recorded_ledger

DEFAULT_NODE = 'harness_eval'

# typer reads these at run time, on Python 3.10 too.
LedgerOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        '--ledger',
        metavar='URL',
        help='The ledger, as sqlite:////path or a path; default: the newest of the node.',
        show_default=False,
    ),
]
NodeOption = Annotated[
    str, typer.Option('--node', metavar='NAME', help='Name of the evaluator node.')
]
EvidenceOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        '--evidence',
        metavar='DIR',
        help='The folder of cases; default: that beside the ledger.',
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option('--json', help='Print JSON instead.')]


@contextmanager
def reading(ledger: str | None, node: str) -> Iterator[LedgerReader]:
    """Open a ledger for reading; one that cannot be read ends the command.

    Args:
        ledger: URL or path of the ledger; None: the newest one in the folder of the node.
        node: Name of the node, with its namespace if it has one.
    """
    try:
        reader = LedgerReader(_url(ledger, node))
        try:
            yield reader
        finally:
            reader.close()
    except LedgerError as error:
        where = '' if ledger else f' (node {node}; --node and --ledger choose another)'
        refuse(f'{error.message}{where}')


def _url(ledger: str | None, node: str) -> str:
    if ledger is None:
        return f'sqlite:///{recorded_ledger(node_folder(os.environ, node))}'
    if '://' in ledger:
        return ledger
    return f'sqlite:///{Path(ledger).absolute()}'


def evidence_folder(evidence: Path | None, ledger: str | None, node: str) -> Path:
    """The folder of cases: the one that is named, or the one beside the ledger.

    Args:
        evidence: What ``--evidence`` names.
        ledger: What ``--ledger`` names.
        node: Name of the node.
    """
    if evidence is not None:
        return evidence
    if ledger is None:
        return default_evidence_dir(node_folder(os.environ, node))
    return default_evidence_dir(Path(ledger.partition('sqlite:///')[2] or ledger).parent)
