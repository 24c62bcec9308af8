"""Slow, obvious versions of what policies for many arms compute."""

import numpy as np


def boltzmann_law(values, rate):
    """softmax(rate * values)."""
    weights = np.exp(rate * (values - values.max()))
    return weights / weights.sum()
