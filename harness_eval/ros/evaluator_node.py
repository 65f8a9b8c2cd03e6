"""The ``evaluator_node``: a managed node around the pipeline.

Threading: one executor thread runs every callback, and callbacks only store and hand over; the
pipeline has one thread of its own (:mod:`harness_eval.ros.loop`), publishes from it, and hands
what blocks to daemon threads. Subscriptions are made and destroyed on the executor's thread.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CompressedImage

from harness_eval.calls import JudgeCalls
from harness_eval.capture import TopicFacts
from harness_eval.cases import CaseStore
from harness_eval.completions import CompletionReader
from harness_eval.config import Config, load_config
from harness_eval.contract import DecodeError, HarnessEvalError, Observation
from harness_eval.decode import Decoder
from harness_eval.evaluators import build_evaluator
from harness_eval.judging import Thresholds
from harness_eval.ledger import REJECTED, Ledger, LedgerReader, UpdateRecord
from harness_eval.pipeline import Pipeline, Waiter
from harness_eval.ros.diagnostics import Condition, diagnostic_array
from harness_eval.ros.evaluate_server import EvaluateServer
from harness_eval.ros.logs import bridge_logging
from harness_eval.ros.loop import Loop
from harness_eval.ros.messages import (
    event_message,
    outcome_message,
    rejection_message,
    verdict_message,
)
from harness_eval.ros.places import default_evidence_dir, default_ledger_url, node_folder
from harness_eval.ros.scene_graph_messages import (
    update_from_message,
    update_to_message,
)
from harness_eval.ros.services import Services
from harness_eval.ros.spinning import spin_on
from harness_eval.ros.taps import Taps, message_class
from harness_eval.runs import Completion, Outcome
from harness_eval.stages import Event
from harness_eval_msgs.msg import (
    EvaluationEvent,
    RunOutcome,
    SceneGraphRejection,
    SceneGraphUpdate,
    Verdict,
)

log = logging.getLogger('harness_eval.node')

DEPTH = 1000
"""Completions come in bursts: with a depth of 10, most of a burst of 200 is lost."""
LATCHED = QoSProfile(
    depth=DEPTH,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
RELIABLE = QoSProfile(depth=DEPTH, reliability=ReliabilityPolicy.RELIABLE)
DIAGNOSTICS_PERIOD = 1.0

EXIT_USAGE = 2


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
        self._work: _Work | None = None
        self._active = False
        self.configuration_fault = ''

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
            self.configuration_fault = str(error)
            self.get_logger().error(str(error))
        except Exception as error:
            self.configuration_fault = f'{type(error).__name__}: {error}'
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
        evidence = self.get_parameter('evidence_dir').value
        self._work = _Work(
            self,
            self._group,
            config,
            url or default_ledger_url(folder, simulated=simulated),
            Path(evidence) if evidence else default_evidence_dir(folder),
            lambda: self._active,
        )

    def _activate(self) -> None:
        assert self._work is not None
        self._active = True
        self._work.activate()

    def _deactivate(self) -> None:
        if self._work is not None:
            self._work.deactivate()
        self._active = False

    def _close(self) -> None:
        self._active = False
        if self._work is not None:
            self._work.close()
            self._work = None

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


class _Work:
    """Everything that exists between ``configure`` and ``cleanup``; the pipeline's effects."""

    def __init__(
        self,
        node: EvaluatorNode,
        group: Any,
        config: Config,
        ledger_url: str,
        evidence_dir: Path,
        active: Callable[[], bool],
    ) -> None:
        self._node = node
        self._group = group
        self._config = config
        self._is_active = active
        self._clock = node.get_clock()
        self._fault = ''
        self._unreadable = ''
        self._entrances: list[Any] = []
        self._server: EvaluateServer | None = None
        self._services: Services | None = None
        self._decoder = Decoder.from_environment(os.environ)
        self._ledger = Ledger(ledger_url)
        try:
            self._reader = LedgerReader(ledger_url)
            thresholds = Thresholds(
                config.evaluation.outcome_threshold, config.evaluation.failure_threshold
            )
            self._judges = {
                name: JudgeCalls(build_evaluator(name, settings, thresholds), settings, thresholds)
                for name, settings in config.evaluation.evaluators.items()
            }
            self._make_publishers()
            topics = _topics(config, node.resolve_topic_name)
            cases = CaseStore(evidence_dir, config.evidence.max_bytes, self._decoder)
            self._taps = Taps(
                node, _types(config, topics), _always_on(config, topics), self._frame, group
            )
            self._pipeline = Pipeline(
                config, self._ledger, cases, self._judges, self._decoder, self, topics
            )
        except BaseException:
            self._ledger.close()
            raise
        self._loop = Loop(
            self._pipeline.tick,
            self._pipeline.wakeup,
            lambda: self._pipeline.capturing,
            self.note_fault,
        )
        self._timer = node.create_timer(
            DIAGNOSTICS_PERIOD, self._guard(self._diagnose), callback_group=group
        )
        self._loop.start()
        self._loop.post(self._pipeline.resume)

    def activate(self) -> None:
        """Open the entrances and publish what waits to be published."""
        node = self._node
        for publisher in self._lifecycle_publishers:
            publisher.on_activate(None)
        started = self._clock.now().nanoseconds
        for source in self._config.completions:
            reader = CompletionReader(source, self._decoder, started)
            self._entrances.append(
                node.create_subscription(
                    message_class(reader.type),
                    reader.topic,
                    self._guard(lambda data, reader=reader: self._completion(reader, data)),
                    RELIABLE,
                    raw=True,
                    callback_group=self._group,
                )
            )
        self._entrances.append(
            node.create_subscription(
                SceneGraphUpdate,
                'scene_graph/proposed',
                self._guard(self._proposal),
                RELIABLE,
                callback_group=self._group,
            )
        )
        self._server = EvaluateServer(
            node, self._group, self._is_active, self._complete, self._interrupt
        )
        self._services = Services(
            node,
            self._group,
            self._reader,
            self._ask,
            self._pipeline.interrupt,
            self._pipeline.judge_again,
        )
        self._taps.want(frozenset())
        self._loop.post(self._pipeline.publish_pending)
        threading.Thread(target=self._warm_up, name='warm-up', daemon=True).start()

    def deactivate(self) -> None:
        """Close the entrances."""
        for subscription in self._entrances:
            self._node.destroy_subscription(subscription)
        self._entrances.clear()
        done = threading.Event()

        def end() -> None:
            self._pipeline.end_captures(
                'deactivated', 'the node was deactivated while the run waited for frames'
            )
            done.set()

        self._loop.post(end)
        done.wait(timeout=2.0)
        if self._services is not None:
            self._services.close()
        if self._server is not None:
            self._server.close()
        self._services = self._server = None
        for publisher in self._lifecycle_publishers:
            publisher.on_deactivate(None)

    def close(self) -> None:
        """Stop the pipeline and give up the ledger."""
        if self._server is not None:
            self.deactivate()
        self._node.destroy_timer(self._timer)
        if not self._loop.stop():
            log.error('the pipeline did not stop in time')
        self._taps.close()
        for judge in self._judges.values():
            judge.close()
        self._reader.close()
        self._ledger.close()
        for publisher in (*self._lifecycle_publishers, self._diagnostics):
            self._node.destroy_publisher(publisher)

    def _make_publishers(self) -> None:
        node = self._node

        def publisher(kind: Any, topic: str, qos: QoSProfile | int) -> Any:
            return node.create_lifecycle_publisher(kind, topic, qos)

        self._verdicts = publisher(Verdict, '~/verdicts', LATCHED)
        self._outcomes = publisher(RunOutcome, '~/outcomes', LATCHED)
        self._events = publisher(EvaluationEvent, '~/events', RELIABLE)
        self._updates = publisher(SceneGraphUpdate, 'scene_graph/updates', LATCHED)
        self._rejections = publisher(SceneGraphRejection, 'scene_graph/rejected', LATCHED)
        self._pictures = publisher(CompressedImage, '~/evidence/compressed', 10)
        self._lifecycle_publishers = (
            self._verdicts,
            self._outcomes,
            self._events,
            self._updates,
            self._rejections,
            self._pictures,
        )
        self._diagnostics = node.create_publisher(DiagnosticArray, '/diagnostics', 10)

    # --- callbacks of the executor: store and hand over ---------------------------------------

    def _guard(self, callback: Callable[..., None]) -> Callable[..., None]:
        """Keep an exception of a callback from stopping the executor."""

        def guarded(*arguments: Any) -> None:
            try:
                callback(*arguments)
            except Exception as error:
                log.exception('a fault inside harness_eval; the node goes on')
                self.note_fault(error)

        # rclpy looks at the signature of a subscription's callback
        return lambda *message: guarded(*message)

    def _completion(self, reader: CompletionReader, data: bytes) -> None:
        receipt = self._clock.now().nanoseconds
        try:
            completions = reader.read(data)
        except DecodeError as error:
            self._unreadable = f'{reader.topic}: {error.message}'
            log.error('a completion on %s cannot be read: %s', reader.topic, error.message)
            return
        for completion in completions:
            self._complete(completion, receipt, None)

    def _complete(self, completion: Completion, receipt: int, waiter: Waiter | None) -> None:
        self._loop.post(lambda: self._pipeline.completion(completion, receipt, waiter))

    def _frame(self, topic: str, kind: str, data: bytes, receipt: int) -> None:
        self._loop.post(lambda: self._pipeline.frame(topic, kind, data, receipt))

    def _proposal(self, message: Any) -> None:
        try:
            update = update_from_message(message)
        except ValueError as error:
            reason = str(error)
            bare = _bare_update(message)
            self._loop.post(lambda: self._pipeline.refuse_proposal(bare, reason))
            return
        update = replace(update, graph_id='', revision=0)
        self._loop.post(lambda: self._pipeline.propose(update))

    def _interrupt(self, run_id: str, reason: str) -> None:
        self._loop.post(lambda: _drop(self._pipeline.interrupt(run_id, reason)))

    def _ask(self, question: Callable[[], Any], answer: Callable[[Any], None]) -> None:
        self._loop.post(lambda: answer(question()))

    def _diagnose(self) -> None:
        condition = Condition(
            active=self._is_active(),
            ledger_fault=self._pipeline.ledger_fault,
            quarantined=tuple(n for n, j in self._judges.items() if j.quarantined),
            fault=self._fault,
            unreadable=self._unreadable,
            counts=dict(self._pipeline.counts),
        )
        stamp = self._clock.now().to_msg()
        self._diagnostics.publish(
            diagnostic_array(self._node.get_fully_qualified_name(), condition, stamp)
        )

    def note_fault(self, error: BaseException) -> None:
        """Show in diagnostics that something inside failed."""
        self._fault = f'{type(error).__name__}: {error}'[:200]

    def _warm_up(self) -> None:
        """Import what the first judgement needs, so that it is as quick as the others."""
        try:
            import cv2  # noqa: F401

            for view in self._config.capture.views.values():
                self._decoder.stamp(view.message_type, bytes(64))
        except Exception as error:  # the first judgement will say it better
            log.debug('warm-up: %s', error)

    # --- effects of the pipeline --------------------------------------------------------------

    def ros_now(self) -> int:
        """Nanoseconds on the ROS clock."""
        return int(self._clock.now().nanoseconds)

    def steady_now(self) -> float:
        """Seconds on a clock that never jumps."""
        return time.monotonic()

    def post(self, call: Callable[[], None]) -> None:
        """Have ``call`` run on the pipeline's thread."""
        self._loop.post(call)

    def spawn(self, work: Callable[[], None]) -> None:
        """Run ``work`` on a daemon thread of its own."""

        def guarded() -> None:
            try:
                work()
            except Exception as error:
                log.exception('a fault inside harness_eval; the node goes on')
                self.note_fault(error)

        threading.Thread(target=guarded, name='evidence', daemon=True).start()

    def facts(self, topic: str) -> TopicFacts:
        """What the graph says about a topic now."""
        return self._taps.facts(topic)

    def tap(self, topics: frozenset[str]) -> None:
        """Listen to these topics."""
        self._taps.want(topics)

    def event(self, event: Event) -> None:
        """Publish a step, and send it to the goals that wait."""
        if self._is_active():
            self._events.publish(event_message(event))
        server = self._server
        if server is not None:
            server.event(event)

    def outcome(self, outcome: Outcome) -> bool:
        """Publish an outcome, and its verdict if it has one."""
        if not self._is_active():
            return False
        self._outcomes.publish(outcome_message(outcome))
        if outcome.verdict is not None:
            self._verdicts.publish(verdict_message(outcome))
        return True

    def update(self, record: UpdateRecord) -> bool:
        """Publish a released update or a rejection."""
        if not self._is_active():
            return False
        if record.state == REJECTED:
            self._rejections.publish(rejection_message(record, self.ros_now()))
        else:
            self._updates.publish(update_to_message(record.update))
        return True

    def picture(self, outcome: Outcome, observation: Observation | None) -> None:
        """Publish the evidence as a picture, when somebody looks."""
        if not self._is_active() or self._pictures.get_subscription_count() == 0:
            return
        from harness_eval.ros.evidence import picture_message

        self._pictures.publish(picture_message(outcome, observation))


