"""A tool's metric names a number or a boolean of its report, on a scale of its own."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from harness_eval.config import ConfigError, json_schema, load_config, Problem
from harness_eval.config.rules_metric import metric_scale
from harness_eval.config.tool_judging import MetricSettings
from harness_eval.decode import Decoder
from harness_eval.pipeline.basis import Bases
from harness_eval.requests import Requests

YAML = """\
evaluation:
  required_tools: [insert]
  evaluator: grader
  evaluators: {{grader: {{kind: plugin, ref: "my_robot.grading:grade"}}}}
  post_conditions: {{insert: "The peg is in."}}
  tools:
    insert:
      metric: {metric}
      report:
        - {{key: depth, title: "Depth in mm.", type: number, between: [8, 12]}}
        - {{key: hits, title: "Times it struck.", type: integer}}
        - {{key: flush, title: "Whether it is flush.", type: boolean, equals: true}}
        - {{key: colour, title: "Its colour.", type: string}}
        - {{key: angle, title: "Its angle.", type: number, between: [3, 3]}}
capture: {{views: {{front: {{topic: front/image_raw}}}}}}
"""


def written(folder: Path, metric: str) -> Path:
    path = folder / 'cell.yaml'
    path.write_text(YAML.format(metric=metric), encoding='utf-8')
    return path


def loaded(folder: Path, metric: str) -> MetricSettings | None:
    return load_config(written(folder, metric)).tool('insert').metric


def problem(folder: Path, metric: str) -> Problem:
    with pytest.raises(ConfigError) as caught:
        load_config(written(folder, metric))
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


def test_a_name_alone_is_a_metric_that_is_better_the_higher(tmp_path: Path) -> None:
    assert loaded(tmp_path, 'depth') == MetricSettings(name='depth')
    assert loaded(tmp_path, '{name: hits, goal: minimize, scale: 3}') == MetricSettings(
        name='hits', goal='minimize', scale=3.0
    )
    assert loaded(tmp_path, '') is None


@pytest.mark.parametrize(
    ('metric', 'scale'),
    [
        ('depth', 4.0),
        ('{name: depth, scale: 2.5}', 2.5),
        ('{name: hits, scale: 3}', 3.0),
        ('flush', 1.0),
    ],
)
def test_the_scale_is_the_width_of_what_is_accepted_unless_it_is_given(
    tmp_path: Path, metric: str, scale: float
) -> None:
    tool = load_config(written(tmp_path, metric)).tool('insert')
    assert tool.metric is not None
    assert tool.report is not None
    output = next(one for one in tool.report.outputs if one.key == tool.metric.name)
    assert metric_scale(tool.metric, output) == scale


@pytest.mark.parametrize(
    ('metric', 'key', 'words'),
    [
        ('dept', '.metric.name', "found 'dept', did you mean 'depth'?"),
        ('xyz', '.metric.name', 'numbers and booleans: depth, hits, flush, angle'),
        ('colour', '.metric.name', "found that 'colour' is a string"),
        ('hits', '.metric', "expected 'scale', the difference of 'hits'"),
        ('angle', '.metric', "no 'between' of any width"),
        ('{name: flush, scale: 2}', '.metric.scale', "expected no 'scale' for 'flush'"),
        ('{name: depth, scale: 0}', '.metric.scale', 'a number above 0'),
        ('{name: depth, goal: up}', '.metric.goal', 'expected one of maximize, minimize'),
        ('{name: depth, weight: 1}', '.metric.weight', 'found an unknown one'),
        ('{goal: minimize}', '.metric.name', "expected the key 'name', found none"),
        ('[depth]', '.metric', 'expected a mapping, found a list of 1'),
        ('3', '.metric', 'expected a mapping, found 3'),
    ],
)
def test_what_no_comparison_could_go_by_is_refused_at_its_line(
    tmp_path: Path, metric: str, key: str, words: str
) -> None:
    found = problem(tmp_path, metric)
    assert (found.file, found.line) == ('cell.yaml', 8)
    assert found.key == f'evaluation.tools.insert{key}'
    assert words in found.message


def test_a_metric_without_a_report_is_refused(tmp_path: Path) -> None:
    text = YAML.format(metric='depth')
    start, end = text.index('      report:'), text.index('capture:')
    path = tmp_path / 'cell.yaml'
    path.write_text(text[:start] + text[end:], encoding='utf-8')
    with pytest.raises(ConfigError, match="a report with the output 'depth', found none"):
        load_config(path)


@pytest.mark.parametrize('metric', ['depth', '{name: hits, scale: 3, goal: minimize}'])
def test_the_schema_for_editors_takes_it(metric: str) -> None:
    jsonschema.validate(yaml.safe_load(YAML.format(metric=metric)), json_schema())


@pytest.mark.parametrize('metric', ['{name: 3}', '{goal: minimize}', '[depth]'])
def test_the_schema_for_editors_refuses_others(metric: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(YAML.format(metric=metric)), json_schema())


def test_no_run_that_waits_is_turned_away_because_the_metric_changed(tmp_path: Path) -> None:
    bases = []
    for metric in ('', 'depth', '{name: hits, scale: 3}'):
        config = load_config(written(tmp_path, metric))
        bases.append(Bases(config, Requests(config, Decoder())).of('insert'))
    assert bases[0].rules
    assert bases[0] == bases[1] == bases[2]
