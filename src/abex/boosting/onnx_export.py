r"""A model for ONNX: labels, calibrated probabilities and scores, in doubles.

A row of numbers passes the tables of its categories, the forest gives it scores, scores are rounded to a grid, and what the
calibration found makes probabilities of them.

A tree ensemble of ONNX (ai.onnx.ml 3) compares doubles but answers in floats. So every leaf value is the sum of two: a
multiple of :math:`2^{-23}` of the largest score, of which a float holds any sum exactly, and the rest. Both are summed apart and
added as doubles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.support.extras import needed

OPSET = 17
TREES_OPSET = 3
IR_VERSION = 8
FLOAT_BITS = 23


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


def onnx_model(fitted: Any) -> Any:
    """An `onnx.ModelProto`: input ``X`` (n, d) of doubles; outputs ``label``, ``probabilities`` and ``scores`` (n, L)."""
    graph = _Graph()
    helper, kinds = graph.onnx.helper, graph.onnx.TensorProto
    rows, place = coded_columns(graph, fitted)
    add_trees(graph, fitted, rows, place)
    labels = fitted.classes_.size
    halves = graph.add("Cast", "trees", to=kinds.DOUBLE)
    large = graph.add("Gather", halves, graph.constant(np.arange(labels), np.int64), axis=1)
    small = graph.add("Gather", halves, graph.constant(np.arange(labels, 2 * labels), np.int64), axis=1)
    grain = graph.constant(fitted.model_.grain)
    steps = graph.add("Round", graph.add("Div", graph.add("Add", large, small), grain))
    graph.add("Mul", steps, grain, name="scores")
    add_probabilities(graph, fitted)
    classes, kind = class_names(fitted, kinds)
    if fitted.multilabel_:
        there = graph.add("Greater", "scores", graph.constant(0.0))
        graph.add("Cast", there, to=kinds.INT64, name="label")
    else:
        best = graph.add("ArgMax", "scores", axis=1, keepdims=0)
        graph.add("Gather", graph.constant(classes, None), best, axis=0, name="label")
    shape = [None, labels]
    label = (kinds.INT64, shape) if fitted.multilabel_ else (kind, [None])
    outputs = [
        helper.make_tensor_value_info("label", *label),
        helper.make_tensor_value_info("probabilities", kinds.DOUBLE, shape),
        helper.make_tensor_value_info("scores", kinds.DOUBLE, shape),
    ]  # fmt: skip
    inputs = [helper.make_tensor_value_info("X", kinds.DOUBLE, [None, fitted.n_features_in_])]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "abex", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", TREES_OPSET)],
        producer_name="abex",
        ir_version=IR_VERSION,
    )
    helper.set_model_props(
        model, {f"column {c.column}": "|".join(map(str, c.values)) for c in fitted.categories_}
    )
    graph.onnx.checker.check_model(model)
    return model


def coded_columns(graph: _Graph, fitted: Any) -> tuple[str, NDArray[np.int64]]:
    """The rows with the codes of their categories, which stand last; and where each feature stands."""
    if not fitted.categories_:
        return "X", np.arange(fitted.n_features_in_)
    kinds = graph.onnx.TensorProto
    last = [category.column for category in fitted.categories_]
    others = np.setdiff1d(np.arange(fitted.n_features_in_), last)
    parts = [graph.add("Gather", "X", graph.constant(others, np.int64), axis=1)]
    for category in fitted.categories_:
        column = graph.add("Gather", "X", graph.constant([category.column], np.int64), axis=1)
        beyond = graph.constant(category.codes.size)
        known = graph.add(
            "And", graph.add("GreaterOrEqual", column, graph.constant(0.0)), graph.add("Less", column, beyond)
        )
        position = graph.add("Cast", graph.add("Where", known, column, beyond), to=kinds.INT64)
        table = graph.constant(np.append(category.codes, np.nan))
        parts.append(graph.add("Gather", table, position, axis=0))
    place = np.empty(fitted.n_features_in_, np.int64)
    place[np.concatenate([others, last]).astype(np.int64)] = np.arange(fitted.n_features_in_)
    return graph.add("Concat", *parts, axis=1), place


def add_trees(graph: _Graph, fitted: Any, rows: str, place: NDArray[np.int64]) -> None:
    """The ensemble: 2 L targets, the large parts of all labels, then the rest."""
    forest, labels = fitted.forest_, fitted.classes_.size
    inner = forest.feature >= 0
    tree = np.repeat(np.arange(forest.trees), np.diff(forest.root))
    number = np.arange(forest.feature.size) - forest.root[tree]
    unit = 2.0 ** (np.ceil(np.log2(max(fitted.model_.total, 1e-300))) - FLOAT_BITS)
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


def add_probabilities(graph: _Graph, fitted: Any) -> None:
    """`abex.boosting.calibration.probabilities`, operator by operator."""
    margin = graph.add("Div", "scores", graph.constant(fitted.model_.total or 1.0))
    margin = graph.add("Clip", margin, graph.constant(-1.0), graph.constant(1.0))
    votes = exponents_of_shares(graph, fitted, margin)
    if fitted.multilabel_:
        against = exponents_of_shares(graph, fitted, graph.add("Neg", margin))
        chance, choices = graph.add("Sigmoid", graph.add("Sub", votes, against)), 2
    else:
        chance, choices = graph.add("Softmax", votes, axis=1), fitted.classes_.size
    add_one_smoothed(graph, fitted, chance, choices, name="probabilities")


def exponents_of_shares(graph: _Graph, fitted: Any, margin: str) -> str:
    """The exponent times the logarithm of the share of the votes."""
    share = graph.add("Mul", graph.add("Add", margin, graph.constant(1.0)), graph.constant(0.5))
    votes = graph.add("Log", add_one_smoothed(graph, fitted, share, 2))
    return graph.add("Mul", votes, graph.constant(fitted.inverse_temperature_ * fitted.model_.total))


def add_one_smoothed(graph: _Graph, fitted: Any, share: str, choices: int, name: str | None = None) -> str:
    """`abex.boosting.calibration.add_one_smoothed`."""
    among = graph.add("Mul", share, graph.constant(fitted.calibration_rows_))
    one_more = graph.add("Add", among, graph.constant(1.0 / choices))
    return graph.add("Div", one_more, graph.constant(fitted.calibration_rows_ + 1.0), name=name)


def class_names(fitted: Any, kinds: Any) -> tuple[NDArray[Any], int]:
    """The classes as ONNX has them: whole numbers, doubles or words; and their type."""
    if fitted.classes_.dtype.kind in "biu":
        return fitted.classes_.astype(np.int64), kinds.INT64
    if fitted.classes_.dtype.kind == "f":
        return fitted.classes_.astype(np.float64), kinds.DOUBLE
    return fitted.classes_.astype(str).astype(object), kinds.STRING
