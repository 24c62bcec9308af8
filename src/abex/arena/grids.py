"""The instances of the arena, as data: a grid *train* on which choices are made, and a grid *test* that decides.

They share no instance, gap, graph, data set of boosting or seed. Both were written down before anything was played on them;
whoever changes an instance gives it another name, and whoever changes a grid raises its version.

In the group *boosting* a policy names the features that AdaBoost.MH splits, one for each search, and what it loses is the share of
rows that the classifier gets wrong at the end (`abex.sweeps.boosting_cells`): that of the best policy after as many iterations
stands in the place of the least regret.
"""

from __future__ import annotations

from abex.arena.instances import (
    Instance,
    Spec,
    batched,
    bernoulli,
    boosted,
    coins,
    delayed,
    evenly,
    hub,
    lots,
    on_graph,
    one_good,
    paretos,
    phases,
    ring,
    special,
    turning,
    two_valued,
    uniforms,
    world,
)  # fmt: skip
from abex.errors import one_of

VERSION = 1
GRIDS = ("train", "test")
GROUPS = ("stochastic", "graphs", "late", "changing", "adversarial", "boosting")
SEEDS = {"train": 101, "test": 202}


def grid_of(name: str) -> tuple[Instance, ...]:
    """All instances of a grid."""
    train = one_of("grid", name, GRIDS) == "train"
    found = (
        *stochastic(train), *graphs(train), *late(train), *changing(train), *adversarial(train), *boosting(train)
    )  # fmt: skip
    names = [one.name for one in found]
    assert len(set(names)) == len(names), "two instances have one name"
    return found


