"""Every experiment of the paper, at full and at quick scale."""

from abex.lab.experiments import boosting, epinions, facebook

__all__ = ["boosting", "epinions", "facebook"]
