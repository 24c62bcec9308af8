"""What pays: sources of rewards that know their regret."""

from abex.environments.base import Environment
from abex.environments.changing import Drifting, Switching, Table
from abex.environments.ratings import RatingTable
from abex.environments.special import SpecialArm
from abex.environments.stochastic import Bernoulli, Beta, ClippedGaussian

__all__ = [
    "Bernoulli",
    "Beta",
    "ClippedGaussian",
    "Drifting",
    "Environment",
    "RatingTable",
    "SpecialArm",
    "Switching",
    "Table",
]
