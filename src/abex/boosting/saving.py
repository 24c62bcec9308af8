"""Fitted models in a file of plain arrays and JSON: nothing in it can run, damage is noticed.

The file is a zip archive with ``header.json`` and one ``.npy`` per array. The header names the format and its
version, the estimator's parameters, and the SHA-256 of every array.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.boosting.estimator import AdaBoostMHClassifier
from abex.boosting.model import KINDS, TREE, Model
from abex.errors import UserError
from abex.files import write_atomically

FORMAT = "abex boosting model"
VERSION = 1
NOT_SAVED = ("callbacks", "random_state", "n_jobs", "verbose")


def save(estimator: AdaBoostMHClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator; a policy is kept as its text."""
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
        "temperature": float(estimator.temperature_),
        "arm_features": estimator.arm_features_,
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        text = json.dumps(header, indent=1, default=_as_json)
        for name, content in {"header.json": text.encode(), **files}.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    write_atomically(path, buffer.getvalue())


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
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"the model file {str(path)!r} is damaged: {error}") from error


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a model file, checked."""
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read("header.json"))
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise UserError(f"{str(path)!r} is not a model file of abex")
            if header["version"] > VERSION:
                raise UserError(
                    f"{str(path)!r} was written by a newer abex (format {header['version']}, this one "
                    f"reads up to {VERSION}): update abex"
                )
            arrays = {}
            for name, digest in header["sha256"].items():
                content = archive.read(name)
                if hashlib.sha256(content).hexdigest() != digest:
                    raise UserError(f"the model file {str(path)!r} is damaged: {name} has changed")
                arrays[name.removesuffix(".npy")] = np.load(io.BytesIO(content), allow_pickle=False)
            return header, arrays
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"there is no model file {str(path)!r}") from None
    except OSError as error:
        raise UserError(f"cannot read the model file {str(path)!r}: {error.strerror or error}") from error
    except Exception as error:
        raise UserError(f"{str(path)!r} is not a model file of abex, or is damaged: {error}") from error


def rebuild(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> AdaBoostMHClassifier:
    """The estimator of a checked header and its arrays."""
    known = AdaBoostMHClassifier().get_params()
    estimator = AdaBoostMHClassifier(**{k: v for k, v in header["parameters"].items() if k in known})
    names = ("feature", "threshold", "missing_right", "left", "right", "votes", "coefficient", "edge")
    model = Model(
        KINDS.index(header["kind"]), int(header["n_features"]), **{name: arrays[name] for name in names}
    )
    check_model(model)
    estimator.model_ = model
    estimator.n_iter_ = model.size
    estimator.classes_ = arrays["classes"]
    estimator.n_classes_ = estimator.classes_.size
    estimator.n_features_in_ = model.n_features
    if header["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    estimator.multilabel_ = bool(header["multilabel"])
    estimator.temperature_ = float(header["temperature"])
    estimator.arm_features_ = header["arm_features"]
    estimator.pulled_arms_ = arrays["pulled_arms"]
    estimator.pulled_rewards_ = arrays["pulled_rewards"]
    estimator.validation_errors_ = arrays["validation_errors"]
    return estimator


def check_model(model: Model) -> None:
    """Refuse arrays that compiled code could not follow safely."""
    shape = model.feature.shape
    fitting = all(
        getattr(model, name).shape == shape for name in ("threshold", "missing_right", "left", "right")
    )
    if not fitting or model.votes.shape[0] != shape[0] or model.coefficient.shape != (shape[0],):
        raise ValueError("its arrays do not fit together")
    if model.feature.min(initial=0) < -1 or model.feature.max(initial=-1) >= model.n_features:
        raise ValueError("it names a feature that is not there")
    if model.kind == TREE:
        node = np.arange(shape[1])
        for child in (model.left, model.right):
            real = model.feature >= 0
            ahead = np.where(child >= 0, child > node, ~child < model.votes.shape[1])
            inside = child < np.maximum(1, real.sum(axis=1))[:, None]
            if not (ahead & inside)[real].all():
                raise ValueError("a tree leads nowhere")


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


def _as_json(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise UserError(f"a parameter that is no number, text or list cannot be saved: {value!r}")
