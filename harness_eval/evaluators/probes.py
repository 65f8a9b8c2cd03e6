"""What one evaluator is probed by: a function for each kind that reaches out of this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
import json
import os
import pickle
import subprocess
import sys
import time
from typing import Any, Protocol, runtime_checkable

from harness_eval.config.evaluators import EndpointSettings, ModelSettings, ServiceSettings
from harness_eval.contract import EvaluatorError
from harness_eval.evaluators.faults import describe
from harness_eval.evaluators.http_connection import PostTarget, reference_of
from harness_eval.evaluators.http_post import reach
from harness_eval.evaluators.isolation import search_path
from harness_eval.lines import clean_line
from harness_eval.strict_json import read_json

NAMES_SHOWN = 5
"""Models of a server that an error names."""

JUDGE_SERVICE = 'harness_eval_msgs/srv/Judge'

Services = Callable[[str], Mapping[str, int]]
"""How many servers each type has under the name of a ROS 2 service, by type."""

_IN_CHILD = """
import json, pickle, sys
from harness_eval.contract import EvaluationError
evaluator = pickle.load(sys.stdin.buffer)
try:
    told = {'found': evaluator.probe()}
except EvaluationError as error:
    told = {'kind': error.kind, 'message': error.message}
print('\\n' + json.dumps(told), flush=True)
"""


@runtime_checkable
class Probeable(Protocol):
    """An evaluator that can say itself whether it could judge now."""

    def probe(self) -> str:
        """Look whether it could judge; it may block for some seconds.

        Returns:
            What was found, in a few words.

        Raises:
            EvaluatorError: It could not; with what to do.
        """
        ...


async def probe_model(settings: ModelSettings, name: str, timeout: float) -> str:
    """Ask the server for its models; this costs nothing.

    A server without such a list (404 and its like) is there, which is all that can be known.

    Raises:
        EvaluatorError: ``missing_library``, ``no_key``, ``unauthorized``, ``model_absent``,
            ``unreachable``, ``judge_timeout``, or what the status means.
    """
    from harness_eval.evaluators.model.access import Access
    from harness_eval.evaluators.model.bounded import bounded, Packed, TooLong
    from harness_eval.evaluators.model.http_faults import connection_error, hidden, status_error

    access = Access(settings.api_key_env, name)
    _, httpx = access.libraries()
    key = access.key()

    async def asked() -> Any:
        async with httpx.AsyncClient(
            verify=access.trusted(), follow_redirects=False, event_hooks={'response': [bounded]}
        ) as client:
            return await client.get(
                f'{settings.base_url.rstrip("/")}/models',
                headers={'Authorization': f'Bearer {key}', 'Accept-Encoding': 'identity'},
                timeout=None,
            )

    try:
        response = await asyncio.wait_for(asked(), timeout)
    except (asyncio.TimeoutError, TimeoutError):
        raise EvaluatorError(
            'judge_timeout', f'the server did not list its models within {timeout:g} s'
        ) from None
    except (TooLong, Packed):
        return 'the server is there; its list of models cannot be read'
    except httpx.HTTPError as error:
        raise connection_error(error) from None
    if response.status_code in (404, 405, 501):
        return f'the server is there (it lists no models, HTTP {response.status_code})'
    if response.status_code != 200:
        raise status_error(
            response.status_code,
            hidden(response.text, key),
            dict(response.headers),
            key_env=settings.api_key_env,
            hide=key,
            now=time.time(),
        )
    return _listed(settings.model, response.content, lambda text: hidden(text, key))


def _listed(model: str, data: bytes, hide: Callable[[str], str]) -> str:
    try:
        names = [one['id'] for one in read_json(data)['data'] if isinstance(one['id'], str)]
    except (ValueError, TypeError, KeyError):
        return 'the server is there; its list of models cannot be read'
    if not names:
        return 'the server and the key are good; it lists no models'
    # Some servers put a folder before the name, or a tag behind it.
    if any(model in (one, one.rpartition('/')[2], one.partition(':')[0]) for one in names):
        return f'the server, the key and the model {model} are there'
    shown = ', '.join(clean_line(hide(one), 60) for one in sorted(names)[:NAMES_SHOWN])
    more = f' and {len(names) - NAMES_SHOWN} more' if len(names) > NAMES_SHOWN else ''
    raise EvaluatorError(
        'model_absent',
        f'expected the model {model!r}, the server has {shown}{more}; correct the name or load it',
    )


async def probe_endpoint(settings: EndpointSettings, name: str, timeout: float) -> str:
    """Ask what may be asked at the address (``OPTIONS``), with the token.

    Raises:
        EvaluatorError: ``endpoint_unauthorized``, ``endpoint_failed`` (a gateway without its
            server), or as :func:`~harness_eval.evaluators.http_post.reach`.
    """
    target = PostTarget(
        url=settings.url,
        token_env=settings.token_env or '',
        ca_file=settings.ca_file or '',
        timeout=timeout,
        ref=reference_of(settings.url, name),
    )
    status = await reach(target)
    if status in (401, 403, 407):
        what = (
            f'the token in {target.token_env}' if target.token_env else 'no token: set token_env'
        )
        raise EvaluatorError('endpoint_unauthorized', f'HTTP {status}: it does not accept {what}')
    if status in (500, 502, 503, 504):
        raise EvaluatorError(
            'endpoint_failed', f'HTTP {status}: it could not answer now; see to the server'
        )
    # Any other status, also a refusal of OPTIONS, shows that somebody is there.
    return f'it answers (OPTIONS: HTTP {status})'


def probe_service(settings: ServiceSettings, services: Services | None) -> str:
    """Look into the ROS graph.

    Raises:
        EvaluatorError: ``no_ros``, ``service_absent``, ``service_type``, ``service_ambiguous``.
    """
    name = settings.service
    if services is None:
        raise EvaluatorError('no_ros', 'a ROS 2 service is seen by a node, and there is none here')
    found = services(name)
    count = found.get(JUDGE_SERVICE, 0)
    if not count and found:
        raise EvaluatorError(
            'service_type',
            f'expected {name} of type {JUDGE_SERVICE}, found {", ".join(sorted(found))}',
        )
    if not count:
        raise EvaluatorError(
            'service_absent',
            f'nobody offers {name} of type {JUDGE_SERVICE}; start it, or correct its name',
        )
    if count > 1:
        raise EvaluatorError('service_ambiguous', f'{count} nodes offer {name}; leave one of them')
    return f'{name} is offered'


def probe_in_child(evaluator: Probeable, timeout: float) -> str:
    """Probe an evaluator in a process of its own, since its code may crash.

    Raises:
        EvaluatorError: ``evaluator_crashed``, ``judge_timeout``, or what its probe raises.
    """
    try:
        child = subprocess.run(
            [sys.executable, '-c', _IN_CHILD],
            input=pickle.dumps(evaluator),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout,
            env={**os.environ, 'PYTHONPATH': search_path()},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EvaluatorError(
            'judge_timeout', f'its process did not import it within {timeout:g} s'
        ) from None
    except OSError as error:
        raise EvaluatorError('no_process', f'no process: {describe(error)}') from None
    lines = child.stdout.splitlines()
    try:
        told = json.loads(lines[-1])
        found = told.get('found')
        if found is None:
            raise EvaluatorError(str(told['kind']), str(told['message']))
        return str(found)
    except (IndexError, ValueError, KeyError, AttributeError):
        raise EvaluatorError(
            'evaluator_crashed', f'its process ended with code {child.returncode} when importing'
        ) from None
