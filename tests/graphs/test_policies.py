"""Policies on feedback graphs against slow oracles."""

import math
import warnings

import numpy as np
import pytest

from abex import (
    ABE,
    ELP,
    TSU,
    UCB1,
    Bernoulli,
    DropOut,
    ErdosRenyiEachStep,
    Exp3DOM,
    Exp3IXGraph,
    Exp3SET,
    Graph,
    GraphSequence,
    Player,
    SpecialArm,
    Thompson,
    TSMaxN,
    UCBMaxN,
    UserError,
    known_policies,
    parse_policy,
    simulate,
)
from abex.graphs import bandit, cliques, complete, erdos_renyi, power_law_cluster, star
from abex.graphs.covers import alpha_sample, greedy_dominating_set
from abex.graphs.numbers import fractional_domination
from abex.policies.policy import Setting, plays_on
from abex.testing.policy_contract import leaves
from tests.each import each
from tests.examples import all_examples
from tests.needs import DATA, real_data

FACEBOOK = DATA / "facebook" / "0.edges"


def test_elp_is_tuned_as_stated():
    graph = erdos_renyi(40, 0.1, seed=2)
    state = ELP(independence=10).start(Setting(40, 10**6, graph))
    beta = min(math.sqrt(math.log(40) / (3 * 10 * 10**6)), 1 / 80)
    assert state.step == pytest.approx(beta)
    assert state.mixing[0] == pytest.approx(beta * fractional_domination(graph).upper)
    few = ELP(independence=10).start(Setting(40, 100, graph))
    assert few.step == pytest.approx(1 / 80), "the cap 1/(2K)"


def test_ucb_max_n_without_edges_is_ucb1():
    options = {"horizon": 500, "replications": 200, "seed": 5, "progress": False, "graph": bandit(3)}
    one = simulate(UCBMaxN(), Bernoulli([0.2, 0.5, 0.7]), **options).regret[0, :, -1]
    other = simulate(UCB1(), Bernoulli([0.2, 0.5, 0.7]), **options).regret[0, :, -1]
    assert abs(one.mean() - other.mean()) < 4 * np.hypot(one.std(), other.std()) / math.sqrt(200)


def test_ts_u_without_uniform_pulls_is_thompson_sampling():
    options = {"horizon": 300, "replications": 200, "seed": 5, "progress": False, "graph": star(3)}
    one = simulate(TSU(epsilon=0.0), Bernoulli([0.2, 0.5, 0.7]), **options).regret[0, :, -1]
    other = simulate(Thompson(), Bernoulli([0.2, 0.5, 0.7]), **options).regret[0, :, -1]
    assert abs(one.mean() - other.mean()) < 4 * np.hypot(one.std(), other.std()) / math.sqrt(200)
    assert TSU().start(Setting(3, 400, None)).epsilon == pytest.approx(0.05)


