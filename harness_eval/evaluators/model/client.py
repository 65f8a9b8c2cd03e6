"""Asking a server that speaks chat completions: one deadline over all attempts, every end typed.

Threading model. A :class:`ChatClient` is shared by all judgements of its evaluator, on any thread
and event loop. What it remembers (how the server wants to be asked, until when it wants to be left
alone) are single values that are replaced whole. Each judgement has connections of its own: an
asynchronous connection belongs to one event loop, and a handshake is short beside an answer.

Asynchronous throughout, so that a deadline or an interruption closes the connection at once,
whatever it hangs in; a server that sends a byte a second is given up as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
import importlib
import random
import time
from typing import Any

from harness_eval.config.evaluators import ModelSettings, PriceSettings
from harness_eval.evaluators.model.access import Access
from harness_eval.evaluators.model.bounded import bounded, MAX_BODY, Packed, TooLong
from harness_eval.evaluators.model.errors import ModelError
from harness_eval.evaluators.model.http_faults import (
    connection_error,
    hidden,
    names_schema,
    names_tokens,
    SchemaRefused,
    status_error,
    TokensRenamed,
)
from harness_eval.evaluators.model.prompt import Form
from harness_eval.evaluators.model.reply import answer_text, read_body
from harness_eval.evaluators.model.usage import read_used, Tally

CONNECT_TIMEOUT = 10.0
"""Seconds to connect, so that an address that swallows everything leaves time to try again."""

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 8.0
"""Seconds between attempts, doubled each time, if the server does not say how long."""

LONGEST_QUIET = 60.0
"""Seconds for which a server that asks for it is left alone by all judgements, at most."""

SHARE_OF_TIMEOUT = 0.95
"""Part of the time-out that attempts may take, so that the error that says what they came to is
heard before whoever waits gives up."""

_IN_PASSING = (
    'rate_limited',
    'server_error',
    'server_timeout',
    'conflict',
    'unreachable',
    'connection_lost',
)
"""Errors after which the same question is asked again, within the deadline."""

Compose = Callable[[bool], 'list[dict[str, Any]]']
"""Makes the messages; told whether the form of the answer has to be described in words."""


@dataclass(frozen=True)
class _Dialect:
    """How the server wants to be asked."""

    schema: bool
    tokens_key: str = 'max_tokens'


class Session:
    """The connections and the deadline of one judgement.

    Args:
        chat: The SDK's client.
        deadline: When it has to end, on the steady clock.
        allowed: Seconds until then.
        key: The key, to hide it.
        prices: What tokens cost, if that is known.

    Attributes:
        tally: What was used so far.
        before: What the last attempt came to, for the error of one that does not end.
    """

    def __init__(
        self, chat: Any, deadline: float, allowed: float, key: str, prices: PriceSettings | None
    ) -> None:
        self.chat = chat
        self.deadline = deadline
        self.allowed = allowed
        self.key = key
        self.tally = Tally(prices=prices)
        self.before = ''


class ChatClient:
    """Asks one model.

    Args:
        settings: Where and how.
        ref: How errors name the evaluator.
        clock: Seconds of a steady clock.
        sleep: Waits so many seconds.

    Attributes:
        access: What it takes to ask at all.
    """

    def __init__(
        self,
        settings: ModelSettings,
        ref: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.access = Access(settings.api_key_env, ref)
        self._settings = settings
        self._ref = ref
        self._clock = clock
        self._sleep = sleep
        self._dialect = _Dialect(schema=settings.structured != 'words')
        self._quiet_until = 0.0

    def deadline(self, timeout: float) -> float:
        """When attempts that begin now have to end, on the steady clock."""
        return self._clock() + timeout * SHARE_OF_TIMEOUT

    @asynccontextmanager
    async def session(self, deadline: float) -> AsyncIterator[Session]:
        """Open what one judgement needs; nothing is sent yet.

        Raises:
            ModelError: ``missing_library``, ``no_key``.
        """
        openai, httpx = self.access.libraries()
        key = self.access.key()
        transport = httpx.AsyncClient(
            verify=self.access.trusted(),
            follow_redirects=False,
            event_hooks={'response': [bounded]},
        )
        chat = openai.AsyncOpenAI(
            api_key=key,
            base_url=self._settings.base_url,
            max_retries=0,
            http_client=transport,
            default_headers={'Accept-Encoding': 'identity'},
        )
        async with transport:
            yield Session(chat, deadline, deadline - self._clock(), key, self._settings.prices)

    async def ask(self, session: Session, compose: Compose, form: Form) -> str:
        """Ask and give the text of the answer; what it used is added to the session's tally.

        Raises:
            ModelError: There is no answer; see ``docs/evaluators.md``. It holds the tally.
        """
        try:
            return await asyncio.wait_for(
                self._attempts(session, compose, form), session.deadline - self._clock()
            )
        except (asyncio.TimeoutError, TimeoutError):
            raise ModelError(
                'judge_timeout',
                f'no whole answer within {session.allowed:.3g} s, all attempts together'
                f'{session.before}',
                evaluator=self._ref,
                retryable=True,
                tally=session.tally,
            ) from None

    async def _attempts(self, session: Session, compose: Compose, form: Form) -> str:
        failed = 0
        dialect = self._dialect
        while True:
            await self._wait_until_quiet(session)
            try:
                body = await self._once(session, compose, form, dialect)
                # Remembered only now: what a server says of a schema may be about another fault.
                self._dialect = dialect
                return answer_text(body)
            except SchemaRefused as refusal:
                if self._settings.structured == 'schema':
                    raise refusal.error.told(self._ref, session.tally) from None
                dialect = replace(dialect, schema=False)
            except TokensRenamed:
                dialect = replace(dialect, tokens_key='max_completion_tokens')
            except ModelError as error:
                await self._pause(session, error, failed)
                failed += 1

    async def _pause(self, session: Session, error: ModelError, failed: int) -> None:
        """Wait before the next attempt, or raise the error for good."""
        session.before = f'; the attempt before: {error.plain}'
        attempts = f' (attempt {failed + 1} of {self._settings.retries + 1})'
        if error.kind not in _IN_PASSING:
            raise error.told(self._ref, session.tally) from None
        pause = min(FIRST_PAUSE * 2.0**failed, LONGEST_PAUSE) * random.uniform(0.75, 1.25)
        if error.retry_after is not None:
            pause = error.retry_after
        until = self._clock() + pause
        if error.kind == 'rate_limited':
            # All judgements of this evaluator leave the server alone, not only this one.
            quiet = min(until, self._clock() + LONGEST_QUIET)
            self._quiet_until = max(self._quiet_until, quiet)
        if failed >= self._settings.retries:
            raise error.told(self._ref, session.tally, attempts) from None
        if until >= session.deadline:
            left = max(0.0, session.deadline - self._clock())
            hint = f'; it is to be asked again in {pause:.3g} s, but only {left:.3g} s are left'
            raise error.told(self._ref, session.tally, f'{hint}{attempts}') from None
        await self._sleep(pause)

    async def _wait_until_quiet(self, session: Session) -> None:
        left = self._quiet_until - self._clock()
        if left <= 0.0:
            return
        if self._clock() + left >= session.deadline:
            raise ModelError(
                'rate_limited',
                f'the server asked to be left alone for {left:.3g} s more, which is longer than '
                'this judgement may take; lower max_concurrency',
                evaluator=self._ref,
                retryable=True,
                tally=session.tally,
                retry_after=left,
            )
        await self._sleep(left)

    async def _once(
        self, session: Session, compose: Compose, form: Form, dialect: _Dialect
    ) -> dict[str, Any]:
        openai, _httpx = self.access.libraries()
        given = self._settings
        arguments: dict[str, Any] = {
            'model': given.model,
            'messages': compose(not dialect.schema),
            dialect.tokens_key: given.max_tokens,
            'timeout': _timeouts(session.deadline - self._clock()),
        }
        if given.temperature is not None:
            arguments['temperature'] = given.temperature
        if dialect.schema:
            arguments['response_format'] = {
                'type': 'json_schema',
                'json_schema': {'name': form.name, 'strict': True, 'schema': form.schema()},
            }
        create = session.chat.chat.completions.with_raw_response.create
        try:
            raw = await create(**arguments)
            response = raw.http_response
            data, headers = response.content, response.headers
        except TooLong:
            raise _unreadable(f'the response has more than {MAX_BODY} bytes') from None
        except Packed:
            raise _unreadable('the response is compressed, which was not asked for') from None
        except openai.APIStatusError as error:
            raise self._refusal(error, dialect, session.key) from None
        except openai.APIConnectionError as error:
            raise connection_error(error) from None
        return self._read(session, data, headers)

    def _read(self, session: Session, data: bytes, headers: Any) -> dict[str, Any]:
        # A server that repeats the key must not bring it into the evidence.
        text = hidden(data.decode('utf-8', 'surrogateescape'), session.key)
        request_id = hidden(headers.get('x-request-id', ''), session.key)
        body = read_body(text.encode('utf-8', 'surrogateescape'), headers.get('content-type', ''))
        session.tally.answers.append(read_used(body, request_id))
        return body

    def _refusal(self, error: Any, dialect: _Dialect, key: str) -> Exception:
        status, body = int(error.status_code), error.body
        if body is None:
            body = error.response.text
        told = status_error(
            status,
            body,
            dict(error.response.headers),
            key_env=self._settings.api_key_env,
            hide=key,
            now=time.time(),
        )
        if dialect.tokens_key == 'max_tokens' and names_tokens(status, body):
            return TokensRenamed()
        if dialect.schema and names_schema(status, body):
            return SchemaRefused(told)
        return told


def _timeouts(left: float) -> Any:
    httpx = importlib.import_module('httpx2')
    # Only the deadline over all attempts bounds the answer; it is kept by ask().
    return httpx.Timeout(None, connect=max(0.001, min(left, CONNECT_TIMEOUT)))


def _unreadable(what: str) -> ModelError:
    return ModelError('malformed_response', f'expected a chat completion, but {what}')
