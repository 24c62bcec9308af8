"""Model files forged with knowledge of their format: one thing changed, all else right.

`python -m tests.boosting.forged_models --cases 10000 --seed 1` tries many and prints how they ended. A forged model must be
refused by a `UserError`, or be a model that works: finite probabilities, answers of the right shape.
"""

from __future__ import annotations

import argparse
import collections
import io
import json
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np

from abex.boosting import AdaBoostMHClassifier, load
from abex.support.errors import UserError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
X[::7, 1] = np.nan
Y = (np.nan_to_num(X[:, 0] * X[:, 1]) > 0).astype(int) + (X[:, 2] > 0.5)
SMALL = {"n_estimators": 4, "random_state": 0, "calibrate": False}
NUMBERS = (-1, 0, 1, 2, 7, 2**31, 2**63, 10**30, -1.5, float("nan"), float("inf"), 1e308, 5e-324)
ODD = (
    *NUMBERS,
    None,
    True,
    "",
    "x",
    [],
    [[]],
    [[0, 99]],
    [[-1]],
    [["a"]],
    {},
    {"a": [1]},
    ["a"] * 3,
    [1, 2, 3],
)
TYPES = ("i1", "i4", "i8", "u8", "f4", "f8", "c16", "?", "U3", "S3", ">i4", ">f8", "M8[s]", "V4")


def originals():
    """Files of every kind of model, as members of their archives."""
    several = np.column_stack([Y > 0, Y > 1, X[:, 0] > 0]).astype(int)
    makers = [
        (AdaBoostMHClassifier(base="tree", n_leaves=5, early_stopping=True, **SMALL), Y),
        (AdaBoostMHClassifier(base="product", n_terms=3, **SMALL), Y),
        (AdaBoostMHClassifier(base="stump", policy=None, **SMALL), Y.astype(str)),
        (AdaBoostMHClassifier(base="tree", n_leaves=3, **SMALL), several),
        (
            AdaBoostMHClassifier(
                base="tree", n_leaves=5, categorical_features=[0, 2], class_weight={0: 2.0}, **SMALL
            ),
            Y,
        ),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for k, (maker, labels) in enumerate(makers):
            path = Path(folder) / f"{k}.abex"
            maker.fit(X.round() if maker.class_weight else X, labels).save(path)
            with zipfile.ZipFile(path) as archive:
                yield {name: archive.read(name) for name in archive.namelist()}


def bytes_of(array, fortran=False):
    buffer = io.BytesIO()
    np.save(buffer, np.asfortranarray(array) if fortran else array, allow_pickle=False)
    return buffer.getvalue()


def forge(members, rng):
    """The members with one thing changed, and what it was."""
    members = dict(members)
    header = json.loads(str(np.load(io.BytesIO(members["header.npy"]))))
    names = [name for name in members if name != "header.npy"]
    name = str(rng.choice(names))
    array = np.load(io.BytesIO(members[name]))
    what = int(rng.integers(9))
    if what < 4 and array.size:  # a value
        changed = array.copy()
        place = rng.integers(array.size)
        if array.dtype.kind in "iu":
            info = np.iinfo(array.dtype)
            values = [info.min, info.max, -1, 0, 1, 2, *(int(v) for v in rng.integers(-6, 7, 3))]
        elif array.dtype.kind == "f":
            values = [np.nan, np.inf, -np.inf, -1.0, 0.0, 0.5, 1.0, 9.0, 1e300]
        elif array.dtype.kind == "U":
            values = ["", "a", "z"]
        else:
            values = [0, 1]
        with np.errstate(over="ignore"):
            changed.ravel()[place] = values[rng.integers(len(values))]
        members[name] = bytes_of(changed)
    elif what == 4:  # another type
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                members[name] = bytes_of(array.astype(TYPES[rng.integers(len(TYPES))]))
        except (TypeError, ValueError):
            members[name] = bytes_of(np.zeros(array.shape, "f2"))
    elif what == 5:  # another shape
        shapes = [array[:0], array[:-1], array.ravel(), array[None], np.repeat(array, 2, axis=0), array.T]
        shapes += [array[..., :0], np.repeat(array, 2, axis=-1), np.zeros(())]
        members[name] = bytes_of(shapes[rng.integers(len(shapes))], fortran=bool(rng.integers(2)))
    elif what == 6:  # an array that is not one
        content = members[name]
        claims = [b"", content[:20], content[: len(content) // 2], content + b"\0" * 8]
        claims.append(content.replace(b"'shape': (", b"'shape': (9999999999, ", 1))
        members[name] = claims[rng.integers(len(claims))]
    else:  # the header
        key = str(rng.choice(list(header)))
        if what == 7 and key == "parameters":
            inner = str(rng.choice(list(header[key])))
            header[key][inner] = ODD[rng.integers(len(ODD))]
            key = f"{key}.{inner}"
        elif rng.random() < 0.1:
            del header[key]
        else:
            header[key] = ODD[rng.integers(len(ODD))]
        name = f"header {key}"
    members["header.npy"] = bytes_of(np.array(json.dumps(header)))
    return members, f"{name} ({what})"


def use(path):
    """Everything that a loaded model can be asked."""
    model = load(path)
    columns = model.n_features_in_
    rows = np.resize(X, (6, columns)) if columns < 100 else None
    if rows is not None:
        chances = model.predict_proba(rows)
        assert np.isfinite(chances).all()
        assert chances.shape == (6, model.n_classes_)
        answers = model.predict(rows)
        assert len(list(model.staged_predict(rows))) == model.n_iter_
        model.staged_score(rows, answers)
        model.feature_importances_  # noqa: B018
        model.export_text()
        model.forest_  # noqa: B018
        assert np.isfinite(model.shap_values(rows, rows).values).all()
    str(model.policy_report())
    repr(model)
    again = path.with_suffix(".again")
    model.save(again)
    load(again)
    if rows is not None:
        labels = np.resize(model.classes_, 6) if not model.multilabel_ else model.predict(rows)
        model.set_params(warm_start=True, n_estimators=model.n_iter_ + 1)
        model.fit(np.nan_to_num(np.resize(X, (12, columns))), np.resize(labels, (12, *labels.shape[1:])))
        model.predict(rows)


def main(cases, seed):
    rng = np.random.default_rng(seed)
    ended = collections.Counter()
    found = list(originals())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forged.abex"
        for case in range(cases):
            members, what = forge(found[case % len(found)], rng)
            with zipfile.ZipFile(path, "w") as archive:
                for name, content in members.items():
                    archive.writestr(name, content)
            print(f"{case}: {what}", file=sys.stderr, flush=True)  # the last line before a crash
            try:
                use(path)
                ended["works"] += 1
            except UserError as error:
                text = str(error).replace(str(path), "forged.abex")
                assert len(text) < 200, text
                assert "\n" not in text, text
                ended["refused"] += 1
            except ValueError:
                ended["refused by scikit-learn"] += 1
    print(json.dumps(ended))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    main(options.cases, options.seed)
