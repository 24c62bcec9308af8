"""The paper's schedule, lemmas and theorems as functions."""
