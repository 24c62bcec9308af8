r"""A model for ONNX: labels, calibrated probabilities and scores, in doubles.

A tree ensemble of ONNX (ai.onnx.ml 3) compares doubles but answers in floats. So every leaf value is the sum of two: a
multiple of :math:`2^{-23}` of the largest score, of which a float holds any sum exactly, and the rest. Both are summed apart and
added as doubles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.boosting.categories import Category
from abex.boosting.forest import Forest
from abex.support.extras import needed

OPSET = 17
TREES_OPSET = 3
IR_VERSION = 8
FLOAT_BITS = 23


class ScoringRule(NamedTuple):
    """Everything that turns a row into an answer.

    A row of numbers passes the tables of its categories, the forest gives it scores, scores are rounded to a grid, and what the
    calibration found makes probabilities of them.
    """

    forest: Forest
    n_features: int
    feature_names: list[str]
    categories: tuple[Category, ...]  # columns given as the position of a category
    classes: NDArray[Any]
    multilabel: bool
    total: float  # the largest score
    grain: float  # scores are multiples of it
    exponent: float  # of the shares of the votes
    rows: int  # that the calibration rests on


def scoring_rule_of(estimator: Any) -> ScoringRule:
    """The rule of a fitted estimator."""
    model = estimator.model_
    total = float(model.coefficient.sum())
    return ScoringRule(
        estimator.forest_,
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


class _Graph:
    """Nodes and constants under way; a method call per operator."""

    def __init__(self) -> None:
        with needed("export"):
            import onnx
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        name = f"constant_{len(self.constants)}"
        array = np.asarray(value) if dtype is None else np.asarray(value, dtype=dtype)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        output = name or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [output], **attributes))
        return output


def onnx_model(estimator: Any) -> Any:
    """An `onnx.ModelProto`: input ``X`` (n, d) of doubles; outputs ``label``, ``probabilities`` and ``scores`` (n, L)."""
    rule, graph = scoring_rule_of(estimator), _Graph()
    helper, kinds = graph.onnx.helper, graph.onnx.TensorProto
    rows, place = coded_columns(graph, rule)
    add_trees(graph, rule, rows, place)
    labels = rule.classes.size
    halves = graph.add("Cast", "trees", to=kinds.DOUBLE)
    large = graph.add("Gather", halves, graph.constant(np.arange(labels), np.int64), axis=1)
    small = graph.add("Gather", halves, graph.constant(np.arange(labels, 2 * labels), np.int64), axis=1)
    grain = graph.constant(rule.grain)
    steps = graph.add("Round", graph.add("Div", graph.add("Add", large, small), grain))
    graph.add("Mul", steps, grain, name="scores")
    add_probabilities(graph, rule)
    classes, kind = class_names(rule, kinds)
    if rule.multilabel:
        there = graph.add("Greater", "scores", graph.constant(0.0))
        graph.add("Cast", there, to=kinds.INT64, name="label")
    else:
        best = graph.add("ArgMax", "scores", axis=1, keepdims=0)
        graph.add("Gather", graph.constant(classes, None), best, axis=0, name="label")
    shape = [None, labels]
    outputs = [
        helper.make_tensor_value_info("label", kinds.INT64 if rule.multilabel else kind, shape if rule.multilabel else [None]),
        helper.make_tensor_value_info("probabilities", kinds.DOUBLE, shape),
        helper.make_tensor_value_info("scores", kinds.DOUBLE, shape),
    ]  # fmt: skip
    inputs = [helper.make_tensor_value_info("X", kinds.DOUBLE, [None, rule.n_features])]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "abex", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", TREES_OPSET)],
        producer_name="abex",
        ir_version=IR_VERSION,
    )
    helper.set_model_props(
        model, {f"column {c.column}": "|".join(map(str, c.values)) for c in rule.categories}
    )
    graph.onnx.checker.check_model(model)
    return model


def coded_columns(graph: _Graph, rule: ScoringRule) -> tuple[str, NDArray[np.int64]]:
    """The rows with the codes of their categories, which stand last; and where each feature stands."""
    if not rule.categories:
        return "X", np.arange(rule.n_features)
    kinds = graph.onnx.TensorProto
    last = [category.column for category in rule.categories]
    others = np.setdiff1d(np.arange(rule.n_features), last)
    parts = [graph.add("Gather", "X", graph.constant(others, np.int64), axis=1)]
    for category in rule.categories:
        column = graph.add("Gather", "X", graph.constant([category.column], np.int64), axis=1)
        beyond = graph.constant(category.codes.size)
        known = graph.add(
            "And", graph.add("GreaterOrEqual", column, graph.constant(0.0)), graph.add("Less", column, beyond)
        )
        position = graph.add("Cast", graph.add("Where", known, column, beyond), to=kinds.INT64)
        table = graph.constant(np.append(category.codes, np.nan))
        parts.append(graph.add("Gather", table, position, axis=0))
    place = np.empty(rule.n_features, np.int64)
    place[np.concatenate([others, last]).astype(np.int64)] = np.arange(rule.n_features)
    return graph.add("Concat", *parts, axis=1), place


def add_trees(graph: _Graph, rule: ScoringRule, rows: str, place: NDArray[np.int64]) -> None:
    """The ensemble: 2 L targets, the large parts of all labels, then the rest."""
    forest, labels = rule.forest, rule.classes.size
    inner = forest.feature >= 0
    tree = np.repeat(np.arange(forest.trees), np.diff(forest.root))
    number = np.arange(forest.feature.size) - forest.root[tree]
    unit = 2.0 ** (np.ceil(np.log2(max(rule.total, 1e-300))) - FLOAT_BITS)
    large = np.rint(forest.values / unit) * unit
    weights = np.concatenate([large, forest.values - large], axis=1)
    leaves = np.flatnonzero(~inner)
    targets = 2 * labels

    def tensor(name: str, values: NDArray[np.float64]) -> Any:
        return graph.onnx.numpy_helper.from_array(np.ascontiguousarray(values, np.float64), name)

    def children(side: NDArray[np.int64]) -> list[int]:
        beneath: list[int] = np.where(inner, side - forest.root[tree], 0).tolist()
        return beneath

    graph.nodes.append(
        graph.onnx.helper.make_node(
            "TreeEnsembleRegressor",
            [rows],
            ["trees"],
            domain="ai.onnx.ml",
            n_targets=targets,
            aggregate_function="SUM",
            post_transform="NONE",
            nodes_treeids=tree.tolist(),
            nodes_nodeids=number.tolist(),
            nodes_modes=np.where(inner, "BRANCH_LEQ", "LEAF").tolist(),
            nodes_featureids=np.where(inner, place[forest.feature], 0).tolist(),
            nodes_values_as_tensor=tensor("thresholds", np.where(inner, forest.threshold, 0.0)),
            nodes_truenodeids=children(forest.left),
            nodes_falsenodeids=children(forest.right),
            nodes_missing_value_tracks_true=(inner & ~forest.missing_right).astype(int).tolist(),
            target_treeids=np.repeat(tree[leaves], targets).tolist(),
            target_nodeids=np.repeat(number[leaves], targets).tolist(),
            target_ids=np.tile(np.arange(targets), leaves.size).tolist(),
            target_weights_as_tensor=tensor("weights", weights[forest.leaf[leaves]].ravel()),
        )
    )


def add_probabilities(graph: _Graph, rule: ScoringRule) -> None:
    """`abex.boosting.calibration.probabilities`, operator by operator."""
    margin = graph.add("Div", "scores", graph.constant(rule.total or 1.0))
    margin = graph.add("Clip", margin, graph.constant(-1.0), graph.constant(1.0))
    votes = exponents_of_shares(graph, rule, margin)
    if rule.multilabel:
        against = exponents_of_shares(graph, rule, graph.add("Neg", margin))
        chance, choices = graph.add("Sigmoid", graph.add("Sub", votes, against)), 2
    else:
        chance, choices = graph.add("Softmax", votes, axis=1), rule.classes.size
    add_one_smoothed(graph, rule, chance, choices, name="probabilities")


def exponents_of_shares(graph: _Graph, rule: ScoringRule, margin: str) -> str:
    """The exponent times the logarithm of the share of the votes."""
    share = graph.add("Mul", graph.add("Add", margin, graph.constant(1.0)), graph.constant(0.5))
    return graph.add(
        "Mul", graph.add("Log", add_one_smoothed(graph, rule, share, 2)), graph.constant(rule.exponent)
    )


def add_one_smoothed(
    graph: _Graph, rule: ScoringRule, share: str, choices: int, name: str | None = None
) -> str:
    """`abex.boosting.calibration.add_one_smoothed`."""
    among = graph.add("Mul", share, graph.constant(rule.rows))
    one_more = graph.add("Add", among, graph.constant(1.0 / choices))
    return graph.add("Div", one_more, graph.constant(rule.rows + 1.0), name=name)


def class_names(rule: ScoringRule, kinds: Any) -> tuple[NDArray[Any], int]:
    """The classes as ONNX has them: whole numbers, doubles or words; and their type."""
    if rule.classes.dtype.kind in "biu":
        return rule.classes.astype(np.int64), kinds.INT64
    if rule.classes.dtype.kind == "f":
        return rule.classes.astype(np.float64), kinds.DOUBLE
    return rule.classes.astype(str).astype(object), kinds.STRING
