"""Every policy, step by step: the law of each decision is the formula applied to the whole history.

Graph policies play graphs that are fixed, directed, changing and drawn at random. Every parameter of every policy is
then given a second value: the law must follow it, and must be told apart from the law of the first value.
"""

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import chdtrc

import abex
from abex import DropOut, ErdosRenyiEachStep, Graph, GraphSequence, known_policies
from abex.kinds import saved, weighed_by
from abex.policies.forgetting import Forgetting
from abex.policies.policy import Setting, plays_on
from abex.support.randomness import counter_key, stream
from tests.examples import examples
from tests.naive.graph_policies import GRAPH_LAWS
from tests.naive.policies import LAWS, evidence_tables

K = 7
HORIZON = 150
DRAWS = 2000
SAMPLED = (
    "BoltzmannGumbel",
    "EpsilonThompson",
    "TSU",
    "Thompson",
    "TSMaxN",
)  # no closed form: draws are counted
DENSE = (
    25  # steps that are all looked at; a weight that went wrong stays wrong, so later on every ninth will do
)


def matrix(edges, directed=False):
    table = np.eye(K)
    for source, target in edges:
        table[source, target] = 1.0
        if not directed:
            table[target, source] = 1.0
    return table


def graph_of(table):
    return Graph.from_edges(np.nonzero(table - np.eye(K)), K, directed=True)


#: two hubs of different size: one best cover, one greedy dominating set
HUBS = matrix([(0, 1), (0, 2), (0, 3), (3, 4), (4, 5), (4, 6)])
#: a directed one, for which the same holds
ARROWS = matrix(
    [(0, 1), (0, 2), (0, 3), (1, 0), (2, 4), (3, 5), (5, 3), (5, 6), (5, 4), (6, 2)], directed=True
)
RING = matrix([(k, (k + 1) % K) for k in range(K)])  # its best cover is a third of every arm
STAR = matrix([(2, k) for k in range(K) if k != 2])
APART = np.eye(K)


class Shows:
    """The graph of each step as a matrix, and what a policy may know of it beforehand."""

    def __init__(self, name):
        tables = {
            "hubs": [HUBS],
            "arrows": [ARROWS],
            "ring": [RING],
            "turns": [HUBS, STAR, ARROWS, APART],
        }.get(name)
        self.drawn, self.tables = tables is None, tables
        if tables is None:
            self.graph = {
                "dropped": DropOut(graph_of(ARROWS), keep=0.6),
                "random": ErdosRenyiEachStep(K, q=0.3, directed=True),
                "paired": ErdosRenyiEachStep(K, q=0.3),
            }[name]
        else:
            self.graph = (
                graph_of(tables[0]) if len(tables) == 1 else GraphSequence([graph_of(x) for x in tables])
            )
        self.varies = self.drawn or len(tables) > 1
        self.typical = 3 if self.drawn else len(tables)
        self.key = counter_key(1, 0, "graph")
        self.feedback = self.graph.feedback(self.key)
        self.known = {}

    def __call__(self, t):
        if not self.drawn:
            return self.tables[(t - 1) % len(self.tables)]
        if t not in self.known:
            table, seen = np.zeros((K, K)), np.zeros(K, np.int32)
            with np.errstate(over="ignore"):
                for arm in range(K):
                    table[arm, seen[: self.graph.reveal(self.feedback, t, arm, seen)].copy()] = 1.0
            self.known[t] = table
        return self.known[t]

    @property
    def sweep(self):
        """The dominating set over which ABE goes, in its order: greedy, with ties as they fall."""
        from abex.graphs.covers import greedy_dominating_set

        return greedy_dominating_set(self.graph).tolist()


def graphs_for(policy):
    names = ["hubs", "arrows"]
    names += [
        name for name in ("turns", "dropped", "random", "paired") if plays_on(policy, Shows(name).graph)
    ]
    if not isinstance(policy, abex.Exp3DOM):  # a ring has many dominating sets
        names.append("ring")
    return names


