"""What plays: one file a family, one import line a policy."""

from abex.policies.abe import ABE
from abex.policies.base import Policy, Setting, known_policies, parse_policy
from abex.policies.boltzmann import Boltzmann, BoltzmannGumbel
from abex.policies.exp3 import Exp3, Exp3IX, Exp3P, Exp3PBubeck
from abex.policies.exp3pp import Exp3PlusPlus, Exp3PlusPlus2014
from abex.policies.multiboost import Exp3PMultiBoost
from abex.policies.simple import (
    DecayingEpsilonGreedy,
    EpsilonGreedy,
    ExploreThenCommit,
    FollowTheLeader,
    Uniform,
)
from abex.policies.thompson import Thompson
from abex.policies.tsallis import INF, TsallisINF
from abex.policies.ucb import KLUCB, MOSS, UCB1, UCBV, AnytimeMOSS

__all__ = [
    "ABE",
    "INF",
    "KLUCB",
    "MOSS",
    "UCB1",
    "UCBV",
    "AnytimeMOSS",
    "Boltzmann",
    "BoltzmannGumbel",
    "DecayingEpsilonGreedy",
    "EpsilonGreedy",
    "Exp3",
    "Exp3IX",
    "Exp3P",
    "Exp3PBubeck",
    "Exp3PMultiBoost",
    "Exp3PlusPlus",
    "Exp3PlusPlus2014",
    "ExploreThenCommit",
    "FollowTheLeader",
    "Policy",
    "Setting",
    "Thompson",
    "TsallisINF",
    "Uniform",
    "known_policies",
    "parse_policy",
]
