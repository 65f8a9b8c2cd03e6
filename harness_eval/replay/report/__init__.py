"""Results for people and for build servers: one HTML page, or JUnit's XML."""

from __future__ import annotations

from harness_eval.replay.report.junit import write_comparison_junit, write_junit
from harness_eval.replay.report.page import write_html

__all__ = ['write_comparison_junit', 'write_html', 'write_junit']