def play(policy, steps, shows=None, n_arms=K, seed=1, horizon=HORIZON):
    """Yield (t, state, history, select) before each step of an interpreted run."""
    setting = Setting(n_arms, horizon)
    optional = (type(policy).__name__ == "ABE" and shows and shows.varies) or isinstance(
        policy, abex.Evidence
    )
    if shows and (policy.needs_graph or optional):
        setting = setting._replace(graph=shows.graph, graph_key=shows.key)
    select, update = policy.kernels()
    binary = getattr(policy, "resample", False)
    with np.errstate(over="ignore"):
        state, rng, chance = policy.start(setting), stream(seed, "policy"), stream(seed, "rewards")
        history = []
        for t in range(1, steps + 1):
            yield t, state, history, select
            arm = select(state, t, rng)
            seen = [k for k in range(n_arms) if k != arm and shows is not None and shows(t)[arm, k]]
            rewards = {}
            for k in [*seen, arm]:
                mean = 0.05 + 0.9 * (3 * k % n_arms) / (n_arms - 1)
                x = chance.random()
                rewards[k] = float(x < mean) if binary else float(np.clip(mean + 0.5 * (x - 0.5), 0, 1))
                update(state, t, arm, k, rewards[k], rng)
            history.append((arm, rewards))


def law_of(policy, history, n_arms, shows=None, horizon=HORIZON):
    name = type(policy).__name__
    if name == "Evidence":  # plays with and without a graph
        return LAWS[name](policy, history, n_arms, horizon, shows)
    if name in GRAPH_LAWS:
        return GRAPH_LAWS[name](policy, history, n_arms, horizon, shows)
    return LAWS[name](policy, history, n_arms, horizon)


def chance_of_counts(counts, law):
    """The p-value of these counts under a law; 0 where an arm without chance was played."""
    if counts[law < 1e-12].any():
        return 0.0
    expected = law * counts.sum()
    few = expected < 5
    found, wanted = np.append(counts[~few], counts[few].sum()), np.append(expected[~few], expected[few].sum())
    keep = wanted > 1e-6 * counts.sum()
    if keep.sum() < 2:
        return 1.0
    found, wanted = found[keep], wanted[keep] * found[keep].sum() / wanted[keep].sum()
    return float(chdtrc(keep.sum() - 1, ((found - wanted) ** 2 / wanted).sum()))  # Pearson's chi-square test


def follows(policy, steps, shows=None, n_arms=K, other=None, at=(1, 2, 9, 30, 90), horizon=HORIZON):
    """Check every decision against the oracle; returns how far the law of ``other`` is from it, at most."""
    rng, apart, weighted = stream(4, "draws"), 0.0, False
    sampled = type(policy).__name__ in SAMPLED
    exact = 5e-4 if sampled else 3e-8  # these oracles integrate on a coarse grid
    before = 0, None
    for t, state, history, select in play(policy, steps, shows, n_arms, horizon=horizon):
        if before[0] == t - 1 > 0:  # the decision that has been made
            arm = history[-1][0]
            assert before[1][arm] > 0, (t - 1, arm, before[1])
        weighted = weighted or weighed_by(state) is not None
        if (sampled and t not in at) or (weighted and t > DENSE and t % 9 and t not in at):
            continue
        law = law_of(policy, history, n_arms, shows, horizon)
        second = None if other is None else law_of(other, history, n_arms, shows, horizon)
        before = t, law
        out = np.zeros(n_arms)
        policy.probabilities(state, t, out)
        np.testing.assert_allclose(out, law, atol=exact, rtol=exact, err_msg=f"step {t}")
        if second is not None and not sampled:
            apart = max(apart, float(np.abs(second - law).max()))
        if t in at:
            draws = (
                DRAWS // 5 if weighted else DRAWS
            )  # the contract compares `select` with `probabilities` too
            counts = np.bincount([select(state, t, rng) for _ in range(draws)], minlength=n_arms)
            assert chance_of_counts(counts, law) > 1e-6, (t, counts, law * draws)
            if sampled and second is not None:
                apart = max(apart, float(chance_of_counts(counts, second) < 1e-8))
    return apart


def ours(needs_graph):
    for cls in known_policies().values():
        if cls.__module__.startswith("abex.") and not issubclass(
            cls, Forgetting
        ):  # tests/policies/test_forgetting.py
            for policy in examples(cls):
                if policy.needs_graph == needs_graph:
                    yield policy


