"""What pays: sources of rewards with known regret."""

from abex.environments.stochastic import Bernoulli

__all__ = ["Bernoulli"]