def stochastic(train: bool) -> list[Instance]:
    """Fixed distributions, bandit feedback."""
    if train:
        tiny, tiny_chances = two_valued([0.5, 0.4, 0.4, 0.3, 0.2], 0.0, 0.001)
        shifted, shifted_chances = two_valued([0.6, 0.5, 0.5, 0.4], 0.9, 0.91)
        return [
            coins("two coins, gap 0.1", [0.6, 0.5], 20_000),
            coins("two coins, gap 0.02", [0.51, 0.49], 50_000),
            coins("two rare coins", [0.02, 0.01], 50_000),
            coins("two sure coins", [0.99, 0.97], 20_000),
            coins("five coins", [0.8, 0.7, 0.6, 0.5, 0.4]),
            coins("ten coins, even", evenly(0.1, 0.9, 10)),
            coins("ten coins, one good", [0.6] + [0.5] * 9, 20_000),
            coins("ten coins, rare", [0.1] + [0.05] * 3 + [0.02] * 3 + [0.01] * 3, 20_000),
            coins("twenty coins, close", [0.5] + [0.45] * 19, 20_000),
            coins("fifty coins, even", evenly(0.2, 0.8, 50)),
            coins("hundred coins, even", evenly(0.02, 0.98, 100)),
            special("hundred coins, one good", 100, 0.7, 0.5, 20_000),
            special("thousand coins, one great", 1_000, 0.9, 0.1),
            coins("thousand coins, half good", [0.8] * 500 + [0.4] * 500),
            special("ten thousand coins, one great", 10_000, 0.95, 0.3),
            world("ten Beta arms", "Beta", means=evenly(0.2, 0.7, 10), strength=4.0),
            world("five peaked Beta arms", "Beta", means=[0.5, 0.48, 0.46, 0.4, 0.3], strength=100.0),
            world("ten narrow normal arms", "ClippedGaussian", means=evenly(0.3, 0.6, 10), deviation=0.1),
            world("four wide normal arms", "ClippedGaussian", means=[0.8, 0.6, 0.5, 0.2], deviation=0.5),
            world("hundred Beta arms", "Beta", means=evenly(0.3, 0.7, 100), strength=10.0),
            lots("five uniform arms", uniforms([0.6, 0.55, 0.5, 0.45, 0.4], 0.4)),
            lots("tiny coins", tiny, tiny_chances),
            lots("tiny uniform arms", uniforms([0.0005, 0.00045, 0.0004, 0.0003], 0.0004)),
            lots("shifted coins", shifted, shifted_chances),
            lots("shifted narrow arms", uniforms(evenly(0.7, 0.72, 8), 0.01)),
            lots("rare large reward", [[0.05], [0.0, 1.0], [0.04]], [[1.0], [0.9, 0.1], [1.0]]),
            lots("rarer large reward", [[0.01], [0.0, 1.0], [0.005]], [[1.0], [0.975, 0.025], [1.0]], 20_000),
            lots("Pareto arms", paretos([0.02, 0.03, 0.025, 0.015, 0.01], 1.8)),
            lots("three sure arms", [[0.5], [0.4], [0.3]]),
            lots("hundred sure arms", [[value] for value in evenly(0.1, 0.8, 100)]),
            lots("noisy runner-up", [[0.6], [0.0, 1.0], [0.0, 1.0]], [[1.0], [0.45, 0.55], [0.5, 0.5]]),
            lots("three values", [[0.0, 0.5, 1.0]] * 4, [[0.2, 0.4, 0.4], [0.3, 0.3, 0.4], [0.2, 0.6, 0.2], [0.5, 0.1, 0.4]]),
        ]  # fmt: skip
    tiny, tiny_chances = two_valued([0.35, 0.25, 0.2, 0.2, 0.1, 0.05], 0.0, 0.0004)
    shifted, shifted_chances = two_valued([0.3, 0.2, 0.15], 0.45, 0.48)
    return [
        coins("two coins, gap 0.06", [0.33, 0.27], 20_000),
        coins("two coins, gap 0.2", [0.7, 0.5]),
        coins("three coins, gap 0.01", [0.31, 0.3, 0.3], 50_000),
        coins("four rare coins", [0.012, 0.006, 0.004, 0.002], 50_000),
        coins("three sure coins", [0.98, 0.95, 0.93]),
        coins("six coins", [0.65, 0.6, 0.45, 0.4, 0.35, 0.1], 20_000),
        coins("eight coins, even", evenly(0.25, 0.75, 8)),
        coins("fifteen coins, one good", [0.38] + [0.3] * 14, 20_000),
        coins("twelve coins, rare", [0.08] + [0.05] * 4 + [0.03] * 4 + [0.01] * 3, 20_000),
        coins("thirty coins, close", [0.7] + [0.64] * 29, 20_000),
        coins("forty coins, even", evenly(0.05, 0.65, 40)),
        coins("two hundred coins, even", evenly(0.1, 0.9, 200)),
        special("hundred and fifty coins, one good", 150, 0.65, 0.4, 20_000),
        special("two thousand coins, one great", 2_000, 0.8, 0.05),
        coins("thousand coins, third good", [0.7] * 330 + [0.55] * 670),
        special("ten thousand coins, one better", 10_000, 0.9, 0.2),
        world("eight Beta arms", "Beta", means=evenly(0.35, 0.8, 8), strength=2.5),
        world("six peaked Beta arms", "Beta", means=[0.7, 0.69, 0.67, 0.6, 0.5, 0.2], strength=60.0),
        world("twelve narrow normal arms", "ClippedGaussian", means=evenly(0.45, 0.6, 12), deviation=0.07),
        world("five wide normal arms", "ClippedGaussian", means=[0.9, 0.7, 0.6, 0.4, 0.3], deviation=0.4),
        world("seventy Beta arms", "Beta", means=evenly(0.1, 0.6, 70), strength=6.0),
        lots("seven uniform arms", uniforms([0.45, 0.42, 0.4, 0.35, 0.3, 0.25, 0.2], 0.3)),
        lots("tinier coins", tiny, tiny_chances),
        lots("tiny uniform arms, six", uniforms([0.002, 0.0018, 0.0015, 0.0014, 0.0012, 0.001], 0.0015)),
        lots("coins in the middle", shifted, shifted_chances),
        lots("high narrow arms", uniforms(evenly(0.93, 0.945, 6), 0.008)),
        lots("rare large reward, four arms", [[0.08], [0.0, 0.9], [0.07], [0.02, 0.1]], [[1.0], [0.85, 0.15], [1.0], [0.5, 0.5]]),
        lots("rarer large reward, four arms", [[0.02], [0.0, 0.8], [0.01], [0.015]], [[1.0], [0.95, 0.05], [1.0], [1.0]], 20_000),
        lots("Pareto arms, eight", paretos(evenly(0.005, 0.04, 8), 2.2)),
        lots("five sure arms", [[0.71], [0.7], [0.6], [0.2], [0.1]]),
        lots("sixty sure arms", [[value] for value in evenly(0.3, 0.5, 60)]),
        lots("noisy runners-up", [[0.42], [0.0, 1.0], [0.1, 0.7], [0.3]], [[1.0], [0.62, 0.38], [0.5, 0.5], [1.0]]),
        lots("four values", [[0.0, 0.3, 0.6, 1.0]] * 5, [[0.1, 0.3, 0.3, 0.3], [0.3, 0.2, 0.2, 0.3], [0.2, 0.4, 0.3, 0.1], [0.25, 0.25, 0.25, 0.25], [0.6, 0.1, 0.1, 0.2]]),
    ]  # fmt: skip


