"""Graphs as values: where they come from, what they promise the simulator, how they change with time."""

import gzip
import json
import math
import pickle
import tempfile
from pathlib import Path

import networkx
import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from abex import DropOut, ErdosRenyiEachStep, Graph, GraphSequence, Player, UserError
from abex.graphs import (
    FeedbackGraph,
    bandit,
    cliques,
    complete,
    erdos_renyi,
    planted_partition,
    power_law_cluster,
    random_geometric,
    star,
)
from abex.graphs.feedback import observers, probability_seen
from abex.graphs.graph_file import read_graph, write_graph
from abex.graphs.numbers import (
    acyclic_number,
    domination_number,
    fractional_domination,
    independence_number,
    regret_lower_bound,
)
from abex.support.randomness import counter_key
from tests.each import each
from tests.needs import DATA, real_data

pairs = st.integers(1, 7).flatmap(
    lambda n: st.tuples(
        st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=25)
    )
)


# -- a value -------------------------------------------------------------------------------------------


@given(pairs, st.booleans())
def test_rows_are_closed_sorted_and_the_transpose_of_each_other(drawn, directed):
    n, edges = drawn
    graph = Graph.from_edges(edges, n, directed=directed)
    wanted = set(edges) | (set() if directed else {(v, u) for u, v in edges})
    for arm in range(n):
        out, into = graph.out(arm).tolist(), graph.into(arm).tolist()
        assert out[-1] == into[-1] == arm
        assert out[:-1] == sorted({v for u, v in wanted if u == arm} - {arm})
        assert into[:-1] == sorted({u for u, v in wanted if v == arm} - {arm})
    assert graph.is_directed == any((v, u) not in wanted for u, v in wanted)
    assert graph.max_observed == max(graph.out(arm).size for arm in range(n))


@given(pairs, st.booleans())
def test_a_graph_is_a_value(drawn, directed):
    n, edges = drawn
    graph = Graph.from_edges(edges, n, directed=directed)
    shuffled = Graph.from_edges(edges[::-1] + edges, n, directed=directed)
    assert shuffled == graph
    assert hash(shuffled) == hash(graph)
    twin = pickle.loads(pickle.dumps(graph))
    assert twin == graph
    assert twin.is_directed == graph.is_directed
    assert Graph.from_matrix(graph.to_scipy()) == graph
    assert Graph.from_matrix(graph.to_scipy().toarray() > 0) == graph


@given(pairs, st.booleans())
def test_edges_are_turned_round_answered_or_left_out(drawn, directed):
    n, edges = drawn
    graph = Graph.from_edges(edges, n, directed=directed, labels=range(10, 10 + n))
    there = {(u, v) for u, v in edges if u != v}
    there |= set() if directed else {(v, u) for u, v in there}
    turned = {(v, u) for u, v in there}
    for other, wanted in (
        (graph, there),
        (graph.reverse(), turned),
        (graph.undirected(), there | turned),
        (graph.mutual(), there & turned),
    ):
        assert set(zip(*map(np.ndarray.tolist, other.pairs()), strict=True)) == wanted
        assert [other.into(arm).tolist() for arm in range(n)] == [
            [*sorted(u for u, v in wanted if v == arm), arm] for arm in range(n)
        ]
        assert other.labels.tolist() == graph.labels.tolist()


def test_nothing_can_be_written_into_a_graph():
    graph = star(3)
    with pytest.raises(ValueError, match="read-only"):
        graph.links.out_arms[0] = 2
    with pytest.raises(AttributeError):
        graph.links = None


def test_repr_is_short_and_summary_speaks_to_a_person():
    assert repr(complete(1000)) == "<Graph: 1000 arms, 499500 undirected edges>"
    text = erdos_renyi(12, 0.2, seed=1, directed=True).summary()
    for word in (
        "arms",
        "directed",
        "components",
        "independence number",
        "domination number",
        "acyclic",
        "clique",
    ):
        assert word in text


