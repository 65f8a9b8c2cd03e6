"""The settings of evaluators: one class for each kind, told apart by ``kind``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from harness_eval.config.addresses import EnvironmentVariable, PlainUrl, Url
from harness_eval.config.base import (
    Flag,
    Integer,
    Name,
    Names,
    Number,
    PositiveSeconds,
    Settings,
    Text,
    Topic,
)
from harness_eval.config.checks import Fraction, Region
from harness_eval.config.sizes import Size


def _ordered_band(band: tuple[float, float]) -> tuple[float, float]:
    lowest, highest = band
    if lowest > highest:
        raise ValueError(f'expected [lowest, highest], found {list(band)}')
    if band == (0.0, 1.0):
        raise ValueError('expected a band that leaves some scores sure, found [0, 1]')
    return band


Band = Annotated[tuple[Fraction, Fraction], AfterValidator(_ordered_band)]
"""``[lowest, highest]`` of a score, both included, 0 to 1."""

Price = Annotated[Number, Field(ge=0.0)]
"""An amount of money, 0 included."""


class EvaluatorSettings(Settings):
    """What every kind of evaluator has.

    Attributes:
        kind: What judges: ``checks``, ``plugin``, ``model``, ``rubric``, ``endpoint``,
            ``service``, ``vote`` or ``cascade``.
        timeout: Seconds until a call is given up and becomes an error.
        clamp: Cut a score outside [0, 1] instead of making it an error.
        max_concurrency: Most calls under way at the same time, over all runs; default: no limit.
        cache: Keep verdicts by their input and answer the same question from them; errors and
            abstentions are never kept.
        unsure: Scores ``[lowest, highest]``, both included, that are no answer: the evaluator
            abstains, and a ``cascade`` asks its next member.
    """

    kind: str
    timeout: Annotated[PositiveSeconds, Field(le=3600.0)] = 60.0
    clamp: Flag = False
    max_concurrency: Annotated[Integer, Field(ge=1)] | None = None
    cache: Flag = False
    unsure: Band | None = None

    @property
    def isolated(self) -> bool:
        """Whether it judges in a process of its own."""
        return False

    @property
    def named(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Which keys name other evaluators, and which ones."""
        return ()

    @property
    def target(self) -> str:
        """Who or what judges, in a few words, without credentials or query; may be empty."""
        return ''


class LocalSettings(EvaluatorSettings):
    """What the kinds have that judge on this machine.

    Attributes:
        isolation: ``thread``, or ``process`` for native code that may crash.
    """

    isolation: Literal['thread', 'process'] = 'thread'

    @property
    def isolated(self) -> bool:
        """Whether it judges in a process of its own."""
        return self.isolation == 'process'


class ChecksSettings(LocalSettings):
    """The deterministic checks of the tool."""

    kind: Literal['checks']


class PluginSettings(LocalSettings):
    """A callable of your own.

    Attributes:
        ref: ``module:callable``, for example ``my_robot.grading:grade``.
        options: Keyword arguments handed to it besides the request.
    """

    kind: Literal['plugin']
    ref: str = ''
    options: dict[str, Any] = Field(default_factory=dict)

    @property
    def target(self) -> str:
        """Who or what judges."""
        return self.ref


class PriceSettings(Settings):
    """What a model costs, per million tokens.

    Attributes:
        input: Price of a million tokens sent.
        cached_input: Price of a million tokens sent that the server had cached; default: as
            ``input``.
        output: Price of a million tokens answered.
    """

    input: Price
    cached_input: Price | None = None
    output: Price


class ModelSettings(EvaluatorSettings):
    """A vision-language model behind a server that speaks OpenAI's chat completions.

    Attributes:
        model: Name of the model, as the server calls it.
        base_url: Address of the server up to ``/v1``; without user, password or query.
        api_key_env: Name (in capitals) of the environment variable that holds the key; an empty
            one is an error.
        max_views: Most views that are sent; a tool that needs more is refused.
        detail: How closely the model looks at a picture: ``auto``, ``low`` or ``high``.
        max_image_bytes: Most bytes of one encoded picture.
        max_total_bytes: Most bytes of all encoded pictures of a question.
        max_side: Longest side of a picture that is sent, in pixels; a larger one is scaled.
        temperature: Sampling temperature; default: the server's.
        max_tokens: Most tokens of an answer.
        retries: Further attempts after one that failed in passing, within ``timeout``.
        prices: What tokens cost, for ``cost`` in the verdict; default: the cost is not known.
        regions: Part of a view that is sent, by tool and view, as ``[x0, y0, x1, y1]``.
        structured: How the answer's form is asked for: by ``schema``, in ``words``, or ``auto``
            (by schema, and in words where the server refuses it).
    """

    kind: Literal['model']
    model: Text
    base_url: PlainUrl
    api_key_env: EnvironmentVariable
    max_views: Annotated[Integer, Field(ge=1, le=100)] = 3
    detail: Literal['auto', 'low', 'high'] = 'high'
    max_image_bytes: Size = 256 * 1024
    max_total_bytes: Size = 1024**2
    max_side: Annotated[Integer, Field(ge=32, le=16_384)] = 1024
    temperature: Annotated[Number, Field(ge=0.0, le=2.0)] | None = None
    max_tokens: Annotated[Integer, Field(ge=1)] = 1024
    retries: Annotated[Integer, Field(ge=0, le=10)] = 2
    prices: PriceSettings | None = None
    regions: dict[Name, dict[Name, Region]] = Field(default_factory=dict)
    structured: Literal['auto', 'schema', 'words'] = 'auto'

    @property
    def target(self) -> str:
        """Who or what judges."""
        return f'{self.model} at {self.base_url}'


