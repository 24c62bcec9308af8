"""The rules of the verdicts at their borders."""

import numpy as np
import pytest

from abex.lab.experiments import Claim
from abex.lab.experiments.verdicts import FAILS, HOLDS, OPEN, judge
from tests.lab.test_verdicts import outcome_of

#: mean 0, half-width of the 95 % interval 1.03 for one line, 1.73 for ten at a time
RUNS = np.array([-1.2, -0.6, 0.0, 0.6, 1.2, -0.9, 0.9, -0.3, 0.3, 0.0])


def answer(rule, shift, margin=0.0, lines=1):
    labels = [f"B{i}" for i in range(lines)]
    finals = {"A": (5.0 + shift + RUNS).tolist(), **{label: [5.0] * RUNS.size for label in labels}}
    return judge(outcome_of(finals, Claim("a claim", rule, "A", tuple(labels), margin)))[0].answer


def half_width(level):
    from scipy.stats import sem, t

    return float(t.ppf(0.5 + level / 2, RUNS.size - 1) * sem(RUNS))


def test_the_intervals_of_a_claim_hold_together():
    """A difference that one interval tells from 0 is not told by ten at once, and is again beyond their width."""
    alone, together = half_width(0.95), half_width(1 - 0.05 / 10)
    between = (alone + together) / 2
    assert answer("better", -between) == HOLDS
    assert answer("better", -between, lines=10) == OPEN
    assert answer("better", -1.01 * together, lines=10) == HOLDS
    assert answer("best", between) == FAILS
    assert answer("best", between, lines=10) == OPEN


def test_as_good_is_not_refuted_within_the_margin():
    """Surely worse, but by less than what matters: it cannot be told."""
    shift = 1.2 * half_width(0.95)
    assert answer("as good", shift, margin=1.1 * shift) == OPEN
    assert answer("as good", shift, margin=0.9 * shift) == FAILS


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_flat_looks_at_both_sides(sign):
    wide = half_width(0.95)
    assert answer("flat", 0.0, margin=1.1 * wide) == HOLDS
    assert answer("flat", sign * 0.5 * wide, margin=1.1 * wide) == OPEN
    assert answer("flat", sign * 3.0 * wide, margin=1.1 * wide) == FAILS
