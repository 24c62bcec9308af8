"""How an arm is found among few or many: `sampler_for` makes what finds it; see `abex.samplers.interface`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from abex.samplers.bounded_softmax import new_bounded_softmax
from abex.samplers.buckets import new_buckets
from abex.samplers.evidence import new_mean_tournament
from abex.samplers.exceedance import new_beta_exceedance, new_gumbel_exceedance
from abex.samplers.interface import changed, distribution, draw
from abex.samplers.scan import BetaScan, GumbelScan, IndexScan, LossScan, SoftmaxScan
from abex.samplers.sum_tree import new_sum_tree
from abex.samplers.tournament import new_tournament

__all__ = ["changed", "distribution", "draw", "sampler_for"]

#: up to how many arms all are looked at (measured by benchmarks/many_arms.py); beyond, a structure finds the arm
FEW = {
    "softmax": 32,  # by a bound on each weight
    "Gumbel": 4,
    "Beta": 12,
    "UCB": 66,
    "UCB-V": 96,
    "MOSS": 20,
    "KL-UCB": 32,
    "KL-UCB++": 14,  # the level is fixed: a tournament plays few matches again
}
FEW_FADING = {"UCB": 120, "KL-UCB": 250}  # where counts fade, of UCB1 fast: matches are soon played again
LEAF_SIZES = {"UCB": 4, "UCB-V": 4, "MOSS": 2, "KL-UCB": 1, "KL-UCB++": 1}  # the cheaper an index, the larger
SCANS = {"softmax": SoftmaxScan, "Gumbel": GumbelScan, "Beta": BetaScan, "weights": LossScan}


def sampler_for(law: str, subject: Any, rate: float = math.nan) -> Any:
    """What finds the arm of a policy, made from what the policy has learned.

    Parameters
    ----------
    law : str
        "softmax" of the means; "Gumbel" or "Beta": the largest perturbed mean or Beta draw; "UCB", "UCB-V", "MOSS", "KL-UCB" or
        "KL-UCB++": the largest index; "evidence"; "weights": exponential weights.
    subject : record or array
        The policy's state; of exponential weights the scores, or losses.
    rate : float
        Of exponential weights, negative for losses; nan where it is another one at every step.
    """
    if law == "evidence":
        return new_mean_tournament(subject)
    if law == "weights":
        return scan_for(law, subject.size) if math.isnan(rate) else new_sum_tree(subject, rate)
    known = subject.successes if law == "Beta" else subject.observations
    memory = getattr(subject, "memory", None)
    waits = law != "softmax" or subject.initial == math.inf  # for the first observation of every arm
    if memory is not None and waits and memory.scans(law, FEW_FADING.get(law, 0)):
        return scan_for(law, known.size)
    few = known.size <= FEW[law]
    if law == "softmax":
        return new_bounded_softmax(known.size) if few else new_buckets(known, subject.means)
    if law == "Beta":  # below 1 a density has no tangent above it
        few = few or min(known.min(), subject.failures.min()) < 1.0
        return scan_for(law, known.size) if few else new_beta_exceedance(subject)
    if law == "Gumbel":
        few = few or subject.shared_noise or subject.scale == 0.0
        return scan_for(law, known.size) if few else new_gumbel_exceedance(subject, FEW["softmax"])
    return scan_for(law, known.size) if few else new_tournament(known, LEAF_SIZES[law])


def scan_for(law: str, n_arms: int) -> Any:
    """What looks at all arms in every draw, by this ``law``; it follows whatever changes."""
    return SCANS.get(law, IndexScan)(values=np.zeros(n_arms))
