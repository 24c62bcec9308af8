"""What plays: one file a family, one import line a policy."""

from abex.policies.ucb import UCB1

__all__ = ["UCB1"]
