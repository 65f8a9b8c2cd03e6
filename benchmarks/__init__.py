"""Measures `harness_eval` against what people write today: ``python -m benchmarks``.

Each benchmark is a module of its own with a function ``measure``; ``nodes`` holds the processes
that they start. Nothing here is part of the package that is installed.
"""