def _drop(_: object) -> None:
    """Take an answer that nobody asked for."""


def _bare_update(message: Any) -> Any:
    from harness_eval.scene_graph import Update

    return Update(run_id=message.run_id, update_id=message.update_id, ops=())


def _topics(config: Config, resolve: Callable[[str], str]) -> dict[str, str]:
    names = [view.topic for view in config.capture.views.values()]
    names += [v.camera_info for v in config.capture.views.values() if v.camera_info is not None]
    names += [state.topic for state in config.capture.states.values()]
    return {name: resolve(name) for name in names}


def _types(config: Config, topics: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for view in config.capture.views.values():
        found[topics[view.topic]] = view.message_type
        if view.camera_info is not None:
            found[topics[view.camera_info]] = 'sensor_msgs/msg/CameraInfo'
    for state in config.capture.states.values():
        found.setdefault(topics[state.topic], state.type or '')
    return found


def _always_on(config: Config, topics: dict[str, str]) -> set[str]:
    views = {topics[v.topic] for v in config.capture.views.values() if v.always_on}
    return views | {topics[s.topic] for s in config.capture.states.values() if s.always_on}


def main(arguments: list[str] | None = None) -> int:
    """Run the node until it is told to stop.

    Returns:
        0, or 2 if it could not be configured.
    """
    rclpy.init(args=arguments)
    node = EvaluatorNode()
    executor = SingleThreadedExecutor()
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
        node.destroy_node()
        rclpy.try_shutdown()
    return code


def _autostart(node: EvaluatorNode) -> int:
    for transition in (node.trigger_configure, node.trigger_activate):
        if transition() is not TransitionCallbackReturn.SUCCESS:
            print(f'harness_eval: {node.configuration_fault}', file=sys.stderr)
            return EXIT_USAGE
    return 0


if __name__ == '__main__':
    sys.exit(main())
