"""Inference that stays valid while one looks: who won, intervals that hold at every moment, and what is missing.

==========  ==================================================================================================
`betting`   bets on propensities: evidence against each arm's being the best, which seasons do not fool
`sums`      evidence from number and sum of rewards: intervals, differences, ratios, shares of arms
`moments`   intervals from the sum of squares too, narrow where rewards vary little
`standing`  the arms as a table: intervals, lifts against a control, chances to be best
`winner`    the verdict and the sentence that says it
==========  ==================================================================================================
"""

from __future__ import annotations

from abex.inference.betting import Comparison, compared, new_comparison, take_in
from abex.inference.moments import difference_by_moments, interval_by_moments
from abex.inference.sums import difference, interval, ratio, sample_ratio
from abex.inference.winner import BETS, SUMS, Winner, verdict

__all__ = [
    "BETS",
    "SUMS",
    "Comparison",
    "Winner",
    "compared",
    "difference",
    "difference_by_moments",
    "interval",
    "interval_by_moments",
    "new_comparison",
    "ratio",
    "sample_ratio",
    "take_in",
    "verdict",
]
