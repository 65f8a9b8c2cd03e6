"""Every kind of evaluator has its settings, and what does not fit is refused at its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from spoilt_files import Case, check_refused, problems, spoilt, written

from harness_eval.config import load_config
from harness_eval.config.evaluators import CascadeSettings, KINDS, ModelSettings, VoteSettings

GOOD = """\
evaluation:
  required_tools: [pick, place]
  evaluator: jury
  evaluators:
    cell: {kind: checks, unsure: [0.4, 0.8], max_concurrency: 4}
    own: {kind: plugin, ref: "my_robot.grading:grade", isolation: process, cache: true}
    vlm:
      kind: model
      model: a-vision-model
      base_url: "http://127.0.0.1:8000/v1"
      api_key_env: VLM_API_KEY
      max_views: 2
      max_image_bytes: 128KiB
      prices: {input: 2.5, cached_input: 1.25, output: 10}
      regions: {pick: {front: [0.0, 0.0, 0.5, 1.0]}}
    grader: {kind: rubric, model: vlm, max_criteria: 5}
    web: {kind: endpoint, url: "https://judge.example/v1/judge?site=2", token_env: JUDGE_TOKEN}
    node: {kind: service, service: cell/judge}
    jury: {kind: vote, members: [cell, vlm, own], needed: 2}
    cheap_first: {kind: cascade, members: [cell, jury, web], on_error: next}
  tools:
    pick:
      views: [front, wrist, grip]
      post_condition: "It is held."
      checks: [{state: {name: grip, between: [0.0, 0.05]}}]
      report:
        - {key: held, title: "Whether it is held.", type: boolean, equals: true}
        - {key: depth, title: "Depth in m.", type: number, between: [0, 0.012]}
        - {key: colour, title: "Its colour.", type: string, one_of: [red, blue]}
      oracle: {kind: plugin, ref: "my_sim.truth:ask", decides: true}
    place:
      evaluator: grader
      views: [front, grip]
      rubric:
        version: "3"
        criteria:
          - {name: upright, text: "It stands upright.", weight: 2, must: true}
          - {name: centred, text: "It stands on the middle of the pad."}
capture:
  views:
    front: {topic: front/image_raw}
    wrist: {topic: wrist/image_raw}
    back: {topic: back/image_raw}
  states:
    grip: {topic: joint_states, field: "position[name=finger]"}