GRAPH_POLICIES = [
    *ours(needs_graph=True),
    abex.TSU(epsilon=0.2),
    abex.Thompson(),
    abex.Evidence(),
    abex.Evidence(safety=0.5, forget=False),
    abex.TopTwo(),
    abex.KLLUCB(),
    abex.SuccessiveHalving(budget=100),
    abex.ABE(eta=1.0, c=1.0, alpha=0.5),
    abex.ABE(eta=1.0, c=0.3, alpha=0.5, rounding="carry", initial=1.0),
    abex.ABE(eta=2.0, c=0.4, rounding="ceil", initial=None),
]


@pytest.mark.parametrize("part", [0, 1])  # the whole may take too long for one test
@pytest.mark.parametrize("policy", GRAPH_POLICIES, ids=str)
def test_on_graphs_every_decision_is_the_formula_applied_to_the_whole_history(policy, part):
    for name in graphs_for(policy)[part::2]:
        follows(policy, HORIZON, Shows(name), at=(1, 40))


@pytest.mark.parametrize(
    ("policy", "horizon"),
    [
        (abex.BoltzmannGumbel(scale=0.25, shared_noise=True), HORIZON),
        (abex.EpsilonThompson(), None),
        (abex.EpsilonThompson(epsilon=0.5, resample=False), None),
        (abex.TSU(), None),
        (abex.Thompson(resample=False), None),
        (abex.TSU(resample=False, epsilon=0.0), None),
    ],
    ids=str,
)
def test_sampled_policies_play_arms_as_often_as_their_formula(policy, horizon):
    for n_arms in (2, 5):
        follows(policy, 60, None, n_arms, at=(1, 2, 3, 4, 8, 60), horizon=horizon)


def test_every_policy_has_an_oracle_of_its_steps():
    names = {type(policy).__name__ for needs in (True, False) for policy in ours(needs)}
    assert names <= {*LAWS, *GRAPH_LAWS}
    assert {type(policy).__name__ for policy in ours(needs_graph=True)} <= set(GRAPH_LAWS)


# -- every parameter counts ----------------------------------------------------------------------------------

#: policy -> parameter -> (the other parameters, one value, another)
PARAMETERS = {
    "ABE": {
        "eta": ({}, 0.4, 1.1),
        "c": ({"alpha": 0.5}, 1.0, 2.0),
        "alpha": ({"c": 1.0}, 0.2, 1.0),
        "rounding": ({"c": 0.5, "alpha": 0.5}, "floor", "carry"),
        "initial": ({}, 0.0, 0.7),
        "cover": ({"c": 1.0}, "alpha-sample", "lp"),
        "order": ({"c": 1.0}, "random", "index"),
    },
    "Boltzmann": {
        "eta": ({}, 0.4, 1.1),
        "schedule": ({}, "sqrt", "log"),
        "initial": ({}, 0.0, 0.7),
    },
    "BoltzmannGumbel": {"scale": ({}, 0.5, 0.25), "shared_noise": ({}, False, True)},
    "ELP": {"beta": ({}, 0.05, 0.09), "independence": ({}, 20.0, 40.0)},
    "EpsilonGreedy": {"epsilon": ({}, 0.1, 0.3), "decay": ({}, 20.0, 5.0)},
    "EpsilonThompson": {"epsilon": ({}, None, 0.8)},
    "Evidence": {"safety": ({}, 12.0, 0.5), "aim": ({}, True, False)},
    "Exp3": {"gamma": ({}, None, 0.2)},
    "Exp3DOM": {"gamma": ({}, None, 0.1)},
    "Exp3S": {"gamma": ({}, None, 0.1), "alpha": ({}, None, 0.05), "changes": ({}, 0, 3)},
    "Exp3IX": {"eta": ({}, None, 0.05)},
    "Exp3IXGraph": {},
    "Exp3P": {"gamma": ({}, None, 0.15), "alpha": ({}, None, 0.3), "delta": ({}, 0.05, 0.5)},
    "Exp3PMultiBoost": {"gamma": ({}, 0.1, 0.3), "alpha": ({}, 0.4, 1.0), "horizon": ({}, 100, 400)},
    "Exp3PlusPlus": {"a": ({"b": 0.01}, 0.5, 0.1), "b": ({"a": 0.1}, 256.0, 0.01)},
    "Exp3PlusPlus2014": {"c": ({}, 1 / 32, 0.002)},
    "Exp3SET": {"eta": ({}, None, 0.3), "independence": ({}, None, 2.0)},
    "ExploreThenCommit": {"observations": ({}, 3, 6)},
    "FollowTheLeader": {},
    "IMED": {},
    "INF": {"eta": ({}, None, 4.0)},
    "KLUCB": {"c": ({}, 0.0, 3.0)},
    "KLUCBPlusPlus": {"horizon": ({}, None, 20)},
    "MOSS": {"horizon": ({}, None, 2000), "anytime": ({}, 1.35, 0.2)},
    "TopTwo": {"share": ({}, 0.5, 0.3), "soft": ({}, True, False)},
    "DTracking": {},
    "KLLUCB": {"risk": ({}, 0.05, 1e-6)},
    "SuccessiveHalving": {"budget": ({}, 60, 24)},
    "Certify": {"policy": ({}, abex.Evidence(), abex.Maillard()), "share": ({}, 0.5, 0.1)},
    "Maillard": {"deviation": ({}, 0.5, 1.0), "divergence": ({}, "gaussian", "bernoulli")},
    "Screening": {
        "baseline": ({}, 0.5, 0.3),
        "half": ({}, 0.1, 0.4),
        "width": ({}, 0.02, 0.5),
        "memory": ({}, 500.0, 3.0),
        "exploration": ({}, 1.0, 0.1),
    },
    "TSMaxN": {"successes": ({}, 1.0, 4.0), "failures": ({}, 1.0, 4.0)},
    "TSU": {"epsilon": ({}, None, 0.4), "successes": ({}, 1.0, 4.0), "failures": ({}, 1.0, 4.0)},
    "Thompson": {"successes": ({}, 1.0, 4.0), "failures": ({}, 1.0, 4.0)},
    "TsallisINF": {"estimator": ({}, "RV", "IW")},
    "UCB1": {"scale": ({}, 2.0, 0.5)},
    "UCBMaxN": {"scale": ({}, 2.0, 0.1)},
    "UCBV": {"zeta": ({}, 1.2, 0.3), "c": ({}, 1.0, 0.2)},
    "Uniform": {},
}  # fmt: skip
COINS = {"EpsilonThompson", "Thompson", "TSU", "TSMaxN"}  # their `resample` has a test of its own


