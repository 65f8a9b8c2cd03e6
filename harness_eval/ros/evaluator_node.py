"""The ``evaluator_node``: a managed node around the pipeline.

Threading: one executor thread runs every callback, and callbacks only store and hand over; the
pipeline has one thread of its own (:mod:`harness_eval.ros.loop`), publishes from it, and hands
what blocks to daemon threads. Subscriptions are made and destroyed on the executor's thread.
"""

from __future__ import annotations

from collections.abc import Callable
import logging
import os
from pathlib import Path
import sys
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
import rclpy
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import ExternalShutdownException
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from harness_eval.config import load_config
from harness_eval.contract import HarnessEvalError
from harness_eval.lines import describe, redact
from harness_eval.ros.allocation import share_arenas
from harness_eval.ros.log_lines import active_line
from harness_eval.ros.logs import bridge_logging
from harness_eval.ros.places import default_evidence_dir, default_ledger_url, node_folder
from harness_eval.ros.scheduling import ask_for_short_slices
from harness_eval.ros.spinning import BAD_CONFIGURATION, GivingWay, ignore_interrupts, spin_on
from harness_eval.ros.work import Work

log = logging.getLogger('harness_eval.node')

SWITCH_INTERVAL = 0.0005
"""Seconds that a thread may keep the interpreter while another one waits. With Python's 5 ms, a
verdict waits that long behind each thread that happens to write, decode or draw."""


class EvaluatorNode(LifecycleNode):
    """Hears that runs end, and publishes what became of them."""

    def __init__(self, **options: Any) -> None:
        """Declare the parameters; everything else waits for ``configure``."""
        super().__init__('harness_eval', **options)
        bridge_logging(self.get_logger())
        for name, default, text in _PARAMETERS:
            self.declare_parameter(
                name, default, ParameterDescriptor(description=text, read_only=name == 'autostart')
            )
        self._group = ReentrantCallbackGroup()
        self._work: Work | None = None
        self._active = False
        self.configuration_fault = ''
        self._healthy = ''

    # --- lifecycle --------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load the configuration and open the ledger."""
        return self._guarded_transition(self._configure)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Take completions from now on."""
        super().on_activate(state)
        return self._guarded_transition(self._activate)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Take no more completions; runs that wait for frames end in an error."""
        result = self._guarded_transition(self._deactivate)
        super().on_deactivate(state)
        return result

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close the ledger."""
        return self._guarded_transition(self._close)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop everything."""
        return self._guarded_transition(self._close)

    def _guarded_transition(self, work: Callable[[], None]) -> TransitionCallbackReturn:
        """Run a transition; rclpy would swallow what it raises."""
        try:
            work()
        except HarnessEvalError as error:
            self.configuration_fault = redact(str(error))
            self.get_logger().error(self.configuration_fault)
        except Exception as error:
            self.configuration_fault = describe(error)
            log.exception('a transition failed')
        else:
            self.configuration_fault = ''
            return TransitionCallbackReturn.SUCCESS
        return TransitionCallbackReturn.FAILURE

    def _configure(self) -> None:
        self._close()
        path = self.get_parameter('config').value
        if not path:
            raise HarnessEvalError(
                'parameter config is empty; set it to the path of a configuration file, for '
                'example with `-p config:=/path/to/evaluation.yaml`'
            )
        evaluator = self.get_parameter('evaluator').value or None
        config = load_config(path, evaluator=evaluator)
        simulated = bool(self.get_parameter('use_sim_time').value)
        folder = node_folder(os.environ, self.get_fully_qualified_name())
        url = self.get_parameter('ledger_url').value
        url = url or default_ledger_url(folder, simulated=simulated)
        evidence = self.get_parameter('evidence_dir').value
        self._work = Work(
            self,
            self._group,
            config,
            url,
            Path(evidence) if evidence else default_evidence_dir(folder),
            lambda: self._active,
        )
        self._healthy = active_line(config, url, self.resolve_topic_name)

    def _activate(self) -> None:
        assert self._work is not None
        self._active = True
        try:
            self._work.activate()
        except BaseException:
            self._deactivate()
            raise
        self.get_logger().info(self._healthy)

    def _deactivate(self) -> None:
        if self._work is not None:
            self._work.deactivate()
        self._active = False

    def _close(self) -> None:
        self._active = False
        if self._work is not None:
            self._work.close()
            self._work = None

    def give_way(self) -> None:
        """Let the pipeline finish what it is at."""
        if self._work is not None:
            self._work.give_way()

    def note_fault(self, error: BaseException) -> None:
        """Show in diagnostics that a callback failed."""
        if self._work is not None:
            self._work.note_fault(error)

    def destroy_node(self) -> None:
        """Close everything, then destroy the node."""
        self._close()
        super().destroy_node()


_PARAMETERS = (
    ('config', '', 'path of the YAML file with tools, post-conditions, evaluators and views'),
    ('autostart', True, 'configure and activate at start, without a lifecycle manager'),
    ('ledger_url', '', 'where the record is kept, as sqlite:////path; empty: below ROS_HOME'),
    ('evidence_dir', '', 'folder in which judged cases are kept; empty: below ROS_HOME'),
    ('evaluator', '', 'name of the evaluator to use instead of evaluation.evaluator'),
)


def main(arguments: list[str] | None = None) -> int:
    """Run the node until it is told to stop.

    Returns:
        0, or 2 if it could not be configured.
    """
    sys.setswitchinterval(SWITCH_INTERVAL)
    share_arenas()
    ask_for_short_slices()
    rclpy.init(args=arguments)
    node = EvaluatorNode()
    executor = GivingWay(node.give_way)
    executor.add_node(node)
    code = 0
    try:
        if node.get_parameter('autostart').value:
            code = _autostart(node)
        if code == 0:
            spin_on(executor, node.note_fault)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        ignore_interrupts()
        node.destroy_node()
        rclpy.try_shutdown()
    return code


def _autostart(node: EvaluatorNode) -> int:
    for transition in (node.trigger_configure, node.trigger_activate):
        if transition() is not TransitionCallbackReturn.SUCCESS:
            return BAD_CONFIGURATION  # the log says why
    return 0


if __name__ == '__main__':
    sys.exit(main())
