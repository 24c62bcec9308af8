"""Fitted models in a file of plain arrays and JSON: nothing in it can run, damage is noticed.

The file is a zip archive with ``header.json`` and one ``.npy`` per array. The header names the format and its version, the
estimator's parameters, and the SHA-256 of every array. Whoever forges a file can forge that too: so nothing compiled sees what
is read before it is checked. Types, shapes and ranges follow from the annotations of the classes (`learners.Stored`);
`checked_fit` sees to what holds between arrays: nodes without gaps, complete trees, a vote of every leaf.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from abex.boosting.categories import as_header, from_header
from abex.boosting.estimator import AdaBoostMHClassifier
from abex.boosting.examples import MAX_FEATURES
from abex.boosting.learners import Model, Stored
from abex.boosting.settings import KINDS, MAX_LEAVES, MAX_TERMS, PRODUCT, TREE
from abex.support.errors import UserError, one_of, real_number, shown, true_or_false, whole_number
from abex.support.extras import needed
from abex.support.files import write_atomically

FORMAT = "abex boosting model"
VERSION = 1
NOT_SAVED = ("callbacks", "random_state", "n_jobs", "verbose")
EXPANDS = 100  # times: a file that becomes more than this, and more than ROOM bytes, is not read
ROOM = 1 << 28
MAX_ROWS = 1 << 53


def array_fields(kind: type) -> dict[str, tuple[np.dtype[Any], Stored]]:
    """The arrays of a class by name: their type, shape and range."""
    found = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if get_origin(hint) is Annotated:
            array, limits = get_args(hint)
            found[name] = (np.dtype(get_args(get_args(array)[1])[0]), limits)
    return found


def checked_arrays(
    kind: type, arrays: Mapping[str, NDArray[Any]], sizes: dict[str, int]
) -> dict[str, NDArray[Any]]:
    """The arrays of a record of class ``kind``, contiguous and in this machine's byte order, or a `ValueError`.

    ``sizes`` has the numbers that letters stand for; letters it does not know are learnt and entered.

    >>> class Pair:
    ...     low: Annotated[NDArray[np.int32], Stored("N", least=0)]
    ...     high: Annotated[NDArray[np.int32], Stored("N", most=9)]
    >>> numbers = np.array([1, 2], np.int32)
    >>> sorted(checked_arrays(Pair, {"low": numbers, "high": numbers}, {}))
    ['high', 'low']
    >>> checked_arrays(Pair, {"low": numbers, "high": numbers + 9}, {})
    Traceback (most recent call last):
    ...
    ValueError: 'high' has values that it cannot have
    """
    found = {}
    for name, (dtype, limits) in array_fields(kind).items():
        if name not in arrays:
            raise ValueError(f"{name!r} is missing")
        array = arrays[name]
        if array.dtype.newbyteorder("=") != dtype:
            raise ValueError(f"{name!r} has numbers of another type")
        letters = limits.shape.split()
        if array.ndim != len(letters) or any(
            sizes.setdefault(letter, size) != size for letter, size in zip(letters, array.shape, strict=True)
        ):
            raise ValueError(f"{name!r} has another shape")
        if not ((array >= limits.least) & (array <= limits.most)).all():  # NaN is neither
            raise ValueError(f"{name!r} has values that it cannot have")
        found[name] = np.ascontiguousarray(array, dtype=dtype)
    return found


@dataclass(frozen=True, eq=False)
class History:
    """How a fit went: N pulls, V validations."""

    pulled_arms: Annotated[NDArray[np.int32], Stored("N", least=0)]
    pulled_rewards: Annotated[NDArray[np.float32], Stored("N", least=0, most=1)]
    validation_errors: Annotated[NDArray[np.float64], Stored("V", least=0, most=1)]


#: names of the arrays in a file
ARRAYS = (*array_fields(Model), *array_fields(History), "classes")


def save(estimator: AdaBoostMHClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator; a policy is kept as its text."""
    with needed("boosting"):
        from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    arrays = {
        **estimator.model_.arrays(),
        "classes": plain_classes(estimator.classes_),
        "pulled_arms": estimator.pulled_arms_,
        "pulled_rewards": estimator.pulled_rewards_,
        "validation_errors": estimator.validation_errors_,
    }
    files = {f"{name}.npy": as_bytes(array) for name, array in arrays.items()}
    parameters = {k: v for k, v in estimator.get_params().items() if k not in NOT_SAVED}
    parameters["committee_size"] = getattr(estimator, "committee_size_", estimator.committee_size)
    if isinstance(parameters["class_weight"], Mapping):  # JSON would make words of its classes
        parameters["class_weight"] = {"classes": [*parameters["class_weight"].items()]}
    if parameters["policy"] is not None:
        parameters["policy"] = str(parameters["policy"])
    names = getattr(estimator, "feature_names_in_", None)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "parameters": parameters,
        "kind": KINDS[estimator.model_.kind],
        "n_features": estimator.n_features_in_,
        "feature_names": None if names is None else [str(name) for name in names],
        "multilabel": bool(estimator.multilabel_),
        "temperature": float(estimator.inverse_temperature_),
        "calibration_rows": int(estimator.calibration_rows_),
        "arm_features": estimator.arm_features_,
        "categories": as_header(estimator.categories_),
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    text = json.dumps(header, indent=1, default=_as_json)
    members = {"header.json": text.encode(), **files}
    content = packed(members, zipfile.ZIP_DEFLATED)
    if sum(map(len, members.values())) > most_bytes(len(content)):
        content = packed(members, zipfile.ZIP_STORED)
    write_atomically(path, content)


