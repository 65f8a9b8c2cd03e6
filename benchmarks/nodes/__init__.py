"""Processes that the benchmarks start: cameras, the nodes compared with, an observed evaluator."""
