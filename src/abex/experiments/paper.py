"""Every experiment of the paper, at full and at quick scale."""

from abex.experiments import boosting, epinions, facebook

__all__ = ["boosting", "epinions", "facebook"]