def graphs(train: bool) -> list[Instance]:
    """Feedback graphs: social networks, made by rule and by chance, directed, changing."""
    if train:
        return [
            on_graph("Facebook ego 0", {"name": "facebook-0"}, one_good(333, 0.75, 0.5)),
            on_graph("Facebook ego 414", {"name": "facebook-414"}, bernoulli(evenly(0.2, 0.8, 150))),
            on_graph("star, good leaf", {"name": "star", "n": 50}, bernoulli([0.5, 0.8] + [0.4] * 48)),
            on_graph("star, costly hub", {"name": "star", "n": 60}, bernoulli([0.1, 0.7] + [0.6] * 58)),
            on_graph("directed hub", hub(40), bernoulli([0.05, 0.6] + [0.5] * 38)),
            on_graph("planted groups", {"name": "planted_partition", "groups": 6, "size": 20, "q_in": 0.5, "q_out": 0.02, "seed": 1}, bernoulli(evenly(0.3, 0.7, 120))),
            on_graph("sparse random graph", {"name": "erdos_renyi", "n": 100, "q": 0.03, "seed": 1}, one_good(100, 0.6, 0.5)),
            on_graph("random graph", {"name": "erdos_renyi", "n": 100, "q": 0.15, "seed": 2}, bernoulli(evenly(0.1, 0.9, 100))),
            on_graph("directed random graph", {"name": "erdos_renyi", "n": 80, "q": 0.06, "seed": 3, "directed": True}, one_good(80, 0.65, 0.5)),
            on_graph("ten cliques", {"name": "cliques", "count": 10, "size": 8}, bernoulli(evenly(0.2, 0.7, 80))),
            on_graph("power law", {"name": "power_law_cluster", "n": 200, "m": 4, "triangle": 0.5, "seed": 1}, one_good(200, 0.7, 0.5)),
            on_graph("full information", {"name": "complete", "n": 30}, bernoulli([0.55] + [0.5] * 29)),
            on_graph("geometric graph", {"name": "random_geometric", "n": 120, "radius": 0.15, "seed": 1}, bernoulli(evenly(0.4, 0.6, 120))),
            on_graph("directed ring", ring(30, True), bernoulli([0.7] + [0.5] * 29)),
            on_graph("edges that drop out", {"name": "DropOut", "graph": {"name": "star", "n": 40}, "keep": 0.5}, bernoulli([0.3, 0.7] + [0.5] * 38)),
            on_graph("graphs in turns", {"name": "GraphSequence", "graphs": [{"name": "star", "n": 30}, ring(30, False), {"name": "cliques", "count": 5, "size": 6}]}, bernoulli([0.6] + [0.5] * 29)),
            on_graph("random graph at each step", {"name": "ErdosRenyiEachStep", "n": 40, "q": 0.1}, bernoulli(evenly(0.3, 0.6, 40))),
        ]  # fmt: skip
    return [
        on_graph("Facebook ego 686", {"name": "facebook-686"}, one_good(168, 0.6, 0.45)),
        on_graph("Facebook ego 348", {"name": "facebook-348"}, one_good(224, 0.7, 0.5)),
        on_graph("Facebook ego 3980", {"name": "facebook-3980"}, bernoulli(evenly(0.3, 0.7, 52))),
        Instance("Epinions recommendation", "graphs", {"recommendation": {"name": "epinions", "seed": 0, "part": "test"}}),
        on_graph("star, good leaf, seventy", {"name": "star", "n": 70}, bernoulli([0.4, 0.6] + [0.3] * 68)),
        on_graph("star, bad hub", {"name": "star", "n": 45}, bernoulli([0.2, 0.55] + [0.45] * 43)),
        on_graph("directed hub, sixty", hub(60), bernoulli([0.1, 0.8] + [0.65] * 58)),
        on_graph("planted groups, eight", {"name": "planted_partition", "groups": 8, "size": 12, "q_in": 0.6, "q_out": 0.03, "seed": 11}, one_good(96, 0.7, 0.55)),
        on_graph("sparser random graph", {"name": "erdos_renyi", "n": 140, "q": 0.015, "seed": 12}, bernoulli(evenly(0.2, 0.6, 140))),
        on_graph("denser random graph", {"name": "erdos_renyi", "n": 70, "q": 0.25, "seed": 13}, one_good(70, 0.55, 0.45)),
        on_graph("directed random graph, hundred", {"name": "erdos_renyi", "n": 100, "q": 0.04, "seed": 14, "directed": True}, bernoulli(evenly(0.1, 0.7, 100))),
        on_graph("twelve cliques", {"name": "cliques", "count": 12, "size": 5}, one_good(60, 0.5, 0.35)),
        on_graph("power law, hundred and fifty", {"name": "power_law_cluster", "n": 150, "m": 3, "triangle": 0.3, "seed": 15}, bernoulli(evenly(0.35, 0.75, 150))),
        on_graph("full information, fifty", {"name": "complete", "n": 50}, bernoulli(evenly(0.4, 0.6, 50))),
        on_graph("geometric graph, ninety", {"name": "random_geometric", "n": 90, "radius": 0.2, "seed": 16}, one_good(90, 0.65, 0.5)),
        on_graph("ring of forty", ring(40, False), bernoulli([0.6] + [0.45] * 39)),
        on_graph("edges that drop out, hub", {"name": "DropOut", "graph": hub(30), "keep": 0.6}, bernoulli([0.2, 0.6] + [0.5] * 28)),
        on_graph("graphs in turns, directed", {"name": "GraphSequence", "graphs": [hub(35), ring(35, True), {"name": "erdos_renyi", "n": 35, "q": 0.1, "seed": 17, "directed": True}]}, bernoulli(evenly(0.3, 0.65, 35))),
        on_graph("directed random graph at each step", {"name": "ErdosRenyiEachStep", "n": 50, "q": 0.08, "directed": True}, bernoulli([0.6] + [0.5] * 49)),
    ]  # fmt: skip


