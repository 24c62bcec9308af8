"""Fitted models in a file of plain arrays: nothing in it can run, damage is noticed.

The file is an .npz archive of NumPy, whose array ``header`` is a text in JSON: the format and its version, the parameters of the
estimator, and what else is no array. A zip archive notices damage. Whoever forges a file can make that right: so nothing compiled
sees what is read before it is checked. Types, shapes and ranges are declared here, of the header by `Header`, of the arrays by
`ARRAYS`; by hand is written what holds between them: nodes without gaps, complete trees, a vote of every leaf.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from abex.boosting.categories import Category
from abex.boosting.estimator import AdaBoostMHClassifier
from abex.boosting.examples import MAX_FEATURES
from abex.boosting.learners import MAX_COEFFICIENT, Model
from abex.boosting.settings import KINDS, MAX_LEAVES, MAX_TERMS, PRODUCT, TREE, Kind, checked_committee
from abex.kinds import agree
from abex.support.errors import UserError, shown
from abex.support.extras import needed
from abex.support.files import write_atomically
from abex.support.reading import arrays_of

FORMAT = "abex boosting model"
VERSION = 1
NOT_SAVED = ("callbacks", "random_state", "n_jobs", "verbose")
MOST_EXPONENT = 1e200  # that probabilities are powers by


class Stored(NamedTuple):
    """Type, shape and range of an array: what compiled code may read.

    A letter stands for one number throughout a file (T classifiers, L labels), so that arrays have to fit together.
    """

    dtype: type
    shape: str
    least: float = -math.inf
    most: float = math.inf


MODEL = {
    "feature": Stored(np.int32, "T nodes", least=-1),
    "threshold": Stored(np.float64, "T nodes"),
    "missing_right": Stored(np.bool_, "T nodes"),
    "left": Stored(np.int16, "T nodes"),
    "right": Stored(np.int16, "T nodes"),
    "gain": Stored(np.float32, "T nodes", least=0, most=1),
    "votes": Stored(np.int8, "T leaves L", least=-1, most=1),
    "coefficient": Stored(np.float64, "T", least=0, most=MAX_COEFFICIENT),
    "edge": Stored(np.float64, "T", least=0, most=1),
}
HISTORY = {
    "pulled_arms_": Stored(np.int32, "N", least=0),
    "pulled_rewards_": Stored(np.float32, "N", least=0, most=1),
    "validation_errors_": Stored(np.float64, "V", least=0, most=1),
}
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]


class Format(msgspec.Struct):
    """Whose file it is."""

    format: str
    version: int


class Header(Format, kw_only=True):
    """What of a fitted estimator is no array."""

    parameters: dict[str, Any]
    class_weight: (
        list[tuple[str | float | bool, float]] | None
    )  # a dictionary: JSON would make words of its classes
    kind: Kind
    n_features: Annotated[int, msgspec.Meta(ge=1, le=MAX_FEATURES)]
    feature_names: list[str] | None
    multilabel: bool
    temperature: Annotated[float, msgspec.Meta(gt=0.0)]
    calibration_rows: Count
    arm_features: Annotated[list[list[Count]], msgspec.Meta(min_length=1)]
    categorical: list[Count]  # columns


def save(estimator: AdaBoostMHClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator; a policy is kept as its text."""
    with needed("boosting"):
        from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    parameters = {k: v for k, v in estimator.get_params().items() if k not in NOT_SAVED}
    parameters["committee_size"] = estimator.committee_size_
    if parameters["policy"] is not None:
        parameters["policy"] = str(parameters["policy"])
    weights = parameters["class_weight"]
    named = isinstance(weights, Mapping)
    names = getattr(estimator, "feature_names_in_", None)
    header = Header(
        format=FORMAT,
        version=VERSION,
        parameters={**parameters, "class_weight": None if named else weights},
        class_weight=[*weights.items()] if named else None,
        kind=KINDS[estimator.model_.kind],
        n_features=estimator.n_features_in_,
        feature_names=None if names is None else [str(name) for name in names],
        multilabel=bool(estimator.multilabel_),
        temperature=float(estimator.inverse_temperature_),
        calibration_rows=int(estimator.calibration_rows_),
        arm_features=estimator.arm_features_,
        categorical=[category.column for category in estimator.categories_],
    )
    text = msgspec.json.encode(header, enc_hook=_plain).decode()
    arrays: dict[str, Any] = {"header": np.array(text), "classes": plain_classes(estimator.classes_)}
    for k, category in enumerate(estimator.categories_):
        arrays |= {f"values {k}": category.values, f"codes {k}": category.codes}
    buffer = io.BytesIO()
    arrays |= {name: getattr(estimator, name) for name in HISTORY} | estimator.model_.arrays()
    np.savez_compressed(buffer, **arrays)
    write_atomically(path, buffer.getvalue())


def plain_classes(classes: NDArray[Any]) -> NDArray[Any]:
    """Class names as an array without Python objects."""
    if classes.dtype != object:
        return classes
    if all(isinstance(name, str) for name in classes):
        return classes.astype(str)
    raise UserError("only classes that are numbers or strings can be saved")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise UserError(f"a parameter that is no number, text or list cannot be saved: {shown(value)[:80]}")


