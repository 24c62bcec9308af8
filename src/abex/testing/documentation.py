"""Check of a policy's docstring, which `abex list` and notebooks show."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from abex.policies.naming import as_policy

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
