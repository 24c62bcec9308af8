"""What a fit or a prediction is given: rows, labels, weights; what cannot be read is named before anything reads it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError, real_number, shown
from abex.support.extras import needed

MAX_FEATURES = 1 << 24
MIN_NAMED = 20  # rows


class Examples(NamedTuple):
    """Features, labels as signs (n, L), and the weight of each example."""

    X: Any
    signs: NDArray[np.int8]
    weight: NDArray[np.float64]

    def rows(self, chosen: NDArray[np.int64]) -> Examples:
        """Some of them; all of them are not copied."""
        if chosen.size == self.weight.size and np.array_equal(chosen, np.arange(chosen.size)):
            return self
        return Examples(self.X[chosen], self.signs[chosen], self.weight[chosen])


def is_table(X: Any) -> bool:
    """Whether columns have names and types of their own, as in pandas and polars."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def column_of(X: Any, j: int) -> Any:
    """Column ``j`` of a table or an array."""
    if hasattr(X, "iloc"):
        return X.iloc[:, j]
    return X[X.columns[j]] if is_table(X) else X[:, j]


def numbers_of(X: Any, j: int) -> NDArray[np.float64]:
    """Column ``j`` of X, which must hold numbers."""
    try:
        return np.asarray(column_of(X, j), dtype=np.float64)
    except (TypeError, ValueError):
        name = repr(X.columns[j]) if is_table(X) else str(j)
        raise UserError(
            f"column {name} holds words: make its type category, or name it in categorical_features"
        ) from None


def is_identifier(values: NDArray[Any]) -> bool:
    """Whether values name rows: no word comes twice, or no whole number of those that fill half of their range or more.

    Fewer than 20 rows may be different by chance.

    >>> rows = np.arange(100)
    >>> is_identifier(rows[::2]), is_identifier(rows[::3]), is_identifier(rows % 90), is_identifier(rows.astype(str))
    (True, False, False, True)
    """
    if values.size < MIN_NAMED or values.dtype.kind == "b":
        return False
    if values.dtype.kind not in "iuf":
        return len(set(values.tolist())) == values.size
    dense = float(values.max()) - float(values.min()) < 2 * values.size
    return dense and bool((values == np.rint(values)).all()) and np.unique(values).size == values.size


def warn_of_identifiers(X: Any) -> None:
    """Warn of columns of a table that name rows: what is learned from them says nothing of new rows."""
    for j, name in enumerate(X.columns if is_table(X) else ()):
        if is_identifier(np.asarray(column_of(X, j))):
            warnings.warn(
                f"column {shown(name)} names the rows, and so tells nothing of new ones: leave it out",
                stacklevel=4,
            )


def check_readable(X: Any, y: Any) -> None:
    """Name what scikit-learn would not: damaged matrices, labels that are missing or mixed, columns of words."""
    check_sparse("X", X)
    check_sparse("y", y)
    check_labels(y)
    for j in range(X.shape[1] if is_table(X) else 0):
        numbers_of(X, j)
    shape: Any = getattr(X, "shape", ())
    if len(shape) == 2 and shape[1] > MAX_FEATURES:
        raise UserError(f"X must have at most {MAX_FEATURES:,} columns, got {shape[1]:,}")


def check_sparse(name: str, X: Any) -> None:
    """Refuse a sparse matrix whose indices lead outside of it: SciPy follows them without looking.

    Indices in any order and several entries for one place, which SciPy adds up, are no damage.

    >>> from scipy.sparse import csr_matrix
    >>> X = csr_matrix([[0.0, 1.0]])
    >>> X.indices[0] = 7
    >>> check_sparse("X", X)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    abex.support.errors.UserError: X is a damaged sparse matrix: ...
    """
    with needed("boosting"):
        from scipy.sparse import coo_array, issparse

    if not issparse(X) or len(X.shape) != 2:
        return
    try:
        if X.format in ("csr", "csc", "bsr"):
            # another one of the same arrays: the check may cut and cast its own
            type(X)((X.data, X.indices, X.indptr), shape=X.shape).check_format(full_check=True)
        else:
            entries = X.tocoo()
            coo_array((entries.data, (entries.row, entries.col)), shape=X.shape)  # looks at every index
    except Exception as error:
        raise UserError(f"{name} is a damaged sparse matrix: {str(error)[:100]}") from error


