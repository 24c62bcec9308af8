"""Files of edges, and ratings with a list of trust: numbers and words, packed and damaged."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from abex import Graph
from abex.lab.datasets import read_ratings
from tests.fuzz.damage import Rng, maybe_damaged, one, token
from tests.fuzz.outcomes import File, folder, read_file


def lines_of(rng: Rng, width: int, mark: str, tame: bool) -> str:
    """A few lines of ids."""
    lines = []
    for _ in range(int(rng.integers(0, 12))):
        cells = [
            str(int(rng.integers(0, 9))) if tame or rng.random() < 0.8 else token(rng) for _ in range(width)
        ]
        if not tame and rng.random() < 0.1:
            cells = cells[: int(rng.integers(0, width + 1))]
        lines.append(mark.join(cells))
    return one(rng, ("\n", "\n", "\n", "\r\n", "\r")).join(lines)


def edges(rng: Rng) -> Iterator[File]:
    """Pairs of ids with comments, blanks and commas between."""
    while True:
        text = one(rng, ("", "", "# a comment\n", "% 1 2\n\n")) + lines_of(
            rng, 2, one(rng, (" ", "\t", ",", ", ")), rng.random() < 0.4
        )
        content = maybe_damaged(text.encode("utf-8", "surrogatepass"), rng, 0.3)
        if rng.random() < 0.3:
            content = maybe_damaged(gzip.compress(content, 1, mtime=0), rng, 0.5)
        yield File(
            "e.edges",
            content,
            (("ids", one(rng, ("numbers", "numbers", "words"))), ("directed", bool(rng.integers(2)))),
        )


def run_edges(case: File) -> str:
    """Read the graph; what is read is one."""

    def read(path: Path, **options: Any) -> None:
        graph = Graph.read(path, **options)
        assert graph.n_arms == graph.labels.size >= 1
        assert graph.links.out_arms.max() < graph.n_arms

    return read_file(case, read)


def ratings(rng: Rng) -> Iterator[File]:
    """Tables of user, item and rating, and a second one of trust."""
    while True:
        mark = one(rng, (",", "\t", ";", " "))
        tame = rng.random() < 0.4
        head = one(rng, ("", mark.join(("user", "item", "rating")) + "\n"))
        content = maybe_damaged(
            (head + lines_of(rng, 3, mark, tame)).encode("utf-8", "surrogatepass"), rng, 0.2
        )
        name = one(rng, ("r.csv", "r.txt", "r.tsv", "r.csv.gz"))
        if name.endswith(".gz"):
            content = maybe_damaged(gzip.compress(content, 1, mtime=0), rng, 0.5)
        trust = lines_of(rng, 2, mark, tame).encode("utf-8", "surrogatepass") if rng.random() < 0.5 else None
        options = (
            ("trust", trust),
            ("directed", bool(rng.integers(2))),
            ("lowest", one(rng, (None, None, 0, 1e300, "x"))),
        )
        yield File(name, content, options)


def run_ratings(case: File) -> str:
    """Read the ratings; every index that is read is one."""
    options = dict(case.options)
    trust = options.pop("trust")
    second = folder() / "trust.csv"
    if trust is not None:
        second.write_bytes(trust)
        options["trust"] = second

    def read(path: Path) -> None:
        found = read_ratings(path, **options)
        assert found.users.max() < found.n_users
        assert found.items.max() < found.n_items

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_file(case._replace(options=()), read)