class RubricEvaluatorSettings(EvaluatorSettings):
    """Judges the tool's ``rubric`` by a model.

    Attributes:
        model: Name of an evaluator of the kind ``model``.
        max_criteria: Most criteria that are asked about in one call; more take more calls.
    """

    kind: Literal['rubric']
    model: Name
    max_criteria: Annotated[Integer, Field(ge=1, le=100)] = 10

    @property
    def named(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Which keys name other evaluators, and which ones."""
        return (('model', (self.model,)),)

    @property
    def target(self) -> str:
        """Who or what judges."""
        return f'by {self.model}'


class EndpointSettings(EvaluatorSettings):
    """An HTTP service that is sent the question as JSON.

    Attributes:
        url: Address that the question is posted to; without user, password or secrets.
        token_env: Name (in capitals) of the environment variable that holds a bearer token;
            default: none is sent.
        ca_file: Certificates that the server's is verified by, a path relative to the file that
            names it, or ``package://package/path``; default: those of the system.
    """

    kind: Literal['endpoint']
    url: Url
    token_env: EnvironmentVariable | None = None
    ca_file: Text | None = None

    @property
    def target(self) -> str:
        """Who or what judges."""
        return self.url.partition('?')[0]


class ServiceSettings(EvaluatorSettings):
    """A ROS 2 service of the type ``harness_eval_msgs/srv/Judge``.

    Attributes:
        service: Name of the service; a relative one is resolved by the node.
    """

    kind: Literal['service']
    service: Topic

    @property
    def target(self) -> str:
        """Who or what judges."""
        return self.service


class _Together(EvaluatorSettings):
    """What the kinds have that ask other evaluators."""

    members: Annotated[Names, Field(min_length=1)]

    @property
    def named(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Which keys name other evaluators, and which ones."""
        return (('members', self.members),)


class VoteSettings(_Together):
    """Several evaluators at the same time: enough of them agree, or it abstains.

    Attributes:
        members: Names of the evaluators that are asked.
        needed: How many of them must give the same status.
    """

    kind: Literal['vote']
    needed: Annotated[Integer, Field(ge=1)]

    @model_validator(mode='after')
    def _attainable(self) -> VoteSettings:
        if self.needed > len(self.members):
            raise ValueError(
                f"expected 'needed' of at most {len(self.members)}, the number of members, "
                f'found {self.needed}'
            )
        return self

    @property
    def target(self) -> str:
        """Who or what judges."""
        return f'{self.needed} of {", ".join(self.members)}'


class CascadeSettings(_Together):
    """One evaluator after the other: the next one only if the one before abstains.

    Attributes:
        members: Names of the evaluators in the order in which they are asked, cheapest first.
        on_error: What follows an error of a member: ``error``, or ``next`` to let the next one
            judge instead, which the evidence then says.
    """

    kind: Literal['cascade']
    on_error: Literal['error', 'next'] = 'error'

    @property
    def target(self) -> str:
        """Who or what judges."""
        return ', then '.join(self.members)


AnyEvaluator = Annotated[
    ChecksSettings
    | PluginSettings
    | ModelSettings
    | RubricEvaluatorSettings
    | EndpointSettings
    | ServiceSettings
    | VoteSettings
    | CascadeSettings,
    Field(discriminator='kind'),
]
"""The settings of an evaluator of any kind."""

KINDS: dict[str, type[EvaluatorSettings]] = {
    'checks': ChecksSettings,
    'plugin': PluginSettings,
    'model': ModelSettings,
    'rubric': RubricEvaluatorSettings,
    'endpoint': EndpointSettings,
    'service': ServiceSettings,
    'vote': VoteSettings,
    'cascade': CascadeSettings,
}
"""The class of each kind."""