def late(train: bool) -> list[Instance]:
    """Fixed distributions, rewards that come late, never, or many at once."""
    if train:
        return [
            delayed("five coins, delay of 100", bernoulli([0.7, 0.6, 0.5, 0.4, 0.3]), "Fixed(100)"),
            delayed("ten coins, geometric delay of 200", bernoulli(evenly(0.15, 0.75, 10)), "Geometric(200)", 20_000),
            delayed("three coins, one reward in ten lost", bernoulli([0.45, 0.4, 0.3]), "Uniform(0, 1000, never=0.1)", 20_000),
            delayed("hundred coins, delay of 500", one_good(100, 0.8, 0.5), "Fixed(500)", 20_000),
            delayed("slow good arm", bernoulli([0.6, 0.5, 0.45, 0.4]), "PerArm([Geometric(500), Fixed(1), Fixed(1), Fixed(1)])"),
            delayed("star, geometric delay of 50", bernoulli([0.4, 0.7] + [0.5] * 28), "Geometric(50)", graph={"name": "star", "n": 30}),
            batched("ten coins in batches of 32", bernoulli([0.55] + [0.45] * 9), 32),
            batched("Beta arms in batches of 250", {"name": "Beta", "means": evenly(0.3, 0.6, 6), "strength": 5.0}, 250, 20_000),
        ]  # fmt: skip
    return [
        delayed("four coins, delay of 250", bernoulli([0.5, 0.35, 0.3, 0.2]), "Fixed(250)"),
        delayed("twelve coins, geometric delay of 80", bernoulli(evenly(0.3, 0.8, 12)), "Geometric(80)", 20_000),
        delayed("five coins, a quarter of the rewards lost", bernoulli([0.65, 0.6, 0.5, 0.35, 0.2]), "Uniform(0, 600, never=0.25)", 20_000),
        delayed("sixty coins, delay of 300", one_good(60, 0.7, 0.45), "Fixed(300)", 20_000),
        delayed("slow good arms", bernoulli([0.7, 0.68, 0.6, 0.55, 0.3]), "PerArm([Geometric(300), Geometric(900), Fixed(1), Fixed(20), Fixed(1)])"),
        delayed("cliques, geometric delay of 120", bernoulli(evenly(0.3, 0.7, 24)), "Geometric(120)", graph={"name": "cliques", "count": 6, "size": 4}),
        batched("eight coins in batches of 100", bernoulli([0.35] + [0.27] * 7), 100, 20_000),
        batched("normal arms in batches of 400", {"name": "ClippedGaussian", "means": evenly(0.35, 0.65, 7), "deviation": 0.2}, 400, 20_000),
    ]  # fmt: skip


