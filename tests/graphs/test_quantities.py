"""Graph quantities against enumeration, and by their own certificates."""

import ast
import itertools
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from abex import ELP, Graph, UserError
from abex.graphs import bandit, cliques, complete, erdos_renyi, power_law_cluster, programs, star
from abex.graphs.covers import (
    alpha_sample,
    greedy_acyclic_set,
    greedy_clique_cover,
    greedy_dominating_set,
    greedy_independent_set,
)
from abex.graphs.numbers import (
    acyclic_number,
    domination_number,
    fractional_domination,
    independence_number,
    regret_lower_bound,
)
from abex.policies.policy import Setting
from tests.each import each
from tests.naive import graphs as naive
from tests.naive.certificates import is_acyclic, is_clique_cover, is_dominating, is_independent
from tests.needs import DATA, real_data

FACEBOOK = DATA / "facebook" / "0.edges"

small = st.tuples(st.integers(1, 8), st.floats(0.0, 0.7), st.integers(0, 10**6), st.booleans()).map(
    lambda drawn: erdos_renyi(drawn[0], drawn[1], drawn[2], directed=drawn[3])
)


def tournament(n):
    low, high = np.triu_indices(n, 1)
    return Graph.from_edges((low, high), n, directed=True)


@settings(max_examples=60)
@given(small)
def test_exact_numbers_equal_enumeration(graph):
    assert independence_number(graph)[:2] == (naive.independence_number(graph),) * 2
    assert domination_number(graph)[:2] == (naive.domination_number(graph),) * 2
    acyclic = acyclic_number(graph)
    assert acyclic.lower <= naive.acyclic_number(graph) <= acyclic.upper
    if not graph.is_directed:
        assert naive.acyclic_number(graph) == naive.independence_number(graph)


@settings(max_examples=60)
@given(small, st.integers(0, 1000))
def test_greedy_sets_prove_themselves(graph, seed):
    independent = greedy_independent_set(graph)
    assert is_independent(graph, independent)
    assert is_dominating(graph.undirected(), independent), "not maximal"
    assert is_dominating(graph, greedy_dominating_set(graph))
    assert is_clique_cover(graph, greedy_clique_cover(graph))
    assert is_acyclic(graph, greedy_acyclic_set(graph))
    sample = alpha_sample(graph, np.random.default_rng(seed))
    assert is_dominating(graph, sample)
    assert is_acyclic(graph, sample[::-1]), "a later arm of the sample was shown by an earlier one"
    if not graph.is_directed:
        assert is_independent(graph, sample)


@settings(max_examples=60)
@given(small)
def test_the_fractional_cover_is_proven_by_its_packing(graph):
    cover = fractional_domination(graph)
    shows = naive.matrix(graph)
    assert (cover.weights @ shows >= 1.0 - 1e-9).all()
    assert (shows @ cover.packing <= 1.0 + 1e-9).all()
    assert min(cover.weights.min(), cover.packing.min()) >= 0.0
    assert cover.upper == pytest.approx(cover.weights.sum())
    assert cover.lower == pytest.approx(cover.packing.sum())
    assert cover.upper - cover.lower < 1e-6
    assert cover.upper <= naive.domination_number(graph) + 1e-9


@settings(max_examples=30)
@given(small)
def test_no_arm_can_be_added_to_a_greedy_set(graph):
    """Independent and acyclic sets are maximal, and the dominating set needs each of its arms in its turn."""
    out = naive.out_sets(graph)
    acyclic = set(greedy_acyclic_set(graph).tolist())
    independent = set(greedy_independent_set(graph).tolist())
    for arm in range(graph.n_arms):
        assert arm in acyclic or naive.has_cycle(out, acyclic | {arm})
        assert arm in independent or any(arm in out[k] or k in out[arm] for k in independent)
    seen = set()
    for arm in greedy_dominating_set(graph).tolist():
        assert len(out[arm] - seen) == max(len(shown - seen) for shown in out) > 0
        seen |= out[arm]


@settings(max_examples=30)
@given(small, st.integers(0, 99))
def test_a_certificate_holds_whatever_the_solver_says(graph, seed):
    """Any numbers at all are scaled to a cover and a packing, and so to a proven interval."""
    rng, shows = np.random.default_rng(seed), naive.matrix(graph)
    guesses = rng.random((2, graph.n_arms)) * 3.0 + 0.01
    ones = np.ones(graph.n_arms)
    cover = programs.certified(graph.to_scipy().T.tocsr(), ones, ones, *guesses, "guess")
    assert (cover.weights @ shows >= 1.0 - 1e-9).all()
    assert (shows @ cover.packing <= 1.0 + 1e-9).all()
    exact = fractional_domination(graph).upper
    assert cover.lower <= exact + 1e-9
    assert exact <= cover.upper + 1e-9


