"""Benchmarks that asv follows from commit to commit: ``pip install asv && asv run main~5..main && asv publish``.

The scripts beside this folder compare with baselines in one run; these here compare a commit with those before it.
"""
