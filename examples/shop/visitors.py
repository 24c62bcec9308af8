"""Visitors of the shop on a clock of their own: a day of them takes a minute, and nobody waits.

python -m examples.shop.visitors --runs 5 --picture shop.png     several workers as players of one process
python -m examples.shop.visitors --http --visitors 6000          several workers as processes; one of them is killed

A visitor comes every second, is sent to any of the workers, clicks after 20 seconds on average or never, and comes back now and
then. Two deploys add a banner each, first one that nobody wants, then the best of all.
"""

from __future__ import annotations

import argparse
import heapq
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import httpx
import numpy as np
from examples.shop.app import BANNERS, create_app, open_player

from abex.players import UnavailableError

ROOT = Path(__file__).parents[2]
RATES = {"red": 0.05, "green": 0.08, "blue": 0.12, "grey": 0.02, "gold": 0.18}
TICK = 5  # seconds after which the workers write, and read what the others wrote before
SOONEST, CLICK = 2 * TICK, 10.0  # seconds until a click, at least, and on average beyond that
RETURNS, AWAY = 0.2, 600.0  # how many come back without having clicked, and within how many seconds
WORKERS = 3
DEPLOYS = {0.35: "grey", 0.65: "gold"}  # after which part of the day which banner is added
SILENCES = {
    "window": "window: silence counts by its age",
    "expire": "expire: silence counts after half an hour",
}


class Shown(NamedTuple):
    """What a visitor was shown."""

    decision: str
    banner: str


class Worker(Protocol):
    """A worker of the shop, at moments of the visitors' clock."""

    def show(self, moment: float, visitor: str) -> Shown:
        """The banner for a visitor."""

    def click(self, moment: float, decision: str) -> bool:
        """Whether a click counts."""

    def catch_up(self, moment: float) -> None:
        """Write what waits to be written, and read what the others wrote."""

    def close(self) -> None:
        """End as a deploy ends it."""


Start = Callable[
    [float, Sequence[str]], Worker
]  # a worker that begins at a moment, with the banners of its deploy


class PlayerWorker:
    """A worker that is a player in this process."""

    def __init__(self, store: str, silence: str, moment: float, banners: Sequence[str]) -> None:
        self.moment = moment
        self.player = open_player(store, tuple(banners), silence, clock=lambda: self.moment)

    def show(self, moment: float, visitor: str) -> Shown:
        self.moment = moment
        decision = self.player.decide(unit=visitor)
        return Shown(decision.id, str(decision.arm))

    def click(self, moment: float, decision: str) -> bool:
        self.moment = moment
        try:
            return self.player.update(decision, True)
        except UnavailableError as error:  # a busy disk: what is kept is written later
            return error.kept

    def catch_up(self, moment: float) -> None:
        self.moment = moment
        with suppress(UnavailableError):  # a busy disk: then at the next tick
            self.player.refresh()

    def close(self) -> None:
        self.player.close()


