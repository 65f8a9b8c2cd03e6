"""Answers of models and services given again: to the same question, of the same evaluator."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from replayed_cell import RecordedCell, write_bag, write_config

from harness_eval.config import load_config
from harness_eval.contract import (
    Abstention,
    EvaluationError,
    EvaluationRequest,
    Observation,
    PostCondition,
    Status,
    Verdict,
)
from harness_eval.judging import Thresholds
from harness_eval.outcome_messages import outcome_bytes, OUTCOME_TYPE
from harness_eval.replay.answers import asks_others, before_budget, Recorded, RecordedJudge
from harness_eval.replay.jobs import replay
from harness_eval.replay.results import Replayed
from harness_eval.replay.sources import BagSource, find_sources
from harness_eval.runs import Outcome, OutcomeKind

RUNS = {'good': 0.95, 'bad': 0.02, 'middle': 0.7}


def lived(folder: Path, **more: Any) -> RecordedCell:
    """A cell that has judged three runs by what asks a service."""
    cell = RecordedCell(folder, **{'evaluator': 'remote', **more})
    for run_id, finger in RUNS.items():
        cell.whole_run(run_id, finger)
    cell.close()
    return cell


def again(cell: RecordedCell, **changes: Any) -> Replayed:
    """Its cases judged again by recorded answers, by a configuration with changes."""
    path = write_config(cell.folder / 'changed.yaml', **{'evaluator': 'remote', **changes})
    sources, _ = find_sources([str(cell.evidence)])
    return replay(sources, path, answers='recorded')


def labels(found: Replayed) -> dict[str, str]:
    return {one.outcome.run_id: one.outcome.label for one in found.results}


@pytest.fixture(scope='module')
def cell(tmp_path_factory: pytest.TempPathFactory) -> RecordedCell:
    return lived(tmp_path_factory.mktemp('remote'))


def test_the_same_question_gets_the_recorded_answer(cell: RecordedCell) -> None:
    found = again(cell)
    assert labels(found) == {'good': 'success', 'bad': 'failure', 'middle': 'abstained unsure'}
    for one in found.results:
        assert one.recorded is not None
        assert one.outcome == dataclasses.replace(one.recorded, decided_at=one.outcome.decided_at)


@pytest.mark.parametrize(
    ('changes', 'expected'),
    [
        ({'outcome': 0.96}, ('abstained unsure', 'failure', 'abstained unsure')),
        ({'outcome': 0.6}, ('success', 'failure', 'success')),
        ({'outcome': 0.9, 'failure': 0.8}, ('success', 'failure', 'failure')),
        ({'outcome': 0.6, 'failure': 0.01}, ('success', 'abstained unsure', 'success')),
        (
            {'outcome': 0.6, 'remote': ', unsure: [0.65, 0.75]'},
            ('success', 'failure', 'abstained unsure'),
        ),
        ({'remote': ', unsure: [0.0, 0.1]'}, ('success', 'abstained unsure', 'abstained unsure')),
    ],
)
def test_thresholds_of_now_are_applied_to_recorded_scores(
    cell: RecordedCell, changes: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    found = labels(again(cell, **changes))
    assert tuple(found[run_id] for run_id in RUNS) == expected


def test_another_question_has_no_recorded_answer(cell: RecordedCell) -> None:
    path = write_config(cell.folder / 'changed.yaml', evaluator='remote')
    path.write_text(path.read_text().replace('is held.', 'is held firmly.'))
    sources, _ = find_sources([str(cell.evidence)])
    for one in replay(sources, path, answers='recorded').results:
        assert one.outcome.error_kind == 'no_recorded_answer'
        assert one.outcome.kind is OutcomeKind.ERROR
        assert '--answers live' in one.outcome.message
        assert not one.outcome.retryable


def test_another_evaluator_has_no_recorded_answer(cell: RecordedCell) -> None:
    path = write_config(cell.folder / 'changed.yaml', evaluator='remote')
    path.write_text(path.read_text().replace('/judge"', '/other"'))
    sources, _ = find_sources([str(cell.evidence)])
    found = replay(sources, path, answers='recorded')
    assert set(labels(found).values()) == {'error no_recorded_answer'}
    assert '127.0.0.1:9/judge' in found.results[0].outcome.message


def test_what_judges_here_is_judged_anew(cell: RecordedCell) -> None:
    found = again(cell, evaluator='graded')
    assert labels(found) == {'good': 'success', 'bad': 'failure', 'middle': 'abstained unsure'}
    assert {one.outcome.evaluator for one in found.results} == {'plugin:replay_judge:grade'}


def test_live_answers_are_asked_for(cell: RecordedCell) -> None:
    sources, _ = find_sources([str(cell.evidence)])
    found = replay(sources, cell.path, answers='live')
    assert {one.outcome.kind for one in found.results} == {OutcomeKind.ERROR}
    assert 'error no_recorded_answer' not in labels(found).values()


def test_answers_in_a_bag_are_recorded_ones(cell: RecordedCell, tmp_path: Path) -> None:
    from pipeline_world import DECODER

    messages = list(cell.recorded)
    for outcome in cell.outcomes:
        data = outcome_bytes(outcome, DECODER)
        messages.append(('/harness_eval/outcomes', OUTCOME_TYPE, cell.ros, data))
    bag = write_bag(tmp_path / 'bag', messages)
    found = replay([BagSource(bag)], cell.path, answers='recorded')
    assert labels(found) == {'good': 'success', 'bad': 'failure', 'middle': 'abstained unsure'}
    bare = write_bag(tmp_path / 'bare', cell.recorded)
    found = replay([BagSource(bare)], cell.path, answers='recorded')
    assert set(labels(found).values()) == {'error no_recorded_answer'}


def test_a_combination_gives_its_answer_while_the_thresholds_are_those_of_then(
    tmp_path: Path,
) -> None:
    cell = lived(tmp_path, evaluator='both')
    assert labels(again(cell, evaluator='both')) == {
        'good': 'success',
        'bad': 'failure',
        'middle': 'abstained unsure',
    }
    other = again(cell, evaluator='both', outcome=0.96)
    assert set(labels(other).values()) == {'error no_recorded_answer'}


def test_a_case_without_thresholds_keeps_its_answer(tmp_path: Path) -> None:
    cell = lived(tmp_path)
    for path in cell.evidence.glob('*/case.json'):
        description = json.loads(path.read_text())
        del description['thresholds']
        path.write_text(json.dumps(description))
    found = labels(again(cell, outcome=0.96))
    # Nobody knows the thresholds of then, so the score decides by those of now.
    assert (found['good'], found['bad']) == ('abstained unsure', 'failure')


def test_what_asks_models_or_services_is_told_from_what_judges_here(cell: RecordedCell) -> None:
    settings = load_config(cell.path).evaluation.evaluators
    assert {name for name in settings if asks_others(name, settings)} == {
        'remote',
        'both',
        'eyes',
        'criteria',
    }


# --- one answer at a time ----------------------------------------------------------------------


def outcome(**more: Any) -> Outcome:
    usual: dict[str, Any] = {
        'run_id': 'a',
        'tool': 'insert',
        'segment': 0,
        'attempt': 1,
        'kind': OutcomeKind.VERDICT,
        'decided_at': 1,
        'evaluator': 'judge',
        'input_digest': 'digest',
    }
    return Outcome(**{**usual, **more})


def answer(
    cell: RecordedCell,
    recorded: Outcome,
    now: Thresholds,
    *,
    kind: str = 'remote',
    process: bool = False,
) -> Verdict | EvaluationError:
    """What a judge answers of which this outcome is on record."""
    settings = load_config(cell.path).evaluation.evaluators[kind]
    judge = RecordedJudge('judge', settings, now)
    judge.use([Recorded(recorded, Thresholds())])
    request = EvaluationRequest(
        PostCondition('', process_allowed=process), Observation({}, {}, 1, 0.0), digest='digest'
    )
    told: list[Verdict | EvaluationError] = []
    assert judge.call(request, told.append).cancel() is False
    return told[0]


def test_a_budget_that_made_a_failure_of_process_is_applied_anew(cell: RecordedCell) -> None:
    spent = Verdict(
        Status.FAILURE,
        ('half way',),
        failure_reason='not done after 3 segments',
        failure_kind='segment_budget',
        score=0.7,
    )
    assert before_budget(spent) == Verdict(Status.PROCESS, ('half way',), score=0.7)
    known = outcome(verdict=spent)
    given = answer(cell, known, Thresholds(), process=True)
    assert given == Verdict(Status.PROCESS, ('half way',), score=0.7)


def test_process_becomes_success_where_the_threshold_is_lower(cell: RecordedCell) -> None:
    known = outcome(verdict=Verdict(Status.PROCESS, ('half way',), score=0.7))
    given = answer(cell, known, Thresholds(0.6, 0.5), process=True)
    assert isinstance(given, Verdict)
    assert given.status is Status.SUCCESS
    assert given.evidence[1:] == ('half way',)


def test_process_where_it_is_not_allowed_any_more_is_an_error(cell: RecordedCell) -> None:
    known = outcome(verdict=Verdict(Status.PROCESS, ('half way',)))
    given = answer(cell, known, Thresholds())
    assert isinstance(given, EvaluationError)
    assert given.kind == 'process_not_allowed'


def test_recorded_errors_and_abstentions_stay_what_they_are(cell: RecordedCell) -> None:
    failed = answer(
        cell,
        outcome(kind=OutcomeKind.ERROR, error_kind='judge_down', message='gone', retryable=True),
        Thresholds(0.8, 0.2),
    )
    assert isinstance(failed, EvaluationError)
    assert (failed.kind, failed.retryable) == ('judge_down', True)
    silent = answer(
        cell,
        outcome(kind=OutcomeKind.ABSTAINED, error_kind='no_answer', message='?'),
        Thresholds(0.8, 0.2),
    )
    assert isinstance(silent, Abstention)
    assert silent.kind == 'no_answer'
    unsure = outcome(kind=OutcomeKind.ABSTAINED, error_kind='unsure', message='?')
    given = answer(cell, unsure, Thresholds(0.8, 0.2))
    assert isinstance(given, EvaluationError)
    assert given.kind == 'no_recorded_answer'


def test_an_interrupted_run_has_no_answer(cell: RecordedCell) -> None:
    given = answer(cell, outcome(kind=OutcomeKind.INTERRUPTED), Thresholds())
    assert isinstance(given, EvaluationError)
    assert given.kind == 'no_recorded_answer'


@pytest.mark.parametrize(
    ('status', 'score', 'now', 'expected'),
    [
        ('failure', 0.95, Thresholds(0.8, 0.2), 'failure'),  # a criterion that must be met
        ('failure', 0.3, Thresholds(0.9, 0.2), 'failure'),
        ('success', 0.92, Thresholds(0.95, 0.5), 'unsure'),
        ('success', 0.92, Thresholds(0.8, 0.5), 'success'),
        ('process', 0.85, Thresholds(0.8, 0.5), 'no_recorded_answer'),
        ('process', 0.85, Thresholds(0.88, 0.5), 'process'),
    ],
)
def test_a_share_of_criteria_is_no_success_that_nobody_gave(
    cell: RecordedCell, status: str, score: float, now: Thresholds, expected: str
) -> None:
    failed = status == 'failure'
    verdict = Verdict(
        Status(status), ('seen',), failure_reason='it leaks' if failed else '', score=score
    )
    given = answer(
        cell, outcome(verdict=verdict), now, kind='criteria', process=status == 'process'
    )
    found = given.status.value if isinstance(given, Verdict) else given.kind
    assert found == expected


@pytest.mark.parametrize(('kind', 'expected'), [('eyes', 'process'), ('remote', 'failure')])
def test_a_model_says_itself_that_the_tool_goes_on(
    cell: RecordedCell, kind: str, expected: str
) -> None:
    verdict = Verdict(Status.PROCESS, ('half way',), score=0.55)
    given = answer(cell, outcome(verdict=verdict), Thresholds(0.9, 0.6), kind=kind, process=True)
    assert isinstance(given, Verdict)
    assert given.status.value == expected