def packed(members: dict[str, bytes], method: int) -> bytes:
    """The members as a zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def most_bytes(size: int) -> int:
    """How much a file of ``size`` bytes may become when it is unpacked."""
    return max(ROOM, EXPANDS * size)


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
    header, arrays = read_archive(path)
    try:
        return rebuild(header, arrays)
    except UserError as error:
        raise UserError(f"the model file {shown(str(path))} is damaged: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UserError(f"the model file {shown(str(path))} is damaged: {str(error)[:80]}") from error


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a model file, as long as they are unchanged."""
    name = shown(str(path))
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > most_bytes(os.stat(path).st_size):
                raise UserError(f"the model file {name} is damaged: it would become too large")
            header = json.loads(archive.read("header.json"))
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise UserError(f"{name} is not a model file of abex")
            check_version(header["version"], name)
            arrays = {}
            for key in ARRAYS:
                content = archive.read(f"{key}.npy")
                if hashlib.sha256(content).hexdigest() != header["sha256"][f"{key}.npy"]:
                    raise UserError(f"the model file {name} is damaged: {key}.npy has changed")
                arrays[key] = from_bytes(content)
            return header, arrays
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"there is no model file {name}") from None
    except OSError as error:
        raise UserError(f"cannot read the model file {name}: {error.strerror or error}") from error
    except Exception as error:
        raise UserError(f"{name} is not a model file of abex, or is damaged: {str(error)[:80]}") from error


def check_version(version: Any, name: str) -> None:
    """Refuse what a newer abex wrote in another way."""
    if version == VERSION and type(version) is int:
        return
    if isinstance(version, int) and version > VERSION:
        raise UserError(
            f"{name} was written by a newer abex (format {version}, this one reads {VERSION}): update abex"
        )
    raise UserError(f"the model file {name} is damaged: there is no format {shown(version)[:20]}")


def rebuild(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> AdaBoostMHClassifier:
    """The estimator of a header and its arrays, once they are checked."""
    given = dict(header["parameters"])
    if given.keys() != AdaBoostMHClassifier().get_params().keys() - set(NOT_SAVED):
        raise ValueError("its parameters are not those of AdaBoostMHClassifier")
    if isinstance(given.get("class_weight"), dict):
        given["class_weight"] = {name: weight for name, weight in given["class_weight"]["classes"]}
    estimator = AdaBoostMHClassifier(**given)
    estimator._replace_fitted(**checked_fit(header, arrays))
    return estimator


def plain_classes(classes: NDArray[Any]) -> NDArray[Any]:
    """Class names as an array without Python objects."""
    if classes.dtype != object:
        return classes
    if all(isinstance(name, str) for name in classes):
        return classes.astype(str)
    raise UserError("only classes that are numbers or strings can be saved")


def as_bytes(array: NDArray[Any]) -> bytes:
    """The array as the content of an .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def from_bytes(content: bytes) -> NDArray[Any]:
    """The array in an .npy file; one that claims another size than it has is refused before room is made for it."""
    buffer = io.BytesIO(content)
    version = np.lib.format.read_magic(buffer)
    if version != (1, 0):
        raise ValueError("an array is stored in a way that is not known")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(buffer)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(content) - buffer.tell():
        raise ValueError("an array has another size than it says")
    order: Any = "F" if fortran else "C"
    return np.frombuffer(content, dtype, math.prod(shape), buffer.tell()).reshape(shape, order=order).copy()


def _as_json(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise UserError(f"a parameter that is no number, text or list cannot be saved: {shown(value)[:80]}")


def checked_fit(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """The fitted attributes of an estimator, or a `ValueError` that says what cannot be."""
    kind = KINDS.index(one_of("kind", header["kind"], KINDS))
    features = whole_number("n_features", header["n_features"], least=1, most=MAX_FEATURES)
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
        "n_iter_": model.n_learners,
        "n_features_in_": features,
        "multilabel_": multilabel,
        "classes_": checked_classes(arrays["classes"], model.labels, multilabel),
        "n_classes_": model.labels,
        "inverse_temperature_": checked_temperature(header["temperature"], model),
        "calibration_rows_": whole_number("calibration_rows", header["calibration_rows"], most=MAX_ROWS),
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


def checked_temperature(value: Any, model: Model) -> float:
    """A positive number, small enough to be multiplied with any score."""
    temperature = real_number("temperature", value, above=0.0)
    return real_number("temperature", temperature, most=1e200 / max(1.0, model.total))


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