def test_graphs_come_from_networkx_with_their_labels():
    graph = Graph.from_networkx(networkx.DiGraph([("b", "a"), ("b", "c"), ("c", "b")]))
    assert graph.labels.tolist() == ["b", "a", "c"]
    assert graph.out(0).tolist() == [1, 2, 0]
    assert graph.is_directed
    assert Graph.from_networkx(networkx.karate_club_graph()).n_edges == 78
    assert Graph.from_networkx(networkx.empty_graph(3)).n_edges == 0


def test_stored_zeros_of_a_matrix_are_no_edges():
    assert Graph.from_matrix(csr_array(([0.0, 2.0], ([0, 1], [1, 2])), shape=(3, 3))).n_edges == 1


# -- files ---------------------------------------------------------------------------------------------


def test_any_ids_comments_duplicates_and_both_directions(tmp_path):
    path = tmp_path / "x.edges"
    path.write_bytes(b"# SNAP\r\n% KONECT\n\n 900000000000 7\n7,900000000000\r\n7\t12\n12 12\n")
    graph = Graph.read(path)
    assert graph.labels.tolist() == [7, 12, 900000000000]
    assert [graph.out(arm).tolist() for arm in range(3)] == [[1, 2, 0], [0, 1], [0, 2]]
    packed = tmp_path / "x.edges.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert Graph.read(packed) == graph
    assert Graph.read(path, directed=True).n_edges == 3


def test_a_matrix_of_any_kind_is_a_graph():
    graph = Graph.from_edges([(0, 1), (2, 1)], 3, directed=True)
    matrix = np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]])
    for same in (
        matrix,
        matrix.tolist(),
        matrix > 0,
        0.5 * matrix,
        csr_array(matrix),
        pandas.DataFrame(matrix),
    ):
        assert Graph.from_matrix(same) == graph
    assert Graph.from_matrix(matrix, directed=False) == graph.undirected()


@each("wrong", [np.ones((2, 3)), [[0, 1], [1]], np.ones(3), 7, "friends.txt", None, [["a", "b"], ["c", "d"]]])
def test_what_is_no_matrix_is_one_sentence(wrong):
    with pytest.raises(UserError, match=r"matrix must be (square|a square adjacency matrix)"):
        Graph.from_matrix(wrong)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_a_matrix_of_what_is_not_a_number_is_one_sentence(kind):
    with pytest.raises(UserError, match="matrix has entries that are not a number"):
        Graph.from_matrix(kind(np.array([[0.0, math.nan], [1.0, 0.0]])))


@each("given", [np.eye(3, dtype=bool), csr_array(np.eye(3)), networkx.path_graph(3)])
def test_what_is_not_yet_a_graph_is_told_how_to_become_one(given):
    """Wherever a graph is asked for."""
    for ask in (
        Graph,
        lambda graph: GraphSequence([graph]),
        lambda graph: DropOut(graph, 0.5),
        lambda graph: Player(n_arms=3, graph=graph),
        independence_number,
        domination_number,
        acyclic_number,
        fractional_domination,
        lambda graph: regret_lower_bound(graph, [0.5, 0.6, 0.7]),
    ):
        with pytest.raises(UserError, match=r"Graph\.from_matrix") as caught:
            ask(given)
        assert type(given).__name__ in str(caught.value)
    with pytest.raises(UserError, match="list of Graph, got Graph"):
        GraphSequence(Graph.from_edges([(0, 1)]))


