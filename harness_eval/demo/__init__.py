"""A simulated robot cell that plays runs, good and bad, for the evaluator to judge."""
