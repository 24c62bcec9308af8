"""The recommendation pipeline: filter, SocialMF, completion, split, the cache of its steps, and the environment RatingTable."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from abex import RatingTable, simulate
from abex.environments.ratings import BinaryTable
from abex.graphs import complete
from abex.lab.datasets import (
    Ratings,
    SocialMF,
    completion,
    load,
    recommendation,
    synthetic_ratings,
)
from abex.lab.datasets.completion import binarise, completed_table, filter_active, split_products
from abex.lab.datasets.socialmf import (
    TEST,
    TRAIN,
    VALIDATION,
    compiled_descent,
    descend,
    fit,
    hold_out,
    new_descent,
    observed_from,
    penalties_of,
    refit,
    rmse,
    slopes,
)
from abex.support.errors import UserError
from abex.support.files import checksum_of
from abex.support.randomness import counter_key
from tests.each import each
from tests.naive import ratings as naive
from tests.needs import DATA, real_data

needs_data = real_data("epinions")


def as_ratings(rows, trust, n_users, n_items):
    rows, trust = (
        np.array(rows, dtype=np.int32).reshape(-1, 3),
        np.array(trust, dtype=np.int32).reshape(-1, 2),
    )
    return Ratings(
        "toy",
        rows[:, 0],
        rows[:, 1],
        rows[:, 2].astype(np.float32),
        trust[:, 0],
        trust[:, 1],
        np.arange(n_users) * 10,
        np.arange(n_items) * 100,
    )


@pytest.fixture(scope="module")
def small():
    """A small population that has passed the filter."""
    return filter_active(synthetic_ratings(80, 60, ratings_per_user=20, trust_per_user=5, seed=3), 3)


# -- filter -------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(1, 5)), min_size=1, max_size=60),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20),
    st.integers(0, 4),
)
@settings(max_examples=150)
def test_the_filter_equals_counting_by_hand(rows, trust, more_than):
    users, items, means, pairs = naive.active(rows, trust, more_than)
    ratings = as_ratings(rows, trust, 6, 5)
    if not users or not items:
        with pytest.raises(UserError, match="lower more_than"):
            filter_active(ratings, more_than)
        return
    kept = filter_active(ratings, more_than)
    assert kept.user_labels.tolist() == [10 * u for u in users]
    assert kept.item_labels.tolist() == [100 * i for i in items]
    cells = zip(kept.users.tolist(), kept.items.tolist(), kept.ratings.tolist(), strict=True)
    assert {(users[u], items[i]): pytest.approx(r) for u, i, r in cells} == means
    assert kept.users.size == len(means)
    found = zip(kept.trusters.tolist(), kept.trustees.tolist(), strict=True)
    assert {(users[u], users[v]) for u, v in found} == pairs
    assert kept.trusters.size == len(pairs)


def test_trust_points_the_way_it_is_asked_to():
    ratings = as_ratings([(0, 0, 1)], [(0, 1), (2, 1)], 3, 1)
    out = {
        direction: list(zip(*map(list, ratings.trust_edges(direction)), strict=True))
        for direction in ("out", "in", "both")
    }
    assert out["out"] == [(0, 1), (2, 1)]
    assert out["in"] == [(1, 0), (1, 2)]
    assert out["both"] == out["out"] + out["in"]
    with pytest.raises(UserError, match="direction"):
        ratings.trust_edges("sideways")


# -- SocialMF -----------------------------------------------------------------------------------------------


def small_problem(seed, model):
    rng = np.random.default_rng(seed)
    n_users, n_items = 6, 5
    cells = rng.permutation(n_users * n_items)[:14]
    rows = [(c // n_items, c % n_items, rng.integers(1, 6)) for c in cells]
    pairs = rng.permutation(n_users * n_users)[:9]
    trust = [(p // n_users, p % n_users) for p in pairs if p // n_users != p % n_users and p // n_users != 0]
    ratings = as_ratings(rows, trust, n_users, n_items)  # user 0 trusts nobody
    search = new_descent(
        rng.normal(size=(n_users, model.dimension)), rng.normal(size=(n_items, model.dimension))
    )
    observed = observed_from(ratings, np.ones(len(rows), dtype=bool))
    listed = [(u, i, (r - 1) / 4) for u, i, r in rows]
    return search, observed, listed, trust


@each("seed", range(3))
@each("trust_weight", [0.0, 0.7])
def test_objective_and_gradient_agree_with_the_formula(seed, trust_weight):
    model = SocialMF(dimension=3, user_penalty=0.2, item_penalty=0.3, trust_weight=trust_weight)
    search, observed, listed, trust = small_problem(seed, model)
    options = {"user": 0.2, "item": 0.3, "social": trust_weight}
    loss = slopes(observed, penalties_of(model), search)
    assert loss == pytest.approx(naive.social_objective(search.users, search.items, listed, trust, **options))
    step = 1e-6
    for values, slope in ((search.users, search.user_slope), (search.items, search.item_slope)):
        for place in np.ndindex(values.shape):
            kept = values[place]
            ends = []
            for shift in (step, -step):
                values[place] = kept + shift
                ends.append(naive.social_objective(search.users, search.items, listed, trust, **options))
            values[place] = kept
            assert slope[place] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-7)


def test_without_trust_weight_the_friends_do_not_matter(small):
    plain = SocialMF(trust_weight=0.0, most_epochs=30)
    shuffled = Ratings(**{**vars(small), "trustees": small.trustees[::-1].copy()})
    for model, same in ((plain, True), (SocialMF(most_epochs=30), False)):
        first, second = fit(small, model, 0), fit(shuffled, model, 0)
        assert np.array_equal(first.users, second.users) == same


def test_compiled_and_interpreted_descent_agree():
    model = SocialMF(dimension=2)
    ends = []
    for run in (descend, compiled_descent()):
        search, observed, _, _ = small_problem(1, model)
        run(observed, penalties_of(model), search, 1, 25, 0.05)
        ends.append(search)
    assert np.allclose(ends[0].users, ends[1].users, rtol=1e-12)
    assert np.allclose(ends[0].items, ends[1].items, rtol=1e-12)


def test_the_descent_goes_down():
    model = SocialMF(dimension=2)
    search, observed, _, _ = small_problem(2, model)
    losses = [descend(observed, penalties_of(model), search, k, k, 0.02) for k in range(1, 80)]
    assert losses[-1] < 0.5 * losses[0]


def test_a_fit_keeps_the_factors_that_were_best_on_the_validation_ratings(small):
    model = SocialMF(learning_rate=0.05, patience=20)
    fold = hold_out(small, 0)
    factors = fit(small, model, 0)
    held = fold == VALIDATION
    error = rmse(factors.predict(small.users[held], small.items[held]), small.ratings[held])
    assert error == pytest.approx(min(factors.errors.values()))
    assert min(factors.errors, key=factors.errors.get) == factors.epochs < max(factors.errors)
    assert np.array_equal(fit(small, model, 0).users, factors.users)
    assert not np.array_equal(fit(small, model, 1).users, factors.users)


def test_folds_do_not_overlap_and_depend_on_the_seed(small):
    fold = hold_out(small, 0)
    counts = np.bincount(fold, minlength=3)
    n = small.ratings.size
    assert counts[TEST] == counts[VALIDATION] == int(0.1 * n)
    assert counts[TRAIN] == n - 2 * int(0.1 * n)
    assert not np.array_equal(fold, hold_out(small, 1))


def test_trust_helps_where_friends_think_alike():
    ratings = filter_active(
        synthetic_ratings(400, 300, ratings_per_user=12, trust_per_user=12, homophily=8, seed=1), 2
    )
    penalties = {"user_penalty": 0.1, "item_penalty": 0.1, "learning_rate": 0.02}
    models = [SocialMF(trust_weight=weight, **penalties) for weight in (0.0, 1.0)]
    errors = []
    for seed in range(4):
        held = hold_out(ratings, seed) == TEST
        guesses = [
            fit(ratings, model, seed).predict(ratings.users[held], ratings.items[held]) for model in models
        ]
        errors.append([rmse(guess, ratings.ratings[held]) for guess in guesses])
    plain, social = np.array(errors).T
    assert (plain - social).mean() > 4 * np.hypot(*(part.std(ddof=1) / 2 for part in (plain, social)))


@each(
    ("options", "complaint"),
    [
        ({"dimension": 0}, "dimension"),
        ({"trust_weight": -1}, "trust_weight"),
        ({"learning_rate": 0}, "learning_rate"),
    ],
)
def test_impossible_models_are_refused(options, complaint):
    with pytest.raises(UserError, match=complaint):
        SocialMF(**options)


# -- completion and split -----------------------------------------------------------------------------------


def test_the_binary_table_equals_the_dense_computation(small, monkeypatch):
    monkeypatch.setattr(completion, "BLOCK", 16)  # several blocks, the last one not full
    factors = refit(small, SocialMF(), 0, 40)
    table = binarise(small, factors)
    known = dict(
        zip(zip(small.users.tolist(), small.items.tolist(), strict=True), small.ratings.tolist(), strict=True)
    )
    dense = naive.completed(factors.users, factors.items, known, 1.0, 5.0)
    assert table.threshold == pytest.approx(dense.mean())
    likes = np.array([table.row(product) for product in range(table.n_products)]).T
    clear = np.abs(dense - dense.mean()) > 1e-9
    assert np.array_equal(likes[clear], (dense > dense.mean())[clear])


@given(st.integers(7, 5000), st.integers(0, 100))
@settings(max_examples=50)
def test_one_product_in_seven_is_for_the_test(n_products, seed):
    tuning, test = split_products(n_products, seed)
    assert test.size == n_products // 7
    assert np.array_equal(np.sort(np.concatenate([tuning, test])), np.arange(n_products))
    assert np.array_equal(test, split_products(n_products, seed)[1])


def test_too_few_products_cannot_be_split():
    with pytest.raises(UserError, match="at least 7 products"):
        split_products(6, 0)


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 2**32 - 1))
@example(n_users=9, n_products=600, seed=1)  # more than are unpacked at once
@settings(max_examples=50)
def test_packed_tables_count_as_the_plain_ones(n_users, n_products, seed):
    rng = np.random.default_rng(seed)
    likes = rng.random((n_users, n_products)) < 0.4
    table = BinaryTable.of(likes)
    chosen = rng.integers(0, n_products, 5)
    assert table.likes(chosen).tolist() == likes[:, chosen].sum(axis=1).tolist()
    assert all(np.array_equal(table.row(p), likes[:, p]) for p in range(n_products))
    assert table == BinaryTable.of(likes.astype(float))
    assert table.share == pytest.approx(likes.mean())


def test_tables_that_are_not_binary_are_refused():
    for wrong in ([[0, 2]], [0, 1], [[]], [["a"]]):
        with pytest.raises(UserError, match="table of likes"):
            BinaryTable.of(wrong)


# -- what is kept ---------------------------------------------------------------------------------------------


def test_a_completed_table_is_found_again_and_that_of_another_input_is_not(small, cache, monkeypatch):
    model = SocialMF(most_epochs=10)
    first = completed_table(small, model, 0)
    with monkeypatch.context() as broken:
        broken.setattr(completion, "fit", None)  # would fail if it was made again
        assert completed_table(small, model, seed=0) == first
        others = [
            Ratings(**{**vars(small), name: value})
            for name, value in (
                ("ratings", np.clip(small.ratings + 1, 1, 5)),
                ("trustees", small.trustees[::-1].copy()),
                ("highest", 6.0),
            )
        ]
        for asked in (
            (small, SocialMF(most_epochs=11), 0),
            (small, model, 1),
            *((one, model, 0) for one in others),
        ):
            with pytest.raises(TypeError):
                completed_table(*asked)
    (kept,) = (cache / "completed").rglob("*.npz")
    whole = kept.read_bytes()
    for damaged in (
        whole[:200],
        b"",
        b"PK nonsense",
        whole.replace(first.bits.tobytes(), (first.bits ^ 1).tobytes()),
    ):
        kept.write_bytes(damaged)
        assert completed_table(small, model, 0) == first
        assert kept.read_bytes() == whole


# -- synthetic ratings ----------------------------------------------------------------------------------------


def fingerprint(ratings):
    return checksum_of([ratings.users, ratings.items, ratings.ratings, ratings.trusters, ratings.trustees])


def test_synthetic_ratings_are_seeded_and_have_the_stated_shape():
    first, again, other = (synthetic_ratings(200, 150, seed=seed) for seed in (1, 1, 2))
    assert fingerprint(first) == fingerprint(again) != fingerprint(other)
    assert set(np.unique(first.ratings)) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    assert abs(first.ratings.size / 200 - 40) < 4 * 40 / np.sqrt(200)
    assert (first.trusters != first.trustees).all()
    cells = first.users.astype(np.int64) * 150 + first.items
    assert np.unique(cells).size == cells.size
    with pytest.raises(UserError, match="ratings_per_user"):
        synthetic_ratings(10, 5, ratings_per_user=6)


# -- the environment ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def likes():
    return np.random.default_rng(4).random((13, 30)) < np.linspace(0.2, 0.8, 13)[:, None]


def test_every_step_shows_one_product_to_all_users(likes):
    products = [3, 4, 8, 20, 29]
    environment = RatingTable(likes, products)
    world = environment.open(counter_key(1, 0, "environment"), 100)
    columns = {tuple(likes[:, p].astype(float)) for p in products}
    with np.errstate(over="ignore"):
        shown = [tuple(environment.draw(world, t, arm) for arm in range(13)) for t in range(1, 400)]
    assert set(shown) == columns  # nothing else, and each of them
    assert environment.true_means.tolist() == likes[:, products].mean(axis=1).tolist()


def test_products_are_drawn_evenly(likes):
    environment = RatingTable(np.eye(8, dtype=int))  # user k likes product k alone
    world = environment.open(counter_key(2, 0, "environment"), 100)
    with np.errstate(over="ignore"):
        counts = np.array([sum(environment.draw(world, t, arm) for t in range(1, 4001)) for arm in range(8)])
    assert counts.sum() == 4000
    assert (((counts - 500) ** 2) / 500).sum() < 40  # chi-square with 7 degrees of freedom, level 1e-6


def test_ties_for_the_best_user_are_all_best():
    environment = RatingTable([[1, 1, 0], [0, 1, 1], [0, 0, 1]])
    world = environment.open(counter_key(0, 0, "environment"), 10)
    assert [environment.best(world, 1, arm) for arm in range(3)] == [True, True, False]
    assert [environment.gap(world, 1, arm) for arm in range(3)] == pytest.approx([0, 0, 1 / 3])


def test_friends_are_seen_with_their_own_reaction(likes):
    """With the complete graph every policy step learns each user's like of the drawn product."""
    environment = RatingTable(likes)
    full = simulate(
        "UCB1",
        environment,
        graph=complete(likes.shape[0]),
        horizon=2000,
        replications=4,
        seed=1,
        progress=False,
    )
    bandit = simulate("UCB1", environment, horizon=2000, replications=4, seed=1, progress=False)
    assert full.mean("UCB1")[-1] < 0.5 * bandit.mean("UCB1")[-1]


