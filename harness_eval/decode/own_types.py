"""Definitions of our own messages that bags and cases hold, for where ROS is not installed.

They are those of ``harness_eval_msgs``, without the comments; a test holds the two together.
"""

from __future__ import annotations

OWN_DEFINITIONS = {
    'harness_eval_msgs/msg/ToolCompletion': """
std_msgs/Header header
string run_id
string tool
uint32 segment
diagnostic_msgs/KeyValue[] arguments
""",
    'harness_eval_msgs/msg/RunOutcome': """
uint8 UNSET=0
uint8 VERDICT=1
uint8 ERROR=2
uint8 ABSTAINED=3
uint8 INTERRUPTED=4
std_msgs/Header header
string run_id
string tool
uint32 segment
uint32 attempt
uint8 kind
Verdict verdict
string error_kind
string message
string evaluator
bool retryable
""",
    'harness_eval_msgs/msg/Verdict': """
uint8 UNSET=0
uint8 PROCESS=1
uint8 SUCCESS=2
uint8 FAILURE=3
std_msgs/Header header
string run_id
string tool
uint32 segment
uint8 status
string[] evidence
string failure_reason
string failure_kind
float64 score
string report_json
string evaluator
string route
float64 cost
string input_digest
builtin_interfaces/Time completed_at
builtin_interfaces/Time observed_from
builtin_interfaces/Time observed_to
""",
}
"""Definitions in the format of ``.msg`` files, by type."""
