"""Whatever is wrong with a file is refused with its file, line, key and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest
from spoilt_files import Case, check_refused, problems, refused, spoilt, written

from harness_eval.config import load_config

GOOD = """\
evaluation:
  required_tools: [pick, peg]
  segment_tools: [peg]
  evaluator: cell
  evaluators:
    cell: {kind: checks}
    own: {kind: plugin, ref: "my_robot.grading:grade"}
  post_conditions:
    peg: "The peg is in the hole."
  tools:
    pick:
      arguments: [target]
      views: [front, grip]
      references: {goal: held.png}
      failure_kinds: [dropped]
      post_condition: "The {target} is held."
      checks:
        - marker: {view: front, dictionary: DICT_4X4_50, id: 7, region: [0.1, 0.1, 0.9, 0.9]}
        - state: {name: grip, between: [0.0, 1.0]}
          failure_kind: dropped
        - similar: {view: front, reference: goal, at_least: 0.5}
        - change: {view: front, reference: goal, fraction: [0.1, 1.0]}
        - color: {view: front, lower: [170, 0, 0], upper: [10, 9, 9], coverage: [0.1, 0.5]}
      on_success:
        - {add_edge: ["{target}", held_by, gripper]}
    peg:
      evaluator: own
capture:
  views:
    front: {topic: front/image_raw}
    wrist: {topic: wrist/image_raw, camera_info: wrist/camera_info}
  states:
    grip: {topic: joint_states, field: "position[name=finger]"}
  settle: 0.3
  max_ahead: 0.05
completions:
  - {topic: tool_completions}
  - {topic: done, type: my_msgs/msg/Done, run_id: id, tool: name, stamp: header.stamp}
scene_graph: {hold_timeout: 60.0}
evidence: {max_bytes: 1GiB}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / 'held.png').write_bytes(b'a picture, decoded by whoever needs it')
    return tmp_path


@pytest.mark.parametrize(
    ('good', 'better'),
    [('id: 7,', 'id: 7, visible: false,'), ('coverage: [0.1, 0.5]', 'coverage: [0, 0.5]')],
)
def test_an_absence_may_be_concluded_from_a_view_that_is_known_to_be_usable(
    folder: Path, good: str, better: str
) -> None:
    usable = 'front: {topic: f, usable: {marker: {dictionary: DICT_4X4_50, id: 0}}}'
    text = spoilt(GOOD, 'front: {topic: front/image_raw}', usable)
    load_config(written(folder, spoilt(text, good, better)))


def test_the_file_that_the_cases_spoil_is_good(folder: Path) -> None:
    assert list(load_config(written(folder, GOOD)).evaluation.tools) == ['pick', 'peg']