def test_the_certificates_can_fail():
    path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    assert not is_independent(path, [0, 1])
    assert not is_dominating(path, [0])
    assert not is_clique_cover(path, [0, 0, 0, 1])
    assert not is_acyclic(path, [0, 1])
    assert not is_acyclic(tournament(3), [2, 0])
    assert is_acyclic(tournament(3), [0, 1, 2])


def test_known_graphs_have_their_known_numbers():
    assert [str(number(star(10))) for number in (independence_number, domination_number)] == ["9", "1"]
    assert [str(number(cliques(4, 3))) for number in (independence_number, domination_number)] == ["4", "4"]
    assert str(independence_number(bandit(7))) == "7"
    assert acyclic_number(tournament(9))[:2] == (9, 9)
    assert str(independence_number(tournament(9))) == "1"
    assert str(domination_number(tournament(9))) == "1"
    cycle = Graph.from_edges([(k, (k + 1) % 5) for k in range(5)], directed=True)
    assert acyclic_number(cycle)[:2] == (4, 4)
    five = Graph.from_edges([(k, (k + 1) % 5) for k in range(5)])
    assert fractional_domination(five).upper == pytest.approx(5 / 3)


@each("effort", [0.0, 1e-9, 1e-4, 1e-3, 3e-3, 0.01, 0.1])
def test_with_little_effort_a_proven_interval_is_returned(effort):
    graph, numbers = erdos_renyi(60, 0.15, seed=3), {}
    for number, exact in ((independence_number, 20), (domination_number, 8)):
        found = numbers[number] = number(graph, effort)
        assert found.lower <= exact <= found.upper
        assert found.witness.size == (found.lower if number is independence_number else found.upper)
    assert is_independent(graph, numbers[independence_number].witness)
    assert is_dominating(graph, numbers[domination_number].witness)
    assert "independence number" in graph.summary(effort)


@each("seed", range(8))
def test_the_search_agrees_with_another(seed):
    undirected, directed = erdos_renyi(40, 0.12, seed), erdos_renyi(45, 0.06, seed, directed=True)
    found = independence_number(undirected)
    assert found.is_exact
    assert found.lower == naive.independence_by_highs(undirected)
    assert is_independent(undirected, found.witness)
    for graph in (undirected, directed):
        found = domination_number(graph)
        assert found.is_exact
        assert found.upper == naive.domination_by_highs(graph)
        assert is_dominating(graph, found.witness)


def test_a_search_that_cannot_end_is_stopped_with_what_it_has_proven():
    hard = erdos_renyi(400, 0.05, seed=1)
    stopped = independence_number(hard, effort=0.2)
    assert stopped.lower == stopped.witness.size < stopped.upper <= 133
    assert is_independent(hard, stopped.witness)
    large = power_law_cluster(3000, 4, 0.3, seed=1)
    assert domination_number(large, effort=0.3).lower > 250, "too large for HiGHS, bounded by gradients"


def test_numbers_of_a_graph_do_not_depend_on_the_clock(monkeypatch):
    """On a machine so busy that an hour passes between any two looks at the clock."""
    graph, large = erdos_renyi(60, 0.15, seed=3), power_law_cluster(300, 4, 0.5, seed=1)
    monkeypatch.setattr(programs, "HIGHS_SHARE", 0.0)  # gradients
    quiet = graph.summary(), large.summary(0.05), fractional_domination(large)
    clock = itertools.count(0, 3600)
    for name in ("monotonic", "perf_counter", "process_time", "time"):
        monkeypatch.setattr(time, name, lambda: next(clock))
    busy = graph.summary(), large.summary(0.05), fractional_domination(large)
    assert quiet[:2] == busy[:2]
    assert all(np.array_equal(one, other) for one, other in zip(quiet[2], busy[2], strict=True))


def test_solvers_are_never_given_a_time_limit(monkeypatch):
    asked = []

    def recorded(solver):
        def asks(*arguments, **options):
            asked.append((solver.__name__, *options.get("options", {})))
            return solver(*arguments, **options)

        return asks

    for solver in (scipy.optimize.linprog, scipy.optimize.milp):
        monkeypatch.setattr(scipy.optimize, solver.__name__, recorded(solver))
    graph = erdos_renyi(60, 0.15, seed=3)
    graph.summary()
    ELP(beta=0.01).start(Setting(60, 100, graph))
    assert set(asked) == {("linprog", "maxiter"), ("milp", "node_limit")}


def test_what_decides_a_result_does_not_look_at_the_clock():
    package = Path(programs.__file__).parents[1]
    for folder in ("graphs", "policies", "samplers", "theory", "environments"):
        for path in (package / folder).glob("*.py"):
            tree = ast.parse(path.read_text())
            imported = {
                name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
            }
            imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
            assert not imported & {"time", "datetime"}, path
            assert "time_limit" not in path.read_text(), path