def test_ids_may_be_words(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("# who whom\nada bob\nbob eve\n", encoding="utf-8")
    assert Graph.read(path, ids="words").labels.tolist() == ["ada", "bob", "eve"]


@each(
    ("text", "message"),
    [
        ("1 2\n3\n", "line 2 must hold two ids, got '3'"),
        ("1 2\n\n3 4 5\n", "line 3 must hold two ids, got '3 4 5'"),
        ("1 2\n1 x\n", "line 2 has an id that is not a whole number"),
        ("1 2.5\n", "line 1 has an id that is not a whole number"),
        ("1 2\n# fine\n-3 4\n", "line 3 has a negative id, got '-3 4'"),
        ("1 99999999999999999999\n", "line 1 has an id beyond 18 digits"),
        ("# nothing\n", "holds no edge"),
        ("", "holds no edge"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(tmp_path, text, message):
    path = tmp_path / "broken.edges"
    path.write_text(text)
    with pytest.raises(UserError, match=message) as error:
        Graph.read(path)
    assert "broken.edges" in str(error.value)


def test_a_missing_or_cut_file_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match=r"cannot read .*nowhere"):
        Graph.read(tmp_path / "nowhere")
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(b"1 2\n" * 1000)[:-12])
    with pytest.raises(UserError, match="cannot unpack"):
        Graph.read(cut)


@each(
    ("edges", "n", "message"),
    [
        ([(0, 3)], 3, "two of the 3 arms, which begin with 0, got arm 3"),
        ([(0, 1), (-1, 0)], 3, r"got \(-1, 0\) as pair 1"),
        ([(0.5, 1.0)], 3, "whole numbers"),
        ([(0, 1, 2)], 3, "shape"),
        (np.eye(3, dtype=bool), None, "adjacency matrix is for Graph.from_matrix"),
        (7, None, "pairs .u, v., got int"),
        ([], None, "n_arms must be a whole number >= 1"),
    ],
)
def test_wrong_edges_are_one_sentence(edges, n, message):
    with pytest.raises(UserError, match=message):
        Graph.from_edges(edges, n)


@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from(
            [b"1", b"22", b" ", b",", b"\t", b"\n", b"\r\n", b"#x", b"%", b"-", b"a", b"\xff", b"0"]
        )
    )
)
def test_any_bytes_are_a_graph_or_one_sentence(pieces):
    """As a line at a time in Python."""
    text = b"".join(pieces)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.edges")
        path.write_bytes(text)
        wanted = []
        for number, line in enumerate(text.split(b"\n"), start=1):
            fields = line.replace(b",", b" ").split()
            if not fields or fields[0][:1] in (b"#", b"%"):
                continue
            if len(fields) != 2 or not all(field.isdigit() for field in fields):
                with pytest.raises(UserError, match=f"line {number} "):
                    Graph.read(path)
                return
            wanted.append(tuple(int(field) for field in fields))
        if not wanted:
            with pytest.raises(UserError, match="holds no edge"):
                Graph.read(path)
            return
        graph = Graph.read(path, directed=True)
        sources, targets = graph.pairs()
        assert set(zip(graph.labels[sources], graph.labels[targets], strict=True)) == {
            (u, v) for u, v in wanted if u != v
        }


@real_data("facebook")
def test_the_facebook_files_have_their_published_sizes():
    sizes = {"0.edges": (333, 2519), "348.edges.gz": (224, 3192), "facebook_combined.txt.gz": (4039, 88234)}
    for name, (nodes, edges) in sizes.items():
        graph = Graph.read(DATA / "facebook" / name)
        assert (graph.n_arms, graph.n_edges, graph.is_directed) == (nodes, edges, False)


# -- generators ----------------------------------------------------------------------------------------


def test_simple_graphs_are_what_they_say():
    assert bandit(3).n_edges == 0
    assert complete(5).n_edges == 10
    assert star(5).out(0).size == 5
    assert cliques(3, 4).n_edges == 18
    assert complete(1) == bandit(1) == star(1) == cliques(1, 1)


@pytest.mark.parametrize("directed", [False, True])
def test_erdos_renyi_joins_each_pair_with_its_probability(directed):
    n, q, graphs = 9, 0.3, 400
    joined = np.zeros((n, n))
    for seed in range(graphs):
        sources, targets = erdos_renyi(n, q, seed, directed=directed).pairs()
        joined[sources, targets] += 1
    off = joined[~np.eye(n, dtype=bool)] / graphs
    error = math.sqrt(q * (1 - q) / graphs)
    assert np.abs(off - q).max() < 4.5 * error
    assert erdos_renyi(n, 1.0) == complete(n)
    assert erdos_renyi(n, 0.0) == bandit(n)