def changing(train: bool) -> list[Instance]:
    """Means that change, regret against the best arm of each step."""

    def instance(name: str, environment: Spec, horizon: int = 20_000) -> Instance:
        return Instance(name, "changing", {"environment": environment}, horizon)

    each = "each step"
    if train:
        return [
            phases("one change, best arm falls", "changing", [[0.8, 0.6, 0.5], [0.3, 0.6, 0.5]], [10_000, 10_000], each, 20_000),
            phases("one change, bad arm rises", "changing", [[0.6, 0.5, 0.4], [0.6, 0.5, 0.9]], [10_000, 10_000], each, 20_000),
            phases("four changes", "changing", turning([0.9, 0.5, 0.5, 0.4], 5, 1), [4_000] * 5, each, 20_000),
            phases("nine changes, ten arms", "changing", turning(evenly(0.2, 0.8, 10), 10, 3), [2_000] * 10, each, 20_000),
            phases("small change", "changing", [[0.5, 0.4], [0.5, 0.6]], [10_000, 10_000], each, 20_000),
            instance("switching", {"name": "Switching", "means": [0.8, 0.5, 0.2], "period": 2_000}),
            instance("slow drift", {"name": "Drifting", "means": [0.4, 0.5, 0.6], "swing": 0.3, "period": 10_000.0}),
            instance("fast drift", {"name": "Drifting", "means": [0.5] * 5, "swing": 0.4, "period": 2_500.0}),
        ]  # fmt: skip
    return [
        phases("one change, best of five falls", "changing", [[0.7, 0.55, 0.5, 0.45, 0.4], [0.2, 0.55, 0.5, 0.45, 0.4]], [7_000, 13_000], each, 20_000),
        phases("one change, last arm rises", "changing", [[0.5, 0.45, 0.3, 0.2], [0.5, 0.45, 0.3, 0.8]], [12_000, 8_000], each, 20_000),
        phases("six changes", "changing", turning([0.7, 0.4, 0.3], 7, 1), [3_000] * 7, each, 20_000),
        phases("seven changes, six arms", "changing", turning(evenly(0.1, 0.9, 6), 8, 2), [2_500] * 8, each, 20_000),
        phases("the best two swap", "changing", [[0.65, 0.5, 0.3], [0.5, 0.65, 0.3]], [9_000, 11_000], each, 20_000),
        instance("switching, four arms", {"name": "Switching", "means": [0.9, 0.6, 0.4, 0.1], "period": 3_000}),
        instance("slow drift, four arms", {"name": "Drifting", "means": [0.35, 0.45, 0.5, 0.55], "swing": 0.25, "period": 14_000.0}),
        instance("fast drift, three arms", {"name": "Drifting", "means": [0.5, 0.5, 0.5], "swing": 0.35, "period": 3_500.0}),
    ]  # fmt: skip


