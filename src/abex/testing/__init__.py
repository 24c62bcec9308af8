"""The promises of policies and environments as checks, for ours and for yours.

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

from collections.abc import Callable, Iterable
from typing import Any

from abex.testing import environment_contract, policy_contract

__all__ = ["check_environment", "check_policy", "environment_checks", "policy_checks"]


def _checks(module: Any) -> list[Callable[[Any], None]]:
    prefix = "check_"
    named = {name: value for name, value in vars(module).items() if name.startswith(prefix)}
    for name, value in named.items():
        value.__name__ = name.removeprefix(prefix)
    return list(named.values())


def policy_checks() -> list[Callable[[Any], None]]:
    """The checks that every policy passes; each takes a policy and raises AssertionError."""
    return _checks(policy_contract)


def environment_checks() -> list[Callable[[Any], None]]:
    """The checks that every environment passes."""
    return _checks(environment_contract)


def _run(checks: Iterable[Callable[[Any], None]], subject: Any, only: Iterable[str] | None) -> None:
    wanted = None if only is None else set(only)
    for check in checks:
        if wanted is None or check.__name__ in wanted:
            try:
                check(subject)
            except AssertionError as error:
                raise AssertionError(f"{subject!r} breaks the promise {check.__name__!r}: {error}") from error


def check_policy(policy: Any, only: Iterable[str] | None = None) -> None:
    """Run all checks on ``policy``, or those named in ``only``."""
    _run(policy_checks(), policy, only)


def check_environment(environment: Any, only: Iterable[str] | None = None) -> None:
    """Run all checks on ``environment``, or those named in ``only``."""
    _run(environment_checks(), environment, only)
