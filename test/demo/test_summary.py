"""An outcome is right only if it is the truth, or no verdict where nobody could see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_eval.contract import Status, Verdict
from harness_eval.demo.faults import Fault
from harness_eval.demo.summary import agreement, GraphEnd, Row, write_summary
from harness_eval.runs import Outcome, OutcomeKind

RELATIONS = frozenset({('bottle', 'on', 'tray')})


def judged(status: Status) -> Outcome:
    reason = 'the bottle is on the table' if status is Status.FAILURE else ''
    kind = 'not_grasped' if status is Status.FAILURE else ''
    verdict = Verdict(status, ('bottle lifted: holds',), reason, kind)
    return Outcome(
        'run-1', 'pick_object', 0, 1, OutcomeKind.VERDICT, 9, verdict,
        observed_from=1_000_000_000, observed_to=1_012_000_000,
    )  # fmt: skip


def unjudged(kind: OutcomeKind, error_kind: str) -> Outcome:
    return Outcome('run-1', 'pick_object', 0, 1, kind, 9, None, error_kind, 'why')


def row(outcome: Outcome, truth: Status, fault: Fault = Fault.NONE) -> Row:
    return Row(1, fault, outcome, truth, 0.25)


@pytest.mark.parametrize('status', list(Status))
@pytest.mark.parametrize('truth', list(Status))
def test_a_verdict_agrees_exactly_if_it_is_the_truth(status: Status, truth: Status) -> None:
    assert row(judged(status), truth).agrees == (status is truth)


@pytest.mark.parametrize('kind', [OutcomeKind.ERROR, OutcomeKind.ABSTAINED])
def test_no_verdict_is_right_only_where_the_view_was_spoilt(kind: OutcomeKind) -> None:
    outcome = unjudged(kind, 'no_frames')
    assert row(outcome, Status.SUCCESS, Fault.CAMERA_DEAD).agrees
    assert not row(outcome, Status.SUCCESS).agrees
    assert not row(outcome, Status.FAILURE, Fault.SLIP).agrees


@pytest.mark.parametrize('status', list(Status))
def test_a_verdict_from_a_spoilt_view_is_wrong_even_if_it_happens_to_be_true(
    status: Status,
) -> None:
    assert not row(judged(status), status, Fault.CAMERA_OCCLUDED).agrees


def test_an_interrupted_run_is_never_right() -> None:
    outcome = unjudged(OutcomeKind.INTERRUPTED, '')
    assert not row(outcome, Status.SUCCESS, Fault.CAMERA_DEAD).agrees
    assert not row(outcome, Status.SUCCESS).agrees


@pytest.mark.parametrize(
    ('revision', 'relations', 'agrees'),
    [
        (1, RELATIONS, True),
        (2, RELATIONS, False),
        (0, RELATIONS, False),
        (1, frozenset({('bottle', 'on', 'table')}), False),
        (1, frozenset(), False),
    ],
)
def test_the_graph_agrees_if_each_success_and_nothing_else_changed_it_into_the_truth(
    revision: int, relations: frozenset[tuple[str, str, str]], agrees: bool
) -> None:
    rows = [
        row(judged(Status.SUCCESS), Status.SUCCESS),
        row(judged(Status.FAILURE), Status.FAILURE),
        row(judged(Status.PROCESS), Status.PROCESS),
    ]
    graph = GraphEnd(revision, {}, relations, RELATIONS)
    assert graph.agrees(rows) is agrees
    assert agreement(rows, graph)['all'] is agrees


def test_one_false_success_spoils_the_agreement_and_is_counted() -> None:
    rows = [row(judged(Status.SUCCESS), Status.FAILURE, Fault.SLIP)]
    found = agreement(rows, GraphEnd(1, {}, RELATIONS, RELATIONS))
    assert found['false_successes'] == 1
    assert found['agreeing'] == 0
    assert found['all'] is False


def test_the_summary_says_everything_of_each_segment(tmp_path: Path) -> None:
    rows = [
        row(judged(Status.FAILURE), Status.FAILURE, Fault.SLIP),
        row(unjudged(OutcomeKind.ERROR, 'frozen'), Status.SUCCESS, Fault.CAMERA_FROZEN),
    ]
    graph = GraphEnd(0, {'bottle': {'color': 'red'}}, frozenset(), frozenset())
    path = write_summary(tmp_path, rows, graph, seed=3, seconds=44.44)
    document = json.loads(path.read_text(encoding='utf-8'))
    assert path.name == 'summary.json'
    assert document['seed'] == 3
    assert document['seconds'] == 44.4
    assert document['runs'][0] == {
        'run_id': 'run-1',
        'tool': 'pick_object',
        'segment': 0,
        'fault': 'slip while lifting',
        'status': 'failure',
        'kind': 'not_grasped',
        'truth': 'failure',
        'agrees': True,
        'evidence': ['bottle lifted: holds'],
        'spread': 0.012,
        'latency': 250.0,
    }
    assert document['runs'][1]['status'] == 'error'
    assert document['runs'][1]['kind'] == 'frozen'
    assert document['runs'][1]['spread'] is None
    assert document['runs'][1]['evidence'] == ['why']
    assert document['scene_graph']['nodes'] == {'bottle': {'color': 'red'}}
    assert document['agreement']['outcomes'] == {'failure': 1, 'error': 1}
    assert document['agreement']['all'] is True
