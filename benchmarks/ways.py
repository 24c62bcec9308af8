"""The files that a step, a decision, a request, a fit and a cell cross, traced.

    python -m benchmarks.ways [--only NAME ...]

Each way is gone a number of times, after it has been gone as often so that all is imported and made. Its files are those whose
functions are called, or call others, at least every second time: what is done once, before the first step or beside the way, does
not count.
Kernels run interpreted, so that they are seen. Files that every way passes are named and not counted.
"""

from __future__ import annotations

import os

os.environ["NUMBA_DISABLE_JIT"] = "1"  # before anything imports Numba

import argparse
import contextlib
import json
import logging
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from benchmarks.lines import room_of

import abex

PACKAGE = Path(abex.__file__).parent
PASSED = ("kernels", "errors", "parameters", "values", "support")  # by every way
Way = Callable[[int], None]  # goes it so many times


@contextlib.contextmanager
def simulated(**problem: Any) -> Iterator[Way]:
    """Steps of ABE among ten Bernoulli arms."""
    world = abex.Bernoulli(np.linspace(0.1, 0.9, 10))

    def go(times: int) -> None:
        abex.simulate(
            "ABE(eta=1.0)", world, horizon=times, replications=1, workers=1, checkpoints=[times], **problem
        )

    yield go


def step() -> contextlib.AbstractContextManager[Way]:
    """A step of `simulate`: ABE, ten Bernoulli arms."""
    return simulated()


def graph_step() -> contextlib.AbstractContextManager[Way]:
    """A step of `simulate` on a feedback graph."""
    from abex.graphs import star

    return simulated(graph=star(10))


@contextlib.contextmanager
def decision() -> Iterator[Way]:
    """A decision of a Player with its reward."""
    player = abex.Player("ABE(eta=1.0)", n_arms=10, seed=1)

    def go(times: int) -> None:
        for _ in range(times):
            player.update(player.decide().id, 0.5)

    yield go


@contextlib.contextmanager
def shared_decision() -> Iterator[Way]:
    """A decision of a shared player with its reward."""
    with (
        tempfile.TemporaryDirectory() as folder,
        abex.Player.open(
            f"sqlite:///{folder}/shop.db", "banner", "ABE(eta=1.0)", n_arms=10, seed=1
        ) as player,
    ):

        def go(times: int) -> None:
            for _ in range(times):
                player.update(player.decide().id, 0.5)

        yield go


