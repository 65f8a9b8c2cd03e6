"""Plays the demo: runs the tools of the cell, has them judged, and compares with the truth.

``python -m harness_eval.demo.play --output demo-output --seed 0`` holds the cell and the player;
the evaluator node and the scene graph node are processes of their own, which
:mod:`harness_eval.demo.run` starts.

Threads: the main thread plays, the executor's thread hears, the cell has one of its own.
"""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
import sys
import threading
import time
from typing import Final
import uuid

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

from harness_eval.client import EvaluationClient, RunNotSuccessfulError
from harness_eval.contract import Status
from harness_eval.demo.board import Board
from harness_eval.demo.cell_node import CellNode
from harness_eval.demo.ears import DemoError, Ears, OUTCOME_TIMEOUT, SERVER
from harness_eval.demo.live import LiveCell
from harness_eval.demo.scenario import SCENARIO, Step
from harness_eval.demo.summary import GraphEnd, Row, write_summary
from harness_eval.stages import Event

EXIT_DISAGREES: Final = 1
EXIT_NOT_PLAYED: Final = 2

_SERVER_TIMEOUT: Final = 30.0


class Player:
    """Plays one step after the other.

    Args:
        cell: The living cell.
        client: Reports ends and waits for outcomes.
        ears: What is heard.
        board: Where it is shown.
    """

    def __init__(self, cell: LiveCell, client: EvaluationClient, ears: Ears, board: Board) -> None:
        """Begin a session with run ids of its own."""
        self._cell = cell
        self._client = client
        self._ears = ears
        self._board = board
        # Run ids are never used twice, not even by the next demo on the same ledger.
        self._session = uuid.uuid4().hex[:6]
        self.rows: list[Row] = []

    def play(self, number: int, step: Step) -> None:
        """Play one run: all its segments."""
        if step.reset:
            self._cell.reset()
        self._cell.spoil(step.fault)
        run_id = f'demo-{self._session}-{number:02}-{step.tool}'
        ends: list[tuple[float, Status]] = []

        def execute(segment: int) -> None:
            if segment:
                self._finish(number, step, run_id, segment - 1, *ends[-1])
            self._board.begin(number, step.tool, segment, step.fault)
            self._ears.expect(run_id, segment, f'{number:02}-{step.tool}-{segment}')
            self._cell.run_tool(step.tool, step.arguments, segment, step.fault, number)
            truth = self._cell.truth(step.tool, step.arguments)
            ends.append((time.monotonic(), truth))

        try:
            self._client.run(
                step.tool,
                step.arguments,
                execute,
                run_id=run_id,
                on_event=self._on_event,
                timeout=OUTCOME_TIMEOUT,
            )
        except RunNotSuccessfulError as error:
            if error.outcome is None:
                raise DemoError(str(error)) from error
        self._finish(number, step, run_id, len(ends) - 1, *ends[-1])

    def _on_event(self, event: Event) -> None:
        self._board.stage(event.stage.value)

    def _finish(
        self, number: int, step: Step, run_id: str, segment: int, ended: float, truth: Status
    ) -> None:
        if self._cell.truth(step.tool, step.arguments) is not truth:
            raise DemoError(f'the cell changed while run {run_id} was judged; this is a bug')
        arrival, outcome = self._ears.outcome(run_id, segment)
        row = Row(number, step.fault, outcome, truth, max(0.0, arrival - ended))
        self.rows.append(row)
        self._board.end(row)

    def graph_end(self) -> GraphEnd:
        """The scene graph beside the truth."""
        successes = sum(row.answer == Status.SUCCESS.value for row in self.rows)
        graph = self._ears.graph(successes)
        if graph is None:
            raise DemoError('no snapshot came on scene_graph/snapshot: is the node running?')
        return GraphEnd(
            revision=int(graph.revision),
            nodes={
                node.name: {pair.key: pair.value for pair in node.attributes}
                for node in graph.nodes
            },
            relations=frozenset(
                (edge.subject, edge.predicate, edge.object) for edge in graph.edges
            ),
            truth=self._cell.graph_truth(),
        )