def load(path: str | os.PathLike[str]) -> AdaBoostMHClassifier:
    """Read an estimator that `AdaBoostMHClassifier.save` wrote.

    >>> import tempfile, os
    >>> from sklearn.datasets import load_iris
    >>> from abex.boosting import AdaBoostMHClassifier, load
    >>> X, y = load_iris(return_X_y=True)
    >>> fitted = AdaBoostMHClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> file = os.path.join(tempfile.mkdtemp(), "iris.abex")
    >>> fitted.save(file)
    >>> bool((load(file).predict(X) == fitted.predict(X)).all())
    True
    """
    name = shown(str(path))
    if not Path(path).exists():
        raise UserError(f"there is no model file {name}")
    arrays = arrays_of(Path(path))
    try:
        text = str(arrays["header"])
        head = msgspec.json.decode(text, type=Format)
    except (KeyError, ValueError):
        head = Format("", 0)
    if head.format != FORMAT:
        raise UserError(f"{name} is not a model file of abex")
    if head.version > VERSION:
        raise UserError(
            f"{name} was written by a newer abex (format {head.version}, this one reads {VERSION}): update abex"
        )
    try:
        agree(head.version == VERSION, f"there is no format {head.version}")
        return rebuilt(msgspec.json.decode(text, type=Header), arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"the model file {name} is damaged: {str(error)[:80]}") from error


def rebuilt(header: Header, arrays: Mapping[str, NDArray[Any]]) -> AdaBoostMHClassifier:
    """The estimator of a header and its arrays, or a `ValueError` that says what cannot be."""
    parameters = header.parameters
    if header.class_weight is not None:
        parameters["class_weight"] = dict(header.class_weight)
    estimator = AdaBoostMHClassifier(**parameters)
    sizes: dict[str, int] = {}
    model = Model(
        kind=KINDS.index(header.kind), n_features=header.n_features, **checked_arrays(MODEL, arrays, sizes)
    )
    check_model(model)
    history = checked_arrays(HISTORY, arrays, sizes)
    arms = header.arm_features
    agree(
        max(map(max, filter(None, arms)), default=0) < header.n_features,
        "an arm has a feature that is not there",
    )
    agree(history["pulled_arms_"].max(initial=-1) < len(arms), "an arm was pulled that is not there")
    agree(header.temperature * max(1.0, model.total) <= MOST_EXPONENT, "its temperature is too high")
    names = header.feature_names
    agree(names is None or len(names) == header.n_features, "it must have a name for each feature")
    estimator._replace_fitted(
        model_=model,
        n_iter_=model.n_learners,
        committee_size_=checked_committee(estimator, model.kind)[0],
        n_features_in_=header.n_features,
        multilabel_=header.multilabel,
        classes_=checked_classes(arrays["classes"], model.labels, header.multilabel),
        n_classes_=model.labels,
        inverse_temperature_=header.temperature,
        calibration_rows_=header.calibration_rows,
        arm_features_=arms,
        categories_=checked_categories(header.categorical, arrays, header.n_features),
        **history,
        **({} if names is None else {"feature_names_in_": np.array(names, dtype=object)}),
    )
    return estimator


def checked_arrays(
    stored: Mapping[str, Stored], arrays: Mapping[str, NDArray[Any]], sizes: dict[str, int]
) -> dict[str, NDArray[Any]]:
    """The arrays that are declared, contiguous, or a `ValueError`.

    ``sizes`` has the numbers that letters stand for; letters it does not know are learnt and entered.

    >>> pair = {"low": Stored(np.int32, "N", least=0), "high": Stored(np.int32, "N", most=9)}
    >>> numbers = np.array([1, 2], np.int32)
    >>> sorted(checked_arrays(pair, {"low": numbers, "high": numbers}, {}))
    ['high', 'low']
    >>> checked_arrays(pair, {"low": numbers, "high": numbers + 9}, {})
    Traceback (most recent call last):
    ...
    ValueError: 'high' has values that it cannot have
    """
    found = {}
    for name, declared in stored.items():
        array, letters = arrays[name], declared.shape.split()
        agree(array.dtype == declared.dtype, f"{name!r} has numbers of another type")
        shape = zip(letters, array.shape, strict=True)
        fits = array.ndim == len(letters) and all(sizes.setdefault(letter, n) == n for letter, n in shape)
        agree(fits, f"{name!r} has another shape")
        inside = (array >= declared.least) & (array <= declared.most)  # NaN is neither
        agree(bool(inside.all()), f"{name!r} has values that it cannot have")
        found[name] = np.ascontiguousarray(array)
    return found


def check_model(model: Model) -> None:
    """Refuse arrays that do not make up classifiers as a fit leaves them."""
    count, nodes = model.feature.shape
    leaves = model.votes.shape[1]
    most = {TREE: MAX_LEAVES - 1, PRODUCT: MAX_TERMS}.get(model.kind, 1)
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


def checked_classes(classes: NDArray[Any], labels: int, multilabel: bool) -> NDArray[Any]:
    """One name for each label, in ascending order."""
    agree(classes.shape == (labels,), f"classes must be {labels} numbers or words")
    agree(ascend(classes), "classes must ascend")
    agree(not multilabel or np.array_equal(classes, np.arange(labels)), "labels must be numbered")
    return classes


def checked_categories(
    columns: list[int], arrays: Mapping[str, NDArray[Any]], n_features: int
) -> tuple[Category, ...]:
    """The categories of these columns."""
    agree(
        columns == sorted(set(columns)) and max(columns, default=0) < n_features,
        "categorical columns must ascend",
    )
    found = []
    for k, column in enumerate(columns):
        values, codes = arrays[f"values {k}"], arrays[f"codes {k}"]
        agree(values.ndim == 1 and values.dtype.kind in "fU" and ascend(values), "categories must ascend")
        agree(codes.shape == values.shape and codes.dtype == np.float64, "categories must have a code each")
        agree(bool(np.isfinite(codes).all()), "codes of categories must be finite")
        found.append(Category(column, values, codes))
    return tuple(found)


def ascend(names: NDArray[Any]) -> bool:
    """Whether each is more than the one before; NaN is not."""
    return bool((names[1:] > names[:-1]).all() and (names == names).all())
