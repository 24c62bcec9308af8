"""The boosting estimator keeps scikit-learn's contract, whatever its base learner."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from abex.boosting import AdaBoostMHClassifier

# like every classifier that sets rows aside or samples them: a row repeated may be drawn once, a row of weight two may not
NOT_WITH_SAMPLES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "committees and calibration see samples of the rows"
    for kind in ("dense", "sparse")
}
# the check gives one class 10^7 times the weight of another: a region without a heavy row is still split off, and its vote counts
# as much as that of any other
ALWAYS = {"check_class_weight_classifiers": "a leaf votes for or against, however light its rows"}
ESTIMATORS = [
    AdaBoostMHClassifier(n_estimators=12, base="stump", policy=None, calibrate=False),
    AdaBoostMHClassifier(n_estimators=8, base="tree", n_leaves=4),
    AdaBoostMHClassifier(n_estimators=8, base="product", n_terms=2, policy=None, calibrate=False),
    AdaBoostMHClassifier(n_estimators=8, base="tree", n_leaves=4, committee_size=None, calibrate=False),
]


@parametrize_with_checks(
    ESTIMATORS,
    expected_failed_checks=lambda estimator: {
        **ALWAYS,
        **(NOT_WITH_SAMPLES if estimator.calibrate else {}),
    },
)
def test_estimator(estimator, check):
    check(estimator)


if __name__ == "__main__":
    pytest.main([__file__])
