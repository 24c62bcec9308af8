"""The classifier: what it promises beyond scikit-learn's contract."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, make_multilabel_classification
from sklearn.model_selection import train_test_split

from abex.boosting import AdaBoostMHClassifier, load
from abex.kernels import kernel
from abex.lab import datasets
from abex.policies import UCB1
from abex.policies.baselines import ArmCount
from abex.policies.policy import Policy
from abex.support.errors import UserError
from tests.each import each
from tests.naive.boosting import errors_and_ties
from tests.needs import real_data

X, Y = load_digits(return_X_y=True)
TRAIN, TEST, Y_TRAIN, Y_TEST = train_test_split(X, Y, test_size=0.4, random_state=0)


PUBLISHED = {"n_leaves": 20, "arms_per_search": 2, "committee_size": None}  # AdaBoost.MH, one committee


def classifier(**parameters):
    common = {"n_estimators": 60, "random_state": 1, "calibrate": False}
    return AdaBoostMHClassifier(**{**common, **PUBLISHED, **parameters})


def test_the_default_is_trees_in_committees():
    default = AdaBoostMHClassifier(random_state=0, calibrate=False).fit(TRAIN[:300], Y_TRAIN[:300])
    given = AdaBoostMHClassifier(
        512, n_leaves=60, arms_per_search=5, committee_size=16, random_state=0, calibrate=False
    ).fit(TRAIN[:300], Y_TRAIN[:300])
    np.testing.assert_array_equal(default.model_.threshold, given.model_.threshold)
    stumps = AdaBoostMHClassifier(base="stump", random_state=0, calibrate=False).fit(
        TRAIN[:300], Y_TRAIN[:300]
    )
    plain = classifier(base="stump", n_estimators=1000, random_state=0).fit(TRAIN[:300], Y_TRAIN[:300])
    np.testing.assert_array_equal(stumps.model_.threshold, plain.model_.threshold)


@pytest.fixture(scope="module")
def stumps():
    return classifier(base="stump", n_estimators=400).fit(TRAIN, Y_TRAIN)


@pytest.fixture(scope="module")
def trees():
    return classifier().fit(TRAIN, Y_TRAIN)


@pytest.fixture(scope="module")
def products():
    return classifier(base="product", n_estimators=300).fit(TRAIN, Y_TRAIN)


@pytest.mark.parametrize(("name", "least"), [("stumps", 0.9), ("trees", 0.94), ("products", 0.95)])
def test_each_base_learner_learns_digits(name, least, request):
    assert request.getfixturevalue(name).score(TEST, Y_TEST) > least


@pytest.mark.parametrize("name", ["stumps", "trees", "products"])
def test_each_base_learner_keeps_the_bound_on_the_training_error(name, request):
    model = request.getfixturevalue(name).model_
    label = np.searchsorted(np.unique(Y), Y_TRAIN)
    errors = [errors_and_ties(scores, label).mean() for scores in model.staged_scores(TRAIN)]
    bound = 3 * np.cumprod(np.sqrt(1 - np.minimum(model.edge, 1 - 1e-9) ** 2))
    assert (errors <= bound + 1e-9).all()
    assert bound[-1] < 0.5


@pytest.mark.parametrize("name", ["stumps", "trees", "products"])
def test_edges_reported_are_edges_of_the_weights(name, request):
    """Replays the stages in double precision: the edge of every classifier under the weights before it."""
    fitted = request.getfixturevalue(name)
    signs = np.where(Y_TRAIN[:, None] == np.unique(Y), 1, -1)
    weights = np.where(signs > 0, 0.5, 0.5 / 9) / len(Y_TRAIN)
    before = np.zeros(signs.shape)
    for t, scores in enumerate(fitted.staged_decision_function(TRAIN)):
        vote = scores - before
        edge = (weights * signs * np.sign(vote)).sum()
        assert fitted.model_.edge[t] == pytest.approx(edge, abs=2e-5)
        weights = weights * np.exp(-signs * vote)
        weights /= weights.sum()
        before = scores


@pytest.mark.parametrize("name", ["stumps", "trees", "products"])
def test_staged_score_is_the_score_of_each_stage(name, request):
    classifier = request.getfixturevalue(name)
    slow = [np.mean(predicted == Y_TEST) for predicted in classifier.staged_predict(TEST)]
    np.testing.assert_allclose(classifier.staged_score(TEST, Y_TEST), slow)
    np.testing.assert_allclose(classifier.staged_score(TEST, Y_TEST, every=7), slow[6::7])
    with pytest.raises(UserError, match="every"):
        classifier.staged_score(TEST, Y_TEST, every=0)


def test_a_longer_fit_begins_like_a_shorter_one(stumps):
    short = classifier(base="stump", n_estimators=50).fit(TRAIN, Y_TRAIN)
    assert (short.model_.feature == stumps.model_.feature[:50]).all()
    np.testing.assert_array_equal(short.model_.coefficient, stumps.model_.coefficient[:50])


def test_threads_change_nothing(trees):
    threaded = classifier(n_jobs=2).fit(TRAIN, Y_TRAIN)
    np.testing.assert_array_equal(threaded.decision_function(TEST), trees.decision_function(TEST))


def test_sparse_input_gives_the_same_model(stumps):
    fitted = classifier(base="stump", n_estimators=400).fit(sparse.csr_matrix(TRAIN), Y_TRAIN)
    np.testing.assert_array_equal(
        fitted.decision_function(sparse.csr_matrix(TEST)), stumps.decision_function(TEST)
    )


def test_integers_and_floats_give_the_same_model(stumps):
    fitted = classifier(base="stump", n_estimators=400).fit(TRAIN.astype(np.uint8), Y_TRAIN)
    np.testing.assert_array_equal(fitted.decision_function(TEST), stumps.decision_function(TEST))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_bring_their_names(library):
    frames = pytest.importorskip(library)
    data = load_iris()
    frame = frames.DataFrame(dict(zip(data.feature_names, data.data.T, strict=True)))
    fitted = classifier(n_estimators=5, base="stump").fit(frame, data.target)
    assert fitted.feature_names_in_.tolist() == data.feature_names
    assert "petal width (cm) >" in fitted.export_text()
    assert fitted.predict(frame).shape == (150,)


def test_missing_values_can_carry_the_information():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    x = np.where(y == 1, np.nan, rng.normal(size=200))[:, None]
    for base in ("stump", "tree", "product"):
        assert classifier(n_estimators=3, base=base).fit(x, y).score(x, y) == 1.0


def test_constant_features_are_never_pulled():
    data = np.column_stack([np.ones(60), np.arange(60), np.zeros(60)])
    fitted = classifier(n_estimators=4, base="stump").fit(data, np.arange(60) > 25)
    assert fitted.arm_features_ == [[1]]
    assert fitted.feature_importances_.tolist() == [0.0, 1.0, 0.0]


def test_nothing_to_cut_is_an_answer_all_the_same():
    for base in ("stump", "tree", "product"):
        fitted = classifier(n_estimators=3, base=base).fit(np.ones((10, 2)), [0] * 6 + [1] * 4)
        assert fitted.predict(np.ones((1, 2))).shape == (1,)


def test_many_labels_at_once():
    data, labels = make_multilabel_classification(400, 12, n_classes=4, random_state=0)
    for base in ("stump", "tree"):
        fitted = classifier(base=base, n_estimators=80, calibrate=True).fit(data[:300], labels[:300])
        assert fitted.predict(data).shape == (400, 4)
        wrong = np.mean(fitted.predict(data[300:]) != labels[300:])
        assert wrong < 0.7 * np.mean(labels[300:] != (labels[:300].mean(axis=0) > 0.5))
        chances = fitted.predict_proba(data[300:])
        assert ((chances >= 0) & (chances <= 1)).all()


def test_calibrated_probabilities_beat_raw_ones():
    def loss(fitted):
        chances = fitted.predict_proba(TEST)[np.arange(len(Y_TEST)), Y_TEST]
        return -np.log(np.maximum(chances, 1e-12)).mean()

    raw = classifier(n_estimators=100).fit(TRAIN, Y_TRAIN)
    calibrated = classifier(n_estimators=100, calibrate=True).fit(TRAIN, Y_TRAIN)
    assert loss(calibrated) < loss(raw)
    assert loss(calibrated) < 0.25
    best = min(loss_at for loss_at in map(lambda b: _loss_at(raw, b), np.geomspace(0.05, 20, 60)))
    assert loss(calibrated) < 1.25 * best


def _loss_at(fitted, beta):
    scores = beta * fitted.decision_function(TEST)
    top = scores.max(axis=1, keepdims=True)
    logs = scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
    return -logs[np.arange(len(Y_TEST)), Y_TEST].mean()


def test_early_stopping_keeps_the_best():
    fitted = classifier(base="stump", n_estimators=2000, early_stopping=True, n_iter_no_change=100)
    fitted.fit(TRAIN, Y_TRAIN)
    errors = fitted.validation_errors_
    assert errors[fitted.n_iter_ // 20 - 1] == errors.min()
    assert fitted.n_iter_ < 2000


def test_callbacks_stop_a_fit():
    seen = []
    fitted = classifier(
        base="stump", n_estimators=500, callbacks=[lambda done, fit: seen.append(done) or done >= 50]
    )
    assert fitted.fit(TRAIN, Y_TRAIN).n_iter_ == 50
    assert seen == list(range(5, 55, 5))


def test_warm_start_goes_on_where_the_first_fit_ended(stumps):
    warm = classifier(base="stump", n_estimators=100, warm_start=True).fit(TRAIN, Y_TRAIN)
    warm.set_params(n_estimators=400).fit(TRAIN, Y_TRAIN)
    assert warm.n_iter_ == 400
    assert (warm.model_.feature[:100] == stumps.model_.feature[:100]).all()
    assert len(warm.pulled_arms_) == len(stumps.pulled_arms_)
    assert warm.score(TEST, Y_TEST) == pytest.approx(stumps.score(TEST, Y_TEST), abs=0.03)
    with pytest.raises(UserError, match="must not shrink"):
        warm.set_params(n_estimators=10).fit(TRAIN, Y_TRAIN)


def test_arms_may_be_groups_of_features():
    groups = [list(range(k, k + 8)) for k in range(0, 64, 8)]
    fitted = classifier(base="stump", n_estimators=40, arms=groups, arms_per_search=1).fit(TRAIN, Y_TRAIN)
    used = fitted.model_.feature[:, 0]
    assert (used // 8 == fitted.pulled_arms_).all()
    assert len(classifier(n_estimators=2, arms="groups").fit(TRAIN, Y_TRAIN).arm_features_) == 8
    with pytest.raises(UserError, match="between 0 and 63"):
        classifier(arms=[[64]]).fit(TRAIN, Y_TRAIN)


def test_full_search_is_one_arm_with_all_features():
    fitted = classifier(base="stump", n_estimators=30, policy=None).fit(TRAIN, Y_TRAIN)
    assert (fitted.pulled_arms_ == 0).all()
    one = classifier(base="stump", n_estimators=30, arms_per_search=1).fit(TRAIN, Y_TRAIN)
    assert fitted.model_.edge[0] >= one.model_.edge[0]
    assert fitted.model_.edge.mean() > one.model_.edge.mean()


@dataclass(frozen=True)
class FirstArm(Policy[ArmCount]):
    """A person's own policy, defined outside the package."""

    def start(self, setting):
        return ArmCount(n_arms=setting.n_arms)

    @staticmethod
    @kernel
    def select(state, t, rng):
        return (t - 1) % min(2, state.n_arms)

    @staticmethod
    @kernel
    def update(state, t, arm, seen, reward, rng):
        pass