def test_the_list_of_parameters_is_complete():
    for name, cls in known_policies().items():
        if cls.__module__.startswith("abex.") and not issubclass(cls, Forgetting):
            fields = {field.name for field in dataclasses.fields(cls)} - (
                {"resample"} if name in COINS else {"forget"} if name == "Evidence" else set()
            )
            assert fields == set(PARAMETERS[name]), name


@pytest.mark.parametrize(
    ("name", "parameter"),
    [(name, parameter) for name, fields in PARAMETERS.items() for parameter in fields],
)
def test_the_law_follows_the_parameter(name, parameter):
    cls = known_policies()[name]
    rest, one, other = PARAMETERS[name][parameter]
    pair = [cls(**rest, **{parameter: value}) for value in (one, other)]
    needs = any(policy.needs_graph for policy in pair) or parameter == "aim"
    shows = (
        Shows("hubs" if not all(plays_on(p, Shows("turns").graph) for p in pair) else "turns")
        if needs
        else None
    )
    n_arms = K if shows else 4
    for policy, counterpart in (pair, pair[::-1]):
        apart = follows(policy, 110, shows, n_arms, counterpart)
        if policy is pair[1]:
            assert apart > 1e-4, "with the first value the law would have been another"


@pytest.mark.parametrize("kind", ["amounts", "coins"])
@pytest.mark.parametrize("forget", [True, False])
def test_evidence_keeps_the_order_of_arms_beside_what_a_change_makes_new(kind, forget):
    """The level moves twice, then the order is new: `evidence_tables` works all out from the history."""
    policy = abex.Evidence(forget=forget)
    state, rng, chance, history = policy.start(Setting(3)), stream(1, "policy"), stream(1, "rewards"), []
    kinds_of_steps = set()
    for t in range(1, 1001):
        if t % 25 == 1:
            out = np.zeros(3)
            policy.probabilities(state, t, out)
            np.testing.assert_allclose(out, LAWS["Evidence"](policy, history, 3, None), atol=1e-9)
            kinds_of_steps.add((state.order.unit >= 0, state.order.newness > 0.5))
        arm = policy.select(state, t, rng)
        mean = 0.5 * (0.8, 0.6, 0.2)[arm] if 200 < t <= 450 else (0.8, 0.6, 0.2)[arm]
        mean = (0.2, 0.3, 0.7)[arm] if t > 700 else mean
        wide = float(np.clip(mean + 0.4 * (chance.random() - 0.5), 0, 1))
        reward = wide if kind == "amounts" else float(chance.random() < mean)
        policy.update(state, t, arm, arm, reward, rng)
        history.append((arm, {arm: reward}))
    _, _, alarms = evidence_tables(policy, history, 3)
    assert policy.report(state)["changes found"] == alarms
    assert kinds_of_steps >= {(False, True), (forget, not forget or kind == "coins")}, (
        "before an alarm, and after it"
    )
    assert (state.test.patience > 1.0) == (forget and kind == "amounts"), "where the order was judged to stay"
    assert (alarms > 2) == forget


