"""The boosting estimator keeps scikit-learn's contract, whatever its base learner."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from abex.boosting import AdaBoostMHClassifier

ESTIMATORS = [
    AdaBoostMHClassifier(n_estimators=12, base="stump", policy=None),
    AdaBoostMHClassifier(n_estimators=8, base="tree", n_leaves=4),
    AdaBoostMHClassifier(n_estimators=8, base="product", n_terms=2, policy=None),
]


@parametrize_with_checks(ESTIMATORS)
def test_estimator(estimator, check):
    check(estimator)


if __name__ == "__main__":
    pytest.main([__file__])