def test_a_persons_own_policy_boosts():
    fitted = classifier(base="stump", n_estimators=6, policy=FirstArm(), arms_per_search=1).fit(
        TRAIN, Y_TRAIN
    )
    assert fitted.pulled_arms_.tolist() == [0, 1] * 3


def test_the_report_tells_a_learner_from_a_coin(stumps):
    assert stumps.policy_report(windows=4).indistinguishable_from_uniform
    greedy = classifier(base="stump", n_estimators=2000, policy=UCB1(scale=1e-7), arms_per_search=1)
    report = greedy.fit(TRAIN, Y_TRAIN).policy_report()
    assert not report.indistinguishable_from_uniform
    assert report.share.sum() == pytest.approx(1.0)
    assert "mean reward" in str(report)


@pytest.mark.parametrize("name", ["stumps", "trees", "products"])
def test_a_saved_model_answers_as_before(name, request, tmp_path):
    fitted = request.getfixturevalue(name)
    fitted.save(tmp_path / "model.abex")
    again = load(tmp_path / "model.abex")
    np.testing.assert_array_equal(again.predict_proba(TEST), fitted.predict_proba(TEST))
    assert again.export_text() == fitted.export_text()
    assert str(again.policy_report()) == str(fitted.policy_report())
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copied.decision_function(TEST), fitted.decision_function(TEST))


