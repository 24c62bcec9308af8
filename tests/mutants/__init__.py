"""Mutation testing: hand-written mistakes, each of which some test must notice. `python -m tests.mutants` runs them."""
