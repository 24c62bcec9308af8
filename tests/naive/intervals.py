"""Resampling written out: the slow companion of `abex.support.intervals.two_way`."""

import numpy as np


def pigeonhole_error(table, resamples, rng):
    """Standard error of the mean of a table (runs, rows) when both runs and rows are drawn again with replacement."""
    runs, rows = table.shape
    means = [
        table[np.ix_(rng.integers(runs, size=runs), rng.integers(rows, size=rows))].mean()
        for _ in range(resamples)
    ]
    return float(np.std(means))