def test_a_model_survives_skops(trees, tmp_path):
    skops = pytest.importorskip("skops.io")
    skops.dump(trees, tmp_path / "model.skops")
    names = skops.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith(("abex.", "numpy.")) for name in names)
    again = skops.load(tmp_path / "model.skops", trusted=names)
    np.testing.assert_array_equal(again.decision_function(TEST), trees.decision_function(TEST))


def test_words_as_classes_survive_saving(tmp_path):
    names = np.array(["no", "yes"], dtype=object)
    data = np.arange(40.0)[:, None]
    fitted = classifier(n_estimators=2, base="stump", policy=UCB1()).fit(
        data, names[(data[:, 0] > 9).astype(int)]
    )
    fitted.save(tmp_path / "m.abex")
    assert load(tmp_path / "m.abex").predict([[0.0], [30.0]]).tolist() == ["no", "yes"]


def test_damage_is_told_in_one_sentence(trees, tmp_path):
    file = tmp_path / "model.abex"
    trees.save(file)
    content = file.read_bytes()
    said = []
    for position in np.linspace(0, len(content) - 1, 60).astype(int):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        file.write_bytes(damaged)
        try:
            again = load(file)
        except UserError as error:
            said.append(str(error))
        else:  # a date, for example
            for name, array in trees.model_.arrays().items():
                np.testing.assert_array_equal(getattr(again.model_, name), array)
    assert len(said) > 50
    assert all("model" in sentence for sentence in said)
    file.write_bytes(content[:-100])
    with pytest.raises(UserError, match="damaged"):
        load(file)
    with pytest.raises(UserError, match="there is no model file"):
        load(tmp_path / "nothing")