CASES: dict[str, Case] = {
    'unknown key': (
        'max_ahead: 0.05', 'max_ahed: 0.05', 35, 'capture.max_ahed', "did you mean 'max_ahead'?",
    ),
    'unknown key at the top': (
        'scene_graph:', 'scene_grpah:', 39, 'scene_grpah', "did you mean 'scene_graph'?",
    ),
    'duplicate key': (
        '  settle: 0.3', '  settle: 0.3\n  settle: 0.4', 35, 'capture.settle', 'in line 34',
    ),
    'two evaluators of a name': (
        '    own: {kind', '    cell: {kind', 7, 'evaluation.evaluators.cell', 'once',
    ),
    'segment tool that is not required': (
        'segment_tools: [peg]', 'segment_tools: [pge]', 3, 'evaluation.segment_tools[0]',
        "did you mean 'peg'?",
    ),
    'tool that is not required': (
        '    peg:\n      eval', '    pegg:\n      eval', 26, 'evaluation.tools.pegg',
        "found 'pegg', did you mean 'peg'?",
    ),
    'required twice': (
        '[pick, peg]', '[pick, peg, pick]', 2, 'evaluation.required_tools', 'more than once',
    ),
    'neither post-condition nor checks': (
        '    peg: "The', '    pge: "The', 26, 'evaluation.tools.peg',
        "found none; evaluation.post_conditions, did you mean 'pge'?",
    ),
    'post-condition in two places': (
        '    peg: "The', '    pick: "Held."\n    peg: "The', 17,
        'evaluation.tools.pick.post_condition', 'evaluation.post_conditions.pick too',
    ),
    'blank post-condition': (
        '"The peg is in the hole."', '" "', 9, 'evaluation.post_conditions.peg', 'white space',
    ),
    'unknown evaluator': (
        'evaluator: own', 'evaluator: onw', 27, 'evaluation.tools.peg.evaluator',
        "did you mean 'own'?",
    ),
    'unknown default evaluator': (
        'evaluator: cell', 'evaluator: sell', 4, 'evaluation.evaluator', "did you mean 'cell'?",
    ),
    'no evaluator named': (
        '  evaluator: cell\n', '', 10, 'evaluation.tools.pick', 'found none; name one in',
    ),
    'checks for a tool without': (
        'evaluator: own', 'evaluator: cell', 26, 'evaluation.tools.peg', 'of the kind checks',
    ),
    'plugin without ref': (
        ', ref: "my_robot.grading:grade"', '', 7, 'evaluation.evaluators.own.ref', 'found none',
    ),
    'malformed ref': (
        'my_robot.grading:grade', 'my_robot/grading.py', 7, 'evaluation.evaluators.own.ref',
        "expected 'module:callable'",
    ),
    'ref of the kind checks': (
        'cell: {kind: checks}', 'cell: {kind: checks, ref: "a:b"}', 6,
        'evaluation.evaluators.cell.ref', 'belongs to the kind plugin',
    ),
    'unknown kind': (
        'cell: {kind: checks}', 'cell: {kind: check}', 6, 'evaluation.evaluators.cell.kind',
        "did you mean 'checks'?",
    ),
    'undeclared placeholder': (
        '"The {target} is held."', '"The {tarjet} is held."', 16,
        'evaluation.tools.pick.post_condition', "found {tarjet}, did you mean 'target'?",
    ),
    'undeclared placeholder of a tool without arguments': (
        'The peg is', 'The {peg} is', 9, 'evaluation.post_conditions.peg', 'declare it there',
    ),
    'undeclared placeholder in an effect': (
        '["{target}", held_by', '["{it}", held_by', 25,
        'evaluation.tools.pick.on_success[0].add_edge', 'found {it}',
    ),
    'placeholder with a format': (
        '"The {target} is held."', '"The {target:>9} is held."', 16,
        'evaluation.tools.pick.post_condition', 'no format specifications',
    ),
    'stray brace': (
        '"The {target} is held."', '"The target} is held."', 16,
        'evaluation.tools.pick.post_condition', 'write }} for a brace',
    ),
    'unknown view of a tool': (
        'views: [front, grip]', 'views: [fornt, front, grip]', 13,
        'evaluation.tools.pick.views[0]', "found 'fornt', did you mean 'front'?",
    ),
    'no views': (
        'views: [front, grip]', 'views: []', 13, 'evaluation.tools.pick.views', 'at least',
    ),
    'view twice': (
        'views: [front, grip]', 'views: [front, front, grip]', 13, 'evaluation.tools.pick.views',
        'twice',
    ),
    'unknown view of a check': (
        'marker: {view: front', 'marker: {view: fornt', 18,
        'evaluation.tools.pick.checks[0].marker.view', "did you mean 'front'?",
    ),
    'view of a check that the tool does not look at': (
        'marker: {view: front', 'marker: {view: wrist', 18,
        'evaluation.tools.pick.checks[0].marker.view', "the tool's 'views' lists",
    ),
    'marker that a covered camera does not show either': (
        'id: 7,', 'id: 7, visible: false,', 18, 'evaluation.tools.pick.checks[0].marker.visible',
        "expected 'usable' on capture.views.front",
    ),
    'colour that a covered camera does not show either': (
        'coverage: [0.1, 0.5]', 'coverage: [0, 0.5]', 23,
        'evaluation.tools.pick.checks[4].color.coverage', 'a covered camera meets this check too',
    ),
    'change that a covered camera may not show either': (
        'fraction: [0.1, 1.0]', 'fraction: [0.0, 0.9]', 22,
        'evaluation.tools.pick.checks[3].change.fraction', "expected 'usable'",
    ),
    'usable condition that a covered camera meets': (
        'front: {topic: front/image_raw}',
        'front: {topic: f, usable: {color: {lower: [0, 0, 0], upper: [9, 9, 9], '
        'coverage: [0, 0.5]}}}',
        30, 'capture.views.front.usable', 'a covered camera meets too',
    ),
    'state that is a source of completions': (
        'grip: {topic: joint_states', 'grip: {topic: /done', 33, 'capture.states.grip.topic',
        'a judge may not see what a tool claims',
    ),
    'state that is the default source of completions': (
        'grip: {topic: joint_states', 'grip: {topic: tool_completions', 33,
        'capture.states.grip.topic', 'a source of completions',
    ),
    'state that is the status of an action': (
        'grip: {topic: joint_states', 'grip: {topic: arm/_action/status', 33,
        'capture.states.grip.topic', 'what an action says of itself',
    ),
    'state that is the feedback of an action': (
        'grip: {topic: joint_states', 'grip: {topic: arm/_action/feedback', 33,
        'capture.states.grip.topic', 'what an action says of itself',
    ),
    'state as the view of a check': (
        'marker: {view: front', 'marker: {view: grip', 18,
        'evaluation.tools.pick.checks[0].marker.view', 'expected a view of capture.views',
    ),
    'unknown state of a check': (
        'name: grip, between', 'name: grap, between', 19,
        'evaluation.tools.pick.checks[1].state.name', "did you mean 'grip'?",
    ),
    'unknown reference': (
        'similar: {view: front, reference: goal', 'similar: {view: front, reference: gaol', 21,
        'evaluation.tools.pick.checks[2].similar.reference', "did you mean 'goal'?",
    ),
    'reference that is not there': (
        'held.png', 'pictures/hold.png', 14, 'evaluation.tools.pick.references.goal',
        "'hold.png' is not there",
    ),
    'unknown failure kind': (
        'failure_kind: dropped', 'failure_kind: droped', 20,
        'evaluation.tools.pick.checks[1].failure_kind', "did you mean 'dropped'?",
    ),
    'reserved failure kind': (
        'failure_kinds: [dropped]', 'failure_kinds: [dropped, stalled]', 15,
        'evaluation.tools.pick.failure_kinds', "reserved 'stalled'",
    ),
    'unknown dictionary': (
        'DICT_4X4_50', 'DICT_4x4_51', 18, 'evaluation.tools.pick.checks[0].marker.dictionary',
        "did you mean 'DICT_4X4_50'?",
    ),
    'marker that the dictionary does not have': (
        'id: 7', 'id: 50', 18, 'evaluation.tools.pick.checks[0].marker', 'an id from 0 to 49',
    ),
    'region out of order': (
        '[0.1, 0.1, 0.9, 0.9]', '[0.9, 0.1, 0.1, 0.9]', 18,
        'evaluation.tools.pick.checks[0].marker.region', 'x0 below x1',
    ),
    'bounds that are one number': (
        'between: [0.0, 1.0]', 'between: 0.5', 19,
        'evaluation.tools.pick.checks[1].state.between',
        'expected [lowest, highest], found 0.5',
    ),
    'key without its space': (
        'cell: {kind: checks}', 'cell: {kind:checks}', 6, 'evaluation.evaluators.cell.kind',
        "expected a space after the colon, found 'kind:checks'; write kind: checks",
    ),
    'key without its space in a block': (
        '  evaluator: cell', '  evaluator:cell', 4, '', "found 'evaluator:cell'",
    ),
    'key that is indented too far': (
        '  evaluator: cell', '   evaluator: cell', 4, '',
        'expected 2 spaces before what belongs to the block that begins in line 2, found 3',
    ),
    'settings that are not indented': (
        '    peg:\n      evaluator: own', '    peg:\n    evaluator: own', 26,
        'evaluation.tools.peg', 'found nothing; indent what belongs to it deeper',
    ),
    'region of three': (
        '[0.1, 0.1, 0.9, 0.9]', '[0.1, 0.1, 0.9]', 18,
        'evaluation.tools.pick.checks[0].marker.region',
        'expected [x0, y0, x1, y1], found a list of 3',
    ),
    'region in pixels': (
        '[0.1, 0.1, 0.9, 0.9]', '[0.1, 0.1, 640, 0.9]', 18,
        'evaluation.tools.pick.checks[0].marker.region[2]', 'at most 1, found 640',
    ),
    'bounds out of order': (
        'between: [0.0, 1.0]', 'between: [1.0, 0.0]', 19,
        'evaluation.tools.pick.checks[1].state.between', 'expected [lowest, highest]',
    ),
    'infinite bound': (
        'between: [0.0, 1.0]', 'between: [0.0, .inf]', 19,
        'evaluation.tools.pick.checks[1].state.between[1]', 'finite',
    ),
    'NaN bound': (
        'between: [0.0, 1.0]', 'between: [.nan, 1.0]', 19,
        'evaluation.tools.pick.checks[1].state.between[0]', 'finite',
    ),
    'a coverage that every picture meets': (
        'coverage: [0.1, 0.5]', 'coverage: [0, 1]', 23,
        'evaluation.tools.pick.checks[4].color.coverage', 'bounds that can fail',
    ),
    'a correlation that every picture meets': (
        'at_least: 0.5', 'at_least: -1', 21, 'evaluation.tools.pick.checks[2].similar.at_least',
        'above -1',
    ),
    'position without size': (
        'id: 7,', 'id: 7, position: {x: [0, 1]},', 18, 'evaluation.tools.pick.checks[0].marker',
        "expected 'size'",
    ),
    'position without camera_info': (
        'id: 7,', 'id: 7, size: 0.03, position: {x: [0, 1]},', 18,
        'evaluation.tools.pick.checks[0].marker.position', "'camera_info' on capture.views.front",
    ),
    'axis that is none': (
        'id: 7,', 'id: 7, size: 0.03, position: {w: [0, 1]},', 18,
        'evaluation.tools.pick.checks[0].marker.position.w', 'expected one of x, y, z',
    ),
    'two kinds of check': (
        '          failure_kind: dropped\n',
        '          color: {view: front, lower: [0, 0, 0], upper: [9, 9, 9], coverage: [0, 0.5]}\n',
        19, 'evaluation.tools.pick.checks[1]', 'found color and state',
    ),
    'unknown kind of check': (
        'similar: {', 'similiar: {', 21, 'evaluation.tools.pick.checks[2].similiar',
        "did you mean 'similar'?",
    ),
    'no kind of check': (
        '        - similar: {view: front, reference: goal, at_least: 0.5}', '        - weight: 2',
        21, 'evaluation.tools.pick.checks[2]', 'found none',
    ),
    'effect of two operations': (
        '{add_edge: ', '{remove_node: [a], add_edge: ', 25,
        'evaluation.tools.pick.on_success[0]', 'found remove_node and add_edge',
    ),
    'effect of the wrong size': (
        'held_by, gripper]', 'held_by]', 25, 'evaluation.tools.pick.on_success[0].add_edge',
        'expected [subject, predicate, object]',
    ),
    'view type': (
        '{topic: front/image_raw}', '{topic: front, type: sensor_msgs/Image}', 30,
        'capture.views.front.type', "did you mean 'sensor_msgs/msg/Image'?",
    ),
    'state type': (
        'topic: joint_states,', 'topic: joint_states, type: sensor_msgs/JointState,', 33,
        'capture.states.grip.type', "did you mean 'sensor_msgs/msg/JointState'?",
    ),
    'topic name': (
        'topic: front/image_raw', 'topic: front//image', 30, 'capture.views.front.topic',
        'a ROS 2 name',
    ),
    'missing topic': (
        '{topic: front/image_raw}', '{}', 30, 'capture.views.front.topic', "the key 'topic'",
    ),
    'view without anything': (
        ' {topic: front/image_raw}', '', 30, 'capture.views.front', 'a mapping, found nothing',
    ),
    'state with the name of a view': (
        '    grip: {topic: joint', '    front: {topic: joint', 33, 'capture.states.front',
        'which is a view too',
    ),
    'field path': (
        'position[name=finger]', 'position[', 33, 'capture.states.grip.field', 'position[',
    ),
    'max_ahead not below settle': (
        'max_ahead: 0.05', 'max_ahead: 0.3', 35, 'capture.max_ahead', 'max_ahead below settle',
    ),
    'failure threshold above outcome threshold': (
        '  evaluator: cell\n', '  evaluator: cell\n  failure_threshold: 0.95\n', 5,
        'evaluation.failure_threshold', 'at most outcome_threshold (0.9), found 0.95',
    ),
    'failure threshold above the default of a blank outcome threshold': (
        '  evaluator: cell\n',
        '  evaluator: cell\n  outcome_threshold:\n  failure_threshold: 0.95\n', 6,
        'evaluation.failure_threshold', 'at most outcome_threshold (0.9), found 0.95',
    ),
    'outcome threshold that every score meets': (
        '  evaluator: cell\n',
        '  evaluator: cell\n  outcome_threshold: 0\n  failure_threshold: 0\n', 5,
        'evaluation.outcome_threshold', 'above 0',
    ),
    'truth value as a number': (
        'settle: 0.3', 'settle: true', 34, 'capture.settle', 'expected a number, found true',
    ),
    'text as a number': (
        'settle: 0.3', 'settle: "0.3"', 34, 'capture.settle', 'write it without quotes',
    ),
    'sexagesimal number': (
        'settle: 0.3', 'settle: 1:30', 34, 'capture.settle', "expected a number, found '1:30'",
    ),
    'number with a fraction as a whole one': (
        'id: 7,', 'id: 7.5,', 18, 'evaluation.tools.pick.checks[0].marker.id', 'a whole number',
    ),
    'yes as a truth value': (
        'id: 7,', 'id: 7, visible: yes,', 18, 'evaluation.tools.pick.checks[0].marker.visible',
        'did you mean true?',
    ),
    'number as a text': (
        'evaluator: cell\n', 'evaluator: 3\n', 4, 'evaluation.evaluator', 'put it in quotes',
    ),
    'negative time': ('settle: 0.3', 'settle: -1', 34, 'capture.settle', 'at least 0'),
    'hold_timeout of nothing': (
        'hold_timeout: 60.0', 'hold_timeout: 0', 39, 'scene_graph.hold_timeout', 'above 0',
    ),
    'bytes in words': (
        'max_bytes: 1GiB', 'max_bytes: 1 gig', 40, 'evidence.max_bytes', '2GiB or 500MB',
    ),
    'no bytes': ('max_bytes: 1GiB', 'max_bytes: 0', 40, 'evidence.max_bytes', 'above 0'),
    'two completions on a topic': (
        'topic: done', 'topic: tool_completions', 38, 'completions[1].topic',
        'completions[0] has it already',
    ),
    'topic and action': (
        '{topic: tool_completions}', '{topic: a, action: b, tool: peg}', 37, 'completions[0]',
        'found both',
    ),
    'neither topic nor action': ('{topic: tool_completions}', '{tool: peg}', 37, 'completions[0]',
        'found none',
    ),
    'mapping for a ToolCompletion': (
        '{topic: tool_completions}', '{topic: a, run_id: id}', 37, 'completions[0].run_id',
        'delete it',
    ),
    'action without tool': (
        '{topic: tool_completions}', '{action: navigate}', 37, 'completions[0].tool', 'found none',
    ),
    'action of a tool with arguments': (
        '{topic: tool_completions}', '{action: pick, tool: pick}', 37, 'completions[0].action',
        "needs the argument 'target'",
    ),
    'mapping without run id': (
        'run_id: id, ', '', 38, 'completions[1].run_id', 'my_msgs/msg/Done, found none',
    ),
    'mapping without tool': (', tool: name', '', 38, 'completions[1]', 'found neither'),
    'fixed tool without its argument': (
        'tool: name', 'tool_name: pick', 38, 'completions[1].arguments', "field path of 'target'",
    ),
    'malformed path of a completion': (
        'run_id: id', 'run_id: "id["', 38, 'completions[1].run_id', 'id[',
    ),
    'list in place of a mapping': (
        'scene_graph: {hold_timeout: 60.0}', 'scene_graph: [gate]', 39, 'scene_graph',
        'expected a mapping, found a list of 1',
    ),
    'text in place of a list': (
        'segment_tools: [peg]', 'segment_tools: peg', 3, 'evaluation.segment_tools',
        "expected a list, found 'peg'; write [peg]",
    ),
    'name with a space': (
        '  evaluators:\n', '  evaluators:\n    "my own": {kind: checks}\n', 6,
        "evaluation.evaluators['my own']", 'a name of letters',
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ('instead', 'words'),
    [
        ('required_tools: pick', 'expected a list'),
        ('required_tools: [pick, 2]', 'expected a text'),
        ('requierd_tools: [pick, peg]', "did you mean 'required_tools'?"),
    ],
)
def test_of_faulty_required_tools_nothing_is_told_but_their_own_fault(
    folder: Path, instead: str, words: str
) -> None:
    found = problems(folder, spoilt(GOOD, 'required_tools: [pick, peg]', instead))
    assert [one.line for one in found] == [2]
    assert words in found[0].message


def test_a_tool_beside_empty_required_tools_is_told_that_they_are_empty(folder: Path) -> None:
    found = problems(folder, spoilt(GOOD, '[pick, peg]', '[]'))
    assert 'required_tools is empty' in found[0].message


@pytest.mark.parametrize('case', CASES.values(), ids=list(CASES))
def test_a_spoilt_file_is_refused_with_line_key_and_what_would_be_right(
    folder: Path, case: Case
) -> None:
    check_refused(folder, GOOD, case)


def test_a_tool_whose_checks_are_all_optional_is_refused(folder: Path) -> None:
    start = GOOD.index('        - marker')
    text = (
        GOOD[:start]
        + '        - {state: {name: grip, between: [0.0, 1.0]}, optional: true}\n'
        + GOOD[GOOD.index('      on_success') :]
    )
    assert [(one.line, one.key) for one in problems(folder, text)] == [
        (17, 'evaluation.tools.pick.checks')
    ]


def test_a_tool_that_nothing_can_see_is_refused(folder: Path) -> None:
    text = (
        'evaluation:\n  required_tools: [wave]\n  evaluator: own\n'
        '  evaluators: {own: {kind: plugin, ref: "a:b"}}\n'
        '  post_conditions: {wave: "The arm is up."}\n'
    )
    (found,) = problems(folder, text)
    assert (found.line, found.key) == (2, 'evaluation.required_tools[0]')
    assert 'add one to capture.views or capture.states' in found.message


def test_all_problems_of_a_file_are_told_in_the_order_of_its_lines(folder: Path) -> None:
    text = (
        GOOD.replace('segment_tools: [peg]', 'segment_tools: [pge]')
        .replace('max_ahead: 0.05', 'max_ahed: 0.05\n  max_ahead: 0.4')
        .replace('marker: {view: front', 'marker: {view: fornt')
        .replace('hold_timeout: 60.0', 'hold_timeout: soon')
    )
    found = problems(folder, text)
    assert [(one.line, one.key) for one in found] == [
        (3, 'evaluation.segment_tools[0]'),
        (18, 'evaluation.tools.pick.checks[0].marker.view'),
        (35, 'capture.max_ahed'),
        (36, 'capture.max_ahead'),
        (40, 'scene_graph.hold_timeout'),
    ]


def test_the_error_reads_as_file_line_key_and_message(folder: Path) -> None:
    error = refused(folder, spoilt(GOOD, 'views: [front, grip]', 'views: [fornt, front, grip]'))
    assert (error.file, error.line, error.key) == (
        'cell.yaml', 13, 'evaluation.tools.pick.views[0]',
    )  # fmt: skip
    assert str(error) == (
        'cell.yaml:13: evaluation.tools.pick.views[0]: '
        "expected a view or a state of capture, found 'fornt', did you mean 'front'?"
    )


def test_the_value_of_an_unknown_key_is_not_repeated(folder: Path) -> None:
    text = spoilt(GOOD, 'settle: 0.3', 'settle: 0.3\n  api_key: sk-very-secret')
    assert 'sk-very-secret' not in str(problems(folder, text))


def test_a_file_of_thousands_of_faults_is_refused_within_seconds(folder: Path) -> None:
    many = ', '.join(f'tool_{index}' for index in range(5000))
    found = problems(folder, spoilt(GOOD, 'segment_tools: [peg]', f'segment_tools: [{many}]'))
    assert len(found) == 200
