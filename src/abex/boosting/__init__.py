"""AdaBoost.MH whose features are chosen by a bandit policy.

>>> from abex.boosting import AdaBoostMHClassifier
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> AdaBoostMHClassifier(n_estimators=10, policy="UCB1", random_state=0).fit(X, y).predict(X[:2]).tolist()
[0, 0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abex.support.extras import needed
from abex.support.plugins import lazy_names

if TYPE_CHECKING:
    from abex.boosting.estimator import AdaBoostMHClassifier
    from abex.boosting.learners import Model
    from abex.boosting.model_file import load
    from abex.boosting.policy_report import PolicyReport

_HOME = {
    "AdaBoostMHClassifier": "estimator",
    "Model": "learners",
    "PolicyReport": "policy_report",
    "load": "model_file",
}

__all__ = ["AdaBoostMHClassifier", "Model", "PolicyReport", "load"]

_lookup = lazy_names("abex.boosting", _HOME)


def __getattr__(name: str) -> Any:
    with needed("boosting"):
        return _lookup(name)


def __dir__() -> list[str]:
    return sorted(__all__)