class HTTPWorker:
    """A worker that is a process of its own, asked over HTTP; every request says what time it is."""

    def __init__(self, store: str, silence: str, moment: float, banners: Sequence[str]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        socket = f"{self.folder.name}/socket"
        command = [
            sys.executable,
            "-m",
            "uvicorn",
            "--factory",
            "examples.shop.visitors:timed_app",
            "--uds",
            socket,
        ]
        names = {
            "SHOP_STORE": store,
            "SHOP_BANNERS": ",".join(banners),
            "SHOP_SILENCE": silence,
            "SHOP_TIME": str(moment),
        }
        self.process = subprocess.Popen(
            [*command, "--log-level", "warning"], cwd=ROOT, env={**os.environ, **names}
        )
        self.client = httpx.Client(
            base_url="http://shop", transport=httpx.HTTPTransport(uds=socket), timeout=60.0, cookies=None
        )
        while True:
            try:
                self.client.get("/product").raise_for_status()
                return
            except httpx.TransportError:
                if self.process.poll() is not None:
                    raise
                time.sleep(0.02)

    def get(self, moment: float, path: str, **cookies: str) -> httpx.Response:
        """An answer of the worker."""
        cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
        return self.client.get(path, headers={"x-time": str(moment), "cookie": cookie})

    def show(self, moment: float, visitor: str) -> Shown:
        page = self.get(moment, "/", visitor=visitor).raise_for_status()
        return Shown(page.headers["x-decision"], page.headers["x-banner"])

    def click(self, moment: float, decision: str) -> bool:
        return self.get(moment, f"/click/{decision}").headers["x-counted"] == "True"

    def catch_up(self, moment: float) -> None:
        self.get(moment, "/banners").raise_for_status()

    def close(self, by: int = signal.SIGTERM) -> None:
        self.client.close()
        self.process.send_signal(by)
        self.process.wait()
        self.folder.cleanup()


def timed_app() -> Any:
    """The shop at the time that its visitors say."""
    now = [float(os.environ["SHOP_TIME"])]
    app = create_app(clock=lambda: now[0])

    async def timed(scope: Any, receive: Any, send: Any) -> None:
        said = dict(scope.get("headers", ())).get(b"x-time")
        if said is not None:
            now[0] = max(now[0], float(said))
        await app(scope, receive, send)

    return timed


class Visit(NamedTuple):
    """A visitor who was shown a banner for the first time, or again."""

    moment: float
    decision: str
    banner: str
    clicks: bool
    moved: bool  # came back before the banner was clicked, and saw another one


class Day:
    """Visitors, the workers that serve them, and what happens to the workers."""

    def __init__(
        self,
        start: Start,
        visitors: int,
        seed: int,
        deploys: dict[float, str] | None = None,
        kill: float | None = None,
        rates: dict[str, float] = RATES,
        workers: int = WORKERS,
    ) -> None:
        self.start, self.visitors, self.rates, self.kill = start, visitors, rates, kill
        self.rng = random.Random(seed)
        self.deploys = dict(sorted((deploys or {}).items()))
        self.banners = list(BANNERS)
        self.workers = [start(0.0, self.banners) for _ in range(workers)]
        self.visits: list[Visit] = []
        self.clicks: dict[str, bool] = {}  # by decision, whether they counted
        self._later: list[tuple[float, str, Shown]] = []  # a click, or a visitor who comes back

    def any(self) -> Worker:
        """A worker, as a load balancer chooses one."""
        return self.rng.choice(self.workers)

    def run(self) -> Day:
        """Let the day pass."""
        for moment in range(0, self.visitors, TICK):
            for worker in self.workers:
                worker.catch_up(moment)
            while self._later and self._later[0][0] <= moment:
                _, visitor, shown = heapq.heappop(self._later)
                self._comes_back(moment, visitor, shown)
            for second in range(moment, min(moment + TICK, self.visitors)):
                self._comes(moment, f"visitor-{second}")
            self._happens(moment)
        for worker in self.workers:
            worker.close()
        return self

    def _happens(self, moment: float) -> None:
        if self.kill is not None and moment >= self.kill * self.visitors:
            self.kill = None
            killed = self.workers.pop()
            assert isinstance(killed, HTTPWorker)
            killed.close(signal.SIGKILL)
            self.workers.append(self.start(moment, self.banners))
        for part in [part for part in self.deploys if moment >= part * self.visitors]:
            self.banners.append(self.deploys.pop(part))
            for k, worker in enumerate(self.workers):  # one after the other
                worker.close()
                self.workers[k] = self.start(moment, self.banners)

    def _comes(self, moment: float, visitor: str) -> None:
        shown = self.any().show(moment, visitor)
        clicks = self.rng.random() < self.rates[shown.banner]
        self.visits.append(Visit(moment, *shown, clicks, moved=False))
        if clicks:
            heapq.heappush(self._later, (moment + SOONEST + self.rng.expovariate(1.0 / CLICK), "", shown))
        elif self.rng.random() < RETURNS:
            heapq.heappush(self._later, (moment + self.rng.uniform(SOONEST, AWAY), visitor, shown))

    def _comes_back(self, moment: float, visitor: str, shown: Shown) -> None:
        if visitor:
            again = self.any().show(moment, visitor)
            self.visits.append(Visit(moment, *again, clicks=False, moved=again != shown))
        else:
            self.clicks[shown.decision] = self.any().click(moment, shown.decision)


def share_of_best(day: Day, part: int = 50) -> np.ndarray:
    """The share of new visitors who see the best banner there is, in each of so many parts of the day."""
    added = {name: part for part, name in DEPLOYS.items()}
    best = []
    for visit in day.visits:
        there = [name for name in day.rates if added.get(name, 0.0) * day.visitors < visit.moment + TICK]
        best.append(visit.banner == max(there, key=day.rates.__getitem__))
    return np.array([piece.mean() for piece in np.array_split(np.array(best, dtype=float), part)])


def draw(curves: dict[str, np.ndarray], hours: float, path: Path) -> None:
    """The share of the best banner over the day, mean and standard error over the runs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    axes = figure.add_subplot()
    for label, runs in curves.items():
        at = (np.arange(runs.shape[1]) + 0.5) * hours / runs.shape[1]
        mean, error = runs.mean(axis=0), runs.std(axis=0) / max(1, len(runs) - 1) ** 0.5
        (line,) = axes.plot(at, mean, label=label)
        axes.fill_between(at, mean - error, mean + error, color=line.get_color(), alpha=0.2, linewidth=0)
    for part, name in DEPLOYS.items():
        axes.axvline(part * hours, color="grey", linewidth=0.8, linestyle=":")
        axes.annotate(f" + {name}, {RATES[name]:.0%}", (part * hours, 1.02), fontsize=8, color="grey")
    axes.set(xlabel="hours", ylabel="visitors who see the best banner", xlim=(0, hours), ylim=(0, 1.1))
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    figure.legend(loc="outside lower center", ncols=len(curves), frameon=False, fontsize=8)
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--visitors", type=int, default=30_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--http", action="store_true", help="workers are processes, and one is killed")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    workers, kill = (HTTPWorker, 0.2) if options.http else (PlayerWorker, None)
    curves = {}
    for silence, label in SILENCES.items():
        found, earned, moved = [], [], 0
        for seed in range(options.runs):
            with tempfile.TemporaryDirectory() as folder:
                start = partial(workers, f"sqlite:///{folder}/shop.db?synchronous=normal", silence)
                day = Day(start, options.visitors, seed, DEPLOYS, kill).run()
            found.append(share_of_best(day))
            earned.append(sum(visit.clicks for visit in day.visits) / day.visitors)
            moved += sum(visit.moved for visit in day.visits)
        curves[label] = np.array(found)
        error = np.std(earned) / max(1, options.runs - 1) ** 0.5
        print(f"{label}: {np.mean(earned):.4f} ± {error:.4f} clicks a visitor", flush=True)
        print(f"  {moved} visitors came back within their window and saw another banner", flush=True)
    if options.picture:
        draw(curves, options.visitors / 3600.0, options.picture)


if __name__ == "__main__":
    main()
