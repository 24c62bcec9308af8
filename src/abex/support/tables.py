"""Text for a terminal and for a notebook: tables, and docstrings as Markdown with formulas."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterable, Sequence

SECTION = re.compile(r"^\w[\w ]*\n-{3,}$", re.MULTILINE)
BLOCK = re.compile(r"^\.\. math::[ ]*(.*\n(?:[ ]{3,}.*\n|\n)*)", re.MULTILINE)


def text_table(headings: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Columns side by side; those numbered in ``left`` begin at the left, the others end at the right.

    >>> print(text_table(["policy", "regret"], [("UCB1", "12.5"), ("Uniform", "103.0")]))
    policy   regret
    UCB1       12.5
    Uniform   103.0
    """
    cells = [[str(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if column in left else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def html_table(headings: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """The same as HTML; nothing that stands in a cell is taken for markup.

    A cell names its column, which `style.css` puts before it where a screen is too narrow for the headings.

    >>> html_table(["a"], [("<b>",)])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td data-column="a">&lt;b&gt;</td></tr></tbody></table>'
    """
    above = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    names = [html.escape(text) for text in headings]
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td data-column="{name}">{html.escape(str(cell))}</td>'
            for name, cell in zip(names, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The same as Markdown.

    >>> print(markdown_table(["policy", "regret"], [("UCB1", 12.5)]))
    | policy | regret |
    |---|---|
    | UCB1 | 12.5 |
    """
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in (headings, *rows)]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(headings), *lines[1:]])


def latex_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""The same as LaTeX for the package booktabs; a cell ``**so**`` is bold.

    >>> print(latex_table(["policy", "regret"], [("UCB1", "**12.5**"), ("a_b", "30 %")]))
    \begin{tabular}{lr}
    \toprule
    policy & regret \\
    \midrule
    UCB1 & \textbf{12.5} \\
    a\_b & 30 \% \\
    \bottomrule
    \end{tabular}
    """
    lines = [" & ".join(map(latex_of, row)) + r" \\" for row in (headings, *rows)]
    return "\n".join(
        [rf"\begin{{tabular}}{{l{'r' * (len(headings) - 1)}}}", r"\toprule", lines[0], r"\midrule", *lines[1:],
         r"\bottomrule", r"\end{tabular}"]
    )  # fmt: skip


def latex_of(text: str) -> str:
    """Text as LaTeX: what it would read as commands is escaped, ``**so**`` is bold."""
    escaped = re.sub(r"[&%$#_{}]", r"\\\g<0>", text)
    return re.sub(r"^\*\*(.*)\*\*$", r"\\textbf{\1}", escaped)


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
