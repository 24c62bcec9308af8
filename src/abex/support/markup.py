"""Docstrings as Markdown with formulas, which notebooks typeset."""

from __future__ import annotations

import re
import textwrap

SECTION = re.compile(r"^\w[\w ]*\n-{3,}$", re.MULTILINE)
BLOCK = re.compile(r"^\.\. math::[ ]*(.*\n(?:[ ]{3,}.*\n|\n)*)", re.MULTILINE)


def markdown_of(docstring: str) -> str:
    r"""The text before the first section (Parameters, Notes, ...) as Markdown.

    >>> print(markdown_of("Index :math:`\\hat\\mu_k` of ``N``; see `UCB1`.\n\nParameters\n----------\nx : int"))
    Index $\hat\mu_k$ of `N`; see `UCB1`.
    """
    text = textwrap.dedent(docstring)
    found = SECTION.search(text)
    text = (text[: found.start()] if found else text).strip() + "\n"
    text = BLOCK.sub(lambda block: f"$${' '.join(block[1].split())}$$\n", text)
    text = re.sub(r":math:`([^`]*)`", lambda formula: f"${' '.join(formula[1].split())}$", text)
    text = re.sub(r":[a-z]+:`([^`]*)`", r"`\1`", text)
    return re.sub(r"``([^`]*)``", r"`\1`", text).strip()
