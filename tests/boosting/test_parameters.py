"""Every parameter of the classifier does what it says: each test fails when its parameter is ignored."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_multilabel_classification

from abex.boosting import AdaBoostMHClassifier, calibration, estimator, stopping
from abex.boosting import fit as fit_module
from abex.policies import UCB1
from abex.support.errors import UserError
from tests.each import each

X, Y = load_digits(return_X_y=True)
X, Y = X[:400], Y[:400]


def classifier(**parameters):
    return AdaBoostMHClassifier(
        **{"n_estimators": 12, "base": "stump", "random_state": 1, "calibrate": False, **parameters}
    )


def fitted(**parameters):
    return classifier(**parameters).fit(X, Y)


def check_n_estimators(monkeypatch):
    assert fitted(n_estimators=7).model_.n_learners == 7


def check_policy(monkeypatch):
    ours = fitted(policy="UCB1", arms_per_search=1, n_estimators=100)
    arms = len(ours.arm_features_)
    assert sorted(ours.pulled_arms_[:arms]) == list(range(arms))  # UCB1 plays every arm once
    assert fitted(policy=None).arm_features_[0] == [j for arm in ours.arm_features_ for j in arm]


def check_base(monkeypatch):
    assert [fitted(base=base).model_.kind for base in ("stump", "product", "tree")] == [0, 1, 2]


def check_n_leaves(monkeypatch):
    assert [(fitted(base="tree", n_leaves=n).model_.feature >= 0).sum(axis=1).max() for n in (3, 9)] == [2, 8]


def check_n_terms(monkeypatch):
    pulls = [fitted(base="product", n_terms=n, arms_per_search=1).pulled_arms_.size for n in (2, 4)]
    assert pulls == [2 * 12, 4 * 12]


def check_arms(monkeypatch):
    assert fitted(arms=[[3, 4], [20]]).arm_features_ == [[3, 4], [20]]
    assert set(fitted(arms=[[3, 4], [20]]).model_.feature.ravel()) <= {3, 4, 20}


def check_arms_per_search(monkeypatch):
    assert fitted(arms_per_search=5).pulled_arms_.size == 5 * 12


def check_committee_size(monkeypatch):
    plain, restarted = fitted(), fitted(committee_size=5)
    np.testing.assert_array_equal(plain.model_.edge[:5], restarted.model_.edge[:5])
    assert (plain.model_.edge[5:] != restarted.model_.edge[5:]).all()


def check_compatible_with(monkeypatch):
    constant = np.column_stack([X, np.ones(len(X))])
    arms = classifier(compatible_with="multiboost").fit(constant, Y).arm_features_
    assert [64] in arms
    assert [64] not in classifier().fit(constant, Y).arm_features_


def check_early_stopping(monkeypatch):
    stopped = fitted(early_stopping=True, n_estimators=400, base="tree", n_iter_no_change=30)
    assert stopped.validation_errors_.size < 100
    assert stopped.n_iter_ < 400
    assert fitted(n_estimators=40).validation_errors_.size == 0


def check_validation_fraction(monkeypatch):
    errors = fitted(early_stopping=True, validation_fraction=0.02).validation_errors_  # of eight rows
    np.testing.assert_array_equal(errors * 8, np.rint(errors * 8))
    assert (fitted(early_stopping=True, validation_fraction=0.3).validation_errors_ * 8 % 1 > 0).any()


def check_n_iter_no_change(monkeypatch):
    """The fit ends as soon as the best window is so many iterations ago: not sooner, not later."""
    judged, seen = stopping.ValidationRows.losses, []
    monkeypatch.setattr(stopping.ValidationRows, "losses", lambda *a: seen.append(judged(*a)) or seen[-1])
    for patience, enough in ((10, 1000), (30, 1000), (30, 40)):
        monkeypatch.setattr(stopping, "ENOUGH_ROWS", enough)
        seen.clear()
        stopped = fitted(early_stopping=True, n_iter_no_change=patience, base="tree", n_estimators=500)
        errors, losses = np.transpose(seen)
        np.testing.assert_array_equal(stopped.validation_errors_, errors)
        assert 5 * errors.size == stopped.n_iter_ + patience
        looks = -(-patience // 10)  # those of the last half of the patience, five iterations apart
        means = [
            tuple(part[max(0, k + 1 - looks) : k + 1].mean() for part in (errors, losses))
            for k in range(errors.size)
        ]
        many = enough <= 40  # validation rows: their error counts first, and of any fit
        allowed = range(errors.size) if many else range(patience // 5 - 1, errors.size)
        best = min(allowed, key=lambda k: means[k] if many else means[k][1])
        assert stopped.n_iter_ == 5 * (best + 1)


def test_few_rows_do_not_judge_short_fits():
    """Twelve rows right by chance had kept five trees."""
    rows, classes = X[:120], Y[:120] % 2
    short = classifier(base="tree", n_estimators=80, early_stopping=True).fit(rows, classes)
    assert short.n_iter_ == 80  # fewer than the patience
    assert classifier(base="tree", n_estimators=200, early_stopping=True).fit(rows, classes).n_iter_ >= 100


def test_early_stopping_fits_all_rows_again():
    stopped = fitted(early_stopping=True, n_iter_no_change=30, base="tree", n_estimators=500)
    again = fitted(base="tree", n_estimators=stopped.n_iter_)
    np.testing.assert_array_equal(stopped.model_.threshold, again.model_.threshold)
    called_off = fitted(early_stopping=True, base="tree", callbacks=[lambda done, fit: done >= 4])
    assert (fitted(base="tree", n_estimators=4).model_.threshold != called_off.model_.threshold).any()


def check_calibrate(monkeypatch):
    assert fitted().inverse_temperature_ == 1.0
    assert fitted(early_stopping=True).inverse_temperature_ == 1.0
    for early in (False, True):
        sure = fitted(calibrate=True, early_stopping=early)
        assert sure.inverse_temperature_ != 1.0
        assert sure.calibration_rows_ == 400


def test_screening_is_paid_in_the_first_tree_of_a_committee():
    """By shadows; whoever else learns is paid by gains, in every tree."""
    gains, shadows = (
        fitted(base="tree", policy=policy, n_leaves=4, arms_per_search=3, committee_size=6)
        for policy in ("Boltzmann", "Screening")
    )
    assert gains.pulled_rewards_.size == 6 * shadows.pulled_rewards_.size
    assert shadows.pulled_rewards_.mean() > 0.5


def check_class_weight(monkeypatch):
    weights = np.where(Y == 3, 5.0, 1.0)
    ours, plain = fitted(class_weight={3: 5.0}), fitted()
    same = classifier().fit(X, Y, sample_weight=weights)
    assert (ours.model_.coefficient == same.model_.coefficient).all()
    assert (ours.model_.coefficient != plain.model_.coefficient).any()


def check_categorical_features(monkeypatch):
    assert [c.column for c in fitted(categorical_features=[4, 2]).categories_] == [2, 4]
    assert fitted().categories_ == ()


def check_warm_start(monkeypatch):
    first = fitted(warm_start=True)
    begun = first.model_.coefficient
    assert (
        first.set_params(n_estimators=20, random_state=5).fit(X, Y).model_.coefficient[:12] == begun
    ).all()
    assert (fitted(n_estimators=20, random_state=5).model_.coefficient[:12] != begun).any()


def check_n_jobs(monkeypatch):
    counts = []
    pool = estimator.ThreadPoolExecutor
    monkeypatch.setattr(estimator, "ThreadPoolExecutor", lambda n: counts.append(n) or pool(n))
    fitted(n_jobs=3).set_params(n_jobs=2).predict(X)
    assert counts == [3, 2]


def check_random_state(monkeypatch):
    one, other = (fitted(random_state=seed).pulled_arms_.tolist() for seed in (1, 2))
    assert one == fitted(random_state=1).pulled_arms_.tolist() != other


def check_callbacks(monkeypatch):
    assert fitted(callbacks=[lambda done, fit: done >= 4]).n_iter_ == 4


def check_verbose(monkeypatch):
    shows = []
    bar = fit_module.Progress
    monkeypatch.setattr(
        fit_module, "Progress", lambda *words, show: shows.append(show) or bar(*words, show=False)
    )
    fitted(verbose=0)
    fitted(verbose=1)
    assert shows == [False, None]


@pytest.mark.parametrize("name", sorted(AdaBoostMHClassifier().get_params()))
def test_the_parameter_does_what_it_says(name, monkeypatch):
    globals()[f"check_{name}"](monkeypatch)


# -- bounds ---------------------------------------------------------------------------------------------


@each(
    ("parameters", "said"),
    [
        ({"n_estimators": 10**9}, "n_estimators must be at most 1e"),
        ({"n_estimators": 10**40}, "n_estimators must be at most 1e"),
        ({"arms_per_search": 10**9}, "arms_per_search must be at most 1e"),
        (
            {"arms_per_search": 10**5, "base": "tree", "n_leaves": 4096},
            "arms_per_search must be at most 1220",
        ),
        ({"policy": "x" * 5000}, "policy"),
        ({"policy": ["x" * 5000]}, "policy must be"),
        ({"arms": "x" * 5000}, "arms must be"),
        ({"callbacks": ["x" * 5000]}, "callbacks must be"),
    ],
)
def test_numbers_without_end_are_refused_in_a_sentence(parameters, said):
    with pytest.raises(UserError, match=said) as refused:
        fitted(**parameters)
    assert len(str(refused.value)) < 250 or parameters.get("policy") == "x" * 5000


def test_as_many_arms_as_are_allowed_can_be_pulled():
    many = classifier(n_estimators=1, arms_per_search=10**5, arms=[[3], [4]]).fit(X[:20], Y[:20])
    assert many.pulled_arms_.size == 10**5


@each(
    ("labels", "said"),
    [
        ([1, "a"] * 200, "numbers and words"),
        (np.array([1, "a"] * 200, dtype=object), "numbers and words"),
        ([None, "a"] * 200, "missing"),
        (np.array([None, 1] * 200, dtype=object), "missing"),
        (np.array([np.nan, "a"] * 200, dtype=object), "missing"),
        ([b"x", b"y"] * 200, "numbers or words"),
        (np.array([{1}, {2}] * 200, dtype=object), "numbers or words"),
        (np.array([[1, 2], [2, 1]] * 200), "must be 0 and 1, got 2"),
        (np.array([[1, -1], [-1, 1]] * 200), "must be 0 and 1, got -1"),
        (np.array([[2, 2], [2, 2]] * 200), "must be 0 and 1, got 2"),
    ],
)
def test_labels_that_cannot_be_meant_are_refused_in_a_sentence(labels, said):
    with pytest.raises(UserError, match=said) as refused:
        classifier().fit(X, labels)
    assert len(str(refused.value)) < 200


def test_sparse_indicators_of_one_and_two_are_refused_too():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(UserError, match="must be 0 and 1, got 2"):
        classifier().fit(X, sparse.csr_matrix(np.array([[0, 2], [2, 0]] * 200)))


def test_labels_of_every_sound_kind_are_read():
    for labels in (
        Y,
        Y.tolist(),
        Y.astype(str),
        Y.astype(str).astype(object),
        Y > 4,
        Y.astype(object),
        Y - 5,
    ):
        assert classifier().fit(X, labels).predict(X).shape == (400,)
    for labels in (np.eye(10)[Y], np.eye(10, dtype=bool)[Y], np.eye(10, dtype=int)[Y].tolist()):
        assert classifier().fit(X, labels).predict(X).shape == (400, 10)


def test_weights_beyond_all_sums_are_refused():
    with pytest.raises(UserError, match="finite sum"):
        classifier().fit(X, Y, np.full(400, 1e308))


# -- probabilities --------------------------------------------------------------------------------------


def test_growth_is_carried_on():
    """Half as long a fit says what the power was, and how fast it grew; the rest is carried on."""
    many = 10**9
    assert calibration.carried_exponent(6.0, 5.0, 1.0, many) == pytest.approx(6.0 * 1.2**0.8)
    assert calibration.carried_exponent(6.0, 5.0, 2.0, many) == pytest.approx(6.0 * 1.2**1.6)
    assert calibration.carried_exponent(6.0, 5.0, 0.0, many) == 6.0
    assert calibration.carried_exponent(6.0, 0.1, 1.0, many) == pytest.approx(6.0 * 2.0**0.8)
    assert calibration.carried_exponent(6.0, 5.0, 1.0, 200) == pytest.approx(6.0 * 1.2**0.4)
    assert calibration.carried_exponent(6.0, 5.0, 1.0, 50) == pytest.approx(6.0 * 1.2**0.16)


@pytest.mark.parametrize("multilabel", [False, True])
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_the_power_is_fitted_to_the_probabilities_given(scale, multilabel):
    """The oracle tries a thousand powers: loss of `probabilities`, and how far the power is from the middle of the prior."""
    rng = np.random.default_rng(3)
    classes = rng.integers(3, size=60)
    signs = np.where(classes[:, None] == np.arange(3), 1, -1).astype(np.int8)
    margins = np.clip(scale * (0.7 * signs + 0.8 * rng.normal(size=signs.shape)), -scale, scale)
    power, loss = calibration.fit_exponent(margins, signs, multilabel)
    share = (60 * 0.5 * (1 + scale) + 0.5) / 61  # of the surest label
    middle = np.log(121) / np.log(share / (1 - share))

    def objective(trial):
        how = calibration.Calibration(trial, 60)
        chances = calibration.probabilities(margins, 1.0, how, multilabel)
        right = np.where(signs > 0, chances, 1 - chances) if multilabel else chances[signs > 0]
        return (-np.log(right).sum() + 2 * trial / middle - 2 * np.log(trial / middle)) / 60

    tried = np.geomspace(0.01, 1000, 1000)
    assert power == pytest.approx(min(tried, key=objective), rel=0.02)
    assert loss == pytest.approx(min(map(objective, tried)), abs=1e-4)


def test_sure_answers_are_as_sure_as_their_rows():
    """A thousand rows that are all right, all votes unanimous: one more is wrong at most."""
    signs = np.where(np.arange(1000)[:, None] % 3 == np.arange(3), 1, -1).astype(np.int8)
    power, _ = calibration.fit_exponent(signs.astype(float), signs, False)
    chances = calibration.probabilities(
        np.array([[1.0, -1.0, -1.0]]), 1.0, calibration.Calibration(power, 1000), False
    )
    assert 1 - 1.5 / 1001 < chances[0, 0] < 1 - 0.5 / 1001


def test_a_calibrated_model_uses_the_growth(monkeypatch):
    plain = fitted(calibrate=True, n_estimators=200, base="tree").inverse_temperature_
    monkeypatch.setattr(calibration, "GROWTH", 0.0)
    assert fitted(calibrate=True, n_estimators=200, base="tree").inverse_temperature_ != plain
    asked = []
    carried = calibration.carried_exponent
    monkeypatch.setattr(calibration, "carried_exponent", lambda *a: asked.append(a) or carried(*a))
    fitted(calibrate=True, n_estimators=200)
    fitted(calibrate=True, n_estimators=30)
    assert [doublings for _, _, doublings, _ in asked] == [1.0, 0.0]


@pytest.mark.parametrize("early", [False, True])
def test_no_probability_is_more_certain_than_the_rows_allow(early):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(90, 3))
    classes = np.digitize(rows[:, 0], [-0.4, 0.4])  # a single split away from being always right
    sure = classifier(calibrate=True, early_stopping=early, n_estimators=100).fit(rows, classes)
    chances = sure.predict_proba(rows)
    assert sure.calibration_rows_ == 90
    assert chances.min() >= 1 / (3 * 91) - 1e-12
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    features, labels = make_multilabel_classification(90, n_classes=3, random_state=0)
    chances = classifier(calibrate=True, n_estimators=100).fit(features, labels).predict_proba(features)
    assert chances.min() >= 1 / (2 * 91) - 1e-12
    assert chances.max() <= 1 - 1 / (2 * 91) + 1e-12


def test_no_probability_is_more_certain_whatever_the_temperature():
    scores, how = np.array([[5.0, -5.0, -5.0]]), calibration.Calibration(1e6, 9)
    classes = calibration.probabilities(scores, 5.0, how, False)[0]
    assert classes.tolist() == pytest.approx([28 / 30, 1 / 30, 1 / 30])
    labels = calibration.probabilities(scores, 5.0, how, True)[0]
    assert labels.tolist() == pytest.approx([0.95, 0.05, 0.05])


def test_probabilities_decide_as_scores_do():
    for base in ("stump", "tree"):
        sure = fitted(calibrate=True, base=base, n_estimators=60)
        assert (sure.classes_[sure.predict_proba(X).argmax(axis=1)] == sure.predict(X)).all()


def test_a_thousand_validation_rows_serve_as_they_are():
    digits, classes = load_digits(return_X_y=True)
    enough = classifier(calibrate=True, early_stopping=True, validation_fraction=0.7, n_estimators=30)
    assert enough.fit(digits, classes).calibration_rows_ == round(0.7 * len(classes))


@pytest.mark.parametrize(
    ("name", "splits", "beside_forests"), [("wine", 2, 1.0), ("iris", 2, 1.15), ("breast_cancer", 1, 1.0)]
)
def test_the_logarithmic_loss_is_below_that_of_others(name, splits, beside_forests):
    """With early stopping and without. `benchmarks/boosting_probabilities.py` has digits too, and more splits.

    On iris no true class has the probability 0 in a random forest, which never holds back. We always do: that costs 0.006 there,
    and would cost forests 0.009.
    """
    from sklearn import datasets, ensemble
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from threadpoolctl import threadpool_limits

    data, classes = getattr(datasets, f"load_{name}")(return_X_y=True)

    def loss(who):
        found = [
            -cross_val_score(who, data, classes, cv=folds, scoring="neg_log_loss").mean()
            for folds in (StratifiedKFold(5, shuffle=True, random_state=seed) for seed in range(splits))
        ]
        return np.mean(found)

    forest = loss(ensemble.RandomForestClassifier(random_state=0))
    with threadpool_limits(1):  # its threads wait for each other in loops that take a hundred times the work
        histogram = loss(ensemble.HistGradientBoostingClassifier(random_state=0))
    for early in (False, True):
        ours = loss(AdaBoostMHClassifier(early_stopping=early, random_state=0))
        assert ours <= beside_forests * forest, (early, ours, forest)
        assert ours <= histogram, (early, ours, histogram)


# -- importances ----------------------------------------------------------------------------------------


def informative(seed=0):
    """Five features that tell the classes, then twenty of noise."""
    from sklearn.datasets import make_classification

    return make_classification(
        1600, 25, n_informative=5, n_redundant=0, n_classes=3, n_clusters_per_class=1, shuffle=False,
        random_state=seed,
    )  # fmt: skip


@pytest.mark.parametrize(("base", "size"), [("tree", 150), ("stump", 500), ("product", 200)])
def test_importances_agree_with_those_of_permutation(base, size):
    from sklearn.inspection import permutation_importance

    data, classes = informative()
    boosted = classifier(base=base, n_leaves=20, n_estimators=size).fit(data[::2], classes[::2])
    importance = boosted.feature_importances_
    assert importance.sum() == pytest.approx(1.0)
    assert (importance >= 0).all()
    assert importance[5:].sum() < 0.5  # 0.55 to 0.7 when splits of a tree shared alike
    permuted = permutation_importance(boosted, data[1::2], classes[1::2], n_repeats=3, random_state=0)
    assert np.corrcoef(importance, permuted.importances_mean)[0, 1] > 0.8


def test_gains_of_splits_add_up_to_edges():
    data, classes = informative()
    signs = np.where(classes[:, None] == np.arange(3), 1, -1)
    start = abs((signs * np.where(signs > 0, 0.5, 0.25) / len(classes)).sum(axis=0)).sum()
    for base in ("stump", "product", "tree"):
        model = classifier(base=base, policy=UCB1()).fit(data, classes).model_
        gained = model.gain.sum(axis=1)
        assert (model.gain[model.feature < 0] == 0).all()
        if base == "tree":
            assert gained[0] == pytest.approx(model.edge[0] - start, abs=1e-5)
            assert (gained <= model.edge + 1e-5).all()
        else:
            np.testing.assert_allclose(gained, model.edge, atol=1e-5)


def saved(estimator, folder):
    estimator.save(folder / "model.abex")
    return folder / "model.abex"


def test_weights_are_doubles_where_they_cost_nothing(monkeypatch):
    kinds = []
    fits = fit_module.new_fit

    def noted(*arguments, **options):
        fit = fits(*arguments, **options)
        kinds.append(fit.weights.values.dtype)
        return fit

    monkeypatch.setattr(estimator, "new_fit", noted)
    fitted()
    monkeypatch.setattr(fit_module, "SMALL", 1000)
    fitted()
    fitted(compatible_with="multiboost")
    assert kinds == [np.float64, np.float32, np.float64]
