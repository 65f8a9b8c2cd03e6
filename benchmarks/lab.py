"""The place of one benchmark: a ROS domain, a folder and child processes that end with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import contextlib
import os
from pathlib import Path
import tempfile

from benchmarks.processes import Child, ROOT
from harness_eval.demo.domain import free_domain

FASTDDS_PROFILE = ROOT / 'config' / 'fastdds.xml'
"""Shared memory large enough for pictures; with less of it most of them are lost."""
PROFILE_VARIABLES = ('FASTRTPS_DEFAULT_PROFILES_FILE', 'FASTDDS_DEFAULT_PROFILES_FILE')
"""What names the profile to Fast DDS 2 (Jazzy) and to Fast DDS 3 (Kilted)."""


class Lab:
    """Starts children on one domain.

    Attributes:
        folder: An empty folder, deleted at the end.
        domain: The ROS domain.
    """

    def __init__(self, folder: Path, domain: int) -> None:
        self.folder = folder
        self.domain = domain
        self._children: list[Child] = []

    def start(self, module: str, *arguments: str) -> Child:
        """Start ``python -m module`` with arguments."""
        child = Child(module, arguments, self.folder / f'child-{len(self._children)}.log')
        self._children.append(child)
        return child

    def cameras(self, count: int, width: int, height: int, rate: float = 30.0) -> Child:
        """Start cameras ``/camera_0`` … with phases of their own, and wait until they publish."""
        child = self.start(
            'benchmarks.nodes.cameras', str(count), str(width), str(height), str(rate)
        )
        child.wait_for('ready')
        return child

    def evaluator(
        self,
        config: str,
        *,
        name: str = 'evaluator',
        module: str = 'harness_eval.ros.evaluator_node',
    ) -> Child:
        """Start an evaluator node in the namespace ``/name``.

        Args:
            config: The configuration itself, as YAML.
            name: Namespace, and what its files are called; unique within the lab.
            module: What ``python -m`` runs.
        """
        path = self.folder / f'{name}.yaml'
        path.write_text(config)
        return self.start(
            module,
            '--ros-args',
            '-r', f'__ns:=/{name}',
            '-p', f"config:='{path}'",
            '-p', f"ledger_url:='sqlite:///{self.folder}/{name}.sqlite3'",
            '-p', f"evidence_dir:='{self.folder}/{name}-evidence'",
        )  # fmt: skip

    def close(self) -> None:
        """End every child."""
        for child in reversed(self._children):
            child.close()


@contextlib.contextmanager
def open_lab() -> Iterator[Lab]:
    """Give a lab on a free domain of this machine, and leave nothing behind."""
    with (
        tempfile.TemporaryDirectory(prefix='harness_eval-bench-') as name,
        free_domain() as domain,
    ):
        folder = Path(name)
        settings = {
            'ROS_DOMAIN_ID': str(domain),
            'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
            'ROS_LOG_DIR': str(folder / 'ros-log'),
            'ROS_HOME': str(folder / 'ros-home'),
            **dict.fromkeys(PROFILE_VARIABLES, str(FASTDDS_PROFILE)),
        }
        with _environment(settings):
            lab = Lab(folder, domain)
            try:
                yield lab
            finally:
                lab.close()


@contextlib.contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def configuration(
    views: int, *, settle: float, always_on: bool = False, max_bytes: str = '512MiB'
) -> str:
    """A configuration for so many cameras whose judge answers at once, and always with success.

    Args:
        views: How many cameras are views.
        settle: Seconds after the end before a frame counts.
        always_on: Whether the cameras are listened to all the time.
        max_bytes: How much evidence is kept.
    """
    return f"""
evaluation:
  required_tools: [pick]
  evaluator: instant
  post_conditions: {{pick: "The object is held."}}
  evaluators: {{instant: {{kind: plugin, ref: "benchmarks.nodes.judge:judge"}}}}
  tools:
    pick:
      on_success: [{{add_edge: [object, held_by, gripper]}}]
capture:
  views:
{_views(range(views), always_on)}
  settle: {settle}
evidence: {{max_bytes: {max_bytes}}}
"""


def _views(numbers: Sequence[int], always_on: bool) -> str:
    listening = str(always_on).lower()
    return '\n'.join(
        f'    view_{number}: {{topic: /camera_{number}, always_on: {listening}}}'
        for number in numbers
    )