def test_planted_partition_has_the_expected_edges_inside_and_outside():
    graph = planted_partition(20, 30, 0.4, 0.02, seed=3)
    sources, targets = graph.pairs()
    inside = sources // 30 == targets // 30
    for found, pairs_, q in [
        (inside.sum() / 2, 20 * 435, 0.4),
        ((~inside).sum() / 2, 600 * 599 / 2 - 20 * 435, 0.02),
    ]:
        assert abs(found - pairs_ * q) < 4.5 * math.sqrt(pairs_ * q * (1 - q))


def test_random_geometric_joins_exactly_the_near():
    from abex.support.randomness import stream

    graph = random_geometric(60, 0.2, seed=5)
    points = stream(5, "random_geometric").random((60, 2))
    near = np.linalg.norm(points[:, None] - points[None], axis=2) <= 0.2
    assert {tuple(pair) for pair in np.argwhere(near & ~np.eye(60, dtype=bool))} == set(
        zip(*graph.pairs(), strict=True)
    )


def test_power_law_cluster_has_hubs_triangles_and_its_edge_count():
    clustered, plain = power_law_cluster(2000, 4, 0.9, seed=1), power_law_cluster(2000, 4, 0.0, seed=1)
    assert clustered.n_edges == plain.n_edges == 4 * 1996
    assert plain.max_observed > 60
    sparse = [
        networkx.transitivity(networkx.Graph(list(zip(*g.pairs(), strict=True)))) for g in (clustered, plain)
    ]
    assert sparse[0] > 3 * sparse[1]
    assert power_law_cluster(2000, 4, 0.9, seed=1) == clustered
    assert power_law_cluster(2000, 4, 0.9, seed=2) != clustered