def test_a_player_on_a_random_graph_is_quiet_and_resumes(tmp_path):
    player = Player(UCBMaxN(), 5, graph=DropOut(star(5), keep=0.5), seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(10):
            player.update(player.select(), 0.5)
        player.save(tmp_path / "player.json")
        twin = Player.load(tmp_path / "player.json")
        assert [player.select() for _ in range(9)] == [twin.select() for _ in range(9)]


# -- ABE -----------------------------------------------------------------------------------------------


def explored(policy, graph, steps, seed=0):
    """The arms pulled while exploring, and what was reported."""
    player = Player(policy, graph.n_arms, graph=graph, seed=seed)
    arms = []
    with np.errstate(over="ignore"):
        for t in range(1, steps + 1):
            before = player.report()["exploration_slots"]
            arm = player.select()
            now = graph.at(t) if graph.period != 1 else graph
            player.update(arm, 0.5, also={int(k): 0.5 for k in now.out(arm) if k != arm})
            if player.report()["exploration_slots"] > before:
                arms.append(arm)
    return arms, player.report()


def test_abe_finds_its_sequence_by_alpha_sample():
    graph = erdos_renyi(30, 0.12, seed=8)
    sizes = np.array([explored(ABE(c=1.0, alpha=0.0), graph, 30, seed)[1]["cover"] for seed in range(150)])
    rng = np.random.default_rng(3)
    wanted = np.array([alpha_sample(graph, rng).size for _ in range(3000)])
    error = math.hypot(sizes.std() / math.sqrt(sizes.size), wanted.std() / math.sqrt(wanted.size))
    assert abs(sizes.mean() - wanted.mean()) < 4 * error


def test_abe_sweeps_by_the_numbers_of_the_arms_when_told_to():
    """Algorithm 1: j mod K; on a graph the next arm that has not been observed, every sweep the same."""
    policy = ABE(c=2.0, alpha=0.0, order="index")
    assert explored(policy, bandit(5), 12)[0] == [0, 1, 2, 3, 4] * 2
    graph = erdos_renyi(30, 0.12, seed=8)
    expected, seen = [], set()
    for arm in range(30):
        if arm not in seen:
            expected.append(arm)
            seen |= {arm, *graph.out(arm).tolist()}
    assert explored(policy, graph, 60)[0] == expected * 2
    with pytest.raises(UserError, match="goes with cover='alpha-sample'"):
        ABE(order="index", cover="lp")


def test_abe_sweeps_over_a_dominating_set_when_told_to():
    graph = erdos_renyi(30, 0.12, seed=8)
    arms, report = explored(ABE(c=2.0, alpha=0.0, cover="dominating"), graph, 40)
    chosen = greedy_dominating_set(graph).tolist()
    assert arms == chosen * 2
    assert report["cover"] == len(chosen)


def test_abe_draws_from_the_program_when_told_to():
    graph = erdos_renyi(30, 0.12, seed=8)
    cover = fractional_domination(graph)
    arms, _ = explored(ABE(c=3.0, alpha=0.0, cover="lp"), graph, 60)
    assert len(arms) == math.ceil(3 * cover.upper - 1e-6)
    assert set(arms) <= set(np.flatnonzero(cover.weights).tolist())


def test_abe_covers_a_changing_graph_anew_in_every_sweep():
    graph = GraphSequence([star(5), bandit(5)])
    policy = ABE(c=3.0, alpha=0.0)
    arms, _ = explored(policy, graph, 60)
    covered, sweeps = set(), 0
    for t, arm in enumerate(arms, start=1):
        assert arm not in covered, "a sweep pulls only what it has not seen"
        covered |= set(graph.at(t).out(arm).tolist())
        if len(covered) == 5:
            covered, sweeps = set(), sweeps + 1
        if sweeps == 3:
            break  # the Boltzmann slots follow
    assert sweeps == 3


def test_abe_needs_the_graph_only_for_covers_that_know_it():
    assert not ABE().needs_graph
    assert ABE(cover="lp").needs_graph
    assert not ABE.needs_graph
    with pytest.raises(UserError, match="needs to know the feedback graph"):
        simulate(ABE(cover="dominating"), Bernoulli([0.5, 0.6]), horizon=10, replications=1)


# -- all of them ---------------------------------------------------------------------------------------


def test_names_of_the_literature_are_found():
    wanted = {
        "TS-N": "Thompson", "UCB-N": "UCB1", "KL-UCB-N": "KLUCB", "BGE-N": "BoltzmannGumbel", "UCB-MaxN": "UCBMaxN",
        "TS-U": "TSU", "EXP3-SET": "Exp3SET", "EXP3-DOM": "Exp3DOM",
        "TS-MaxN": "TSMaxN",
    }  # fmt: skip
    assert {name: type(parse_policy(name)).__name__ for name in wanted} == wanted


@each("name", [name for name, cls in known_policies().items() if cls.needs_graph])
def test_policies_that_must_know_the_graph_refuse_clearly_without(name):
    with pytest.raises(UserError, match="needs to know the feedback graph"):
        known_policies()[name]().start(Setting(3, 100, None))


def test_a_graph_of_another_size_is_refused():
    with pytest.raises(UserError, match="4 nodes but the environment has 3 arms"):
        simulate(UCB1(), Bernoulli([0.1, 0.2, 0.3]), graph=star(4), horizon=10, replications=1)
    with pytest.raises(UserError, match=r"graph must be a Graph, got list: see .*Graph\.from_edges"):
        simulate(UCB1(), Bernoulli([0.1, 0.2]), graph=[(0, 1)], horizon=10, replications=1)
    with pytest.raises(UserError, match="4 arms and the setting 3"):
        Exp3SET(eta=0.1).start(Setting(3, 10, star(4)))


def test_isolated_arms_and_several_components_are_legal():
    graph = cliques(2, 3)
    for policy in (ABE(c=1.0, alpha=0.5), ELP()):
        for one in (graph, bandit(6)):
            curves = simulate(policy, SpecialArm(6), graph=one, horizon=50, replications=2, progress=False)
            wrong = curves.checkpoints - curves.optimal_pulls
            assert curves.regret == pytest.approx(0.25 * wrong)
            assert (wrong[0, :, -1] > 0).all(), "the special arm has to be found first"


@real_data("facebook/0.edges")
@pytest.mark.parametrize(
    ("policy", "regret", "error"),
    [
        (ABE(eta=0.4), 1166, 24),
        (ABE(eta=0.4, c=1.0, alpha=0.5), 1383, 36),
        (UCB1(scale=0.5), 2381, 42),
        (ELP(independence=120), 10070, 178),
    ],
    ids=str,
)
def test_the_facebook_experiment_agrees_with_an_independent_implementation(policy, regret, error):
    graph = Graph.read(FACEBOOK)
    curves = simulate(
        policy, SpecialArm(333), graph=graph, horizon=50_000, replications=12, seed=3, progress=False
    )
    mine = curves.regret[0, :, -1]
    assert abs(mine.mean() - regret) < 4 * math.hypot(error, mine.std(ddof=1) / math.sqrt(12))


@each(
    ("policy", "played"),
    [
        (ABE(cover="dominating"), ""),
        (ABE(cover="lp"), ""),
        (ELP(), "turns"),
        (Exp3DOM(), "turns"),
        (ABE(), "turns dropping drawn"),
        (UCBMaxN(), "turns dropping drawn"),
        (TSMaxN(), "turns dropping drawn"),
        (Exp3SET(), "turns dropping drawn"),
        (Exp3IXGraph(), "turns dropping drawn"),
        (UCB1(), "turns dropping drawn"),
    ],
)
def test_who_plans_on_a_graph_refuses_one_that_changes(policy, played):
    changing = {
        "turns": GraphSequence([star(4), complete(4)]),
        "dropping": DropOut(complete(4), keep=0.5),
        "drawn": ErdosRenyiEachStep(4, q=0.5),
    }
    assert [name for name, graph in changing.items() if plays_on(policy, graph)] == played.split()


def test_no_state_is_larger_than_linear():
    graph = power_law_cluster(3000, 3, 0.5, seed=1)
    size = graph.n_arms + 2 * graph.n_edges
    for policy in all_examples():
        state = policy.start(Setting(graph.n_arms, 10_000, graph))
        assert sum(leaf.nbytes for leaf in leaves(state)) < 100 * size, policy


def test_full_information_makes_the_graph_policies_learn_fast():
    environment = Bernoulli([0.9] + [0.4] * 9)
    options = {"horizon": 1000, "replications": 20, "seed": 3, "progress": False}
    for policy in (Exp3SET(), Exp3IXGraph(), UCBMaxN(), TSMaxN()):
        full = simulate(policy, environment, graph=complete(10), **options).regret[0, :, -1]
        alone = simulate(policy, environment, graph=bandit(10), **options).regret[0, :, -1]
        assert full.mean() < 0.5 * alone.mean(), policy
