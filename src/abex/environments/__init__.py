"""What pays: sources of rewards that know their regret."""

from abex.environments.base import Environment
from abex.environments.changing import Drifting, Switching, Table
from abex.environments.stochastic import Bernoulli, Beta, ClippedGaussian

__all__ = ["Bernoulli", "Beta", "ClippedGaussian", "Drifting", "Environment", "Switching", "Table"]
