"""Ground truth about a run, from a simulator, a benchmark or a database: beside the judge.

An oracle is told which run it is about, and therefore never feeds a judge: what it is asked and
what it answers have types of their own, which fit nowhere in a request to an evaluator. Its answer
is recorded with the case as ``outcome_correct``; where the configuration says that it decides, an
answer is also the verdict, and the judge's is kept beside it.
"""

from harness_eval.oracle.answers import (
    decided_by,
    Oracle,
    OracleAnswer,
    OracleRequest,
    OracleResult,
)
from harness_eval.oracle.calls import ask_here, MAX_HANGING, OracleCalls
from harness_eval.oracle.kinds import build_oracle, EndpointOracle, PluginOracle

__all__ = [
    'MAX_HANGING',
    'EndpointOracle',
    'Oracle',
    'OracleAnswer',
    'OracleCalls',
    'OracleRequest',
    'OracleResult',
    'PluginOracle',
    'ask_here',
    'build_oracle',
    'decided_by',
]
