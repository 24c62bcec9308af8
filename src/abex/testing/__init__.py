"""The contract of policies and environments as checks, for ours and for yours.

>>> from abex import UCB1
>>> from abex.testing import check_policy
>>> check_policy(UCB1(), only=["is_a_value", "plays_valid_arms"])

With pytest, one test for each check and each instance:

.. code-block:: python

    @pytest.mark.parametrize("check", policy_checks(), ids=lambda check: check.__name__)
    def test_my_policy_keeps_its_promises(check):
        check(MyPolicy())
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from typing import Any

from abex.environments.environment import as_environment
from abex.policies.naming import as_policy
from abex.support.errors import one_of
from abex.support.extras import MissingExtraError
from abex.testing import environment_contract, policy_contract

__all__ = ["check_documentation", "check_environment", "check_policy", "environment_checks", "policy_checks"]

Check = Callable[[Any], None]


def _checks(module: Any) -> list[Check]:
    prefix = "check_"
    named = {name: value for name, value in vars(module).items() if name.startswith(prefix)}
    for name, value in named.items():
        value.__name__ = name.removeprefix(prefix)
    return list(named.values())


def policy_checks() -> list[Check]:
    """The checks that every policy passes; each takes a policy and raises AssertionError."""
    return _checks(policy_contract)


def environment_checks() -> list[Check]:
    """The checks that every environment passes."""
    return _checks(environment_contract)


def _run(checks: list[Check], subject: Any, only: Iterable[str] | None, skip: Iterable[str]) -> None:
    """Run them all, then say which failed, each with what went wrong."""
    named = {check.__name__: check for check in checks}
    left_out = {one_of("check", name, named) for name in skip}
    chosen = named if only is None else [one_of("check", name, named) for name in only]
    wanted = [name for name in chosen if name not in left_out]
    broken: dict[str, Exception] = {}
    for name in wanted:
        try:
            named[name](subject)
        except MissingExtraError:
            raise
        except Exception as error:
            broken[name] = error
    if broken:
        lines = [f"  {name}: {_what_went_wrong(named[name], error)}" for name, error in broken.items()]
        heading = f"{subject!r} breaks {len(broken)} of {len(wanted)} promises:"
        raise AssertionError("\n".join([heading, *lines])) from ExceptionGroup(heading, list(broken.values()))


def _what_went_wrong(check: Check, error: Exception) -> str:
    if isinstance(error, AssertionError):
        return str(error) or f"not so: {(check.__doc__ or '').rstrip('.')}"
    return f"{type(error).__name__}: {error}"


def check_policy(policy: Any, only: Iterable[str] | None = None, skip: Iterable[str] = ()) -> None:
    """Run all checks of a policy, or those named in ``only``, but for those in ``skip``; report every one that fails.

    Its docstring is checked by `check_documentation`.
    """
    _run(policy_checks(), as_policy(policy), only, skip)


def check_environment(environment: Any, only: Iterable[str] | None = None, skip: Iterable[str] = ()) -> None:
    """Run all checks on ``environment``, or those named in ``only``, but for those in ``skip``; report every one that fails."""
    _run(environment_checks(), as_environment(environment), only, skip)


#: required part -> its pattern
PARTS = {
    "a formula (:math:)": r":math:",
    "References": r"References",
    "the place in a reference (Section, Theorem, Algorithm, Figure, eq., abstract)": (
        r"(Section|Theorem|Algorithm|Figure|eq\.|abstract|class)"
    ),
    "an example (>>>)": r">>>",
    "its Cost per step": r"Cost",
}


def check_documentation(policy: Any) -> None:
    """The docstring has a formula, a reference with its place, a cost, an example, and every parameter.

    This is no part of `check_policy`: a policy without it works as well.

    >>> from abex import UCB1
    >>> check_documentation(UCB1())
    """
    policy = as_policy(policy)
    text = type(policy).__doc__ or ""
    lacking = [part for part, sign in PARTS.items() if not re.search(sign, text)]
    lacking += [
        f"the parameter {field.name}"
        for field in dataclasses.fields(policy)
        if not re.search(rf"^    .*\b{field.name}\b.* : ", text, re.M)
    ]
    assert not lacking, f"the docstring of {type(policy).__name__} lacks {'; '.join(lacking)}"
