"""Judging again what was recorded: bags and cases, numbers, comparisons and reports."""