@pytest.mark.parametrize("forget", [True, False])
def test_evidence_takes_every_second_arm_among_those_that_came_later(forget):
    """Two arms come, a third soon after them, and long afterwards a fourth; between them the level moves."""
    policy, came = abex.Evidence(forget=forget), [0] * 9
    state, rng, chance, history = policy.start(Setting(9)), stream(1, "policy"), stream(1, "rewards"), []
    seen = set()
    for t in range(1, 1001):
        for _ in range({301: 2, 361: 1, 801: 1}.get(t, 0)):
            came.append(t - 1)
            state = policy.resume(Setting(len(came)), saved(state), np.arange(len(came) - 1))
        if t % 20 == 1 or t - came[-1] < 9:
            out = np.zeros(len(came))
            policy.probabilities(state, t, out)
            wanted = LAWS["Evidence"](policy, history, len(came), None, came=came)
            np.testing.assert_allclose(out, wanted, atol=1e-9)
            seen.add((len(came), state.sampler.newcomers, state.order.unit >= 0))
        arm = policy.select(state, t, rng)
        reward = float(chance.random() < (0.8, 0.3, 0.6)[arm % 3] * (0.4 if t > 500 else 1.0))
        policy.update(state, t, arm, arm, reward, rng)
        history.append((arm, {arm: reward}))
    assert seen >= {(9, 0, False), (11, 2, False), (12, 3, False), (12, 3, forget), (13, 1, forget)}


@pytest.mark.parametrize("name", sorted(COINS))
def test_a_reward_between_0_and_1_is_tossed_or_split_as_told(name):
    cls = known_policies()[name]
    setting = Setting(K, None, Shows("hubs").graph if cls.needs_graph else None)
    sums = {}
    for resample in (True, False):
        policy = cls(resample=resample)
        state, rng = policy.start(setting), stream(1, "coins")
        update = policy.kernels().update
        for t in range(1, 201):
            update(state, t, 0, 0, 0.3, rng)
        sums[resample] = float(state.successes[0]) - 1
        assert state.successes[0] + state.failures[0] == pytest.approx(202)
    assert sums[False] == pytest.approx(60)
    assert sums[True] == round(sums[True])
    assert abs(sums[True] - 60) < 4 * math.sqrt(200 * 0.3 * 0.7)


@pytest.mark.parametrize("shows", [None, "arrows"])
def test_tracking_is_the_formula_applied_to_the_whole_history(shows):
    """Its oracle looks for roots within roots: few steps will do."""
    follows(abex.DTracking(), 45, shows and Shows(shows), n_arms=K if shows else 4, at=(1, 40))


def test_tracking_is_forced_to_look_at_an_arm_that_was_neglected():
    policy = abex.DTracking()
    state, rng = policy.start(Setting(3)), stream(1, "policy")
    for arm, mean, count in ((0, 0.9, 8), (1, 0.88, 6), (2, 0.1, 3)):
        state.observations[arm], state.means[arm] = count, mean
    assert policy.select(policy.prepare(state), 50, rng) == 2, "3 observations are not more than 7.1 - 1.5"
    assert policy.select(policy.prepare(state), 20, rng) == 1, (
        "they are more than 4.5 - 1.5: the plan decides"
    )
