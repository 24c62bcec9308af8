"""Regret bounds: schedule, lemmas and theorems of the paper as functions, as printed and corrected; recommended parameters."""

from abex.support.divergence import bernoulli_kl
from abex.theory.bounds import (
    Bound,
    corollary_1,
    corollary_1_as_printed,
    log10_first_informative_step,
    theorem_1,
    theorem_1_as_printed,
    theorem_2,
    theorem_2_as_printed,
)
from abex.theory.finite_time import finite_time_bound
from abex.theory.lemma4 import (
    boltzmann_leak,
    gamma_exponent,
    lemma_4,
    lemma_4_as_printed,
    lemma_4_sharp,
    log2_burn_in,
)
from abex.theory.lemmas import (
    exploration_overhead,
    largest_alpha,
    lemma_1_lower,
    lemma_1_lower_as_printed,
    lemma_1_upper,
    lemma_2,
    lemma_2_carry,
    lemma_2_threshold,
    lemma_3,
    lemma_3_sharp,
    lemma_5,
    lemma_6,
)
from abex.theory.lower_bounds import graph_lower_bound, lai_robbins
from abex.theory.published import bge_bound, elp_bound, exp3p_bound, exp3p_bound_2012, ucb1_bound
from abex.theory.schedule import Epoch, FirstExploration, Schedule
from abex.theory.tuning import Recommendation, recommend

__all__ = [
    "Bound",
    "Epoch",
    "FirstExploration",
    "Recommendation",
    "Schedule",
    "bernoulli_kl",
    "bge_bound",
    "boltzmann_leak",
    "corollary_1",
    "corollary_1_as_printed",
    "elp_bound",
    "exp3p_bound",
    "exp3p_bound_2012",
    "exploration_overhead",
    "finite_time_bound",
    "gamma_exponent",
    "graph_lower_bound",
    "lai_robbins",
    "largest_alpha",
    "lemma_1_lower",
    "lemma_1_lower_as_printed",
    "lemma_1_upper",
    "lemma_2",
    "lemma_2_carry",
    "lemma_2_threshold",
    "lemma_3",
    "lemma_3_sharp",
    "lemma_4",
    "lemma_4_as_printed",
    "lemma_4_sharp",
    "lemma_5",
    "lemma_6",
    "log2_burn_in",
    "log10_first_informative_step",
    "recommend",
    "theorem_1",
    "theorem_1_as_printed",
    "theorem_2",
    "theorem_2_as_printed",
    "ucb1_bound",
]
