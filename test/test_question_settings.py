"""What a tool's settings put into the question besides the sentence and the pictures."""

from __future__ import annotations

from pathlib import Path

from cdr_messages import IMAGE, image_of
import numpy as np

from harness_eval.capture import Captured, Frame
from harness_eval.config import load_config
from harness_eval.contract import Criterion, PostCondition, ReportOutput, Rubric
from harness_eval.decode import Decoder
from harness_eval.requests import Prepared, Requests
from harness_eval.runs import Completion

END = 1_000_000_000_000

YAML = """
evaluation:
  required_tools: [pour, lift]
  evaluator: judge
  evaluators:
    vlm:
      kind: model
      model: m
      base_url: "http://127.0.0.1:8000/v1"
      api_key_env: KEY
      regions: {{pour: {{front: [0.0, 0.0, 0.5, 1.0]}}}}
    judge: {{kind: rubric, model: vlm}}
  post_conditions: {{pour: "The glass is full.", lift: "It is up."}}
  tools:
    pour:
      rubric: {rubric}
      report: {report}
    lift: {{evaluator: vlm}}
capture:
  views: {{front: {{topic: cell/front}}}}
"""

TEXT = '"Is the glass full?"'
OUTPUT = '[{key: fill, title: "How full.", type: number, between: [0.8, 1.0]}]'


def prepared(tmp_path: Path, tool: str, rubric: str = TEXT, report: str = OUTPUT) -> Prepared:
    path = tmp_path / 'cell.yaml'
    path.write_text(YAML.format(rubric=rubric, report=report), encoding='utf-8')
    picture = image_of(np.zeros((4, 6, 3), np.uint8), 'rgb8')
    stamp = END + 400_000_000
    frame = Frame('front', '/cell/front', IMAGE, stamp, stamp, picture)
    completion = Completion('a', tool, stamp=END)
    requests = Requests(load_config(path), Decoder())
    return requests.prepare(completion, Captured({'front': frame}, END, 0.0, {}))


def condition(tmp_path: Path, tool: str, **changes: str) -> PostCondition:
    return prepared(tmp_path, tool, **changes).request.post_condition


def test_a_rubric_of_text_is_part_of_the_question(tmp_path: Path) -> None:
    assert condition(tmp_path, 'pour').rubric == Rubric(text='Is the glass full?')


def test_criteria_keep_their_weights_and_what_must_be(tmp_path: Path) -> None:
    given = '{version: "3", criteria: [{name: full, text: "Full.", weight: 2.5, must: true}]}'
    expected = Rubric(criteria=(Criterion('full', 'Full.', 2.5, True),), version='3')
    assert condition(tmp_path, 'pour', rubric=given).rubric == expected


def test_the_version_of_a_rubric_is_part_of_the_digest(tmp_path: Path) -> None:
    first, second = (
        prepared(tmp_path, 'pour', f'{{text: "Full?", version: "{version}"}}').digest
        for version in (1, 2)
    )
    assert first != second


def test_the_judge_is_told_which_outputs_to_report(tmp_path: Path) -> None:
    assert condition(tmp_path, 'pour').report == (ReportOutput('fill', 'How full.', 'number'),)


def test_outputs_that_a_plugin_fills_in_are_not_asked_of_the_judge(tmp_path: Path) -> None:
    given = f'{{from: "my_robot.reports:fill", outputs: {OUTPUT}}}'
    assert condition(tmp_path, 'pour', report=given).report == ()


def test_the_region_of_a_view_comes_with_the_tool_that_it_is_for(tmp_path: Path) -> None:
    assert condition(tmp_path, 'pour').regions == {'vlm': {'front': (0.0, 0.0, 0.5, 1.0)}}
    assert condition(tmp_path, 'lift').regions == {}


def test_a_tool_without_them_has_none(tmp_path: Path) -> None:
    plain = condition(tmp_path, 'lift')
    assert (plain.rubric, plain.report) == (None, ())


def test_what_a_report_must_hold_is_not_told_to_whoever_fills_it_in(tmp_path: Path) -> None:
    wanted = '[{key: lid, title: "Colour of the lid.", type: string, one_of: [crimson, amber]}]'
    told = condition(tmp_path, 'pour', report=wanted)
    assert told.report == (ReportOutput('lid', 'Colour of the lid.', 'string'),)
    assert 'crimson' not in repr(told)
