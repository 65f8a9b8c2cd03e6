"""Episodes of the demo cell as bags with the truth beside them; needs MuJoCo but no ROS.

``python -m harness_eval.demo.episodes --out episodes --count 400 --seed 1`` writes one rosbag2
folder (MCAP) for every twenty runs, with what a robot would have recorded around the end of each
segment, and ``labels.csv``: what really happened, from the state of the simulator. The same seed
gives the same bags, byte for byte with the same libraries and the same renderer.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import as_completed, ProcessPoolExecutor
import csv
import multiprocessing
import os
from pathlib import Path
import sys
import time
from typing import Final, TYPE_CHECKING

from harness_eval.contract import Status
from harness_eval.demo.episode_plan import demo_session, plan, Session

if TYPE_CHECKING:
    from harness_eval.demo.episode_run import Ended

LABEL_COLUMNS: Final = ('run_id', 'segment', 'source', 'label', 'note')


def record(session: Session, folder: Path, jpeg: int | None, rate: float) -> list[list[str]]:
    """Record the runs of one bag.

    Args:
        session: What to play.
        folder: Where the folder of the bag is made.
        jpeg: Quality of JPEG views; None: raw ones.
        rate: Pictures of each camera in a second.

    Returns:
        The rows of ``labels.csv``.
    """
    # Only the process that plays needs OpenGL.
    from harness_eval.demo.episode_run import EpisodePlayer
    from harness_eval.demo.recording import Recording

    with Recording(folder / session.name, jpeg, session.seed) as recording:
        player = EpisodePlayer(session, recording, rate)
        try:
            return [_row(session.name, ended) for ended in player.play()]
        finally:
            player.close()


def _row(source: str, ended: Ended) -> list[str]:
    """A row of ``labels.csv``: a segment after which the tool has to go on has not succeeded."""
    label = Status.SUCCESS if ended.truth is Status.SUCCESS else Status.FAILURE
    unfinished = 'not done yet' if ended.truth is Status.PROCESS else ''
    note = ', '.join(part for part in (unfinished, ended.wrong) if part)
    return [ended.run_id, str(ended.segment), source, label.value, note]


def record_all(
    sessions: Sequence[Session], folder: Path, jpeg: int | None, rate: float, jobs: int
) -> int:
    """Record several bags and write ``labels.csv`` beside them.

    Args:
        sessions: One for each bag.
        folder: Where they go; made if it is not there.
        jpeg: Quality of JPEG views; None: raw ones.
        rate: Pictures of each camera in a second.
        jobs: How many processes.

    Returns:
        How many segments ended.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows: dict[int, list[list[str]]] = {}
    began = time.monotonic()
    # A forked process would share its parent's OpenGL.
    spawn = multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(jobs, mp_context=spawn) as pool:
        futures = {
            pool.submit(record, session, folder, jpeg, rate): session for session in sessions
        }
        for future in as_completed(futures):
            session = futures[future]
            rows[session.number] = future.result()
            ended = sum(map(len, rows.values()))
            _say(f'{session.name}: {ended} segments after {time.monotonic() - began:.0f} s')
    with (folder / 'labels.csv').open('w', encoding='utf-8', newline='') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(LABEL_COLUMNS)
        for number in sorted(rows):
            writer.writerows(rows[number])
    return sum(map(len, rows.values()))


def _say(text: str) -> None:
    sys.stderr.write(f'{text}\n')
    sys.stderr.flush()


def main(arguments: list[str] | None = None) -> int:
    """Record episodes.

    Returns:
        0; 2 for bad usage.
    """
    parser = argparse.ArgumentParser(prog='harness_eval.demo.episodes', description=__doc__)
    parser.add_argument('--out', type=Path, required=True, help='folder for the bags; must be new')
    parser.add_argument('--count', type=int, default=400, help='how many runs at least')
    parser.add_argument('--seed', type=int, default=1, help='of all that is left to chance')
    parser.add_argument('--jobs', type=int, default=os.cpu_count() or 1, help='processes')
    parser.add_argument(
        '--jpeg', type=int, metavar='QUALITY', help='record JPEG views on …/image_raw/compressed'
    )
    parser.add_argument('--frame-rate', type=float, default=10.0, help='pictures in a second')
    parser.add_argument(
        '--scenario', action='store_true', help='record the runs of the demo, not drawn ones'
    )
    options = parser.parse_args(arguments)
    if options.count < 1 or options.jobs < 1:
        parser.error('--count and --jobs must be at least 1')
    if options.jpeg is not None and not 1 <= options.jpeg <= 100:
        parser.error(f'--jpeg takes a quality from 1 to 100, not {options.jpeg}')
    if not 1.0 <= options.frame_rate <= 100.0:
        parser.error(f'--frame-rate must be from 1 to 100, not {options.frame_rate:g}')
    if options.out.exists() and any(options.out.iterdir()):
        parser.error(f'--out {options.out.name} is not empty; name a new folder')
    sessions = (
        [demo_session(options.seed, 'demo_cell')]
        if options.scenario
        else plan(options.count, options.seed)
    )
    ended = record_all(sessions, options.out, options.jpeg, options.frame_rate, options.jobs)
    runs = sum(len(session.episodes) for session in sessions)
    _say(f'{runs} runs with {ended} segments in {len(sessions)} bags, truth in labels.csv')
    return 0


if __name__ == '__main__':
    sys.exit(main())