def play(output: Path, seed: int) -> int:
    """Play the whole demo; rclpy is initialised.

    Args:
        output: Folder for the summary and the pictures; made if it is not there.
        seed: Of everything that is left to chance.

    Returns:
        0 if every verdict agrees with the truth, every spoilt view ended in an error or an
        abstention, and the scene graph says what is so; otherwise 1.

    Raises:
        DemoError: It could not be played.
    """
    began = time.monotonic()
    pictures = output / 'evidence'
    pictures.mkdir(parents=True, exist_ok=True)
    for old in pictures.glob('*-*.*'):
        old.unlink()
    cell_node = CellNode(seed)
    node = Node('demo_player')
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    executor.add_node(cell_node)
    thread = threading.Thread(target=_spin, args=(executor,), name='executor', daemon=True)
    thread.start()
    client = EvaluationClient(node, SERVER)
    try:
        ears = Ears(node, pictures)
        cell_node.live.start()
        if not client.wait_for_server(_SERVER_TIMEOUT):
            raise DemoError(
                f'no evaluator node takes completions on {SERVER}/evaluate within '
                f'{_SERVER_TIMEOUT:g} s; `python -m harness_eval.demo.run` starts one'
            )
        with Board() as board:
            player = Player(cell_node.live, client, ears, board)
            for number, step in enumerate(SCENARIO, start=1):
                player.play(number, step)
        graph = player.graph_end()
        ears.wait_for_pictures()
        path = write_summary(
            output, player.rows, graph, seed=seed, seconds=time.monotonic() - began
        )
        return _conclude(board, player.rows, graph, path)
    finally:
        client.close()
        executor.shutdown(timeout_sec=2.0)
        thread.join(2.0)
        cell_node.destroy_node()
        node.destroy_node()


def _spin(executor: SingleThreadedExecutor) -> None:
    with contextlib.suppress(ExternalShutdownException):
        executor.spin()


def _shown(path: Path) -> Path:
    """A path as short as it can be said from here."""
    with contextlib.suppress(ValueError):
        return path.resolve().relative_to(Path.cwd())
    return path


def _conclude(board: Board, rows: list[Row], graph: GraphEnd, path: Path) -> int:
    relations = ', '.join(' '.join(relation) for relation in sorted(graph.relations))
    board.note(f'\nscene graph at revision {graph.revision}: {relations}')
    if not graph.agrees(rows):
        truth = ', '.join(' '.join(relation) for relation in sorted(graph.truth))
        board.note(f'[bold red]but the truth is:[/] {truth}')
    for row in rows:
        if not row.agrees:
            board.note(f'[bold red]run {row.number} disagrees with the truth:[/]')
            for line in row.evidence:
                board.note(f'  {line}')
    agreeing = sum(row.agrees for row in rows)
    board.note(f'{agreeing} of {len(rows)} outcomes are what they had to be')
    folder = _shown(path.parent)
    board.note(f'summary   {folder / path.name}')
    board.note(f'pictures  {folder / "evidence"}')
    return 0 if agreeing == len(rows) and graph.agrees(rows) else EXIT_DISAGREES


def main(arguments: list[str] | None = None) -> int:
    """Play the demo against nodes that are already running.

    Returns:
        See :func:`play`; 2 if it could not be played.
    """
    parser = argparse.ArgumentParser(prog='harness_eval.demo.play', description=__doc__)
    parser.add_argument('--output', type=Path, default=Path('demo-output'))
    parser.add_argument('--seed', type=int, default=0)
    known, ros_arguments = parser.parse_known_args(arguments)
    rclpy.init(args=[sys.argv[0], *ros_arguments])
    try:
        return play(known.output, known.seed)
    except DemoError as error:
        sys.stderr.write(f'demo: {error}\n')
        return EXIT_NOT_PLAYED
    except KeyboardInterrupt:
        return EXIT_NOT_PLAYED
    finally:
        rclpy.try_shutdown()


if __name__ == '__main__':
    sys.exit(main())