"""


def test_each_kind_is_read_with_its_own_settings(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, GOOD))
    found = config.evaluation.evaluators
    assert {settings.kind for settings in found.values()} == set(KINDS)
    assert all(isinstance(settings, KINDS[settings.kind]) for settings in found.values())
    assert found['cell'].unsure == (0.4, 0.8)
    assert (found['own'].isolated, found['cell'].isolated) == (True, False)
    vlm, jury, cascade = found['vlm'], found['jury'], found['cheap_first']
    assert isinstance(vlm, ModelSettings)
    assert (vlm.max_image_bytes, vlm.max_total_bytes) == (128 * 1024, 1024**2)
    assert vlm.prices is not None
    assert vlm.prices.cached_input == 1.25
    assert isinstance(jury, VoteSettings)
    assert (jury.members, jury.needed) == (('cell', 'vlm', 'own'), 2)
    assert isinstance(cascade, CascadeSettings)
    assert cascade.on_error == 'next'


def test_what_a_tool_is_judged_by_is_read(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, GOOD))
    pick, place = config.tool('pick'), config.tool('place')
    assert pick.report is not None
    assert [output.key for output in pick.report.outputs] == ['held', 'depth', 'colour']
    assert pick.oracle is not None
    assert pick.oracle.decides
    assert place.rubric is not None
    assert [(one.name, one.weight, one.must) for one in place.rubric.criteria or ()] == [
        ('upright', 2.0, True),
        ('centred', 1.0, False),
    ]


CASES: dict[str, Case] = {
    'no kind': (
        'node: {kind: service, service', 'node: {service', 18, 'node.kind', "the key 'kind'"),
    'unknown kind': (
        'kind: cascade', 'kind: cascad', 20, 'cheap_first.kind', "did you mean 'cascade'?"),
    'a key of another kind': (
        'kind: rubric, model: vlm', 'kind: rubric, model: vlm, members: [vlm]', 16,
        'grader.members', 'it belongs to the kind vote and cascade'),
    'a mistyped key of a kind': (
        'max_views: 2', 'max_view: 2', 12, 'vlm.max_view', "did you mean 'max_views'?"),
    'band in the wrong order': (
        '[0.4, 0.8]', '[0.8, 0.4]', 5, 'cell.unsure', 'expected [lowest, highest]'),
    'band of every score': ('[0.4, 0.8]', '[0, 1]', 5, 'cell.unsure', 'some scores sure'),
    'band beyond a score': ('[0.4, 0.8]', '[0.4, 1.8]', 5, 'cell.unsure[1]', 'at most 1'),
    'no call at a time': (
        'max_concurrency: 4', 'max_concurrency: 0', 5, 'cell.max_concurrency', 'at least 1'),
    'empty model': (
        'model: a-vision-model', 'model: ""', 9, 'vlm.model', 'at least 1 character'),
    'empty base_url': (
        '"http://127.0.0.1:8000/v1"', '""', 10, 'vlm.base_url', 'found no scheme'),
    'base_url of another scheme': (
        '"http://127', '"ftp://127', 10, 'vlm.base_url', "found the scheme 'ftp'"),
    'base_url without a host': (
        '"http://127.0.0.1:8000/v1"', '"http:///v1"', 10, 'vlm.base_url', 'with a host'),
    'base_url with a query': (
        '8000/v1"', '8000/v1?version=2"', 10, 'vlm.base_url', 'without a query'),
    'base_url of a port that is none': (
        ':8000/v1"', ':80000/v1"', 10, 'vlm.base_url', 'malformed'),
    'empty api_key_env': (
        'VLM_API_KEY', '""', 11, 'vlm.api_key_env', 'found nothing'),
    'negative price': (
        'output: 10', 'output: -1', 14, 'vlm.prices.output', 'at least 0'),
    'price of nothing': (
        'input: 2.5, cached', 'cached', 14, 'vlm.prices.input', "the key 'input'"),
    'no view at all': ('max_views: 2', 'max_views: 0', 12, 'vlm.max_views', 'at least 1'),
    'more bytes for one than for all': (
        'max_image_bytes: 128KiB', 'max_image_bytes: 2MiB', 13, 'vlm.max_image_bytes',
        'at most max_total_bytes'),
    'region of an unknown tool': (
        '{pick: {front:', '{pik: {front:', 15, 'vlm.regions.pik', "did you mean 'pick'?"),
    'region of an unknown view': (
        '{pick: {front:', '{pick: {fornt:', 15, 'vlm.regions.pick.fornt',
        "did you mean 'front'?"),
    'region of a view that the tool does not show': (
        '{pick: {front:', '{pick: {back:', 15, 'vlm.regions.pick.back',
        "'views' of the tool 'pick' lists"),
    'region inside out': (
        '[0.0, 0.0, 0.5, 1.0]', '[0.5, 0.0, 0.5, 1.0]', 15, 'vlm.regions.pick.front',
        'x0 below x1'),
    'rubric of an unknown model': (
        'rubric, model: vlm', 'rubric, model: vml', 16, 'grader.model', "did you mean 'vlm'?"),
    'rubric of what is no model': (
        'rubric, model: vlm', 'rubric, model: own', 16, 'grader.model',
        "found 'own', which is of the kind plugin"),
    'url of a file': (
        '"https://judge', '"file://judge', 17, 'web.url', 'http:// or https://'),
    'service with a space': (
        'cell/judge', '"cell judge"', 18, 'node.service', 'a ROS 2 name'),
    'unknown member': (
        '[cell, vlm, own]', '[cell, vml, own]', 19, 'jury.members[1]', "did you mean 'vlm'?"),
    'member twice': (
        '[cell, vlm, own]', '[cell, vlm, cell]', 19, 'jury.members', "'cell' more than once"),
    'no member': ('[cell, vlm, own]', '[]', 19, 'jury.members', 'at least 1'),
    'more votes than members': (
        'needed: 2', 'needed: 4', 19, 'jury', "'needed' of at most 3"),
    'no vote needed': ('needed: 2', 'needed: 0', 19, 'jury.needed', 'at least 1'),
    'a circle of members': (
        '[cell, vlm, own]', '[cell, cheap_first, own]', 20, 'cheap_first.members',
        'found cheap_first asks jury asks cheap_first'),
    'a member of itself': (
        '[cell, jury, web]', '[cell, cheap_first]', 20, 'cheap_first.members',
        'found cheap_first asks cheap_first'),
    'unknown answer to an error': (
        'on_error: next', 'on_error: skip', 20, 'cheap_first.on_error', 'one of error, next'),
    'more views than the model takes': (
        'views: [front, wrist, grip]', 'views: [front, wrist, back, grip]', 23,
        '.tools.pick.views',
        "since its evaluator 'jury' asks 'vlm', which is of the kind model with that max_views, "
        'found 3'),
    'all views, and more than the model takes': (
        '      views: [front, grip]\n', '', 31, '.tools.place', 'found 3'),
    'a member of the kind checks and no checks': (
        '      checks: [{state: {name: grip, between: [0.0, 0.05]}}]\n', '', 22, '.tools.pick',
        "its evaluator 'jury' asks 'cell', which is of the kind checks"),
    'a model and no sentence': (
        '      post_condition: "It is held."\n', '', 22, '.tools.pick',
        "expected a post_condition for the tool 'pick', since its evaluator 'jury' asks 'vlm'"),
    'no rubric for the kind rubric': (
        GOOD[GOOD.index('      rubric:\n'):GOOD.index('capture:')],
        '      post_condition: "It stands."\n', 31, '.tools.place',
        "expected a rubric for the tool 'place', since its evaluator 'grader' is of the kind"),
    'a rubric for a service, which is sent none': (
        'evaluator: grader', 'evaluator: node', 31, '.tools.place',
        'which is sent no rubric, found neither'),
    'rubric of nothing': (
        GOOD[GOOD.index('      rubric:\n'):GOOD.index('capture:')], '      rubric: "  "\n', 34,
        '.tools.place.rubric', 'nothing but white space'),
    'rubric of too much': (
        GOOD[GOOD.index('      rubric:\n'):GOOD.index('capture:')],
        f'      rubric: "{"x" * 65_537}"\n', 34, '.tools.place.rubric',
        'at most 65536 characters'),
    'rubric of two things': (
        '        version: "3"\n', '        text: "All is well."\n', 34, '.tools.place.rubric',
        'found text and criteria'),
    'criterion twice': (
        'name: centred', 'name: upright', 34, '.tools.place.rubric', "'upright' more than once"),
    'criterion without weight': (
        'weight: 2', 'weight: 0', 37, '.tools.place.rubric.criteria[0].weight', 'above 0'),
    'rubric of a file that is not there': (
        GOOD[GOOD.index('      rubric:\n'):GOOD.index('capture:')],
        '      rubric: {file: rubrics/place.md}\n', 34, '.tools.place.rubric.file',
        "found that 'place.md' is not there"),
    'output in capitals': (
        'key: held', 'key: isHeld', 27, '.tools.pick.report[0].key', 'snake_case'),
    'output twice': (
        'key: depth', 'key: held', 26, '.tools.pick.report', "'held' more than once"),
    'output without a title': (
        'title: "Depth in m."', 'title: ""', 28, '.tools.pick.report[1].title', 'at least 1'),
    'output of another type': (
        'type: number', 'type: float', 28, '.tools.pick.report[1].type',
        'one of string, integer, number, boolean'),
    'bounds of a truth value': (
        'type: boolean, equals: true', 'type: boolean, between: [0, 1]', 27,
        '.tools.pick.report[0]', "expected 'equals' or nothing to accept a boolean by"),
    'a number that equals': (
        'between: [0, 0.012]', 'equals: true', 28, '.tools.pick.report[1]',
        "expected 'between' or nothing"),
    'bounds in the wrong order': (
        'between: [0, 0.012]', 'between: [0.1, 0]', 28, '.tools.pick.report[1]',
        '[lowest, highest]'),
    'a text out of none': (
        'one_of: [red, blue]', 'one_of: []', 29, '.tools.pick.report[2].one_of', 'at least 1'),
    'a truth value as a text': (
        'equals: true', 'equals: "true"', 27, '.tools.pick.report[0].equals', 'true or false'),
    'a report of members that fill none in': (
        'needed: 2', 'needed: 1', 26, '.tools.pick.report', "whose 'cell' cannot"),
    'an oracle that is no plugin': (
        'my_sim.truth:ask', 'my_sim.truth', 30, '.tools.pick.oracle.ref', "'module:callable'"),
    'an oracle of another kind': (
        'kind: plugin, ref: "my_sim.truth:ask"', 'kind: model, ref: "x"', 30,
        '.tools.pick.oracle.kind', 'one of plugin, endpoint'),
    'an oracle at no address': (
        'kind: plugin, ref: "my_sim', 'kind: endpoint, ref: "my_sim', 30,
        '.tools.pick.oracle.ref', 'http:// or https://'),
    'a token for a plugin': (
        'decides: true', 'token_env: TRUTH_TOKEN', 30, '.tools.pick.oracle.token_env',
        'the kind endpoint'),
}  # fmt: skip


@pytest.mark.parametrize('case', CASES.values(), ids=list(CASES))
def test_a_spoilt_file_is_refused_with_line_key_and_what_would_be_right(
    tmp_path: Path, case: Case
) -> None:
    before, after, line, key, words = case
    whole = f'evaluation{key}' if key.startswith('.') else f'evaluation.evaluators.{key}'
    check_refused(tmp_path, GOOD, (before, after, line, whole, words))


SECRET = 's3cr3t'


@pytest.mark.parametrize(
    ('before', 'after'),
    [
        ('"http://127.0.0.1:8000/v1"', f'"http://me:{SECRET}@127.0.0.1:8000/v1"'),
        ('"http://127.0.0.1:8000/v1"', f'"http://{SECRET}@127.0.0.1:8000/v1"'),
        ('"http://127.0.0.1:8000/v1"', f'"http://127.0.0.1:8000/v1?key={SECRET}"'),
        ('"http://127.0.0.1:8000/v1"', f'"http://127.0.0.1:8000/v1#{SECRET}"'),
        ('"http://127.0.0.1:8000/v1"', f'"http://me:{SECRET}@{"x" * 2000}"'),
        ('api_key_env: VLM_API_KEY', f'api_key_env: sk-{SECRET}'),
        ('api_key_env: VLM_API_KEY', f'api_key_env: {SECRET}'),
        ('api_key_env: VLM_API_KEY', f'api_key_env: VLM_API_KEY\n      api_key: {SECRET}'),
        ('?site=2', f'?site=2&access_token={SECRET}'),
        ('?site=2', f'?API-Key={SECRET}'),
        ('?site=2', f'?sig={SECRET}'),
        ('judge.example', f'user:{SECRET}@judge.example'),
        ('token_env: JUDGE_TOKEN', f'token_env: "Bearer {SECRET}"'),
        ('kind: plugin, ref: "my_sim.truth:ask"', f'kind: endpoint, ref: "http://{SECRET}@sim"'),
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_repeated(
    tmp_path: Path, before: str, after: str
) -> None:
    found = problems(tmp_path, spoilt(GOOD, before, after))
    assert found
    assert SECRET not in str(found)


@pytest.mark.parametrize(
    ('report', 'words'),
    [
        ('[]', 'at least 1'),
        ('[' + ', '.join(f'{{key: k{n}, title: t, type: string}}' for n in range(33)) + ']', '32'),
        ('held', 'a list of outputs'),
        ('{from: "my robot", outputs: [{key: a, title: t, type: string}]}', 'module:callable'),
        ('{form: "a:b", outputs: [{key: a, title: t, type: string}]}', "did you mean 'from'?"),
    ],
)
def test_a_report_that_nobody_could_fill_in_is_refused(
    tmp_path: Path, report: str, words: str
) -> None:
    start, end = GOOD.index('      report:\n'), GOOD.index('      oracle:')
    found = problems(tmp_path, f'{GOOD[:start]}      report: {report}\n{GOOD[end:]}')
    assert any(words in one.message for one in found), found
    assert {one.line for one in found} == {26}


def test_a_plugin_may_fill_in_what_the_evaluator_cannot(tmp_path: Path) -> None:
    text = GOOD.replace('needed: 2', 'needed: 1').replace(
        '      report:\n',
        '      report:\n        from: "my_robot.reports:fill"\n        outputs:\n',
    )
    report = load_config(written(tmp_path, text)).tool('pick').report
    assert report is not None
    assert (report.source, len(report.outputs)) == ('my_robot.reports:fill', 3)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace('needed: 2', 'needed: 0').replace('output: 10', 'output: -1')
    text = text.replace('cell/judge', '"cell judge"').replace('site=2', 'token=2')
    assert [one.line for one in problems(tmp_path, text)] == [14, 17, 18, 19]


# Files beside the configuration.


def with_rubric(rubric: str) -> str:
    start, end = GOOD.index('      rubric:\n'), GOOD.index('capture:')
    return f'{GOOD[:start]}      rubric: {rubric}\n{GOOD[end:]}'


def test_a_rubric_may_live_in_a_file_of_markdown(tmp_path: Path) -> None:
    (tmp_path / 'rubrics').mkdir()
    written(tmp_path, '# Placed\n\nIt stands.\n', 'rubrics/place.md')
    text = with_rubric('{file: rubrics/place.md, version: "7"}')
    rubric = load_config(written(tmp_path, text)).tool('place').rubric
    assert rubric is not None
    assert (rubric.text, rubric.file, rubric.version) == ('# Placed\n\nIt stands.\n', None, '7')


def test_a_rubric_may_live_in_a_file_of_yaml_with_its_version(tmp_path: Path) -> None:
    written(tmp_path, 'version: "4"\ncriteria: [{name: a, text: "It stands."}]\n', 'place.yaml')
    text = with_rubric('{file: place.yaml}')
    rubric = load_config(written(tmp_path, text)).tool('place').rubric
    assert rubric is not None
    assert (rubric.version, rubric.text, rubric.file) == ('4', None, None)
    assert [one.text for one in rubric.criteria or ()] == ['It stands.']


@pytest.mark.parametrize(
    ('name', 'content', 'file', 'line', 'words'),
    [
        ('a.md', ' \n', 'cell.yaml', 34, 'nothing but white space'),
        ('a.md', 'x' * 65_537, 'cell.yaml', 34, 'found 65537 characters'),
        ('a.yaml', '- a\n', 'cell.yaml', 34, 'found a list of 1'),
        ('a.yaml', 'version: "1"\ntxt: x\n', 'a.yaml', 2, "did you mean 'text'?"),
        ('a.yaml', 'criteria:\n  - {name: a}\n', 'a.yaml', 2, "the key 'text'"),
        ('a.yaml', 'file: b.md\n', 'a.yaml', 1, 'found another file'),
        ('a.yaml', 'text: "a\n', 'a.yaml', 2, 'expected YAML'),
        ('a.yaml', 'text: a\ntext: b\n', 'a.yaml', 2, 'each key once'),
    ],
)
def test_a_rubric_file_is_refused_where_it_is_wrong(
    tmp_path: Path, name: str, content: str, file: str, line: int, words: str
) -> None:
    written(tmp_path, content, name)
    found = problems(tmp_path, with_rubric(f'{{file: {name}}}'))
    assert any(words in one.message for one in found if (one.file, one.line) == (file, line)), (
        found
    )
    assert str(tmp_path) not in str(found)


def test_a_version_in_two_places_is_refused(tmp_path: Path) -> None:
    written(tmp_path, 'version: "1"\ntext: It stands.\n', 'a.yaml')
    (found,) = problems(tmp_path, with_rubric('{file: a.yaml, version: "2"}'))
    assert "found '2' here and '1' in a.yaml" in found.message


def test_the_file_of_certificates_is_found_beside_the_file_that_names_it(tmp_path: Path) -> None:
    text = GOOD.replace('token_env: JUDGE_TOKEN', 'ca_file: ca.pem')
    (found,) = problems(tmp_path, text)
    assert (found.line, found.key) == (17, 'evaluation.evaluators.web.ca_file')
    assert "'ca.pem' is not there" in found.message
    written(tmp_path, 'certificates', 'ca.pem')
    web = load_config(written(tmp_path, text)).evaluation.evaluators['web']
    assert getattr(web, 'ca_file', None) == str(tmp_path / 'ca.pem')