def test_impossible_products_are_refused(likes):
    for wrong in ([], [30], [-1], [0.5], 3):
        with pytest.raises(UserError, match="products must"):
            RatingTable(likes, wrong)


def test_the_environment_is_built_from_a_pipeline(cache):
    problem = recommendation(synthetic_ratings(60, 70, ratings_per_user=25, seed=2), more_than=5, seed=2)
    test, tuning = (RatingTable(problem.table, problem.products(part)) for part in ("test", "tuning"))
    assert test.n_arms == tuning.n_arms == problem.n_users
    assert test != tuning
    both = RatingTable(problem.table)
    mixed = problem.test.size * test.true_means + problem.tuning.size * tuning.true_means
    assert mixed / problem.table.n_products == pytest.approx(both.true_means)
    sources, targets = problem.edges("in")
    assert max(sources.max(), targets.max()) < problem.n_users


# -- the real data ------------------------------------------------------------------------------------------


@needs_data
def test_epinions_has_the_papers_sizes_and_is_predicted_better_than_by_the_mean(cache, monkeypatch):
    monkeypatch.setenv("ABEX_DATA", str(DATA))
    raw = load("epinions")
    assert (raw.ratings.size, raw.trusters.size) == (922_267, 355_754)
    kept = filter_active(raw)
    assert (kept.n_users, kept.n_items, kept.ratings.size) == (4_711, 3_530, 123_101)
    assert kept.trusters.size + kept.n_users == 48_350  # the paper counts one self-loop for each user
    problem = recommendation("epinions", seed=0)
    assert (problem.tuning.size, problem.test.size) == (3_026, 504)
    assert problem.table.bits.nbytes < 2.1e6
    assert 0.4 < problem.table.share < 0.7
    fold = hold_out(kept, 0)
    held = fold == TEST
    guess = fit(kept, SocialMF(), 0).predict(kept.users[held], kept.items[held])
    mean = np.full(held.sum(), kept.ratings[fold == TRAIN].mean())
    assert rmse(guess, kept.ratings[held]) < rmse(mean, kept.ratings[held]) - 0.1
