"""The boosting estimator keeps scikit-learn's contract, whatever its base learner."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from abex.boosting import AdaBoostMHClassifier

# like every classifier that sets rows aside: a row repeated may be set aside once, a row of weight two may not
NOT_WITH_CALIBRATION = {
    f"check_sample_weight_equivalence_on_{kind}_data": "rows are set aside for calibration"
    for kind in ("dense", "sparse")
}
ESTIMATORS = [
    AdaBoostMHClassifier(n_estimators=12, base="stump", policy=None, calibrate=False),
    AdaBoostMHClassifier(n_estimators=8, base="tree", n_leaves=4),
    AdaBoostMHClassifier(n_estimators=8, base="product", n_terms=2, policy=None, calibrate=False),
    AdaBoostMHClassifier(n_estimators=8, base="tree", n_leaves=4, calibrate=False),
]


@parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=lambda estimator: NOT_WITH_CALIBRATION if estimator.calibrate else {}
)
def test_estimator(estimator, check):
    check(estimator)


if __name__ == "__main__":
    pytest.main([__file__])