def check_labels(y: Any) -> None:
    """Refuse labels that are missing, and numbers mixed with words, of which NumPy would make words."""
    if hasattr(y, "isna") and np.any(y.isna()):
        raise UserError("y has missing values: leave those rows out")
    if not isinstance(y, list | tuple) and getattr(y, "dtype", None) is not np.dtype(object):
        return
    try:
        flat = np.array(y, dtype=object).ravel()
    except ValueError:
        return  # rows of different lengths: scikit-learn has a sentence for them
    kinds = set()
    for value in flat:
        if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
            raise UserError("y has missing values: leave those rows out")
        if isinstance(value, Number | np.number | np.bool_):
            kinds.add("numbers")
        elif isinstance(value, str):
            kinds.add("words")
        else:
            raise UserError(f"y must have numbers or words for classes, got {shown(value)[:80]}")
    if len(kinds) > 1:
        raise UserError("y has numbers and words for classes: make all of them numbers, or all of them words")


def read_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.int8], bool]:
    """The labels, their signs (n, L), and whether an example may have several."""
    with needed("boosting"):
        from sklearn.utils.multiclass import check_classification_targets, type_of_target
        from sklearn.utils.validation import column_or_1d

    if getattr(y, "dtype", None) is np.dtype(object) and not isinstance(y.flat[0], str):
        y = np.array(y.tolist())  # numbers
    check_classification_targets(y)
    multilabel = type_of_target(y) == "multilabel-indicator"
    if multilabel:
        y = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
        strange = y[(y != 0) & (y != 1)]
        if strange.size:
            raise UserError(
                f"y is a matrix of labels, whose values must be 0 and 1, got {shown(strange[0].item())}"
            )
        classes = np.arange(y.shape[1])
        positive = y > 0
    else:
        classes, place = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        positive = place[:, None] == np.arange(classes.size)
        if classes.size == 1:
            warnings.warn(
                f"every row is of the class {shown(classes.tolist()[0])}: there is nothing to tell apart",
                stacklevel=4,
            )
    return classes, np.where(positive, 1, -1).astype(np.int8), multilabel


def read_weights(sample_weight: Any, X: Any) -> NDArray[np.float64]:
    """The weight of each row: none negative, some positive, their sum a number."""
    with needed("boosting"):
        from sklearn.utils.validation import _check_sample_weight

    if sample_weight is not None and not np.asarray(sample_weight).any():
        raise UserError("sample_weight must not be zero everywhere")
    given: NDArray[np.float64] = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
    with np.errstate(over="ignore"):
        if not np.isfinite(given.sum()):
            raise UserError("sample_weight must have a finite sum: divide the weights by their largest")
    return given


def weighted_by_class(
    given: NDArray[np.float64], class_weight: Any, classes: NDArray[Any], signs: NDArray[np.int8], multilabel: bool
) -> NDArray[np.float64]:  # fmt: skip
    """Weights of the rows times those of their classes; "balanced": all classes weigh the same in all.

    >>> signs = np.array([[1, -1], [1, -1], [1, -1], [-1, 1]], np.int8)
    >>> weighted_by_class(np.ones(4), "balanced", np.array(["a", "b"]), signs, False).round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    """
    if class_weight is None:
        return given
    if multilabel:
        raise UserError(
            "class_weight needs one class for each row: weigh rows of several labels by sample_weight"
        )
    place = signs.argmax(axis=1)
    if isinstance(class_weight, str) and class_weight == "balanced":
        mass = np.bincount(place, given, classes.size)
        factors = mass.sum() / (np.count_nonzero(mass) * np.maximum(mass, 1e-300))
    elif isinstance(class_weight, Mapping):
        factors = np.ones(classes.size)
        for name, value in class_weight.items():
            where = np.flatnonzero([known == name for known in classes.tolist()])
            if where.size == 0:
                raise UserError(
                    f"class_weight names the class {shown(name)[:80]}, which y does not have: "
                    f"its classes are {', '.join(map(str, classes[:10].tolist()))}"
                )
            factors[where] = real_number(f"class_weight of {shown(name)[:80]}", value, least=0.0)
    else:
        raise UserError(f"class_weight must be 'balanced', a dict or None, got {shown(class_weight)[:80]}")
    weighted: NDArray[np.float64] = given * factors[place]
    if not (weighted > 0).any() or not np.isfinite(weighted.sum()):
        raise UserError("class_weight and sample_weight together must leave a positive, finite weight")
    return weighted
