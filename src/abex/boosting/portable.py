"""What a fitted classifier can say about itself, and the ways it leaves Python."""

from __future__ import annotations

from typing import Any

from abex.boosting.forest import Forest, forest_of
from abex.boosting.scoring_rule import ScoringRule, scoring_rule_of
from abex.boosting.shap_values import ShapValues, shap_values, trees_for_shap
from abex.support.errors import UserError
from abex.support.extras import needed

with needed("boosting"):
    from sklearn.utils.validation import check_is_fitted


class PortableClassifier:
    """Explanations and exports of a fitted classifier with a `Model`."""

    model_: Any
    categories_: Any
    n_classes_: Any
    multilabel_: Any
    _checked: Any
    _threads: Any

    def shap_values(
        self, X: Any, background: Any, feature_perturbation: str = "tree_path_dependent"
    ) -> ShapValues:
        """Shapley values of the features: how far each moved the scores of a row from their mean over a background.

        Exact for stumps, products and trees, see `abex.boosting.shap_values`.

        Parameters
        ----------
        X : (n, d) rows to explain
        background : (m, d) rows
            What is usual: the rows of the fit, or some of them. A model does not keep rows.
        feature_perturbation : {"tree_path_dependent", "interventional"}
            What becomes of features that are not known, as in the package shap.

        Returns
        -------
        ShapValues
            ``values`` (n, d, L) and ``base`` (L,), for two classes (n, d) and a number: ``values.sum(axis=1) + base``
            is `decision_function`.

        Examples
        --------
        >>> from abex.boosting import AdaBoostMHClassifier
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> fitted = AdaBoostMHClassifier(n_estimators=20, random_state=0).fit(X, y)
        >>> values, base = fitted.shap_values(X[:5], background=X)
        >>> bool(abs(values.sum(axis=1) + base - fitted.decision_function(X[:5])).max() < 1e-9)
        True
        """
        X, background = self._checked(X), self._checked(background)
        with self._threads() as mapper:
            values, base = shap_values(forest_of(self.model_), X, background, feature_perturbation, mapper)
        if self.n_classes_ == 2 and not self.multilabel_:
            return ShapValues(values[:, :, 1] - values[:, :, 0], float(base[1] - base[0]))
        return ShapValues(values, base)

    def to_shap(self, background: Any) -> dict[str, Any]:
        """The trees as ``shap.TreeExplainer`` takes them, one output for each label; ``background`` rows weigh the branches."""
        background = self._checked(background)
        if self.categories_:
            raise UserError("the package shap cannot read categories: use shap_values")
        return trees_for_shap(forest_of(self.model_), background)

    def to_onnx(self) -> Any:
        """The model as an `onnx.ModelProto`: input ``X`` (n, d) of doubles; outputs ``label``, ``probabilities``, ``scores``.

        Probabilities are calibrated. A category is given by its position in ``categories_``. Needs the extra ``export``.
        """
        from abex.boosting.onnx_export import onnx_model

        return onnx_model(self._rule())

    @property
    def forest_(self) -> Forest:
        """The classifiers as binary trees in plain arrays, for programs that ONNX does not reach (docs/export_model.md)."""
        check_is_fitted(self)
        return forest_of(self.model_)

    def _rule(self) -> ScoringRule:
        check_is_fitted(self)
        return scoring_rule_of(self)
