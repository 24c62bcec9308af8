"""What plays: one file a family, one import line a policy."""

from abex.policies.abe import ABE
from abex.policies.baselines import ExploreThenCommit, Uniform
from abex.policies.boltzmann import Boltzmann, BoltzmannGumbel
from abex.policies.certify import Certify
from abex.policies.detectors import CUSUM, GLR, PageHinkley
from abex.policies.discounted import Discounted
from abex.policies.epsilon_thompson import TSU, EpsilonThompson
from abex.policies.evidence import Evidence
from abex.policies.exp3 import Exp3, Exp3IX
from abex.policies.exp3p import Exp3P
from abex.policies.exp3pp import Exp3PlusPlus, Exp3PlusPlus2014
from abex.policies.exp3s import Exp3S
from abex.policies.graph_exp3 import ELP, Exp3IXGraph, Exp3SET
from abex.policies.graph_exp3dom import Exp3DOM
from abex.policies.graph_index import TSMaxN, UCBMaxN
from abex.policies.greedy import EpsilonGreedy, FollowTheLeader
from abex.policies.halving import SuccessiveHalving
from abex.policies.imed import IMED
from abex.policies.klucb import KLUCB, KLUCBPlusPlus
from abex.policies.lucb import KLLUCB
from abex.policies.maillard import Maillard
from abex.policies.moss import MOSS
from abex.policies.multiboost import Exp3PMultiBoost
from abex.policies.naming import known_policies, parse_policy
from abex.policies.policy import Policy, Setting
from abex.policies.restarting import Restarting
from abex.policies.screening import Screening
from abex.policies.thompson import Thompson
from abex.policies.top_two import TopTwo
from abex.policies.tracking import DTracking
from abex.policies.tsallis import INF, TsallisINF
from abex.policies.ucb import UCB1
from abex.policies.ucbv import UCBV
from abex.policies.windowed import Windowed

__all__ = [
    "ABE",
    "CUSUM",
    "ELP",
    "GLR",
    "IMED",
    "INF",
    "KLLUCB",
    "KLUCB",
    "MOSS",
    "TSU",
    "UCB1",
    "UCBV",
    "Boltzmann",
    "BoltzmannGumbel",
    "Certify",
    "DTracking",
    "Discounted",
    "EpsilonGreedy",
    "EpsilonThompson",
    "Evidence",
    "Exp3",
    "Exp3DOM",
    "Exp3IX",
    "Exp3IXGraph",
    "Exp3P",
    "Exp3PMultiBoost",
    "Exp3PlusPlus",
    "Exp3PlusPlus2014",
    "Exp3S",
    "Exp3SET",
    "ExploreThenCommit",
    "FollowTheLeader",
    "KLUCBPlusPlus",
    "Maillard",
    "PageHinkley",
    "Policy",
    "Restarting",
    "Screening",
    "Setting",
    "SuccessiveHalving",
    "TSMaxN",
    "Thompson",
    "TopTwo",
    "TsallisINF",
    "UCBMaxN",
    "Uniform",
    "Windowed",
    "known_policies",
    "parse_policy",
]
