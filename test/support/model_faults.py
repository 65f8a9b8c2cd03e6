"""Each way in which a server of a model can fail to answer, and the error that it becomes."""

from __future__ import annotations

import json
from typing import Any

from asked_model import failure, success
from model_server import Answer, as_json, closed, completion, completion_body, cut, http, refused

from harness_eval.evaluators.model.bounded import MAX_BODY

GOOD = json.dumps(success())
BODY = json.dumps(completion_body(GOOD)).encode()
TOOL_CALL = {'id': 'c', 'type': 'function', 'function': {'name': 'f', 'arguments': GOOD}}
CUT_CHOICE = {'finish_reason': 'stop', 'index': 0}


def without(key: str) -> dict[str, Any]:
    answer = success()
    del answer[key]
    return answer


def seen(**changes: Any) -> dict[str, Any]:
    return success(observations=[{'source': 'front', 'seen': 'A part.', **changes}])


def two_keys() -> str:
    return GOOD[:-1] + ', "status": "failure"}'


PAGE = http(b'<!DOCTYPE html><html><body>Sign in</body></html>', content_type='text/html')
PACKED = http(BODY, headers={'Content-Encoding': 'gzip'})
ENDLESS = http(b' ' * (MAX_BODY + 1))

# (what the server does, kind of the error, whether judging again may help)
FAULTS: dict[str, tuple[Answer, str, bool]] = {
    'a refusal in its field': (completion(None, refusal='I will not.'), 'refused', False),
    'a refusal beside an answer': (completion(GOOD, refusal='I will not.'), 'refused', False),
    'a refusal in words': (completion("I'm sorry, I can't help with that."), 'refused', False),
    'a content filter': (
        completion(GOOD, finish_reason='content_filter'),
        'content_filtered',
        False,
    ),
    'a content filter that refuses the question': (
        refused(400, 'filtered', code='content_filter'),
        'content_filtered',
        False,
    ),
    'an answer cut at its length': (completion(GOOD, finish_reason='length'), 'answer_cut', False),
    'half an answer cut at its length': (
        completion(GOOD[:40], finish_reason='length'),
        'answer_cut',
        False,
    ),
    'no finish_reason': (completion(GOOD, finish_reason=None), 'unfinished_answer', True),
    'no choices': (as_json({**completion_body(GOOD), 'choices': []}), 'no_choices', True),
    'choices missing': (as_json({'id': 'x', 'model': 'm'}), 'malformed_response', True),
    'two choices': (
        as_json({**completion_body(GOOD), 'choices': 2 * completion_body(GOOD)['choices']}),
        'malformed_response',
        True,
    ),
    'a choice without a message': (
        as_json({**completion_body(GOOD), 'choices': [CUT_CHOICE]}),
        'malformed_response',
        True,
    ),
    'an error with status 200': (
        as_json({'error': {'message': 'upstream'}}),
        'malformed_response',
        True,
    ),
    'an empty text': (completion(''), 'empty_answer', True),
    'white space': (completion(' \n\t '), 'empty_answer', True),
    'no content': (completion(None), 'empty_answer', True),
    'the answer in a reasoning field': (
        completion('', reasoning_content=GOOD),
        'empty_answer',
        True,
    ),
    'the answer in a reasoning field, prose beside it': (
        completion('It is done.', reasoning=GOOD),
        'malformed_answer',
        True,
    ),
    'reasoning before the answer': (
        completion(f'<think>hm</think>{GOOD}'),
        'malformed_answer',
        True,
    ),
    'content in parts': (
        as_json(completion_body([{'type': 'text', 'text': GOOD}])),
        'malformed_response',
        True,
    ),
    'a fence around the answer': (completion(f'```json\n{GOOD}\n```'), 'malformed_answer', True),
    'prose before the answer': (completion(f'Here it is: {GOOD}'), 'malformed_answer', True),
    'prose after the answer': (completion(f'{GOOD}\nDone.'), 'malformed_answer', True),
    'two objects': (completion(f'{GOOD}\n{GOOD}'), 'malformed_answer', True),
    'an object in a list': (completion([success()]), 'malformed_answer', True),
    'an object in a text': (completion(json.dumps(GOOD)), 'malformed_answer', True),
    'half an object': (completion(GOOD[:-1]), 'malformed_answer', True),
    'the word true': (completion('true'), 'malformed_answer', True),
    'the word success': (completion('success'), 'malformed_answer', True),
    'a key twice': (completion(two_keys()), 'malformed_answer', True),
    'a key too many': (completion(success(note='x')), 'malformed_answer', True),
    'a key too many within': (completion(seen(note='x')), 'malformed_answer', True),
    'no status': (completion(without('status')), 'malformed_answer', True),
    'no score': (completion(without('score')), 'malformed_answer', True),
    'no reasons': (completion(without('reasons')), 'malformed_answer', True),
    'no observations': (completion(without('observations')), 'malformed_answer', True),
    'an empty list of observations': (
        completion(success(observations=[])),
        'malformed_answer',
        True,
    ),
    'reasons that show nothing': (completion(success(reasons='\u200b')), 'malformed_answer', True),
    'a status in capitals': (completion(success(status='SUCCESS')), 'malformed_answer', True),
    'an unknown status': (completion(success(status='done')), 'malformed_answer', True),
    'a status of another type': (completion(success(status=True)), 'malformed_answer', True),
    'a score in a text': (completion(success(score='0.97')), 'malformed_answer', True),
    'a score that is true': (completion(success(score=True)), 'malformed_answer', True),
    'a score of null': (completion(success(score=None)), 'malformed_answer', True),
    'a score above 1': (completion(success(score=1.01)), 'score_out_of_range', True),
    'a score below 0': (completion(failure(score=-0.01)), 'score_out_of_range', True),
    'a score in percent': (completion(success(score=97)), 'score_out_of_range', True),
    'a score that is not a number': (
        completion(GOOD.replace('0.97', 'NaN')),
        'malformed_answer',
        True,
    ),
    'a score beyond all': (completion(GOOD.replace('0.97', '1e999')), 'malformed_answer', True),
    'process for a tool without segments': (
        completion(success(status='process', score=0.6)),
        'process_not_allowed',
        True,
    ),
    'evidence of a view that was not sent': (
        completion(seen(source='wrist')),
        'unknown_view',
        True,
    ),
    'a failure kind that was not asked for': (
        completion(failure(failure_kind='dropped')),
        'malformed_answer',
        True,
    ),
    'success with the score of a failure': (
        completion(success(score=0.2)),
        'contradictory_answer',
        True,
    ),
    'failure with the score of a success': (
        completion(failure(score=0.95)),
        'contradictory_answer',
        True,
    ),
    'a tool call': (
        completion(None, finish_reason='tool_calls', tool_calls=[TOOL_CALL]),
        'tool_call',
        False,
    ),
    'a tool call that says it stopped': (
        completion(GOOD, tool_calls=[TOOL_CALL]),
        'tool_call',
        False,
    ),
    'a function call': (
        completion(None, function_call={'name': 'f', 'arguments': GOOD}),
        'tool_call',
        False,
    ),
    'a redirect': (
        http(b'', status=307, headers={'Location': 'http://127.0.0.1:9/v1/chat/completions'}),
        'redirected',
        False,
    ),
    '400': (refused(400, 'bad picture'), 'request_refused', False),
    '401': (refused(401, 'Incorrect API key'), 'unauthorized', False),
    '403': (refused(403, 'not allowed'), 'unauthorized', False),
    '404': (refused(404, 'no such model'), 'not_found', False),
    '408': (refused(408, 'too slow'), 'server_timeout', True),
    '409': (refused(409, 'locked'), 'conflict', True),
    '413': (refused(413, 'too large'), 'request_too_large', False),
    '429': (refused(429, 'slow down'), 'rate_limited', True),
    '429 for want of money': (
        refused(429, 'pay', code='insufficient_quota'),
        'quota_exhausted',
        False,
    ),
    '500': (refused(500, 'oops'), 'server_error', True),
    '503 with a page': (
        http(b'<html>busy</html>', status=503, content_type='text/html'),
        'server_error',
        True,
    ),
    'a connection closed without a word': (closed(), 'connection_lost', True),
    'a connection cut in the middle': (cut(BODY, after=len(BODY) // 2), 'connection_lost', True),
    'a page': (PAGE, 'not_an_api', False),
    'a page that says it is JSON': (http(b'\n<html></html>'), 'not_an_api', False),
    'no JSON': (http(b'ok', content_type='text/plain'), 'malformed_response', True),
    'JSON that is no object': (http(b'[]'), 'malformed_response', True),
    'a key of the response twice': (
        http(BODY[:-1] + b', "choices": []}'),
        'malformed_response',
        True,
    ),
    'no UTF-8': (http(b'\xff\xfe{}'), 'malformed_response', True),
    'nothing': (http(b''), 'malformed_response', True),
    'a packed response': (PACKED, 'malformed_response', False),
    'a response without end': (ENDLESS, 'malformed_response', False),
}