def test_random_covers_of_a_star_are_far_from_the_best():
    rng, graph = np.random.default_rng(0), star(200)
    sizes = np.array([alpha_sample(graph, rng).size for _ in range(2000)])
    assert set(sizes) <= {1, 199}
    chance = (sizes == 1).mean()
    assert abs(chance - 1 / 200) < 4.5 * np.sqrt(1 / 200 / 2000)


def test_on_a_tournament_the_cover_is_harmonic_and_beats_the_independence_number():
    rng, n = np.random.default_rng(1), 200
    graph = tournament(n)
    sizes = np.array([alpha_sample(graph, rng).size for _ in range(1500)])
    harmonic = (1.0 / np.arange(1, n + 1)).sum()
    assert abs(sizes.mean() - harmonic) < 4.5 * sizes.std() / np.sqrt(sizes.size)


def test_a_slow_program_is_solved_by_gradients_with_a_certificate(monkeypatch):
    monkeypatch.setattr(programs, "_highs", lambda *arguments: None)
    graph = power_law_cluster(300, 4, 0.5, seed=1)
    cover = fractional_domination(graph)
    assert cover.method == "gradients"
    assert cover.upper / cover.lower < 1.0 + 2 * programs.CLOSE
    assert (cover.weights @ naive.matrix(graph) >= 1.0 - 1e-9).all()
    monkeypatch.undo()
    exact = fractional_domination(graph)
    assert exact.method == "HiGHS"
    assert cover.lower - 1e-9 <= exact.upper <= cover.upper + 1e-9


def test_gradients_solve_programs_with_costs_and_demands_too(monkeypatch):
    graph, means = erdos_renyi(40, 0.1, seed=6, directed=True), np.linspace(0.1, 0.9, 40)
    exact = regret_lower_bound(graph, means)
    monkeypatch.setattr(programs, "_highs", lambda *arguments: None)
    bound = regret_lower_bound(graph, means)
    assert bound.method == "gradients"
    assert bound.upper / bound.lower < 1.0 + 2 * programs.CLOSE
    assert bound.lower - 1e-9 <= exact.upper <= bound.upper + 1e-9


def test_a_program_that_cannot_be_solved_is_an_error_not_a_guess(monkeypatch):
    monkeypatch.setattr(programs, "_highs", lambda *arguments: None)
    monkeypatch.setattr(programs, "CLOSE", 1e-12)
    monkeypatch.setattr(programs, "ROUGH", 1e-12)
    with pytest.raises(
        UserError, match=r"could not be solved with effort 0\.01: its value is known only to lie in"
    ):
        fractional_domination(power_law_cluster(300, 4, 0.5, seed=1), effort=0.01)


def test_the_regret_bound_is_the_classical_one_without_a_graph_and_nothing_with_full_information():
    means = [0.9, 0.5, 0.3]
    kl = [p * np.log(p / 0.9) + (1 - p) * np.log((1 - p) / 0.1) for p in means[1:]]
    assert regret_lower_bound(bandit(3), means).upper == pytest.approx(0.4 / kl[0] + 0.6 / kl[1])
    assert regret_lower_bound(complete(3), means).upper == pytest.approx(0.0)
    assert regret_lower_bound(bandit(2), [1.0, 0.5]).upper == pytest.approx(0.0)
    with pytest.raises(UserError, match="one entry for each of the 3 arms"):
        regret_lower_bound(bandit(3), [0.5])


def test_the_regret_bound_equals_a_dense_program():
    graph = erdos_renyi(12, 0.2, seed=4, directed=True)
    means = np.linspace(0.2, 0.8, 12)
    demand = [1 / (p * np.log(p / 0.8) + (1 - p) * np.log((1 - p) / 0.2)) for p in means[:-1]]
    shows = naive.matrix(graph)
    answer = linprog(0.8 - means, A_ub=-shows.T[:-1], b_ub=-np.array(demand))
    bound = regret_lower_bound(graph, means)
    assert bound.lower == pytest.approx(answer.fun)
    assert bound.upper == pytest.approx(answer.fun)


@real_data("facebook/0.edges")
def test_facebook_has_its_known_quantities():
    graph = Graph.read(FACEBOOK)
    assert independence_number(graph)[:2] == (120, 120)
    assert domination_number(graph)[:2] == (45, 45)
    assert fractional_domination(graph).upper == pytest.approx(44.8, abs=0.005)
    text = graph.summary()
    assert "333" in text
    assert "2,519 undirected (5,038 directed)" in text
    assert "5 of 324, 3, 2, 2, 2" in text
    rng = np.random.default_rng(0)
    sizes = [alpha_sample(graph, rng).size for _ in range(300)]
    assert 80 <= min(sizes) <= max(sizes) <= 120
    means = np.full(333, 0.5)
    bounds = [
        regret_lower_bound(graph, means + 0.25 * (np.arange(333) == k)).upper for k in range(0, 333, 40)
    ]
    assert np.mean(bounds) == pytest.approx(77, abs=1.5)