@contextlib.contextmanager
def request() -> Iterator[Way]:
    """A decision with its reward over HTTP: two requests on an open connection."""
    import http.client

    import uvicorn

    from abex.service import Settings
    from abex.service.connections import Guard
    from abex.service.run import configuration, listening_socket

    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/shop.db"
        with abex.Player.open(store, "banner", "ABE(eta=1.0)", n_arms=10):
            pass
        settings = Settings(store=store, port=0)
        listening = listening_socket(settings)
        server = uvicorn.Server(configuration(Guard(settings)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        connection = http.client.HTTPConnection("127.0.0.1", listening.getsockname()[1], timeout=60)

        def ask(path: str, body: dict[str, Any]) -> Any:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", f"/v1/players/banner/{path}", json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == 200, text
            return json.loads(text)

        def go(times: int) -> None:
            for _ in range(times):
                ask("rewards", {"decision": ask("decisions", {})["id"], "reward": 0.5})

        yield go
        connection.close()
        server.should_exit = True
        thread.join(30.0)


def small_classifier() -> Any:
    """The classifier at its defaults, but for fewer trees in smaller committees."""
    from abex.boosting.estimator import AdaBoostMHClassifier

    return AdaBoostMHClassifier(n_estimators=24, committee_size=2, random_state=1)


def small_table() -> tuple[Any, Any]:
    """Thirty rows of two classes."""
    rng = np.random.default_rng(1)
    y = np.arange(30) % 2
    return rng.normal(size=(30, 3)) + y[:, None], y


@contextlib.contextmanager
def fit() -> Iterator[Way]:
    """A fit of the classifier at its defaults, but for fewer trees in smaller committees."""
    X, y = small_table()

    def go(times: int) -> None:
        for _ in range(times):
            small_classifier().fit(X, y)

    yield go


@contextlib.contextmanager
def predicted() -> Iterator[Way]:
    """Rows of `predict_proba`."""
    X, y = small_table()
    model = small_classifier().fit(X, y)

    def go(times: int) -> None:
        for _ in range(times):
            model.predict_proba(X[:5])

    yield go


@contextlib.contextmanager
def cell() -> Iterator[Way]:
    """An experiment of one cell, from its name to its verdict."""
    from abex.lab.experiments import Claim, Experiment, Line, collect, run_experiment
    from abex.lab.experiments.verdicts import judge
    from abex.lab.results import Store

    fresh = iter(range(1_000))
    problem = {"environment": {"name": "Bernoulli", "means": [0.8, 0.4]}}
    lines = (Line("UCB1", ("UCB1(scale=2.0)",)), Line("coin", ("Uniform()",)))
    claim = Claim("UCB1 beats a coin", "better", "UCB1", ("coin",))

    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "cells.sqlite") as store:

        def go(times: int) -> None:
            for _ in range(times):
                experiment = Experiment(
                    name=f"one-cell-{next(fresh)}", title="One cell", problem=problem, lines=lines, length=50,
                    seeds=2, version=next(fresh), claims=(claim,),
                )  # fmt: skip
                run_experiment(experiment, store)
                judge(collect(experiment, store))

        yield go


#: name -> (the way, how often it is gone)
WAYS: dict[str, tuple[Callable[[], contextlib.AbstractContextManager[Way]], int]] = {
    "step": (step, 1_000),
    "graph-step": (graph_step, 1_000),
    "decision": (decision, 50),
    "shared-decision": (shared_decision, 50),
    "request": (request, 30),
    "fit": (fit, 1),
    "predict": (predicted, 3),
    "cell": (cell, 2),
}


@contextlib.contextmanager
def counted() -> Iterator[Counter[str]]:
    """Calls into and out of each file of the package, in all threads that begin before the block ends."""
    calls: Counter[str] = Counter()
    names: dict[Any, str] = {}

    def name_of(frame: FrameType | None) -> str:
        if frame is None:
            return ""
        code = frame.f_code
        if code not in names:
            names[code] = file_of(code.co_filename, code.co_name)
        return names[code]

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and (name := name_of(frame)):
            calls[name] += 1
            calls[name_of(frame.f_back)] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def file_of(path: str, function: str) -> str:
    """The file within the package; nothing for other packages, and for what runs while a module is imported."""
    if function == "<module>" or not path.startswith(f"{PACKAGE}{os.sep}"):
        return ""
    return Path(path).relative_to(PACKAGE).as_posix()


def files_of(name: str) -> list[str]:
    """The files that a way crosses."""
    way, times = WAYS[name]
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings(action="ignore"), counted() as calls, way() as go:
        go(times)
        before = calls.copy()
        go(times)
        crossed = calls - before
    return sorted(file for file in crossed if file and crossed[file] >= times / 2)


def counts(file: str) -> bool:
    """Whether a file is one of the way's own."""
    return file.split("/")[0].removesuffix(".py") not in PASSED


def shown(name: str) -> str:
    """A way with its files, room by room."""
    files = files_of(name)
    own = [file for file in files if counts(file)]
    what = (WAYS[name][0].__doc__ or "").strip()
    rooms: dict[str, list[str]] = {}
    for file in own:
        rooms.setdefault(room_of(file), []).append(file.rpartition("/")[2].removesuffix(".py"))
    lines = [f"{name}: {len(own)} files; {what}"]
    lines += [f"    {room} {len(found)}: {', '.join(found)}" for room, found in rooms.items()]
    passed = ", ".join(file for file in files if not counts(file))
    return "\n".join([*lines, *([f"    not counted: {passed}"] if passed else [])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(WAYS), default=list(WAYS), metavar="NAME")
    for name in parser.parse_args().only:
        print(shown(name), flush=True)


if __name__ == "__main__":
    main()
