"""Everything that turns a row into an answer, apart from the estimator: what an export must reproduce.

A row of numbers passes the tables of its categories, the forest gives it scores, scores are rounded to a grid, and what the
calibration found makes probabilities of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from abex.boosting.categories import Category
from abex.boosting.forest import Forest, forest_of


class ScoringRule(NamedTuple):
    """A fitted classifier as values."""

    forest: Forest
    n_features: int
    feature_names: list[str]
    categories: tuple[Category, ...]  # columns given as the position of a category
    classes: NDArray[Any]
    multilabel: bool
    total: float  # the largest score
    grain: float  # scores are multiples of it
    power: float  # of the shares of the votes
    rows: int  # that the calibration rests on


def scoring_rule_of(estimator: Any) -> ScoringRule:
    """The rule of a fitted estimator."""
    model = estimator.model_
    total = float(model.coefficient.sum())
    return ScoringRule(
        forest_of(model),
        int(estimator.n_features_in_),
        estimator._feature_names(),
        getattr(estimator, "categories_", ()),
        estimator.classes_,
        bool(estimator.multilabel_),
        total,
        model.grain,
        float(estimator.inverse_temperature_) * total,
        int(estimator.calibration_rows_),
    )
