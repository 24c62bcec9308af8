"""AdaBoost.MH whose features are chosen by a bandit policy.

>>> from abex.boosting import AdaBoostMHClassifier
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> AdaBoostMHClassifier(n_estimators=10, policy="UCB1", random_state=0).fit(X, y).predict(X[:2]).tolist()
[0, 0]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abex.boosting.estimator import AdaBoostMHClassifier
    from abex.boosting.model import Model
    from abex.boosting.reporting import PolicyReport
    from abex.boosting.saving import load

_HOME = {"AdaBoostMHClassifier": "estimator", "Model": "model", "PolicyReport": "reporting", "load": "saving"}

__all__ = ["AdaBoostMHClassifier", "Model", "PolicyReport", "load"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"abex.boosting.{_HOME[name]}"), name)
    raise AttributeError(f"module 'abex.boosting' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
