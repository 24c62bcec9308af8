"""Environments: sources of rewards that know their regret."""

from abex.environments.changing import Drifting, Switching, Table
from abex.environments.discrete import Discrete
from abex.environments.environment import Environment, known_environments
from abex.environments.paths import Published, RandomWalk
from abex.environments.phases import Phases
from abex.environments.ratings import RatingTable
from abex.environments.special import SpecialArm
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