def adversarial(train: bool) -> list[Instance]:
    """Rewards that nobody promised to be stationary, regret against the best fixed arm."""
    fixed = "fixed arm"

    def constrained(
        name: str, low: list[float], high: list[float], first: int, growth: float, horizon: int
    ) -> Instance:
        """Zimmert and Seldin 2021: levels rise and fall in growing phases, gaps stay."""
        lengths: list[int] = []
        while sum(lengths) < horizon:
            lengths.append(int(first * growth ** len(lengths)))
        means = [low if phase % 2 == 0 else high for phase in range(len(lengths))]
        return phases(name, "adversarial", means, lengths, fixed, horizon)

    if train:
        return [
            constrained("constrained, two arms", [0.1, 0.0], [1.0, 0.9], 50, 1.6, 10_000),
            constrained("constrained, ten arms", [0.15] + [0.0] * 9, [1.0] + [0.85] * 9, 100, 1.6, 20_000),
            phases("early star", "adversarial", [[0.9, 0.5], [0.1, 0.5]], [3_000, 17_000], fixed, 20_000),
            phases("late star", "adversarial", [[0.5, 0.3, 0.4], [0.5, 0.9, 0.4]], [8_000, 12_000], fixed, 20_000),
            phases("turns, five arms", "adversarial", turning([0.8, 0.4, 0.4, 0.4, 0.4], 20, 1), [500] * 20, fixed, 10_000),
            phases("two arms in turns", "adversarial", [*turning([0.9, 0.2], 40, 1), [0.9, 0.2]], [250] * 41, fixed, 10_000),
        ]  # fmt: skip
    return [
        constrained("constrained, three arms", [0.12, 0.0, 0.0], [1.0, 0.88, 0.88], 80, 1.5, 20_000),
        constrained("constrained, six arms", [0.2] + [0.05] * 5, [0.95] + [0.8] * 5, 60, 1.8, 10_000),
        phases("early star of four", "adversarial", [[0.8, 0.4, 0.45, 0.4], [0.2, 0.4, 0.45, 0.4]], [2_500, 17_500], fixed, 20_000),
        phases("late star of four", "adversarial", [[0.4, 0.2, 0.35, 0.3], [0.4, 0.2, 0.8, 0.3]], [9_000, 11_000], fixed, 20_000),
        phases("turns, seven arms", "adversarial", turning([0.7, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3], 21, 2), [480] * 21, fixed, 10_000),
        phases("three arms in turns", "adversarial", [*turning([0.8, 0.5, 0.1], 30, 1), [0.8, 0.5, 0.1]], [320] * 31, fixed, 10_000),
    ]  # fmt: skip


def boosting(train: bool) -> list[Instance]:
    """Features as arms, 16 to 784 of them: rewards fall as the weights harden, and what counts is the error at the end."""
    if train:
        return [
            boosted("stumps on ISOLET", "isolet", "stump", 1_500, 20, "validation"),
            boosted("trees on ISOLET", "isolet", "tree", 300, 20, "validation"),
            boosted("stumps on digits", "digits", "stump", 300, 50, "validation"),
            boosted("trees on digits", "digits", "tree", 60, 50, "validation"),
            boosted("stumps on letter", "letter", "stump", 400, 50, "validation"),
            boosted("trees on letter", "letter", "tree", 150, 50, "validation"),
        ]
    return [
        boosted("stumps on MNIST", "mnist", "stump", 1_500, 5, "test"),
        boosted("trees on MNIST", "mnist", "tree", 300, 5, "test"),
        boosted("stumps on USPS", "usps", "stump", 800, 10, "test"),
        boosted("trees on USPS", "usps", "tree", 200, 10, "test"),
        boosted("stumps on pendigits", "pendigits", "stump", 500, 20, "test"),
        boosted("trees on pendigits", "pendigits", "tree", 100, 20, "test"),
    ]
