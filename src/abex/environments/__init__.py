"""Environments: sources of rewards that know their regret."""

from abex.environments.changing import Drifting, Table
from abex.environments.discrete import Discrete
from abex.environments.environment import Environment, known_environments
from abex.environments.one_good_arm import SpecialArm
from abex.environments.piecewise import Phases, Published, RandomWalk, Switching
from abex.environments.ratings import RatingTable
from abex.environments.stochastic import Bernoulli, Beta, ClippedGaussian

__all__ = [
    "Bernoulli",
    "Beta",
    "ClippedGaussian",
    "Discrete",
    "Drifting",
    "Environment",
    "Phases",
    "Published",
    "RandomWalk",
    "RatingTable",
    "SpecialArm",
    "Switching",
    "Table",
    "known_environments",
]
