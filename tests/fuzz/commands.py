"""The command line: arguments that are no numbers, too large, missing or strange. Nothing is played or fetched."""

from __future__ import annotations

import contextlib
import functools
import io
import os
from collections.abc import Iterator
from typing import Any
from unittest import mock

from abex.cli import main
from abex.support.errors import UserError
from tests.fuzz.damage import NUMBERS, WORDS, Rng, one
from tests.fuzz.outcomes import REFUSED, WORKED, folder

Case = tuple[str, ...]

#: command -> its options and what they are given when they are right
COMMANDS: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = (
    (("theory",), {"--c": "0.1", "--alpha": "0.7", "--eta": "0.4",
                 "--arms": "10", "--gap": "0.2", "--horizon": "1e4"}),
    (("theory", "recommend"), {"--arms": "10", "--horizon": "1e4", "--gap": "0.2"}),
    (("simulate",), {"--policy": "UCB1", "--arms": "0.7,0.5x3", "--graph": "no.edges",
                               "--horizon": "100",
                               "--replications": "2", "--seed": "1", "--workers": "1"}),
    (("run",), {"": "no-such", "--workers": "2", "--executor": "threads", "--results": "r"}),
    (("results",), {"--results": "r"}),
    (("results", "prune"), {"": "x", "--results": "r"}),
    (("list",), {"": "UCB1"}),
    (("data", "show"), {"": "digits"}),
    (("boost", "train"), {"": "no.csv", "--policy": "ABE", "--iterations": "5",
                          "--target": "y"}),
    (("boost", "predict"), {"": "no.abex", "--out": "answers.csv"}),
)  # fmt: skip
POLICIES = (
    "ABE(eta=1)",
    "ABE(eta=1e400)",
    "UCB1(scale=",
    "nope",
    "ABE(" + "(" * 500,
    "UCB1(scale=[1])",
    "ABE(eta=1, eta=2)",
    "Thompson()()",
)
ARMS = (
    "random:5",
    "random:1e30",
    "random:x",
    "0.5x99999999999999999999",
    "special",
    "0.5,,",
    "nan",
    "2.0",
    "0.5x0",
    "1e-400",
)


def cases(rng: Rng) -> Iterator[Case]:
    """A command with one to three options that are wrong."""
    while True:
        words, options = one(rng, COMMANDS)
        given = {key: value for key, value in options.items() if rng.random() < 0.5 or key == ""}
        for _ in range(int(rng.integers(1, 4))):
            key = one(rng, list(options))
            pool = (
                POLICIES
                if key == "--policy" and rng.random() < 0.7
                else ARMS
                if key == "--arms" and rng.random() < 0.5
                else NUMBERS
            )
            given[key] = one(rng, pool if rng.random() < 0.8 else WORDS)
        arguments = list(words)
        for key, value in given.items():
            arguments += [key, value] if key else [value]
        if rng.random() < 0.05:
            arguments.append(one(rng, ("--nope", "-x", "extra", "")))
        yield tuple(word.replace("\x00", "") for word in arguments)


@functools.cache
def quietly() -> None:
    """Nothing is played, trained, fetched or drawn."""

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise UserError("not here")

    os.chdir(folder())
    for name in (
        "abex.simulation.play_replication",
        "abex.simulation.running.play_replication",
        "abex.lab.datasets.source_files.fetch",
        "abex.lab.experiments.run_experiment",
        "abex.boosting.AdaBoostMHClassifier.fit",
    ):
        mock.patch(name, refuse).start()


def run(case: Case) -> str:
    """Exit code 0, or 2 with one sentence."""
    quietly()
    out, error = io.StringIO(), io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            main(list(case))
        except SystemExit as stop:
            code = stop.code
    text = error.getvalue()
    assert code in (None, 0, 2), f"exit code {code}: {text[:200]}"
    if code == 2:
        assert text.strip(), "nothing was said"
        assert "Traceback" not in text
        if text.startswith("abex: "):
            assert text.count("\n") == 1, text
            assert len(text) < 300, text
        return REFUSED
    return WORKED
