"""Fitted models in a file of plain arrays and JSON: nothing in it can run, damage is noticed.

The file is a zip archive with ``header.json`` and one ``.npy`` per array. The header names the format and its
version, the estimator's parameters, and the SHA-256 of every array. Whoever forges a file can forge that too: so what is read is
checked in `stored_model` before anything compiled sees it.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.boosting.categories import as_header
from abex.boosting.estimator import AdaBoostMHClassifier
from abex.boosting.model_checks import ARRAYS, checked_fit
from abex.boosting.weak_learners import KINDS
from abex.support.errors import UserError, shown
from abex.support.extras import needed
from abex.support.files import write_atomically

FORMAT = "abex boosting model"
VERSION = 1
NOT_SAVED = ("callbacks", "random_state", "n_jobs", "verbose")
EXPANDS = 100  # times: a file that becomes more than this, and more than ROOM bytes, is not read
ROOM = 1 << 28


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