def test_a_tree_that_leads_in_circles_is_refused(trees, tmp_path):
    file = tmp_path / "model.abex"
    trees.save(file)
    with np.load(file) as archive:
        arrays = dict(archive)
    arrays["left"][0, 1] = 0
    with file.open("wb") as stream:
        np.savez(stream, **arrays)
    with pytest.raises(UserError, match="leads nowhere"):
        load(file)


@each(
    ("parameters", "said"),
    [
        ({"base": "stumps"}, "did you mean 'stump'"),
        ({"policy": "ABEE"}, "unknown policy"),
        ({"policy": 3}, "policy must be"),
        ({"n_estimators": 0}, "n_estimators must be"),
        ({"n_leaves": 1}, "n_leaves must be"),
        ({"compatible_with": "multiboost"}, "is for stumps"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(parameters, said):
    with pytest.raises(UserError, match=said):
        classifier(**parameters).fit(TRAIN, Y_TRAIN)


@real_data("pendigits")
@pytest.mark.parametrize(("base", "least", "most"), [("stump", 4.0, 6.0), ("tree", 1.7, 2.8)])
def test_pendigits_ends_near_the_published_error(base, least, most):
    data = datasets.load("pendigits")
    size = {"stump": 4000, "tree": 300}[base]
    fitted = classifier(base=base, n_estimators=size, arms_per_search=1 if base == "stump" else 4)
    error = 100 * (1 - fitted.fit(data.X_train, data.y_train).score(data.X_test, data.y_test))
    assert least < error < most