def test_a_hundred_thousand_arms_take_memory_linear_in_the_edges():
    import tracemalloc

    tracemalloc.start()
    graph = erdos_renyi(100_000, 1e-4, seed=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * (graph.n_arms + 2 * graph.n_edges)


# -- graphs that change --------------------------------------------------------------------------------

GRAPHS = [
    erdos_renyi(6, 0.3, 7, directed=True),
    GraphSequence([star(6), bandit(6), erdos_renyi(6, 0.3, 4, directed=True)]),
    DropOut(erdos_renyi(6, 0.6, 2), keep=0.5),
    DropOut(erdos_renyi(6, 0.6, 2, directed=True), keep=0.5),
    ErdosRenyiEachStep(6, q=0.4),
    ErdosRenyiEachStep(6, q=0.4, directed=True),
]


@each("graph", GRAPHS)
def test_the_questions_about_a_step_agree_with_its_graph(graph):
    key = counter_key(3, 0, "graph")
    record = graph.feedback(key)
    law = np.random.default_rng(0).dirichlet(np.ones(6))
    buffer = np.zeros(graph.max_observed, dtype=np.int64)
    who = np.zeros(6, dtype=np.int32)
    with np.errstate(over="ignore"):
        for t in range(1, 30):
            now = graph.at(t, key)
            assert graph.is_directed or not now.is_directed
            for arm in range(6):
                count = graph.reveal(record, t, arm, buffer)
                assert buffer[count - 1] == arm
                assert sorted(buffer[:count]) == sorted(now.out(arm))
                count = observers(record, t, arm, who)
                assert who[count - 1] == arm
                assert sorted(who[:count]) == sorted(now.into(arm))
                assert probability_seen(record, t, arm, law) == pytest.approx(law[now.into(arm)].sum())


@each(
    "graph",
    [
        star(5),
        erdos_renyi(9, 0.3, seed=1, directed=True),
        GraphSequence([star(5), cliques(1, 5), erdos_renyi(5, 0.5, seed=1, directed=True)]),
        DropOut(star(5), keep=0.5),
        DropOut(erdos_renyi(6, 0.4, seed=1, directed=True), keep=0.5),
        ErdosRenyiEachStep(5, q=0.5),
        ErdosRenyiEachStep(5, q=0.5, directed=True),
    ],
)
def test_a_saved_graph_is_the_graph(graph):
    again = read_graph(json.loads(json.dumps(write_graph(graph))), graph.n_arms)
    assert (again, type(again)) == (graph, type(graph))
    assert again.period == graph.period
    with np.errstate(over="ignore"):
        assert all(again.at(t, np.uint64(7)) == graph.at(t, np.uint64(7)) for t in (1, 2, 3, 8))


class _Everybody(FeedbackGraph):
    """A graph of one's own that tells no more than it must: odd steps show all arms, even ones only the pulled one."""

    n_arms = 4
    max_observed = 4
    is_directed = False

    @staticmethod
    def reveal(feedback, t, arm, seen):
        others = [k for k in range(4) if k != arm and t % 2 == 1]
        seen[: len(others) + 1] = [*others, arm]
        return len(others) + 1

    def feedback(self, key=0):
        return (4,)


def test_a_graph_of_ones_own_can_be_looked_at():
    graph = _Everybody()
    assert graph.period is None
    assert graph.at(1) == cliques(1, 4)
    assert graph.at(2) == bandit(4)
    with pytest.raises(UserError, match="a graph of kind _Everybody cannot be saved"):
        write_graph(graph)


@pytest.mark.parametrize("directed", [False, True])
def test_both_directions_of_an_undirected_edge_come_and_go_together(directed):
    base = erdos_renyi(7, 0.5, 1, directed=directed)
    for graph in (DropOut(base, keep=0.5), ErdosRenyiEachStep(7, q=0.4, directed=directed)):
        drawn = [graph.at(t) for t in range(1, 30)]
        assert len(set(drawn)) > 20
        assert any(one.is_directed for one in drawn) == directed


def test_drawn_edges_are_independent_coins_of_the_stated_chance():
    steps, key = 3000, counter_key(1, 0, "graph")
    graph = ErdosRenyiEachStep(4, q=0.3)
    present = np.array([[1.0 * (v in graph.at(t, key).out(u)) for u in range(4) for v in range(u + 1, 4)]
                        for t in range(1, steps + 1)])  # fmt: skip
    assert np.abs(present.mean(axis=0) - 0.3).max() < 4.5 * math.sqrt(0.21 / steps)
    cross = np.corrcoef(present.T) - np.eye(6)
    assert np.abs(cross).max() < 4.5 / math.sqrt(steps)
    later = [np.corrcoef(present[:-1, j], present[1:, j])[0, 1] for j in range(6)]
    assert np.abs(later).max() < 4.5 / math.sqrt(steps)
    assert graph.at(1, key) == graph.at(1, key)
    assert any(graph.at(t, key) != graph.at(t, counter_key(1, 1, "graph")) for t in range(1, 5))


def test_changing_graphs_refuse_nonsense():
    for make, message in [
        (lambda: GraphSequence([]), "non-empty list"),
        (lambda: GraphSequence([star(3), star(4)]), "same number of arms, got 3 and 4"),
        (lambda: DropOut(star(3), keep=1.5), "keep must be"),
        (lambda: DropOut("star", keep=0.5), "base must be a Graph"),
        (lambda: ErdosRenyiEachStep(0, q=0.5), "n must be a whole number >= 1"),
        (lambda: complete(10**6), "n must be at most"),
        (lambda: power_law_cluster(5, 5, 0.5), "m must be below n = 5"),
        (lambda: erdos_renyi(10**6, 0.5), "too large"),
    ]:
        with pytest.raises(UserError, match=message):
            make()
