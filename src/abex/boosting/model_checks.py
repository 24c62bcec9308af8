"""A model from a file, checked: nothing in it leads compiled code anywhere but through the model.

Types, shapes and ranges follow from the classes (`schema`); here stands what holds between the arrays of a model: nodes without
gaps, complete trees, a vote of every leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from abex.boosting.categories import from_header
from abex.boosting.examples import MOST_FEATURES
from abex.boosting.model import Model
from abex.boosting.stored_arrays import Stored, array_fields, checked_arrays
from abex.boosting.weak_learners import KINDS, PRODUCT, TREE
from abex.support.errors import one_of, real_number, true_or_false, whole_number

MOST_LEAVES = 4096
MOST_TERMS = 64
MOST_ROWS = 1 << 53


@dataclass(frozen=True, eq=False)
class History:
    """How a fit went: N pulls, V validations."""

    pulled_arms: Annotated[NDArray[np.int32], Stored("N", least=0)]
    pulled_rewards: Annotated[NDArray[np.float32], Stored("N", least=0, most=1)]
    validation_errors: Annotated[NDArray[np.float64], Stored("V", least=0, most=1)]


#: names of the arrays in a file
ARRAYS = (*array_fields(Model), *array_fields(History), "classes")


def checked_fit(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """The fitted attributes of an estimator, or a `ValueError` that says what cannot be."""
    kind = KINDS.index(one_of("kind", header["kind"], KINDS))
    features = whole_number("n_features", header["n_features"], least=1, most=MOST_FEATURES)
    multilabel = true_or_false("multilabel", header["multilabel"])
    sizes: dict[str, int] = {}
    model = Model(kind, features, **checked_arrays(Model, arrays, sizes))
    check_model(model)
    history = checked_arrays(History, arrays, sizes)
    arms = checked_arms(header["arm_features"], features)
    if history["pulled_arms"].max(initial=-1) >= len(arms):
        raise ValueError("an arm was pulled that is not there")
    fitted = {
        "model_": model,
        "n_iter_": model.size,
        "n_features_in_": features,
        "multilabel_": multilabel,
        "classes_": checked_classes(arrays["classes"], model.labels, multilabel),
        "n_classes_": model.labels,
        "inverse_temperature_": checked_temperature(header["temperature"], model),
        "calibration_rows_": whole_number("calibration_rows", header["calibration_rows"], most=MOST_ROWS),
        "arm_features_": arms,
        "categories_": from_header(header["categories"], features),
        **{f"{name}_": array for name, array in history.items()},
    }
    names = header["feature_names"]
    if names is not None:
        if (
            not isinstance(names, list)
            or len(names) != features
            or not all(isinstance(n, str) for n in names)
        ):
            raise ValueError(f"feature_names must be {features} words")
        fitted["feature_names_in_"] = np.array(names, dtype=object)
    return fitted


def check_model(model: Model) -> None:
    """Refuse arrays that do not make up classifiers as a fit leaves them."""
    count, nodes = model.feature.shape
    leaves = model.votes.shape[1]
    most = {TREE: MOST_LEAVES - 1, PRODUCT: MOST_TERMS}.get(model.kind, 1)
    if count < 1 or not 1 <= nodes <= most or leaves != (nodes + 1 if model.kind == TREE else 1):
        raise ValueError(f"its arrays do not make up {KINDS[model.kind]}s")
    if model.votes.shape[2] < 1 or model.feature.max() >= model.n_features:
        raise ValueError("it names a feature or a label that is not there")
    there = model.feature >= 0
    if (there[:, 1:] & ~there[:, :-1]).any():
        raise ValueError("a node is missing")
    absent = ~there
    empty = np.isposinf(model.threshold) & ~model.missing_right & (model.gain == 0)
    if not empty[absent].all():
        raise ValueError("a node that is not there has a threshold")
    size = there.sum(axis=1)
    voting = np.arange(leaves) < np.where(size > 0, size + 1 if model.kind == TREE else 1, 0)[:, None]
    if not ((model.votes != 0) == voting[:, :, None]).all():
        raise ValueError("a leaf has no vote, or votes without being there")
    if model.coefficient[size == 0].any() or model.edge[size == 0].any():
        raise ValueError("a classifier without nodes has a coefficient")
    check_children(model, size if model.kind == TREE else np.zeros_like(size))


def check_children(model: Model, size: NDArray[np.int64]) -> None:
    """Refuse trees in which a node or a leaf has no parent, several, or a later one: circles among them.

    A tree of m nodes has the children 1, ..., m - 1 and ~0, ..., ~m, each of them once.
    """
    nodes = model.feature.shape[1]
    used = np.arange(nodes) < size[:, None]
    for child in (model.left, model.right):
        if child[~used].any() or not (child > np.arange(nodes))[used & (child >= 0)].all():
            raise ValueError("a tree leads nowhere or in a circle")
    beyond = nodes + 1  # stands behind all children
    children = np.concatenate([np.where(used, child, beyond) for child in (model.left, model.right)], axis=1)
    children.sort(axis=1)
    place, last = np.arange(2 * nodes), size[:, None]
    wanted = np.where(place <= last, place - last - 1, place - last)
    wanted = np.where(place < 2 * last, wanted, beyond)
    if not np.array_equal(children, wanted):
        raise ValueError("a tree leads nowhere or in a circle")


def checked_temperature(value: Any, model: Model) -> float:
    """A positive number, small enough to be multiplied with any score."""
    temperature = real_number("temperature", value, above=0.0)
    return real_number("temperature", temperature, most=1e200 / max(1.0, float(model.coefficient.sum())))


def checked_classes(classes: NDArray[Any], labels: int, multilabel: bool) -> NDArray[Any]:
    """One name for each label, in ascending order."""
    if classes.dtype.kind not in "biufU" or classes.shape != (labels,):
        raise ValueError(f"classes must be {labels} numbers or words")
    if not (classes[1:] > classes[:-1]).all() or (classes != classes).any():
        raise ValueError("classes must ascend")
    if multilabel and not np.array_equal(classes, np.arange(labels)):
        raise ValueError("labels must be numbered")
    return classes.astype(classes.dtype.newbyteorder("="))


def checked_arms(arms: Any, features: int) -> list[list[int]]:
    """Lists of features."""
    if not isinstance(arms, list) or not arms or not all(isinstance(arm, list) for arm in arms):
        raise ValueError("arm_features must be lists of features")
    return [[whole_number("a feature of an arm", j, most=features - 1) for j in arm] for arm in arms]
