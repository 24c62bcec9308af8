"""One test over a table: every row is tried, and all that fail are told."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

FAILED = (Exception, pytest.fail.Exception)
MAX_SHOWN = 300  # characters of a value


def each(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[..., Any]:
    """Try a test on each row, as `pytest.mark.parametrize` makes a test of each: for cheap rows that say the same.

    The rows share the fixtures of the test.

    >>> @each(("one", "other"), [(1, 1), (2, 3)])
    ... def test_they_are_equal(one, other):
    ...     assert one == other
    >>> test_they_are_equal()
    Traceback (most recent call last):
        ...
    AssertionError
    one=2, other=3
    """
    known, table = (names,) if isinstance(names, str) else names, list(rows)

    def over(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def all_rows(**fixtures: Any) -> None:
            failures = []
            for row in table:
                values = dict(zip(known, (row,) if isinstance(names, str) else row, strict=True))
                try:
                    test(**values, **fixtures)
                except FAILED as error:
                    error.add_note(
                        ", ".join(f"{name}={repr(value)[:MAX_SHOWN]}" for name, value in values.items())
                    )
                    failures.append(error)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(table)} rows fail", failures)

        rest = [parameter for name, parameter in signature.parameters.items() if name not in known]
        all_rows.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return all_rows

    return over


def each_group(name: str, groups: Mapping[str, Iterable[Any]]) -> Callable[..., Any]:
    """A test for each group, which tries each of its rows as the argument ``name``."""

    def over(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def one_group(group: str, **others: Any) -> None:
            each(name, groups[group])(test)(**others)

        group = inspect.Parameter("group", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        rest = [parameter for parameter in signature.parameters.values() if parameter.name != name]
        one_group.__signature__ = signature.replace(parameters=[group, *rest])  # type: ignore[attr-defined]
        return pytest.mark.parametrize("group", groups)(one_group)

    return over
