"""Shared players under fire: processes that decide and reward in random order, killed at random moments.

A worker writes what was acknowledged to a file of its own (a write survives the process). The one that takes its place goes on
with the decisions that were left, so a reward that was written but not acknowledged is reported again. `verify` compares the
journal with these files, and every replica with a serial replay from the first event.

All players of a storm are in one store, so that one transaction has events of several; one of each policy that
docs/which_policy.md recommends, and of those that it recommends for graphs another one, on a path.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from abex import Graph
from abex.players import Store
from abex.players.events import Decided, Rewarded, decode
from abex.players.journal import journal_at
from abex.players.player_file import Definition, state_text, template_of
from abex.players.shared_player import SequenceStream, SharedPlayer
from tests.waiting import PATIENCE

SNAPSHOTS = 100  # events of a player from snapshot to snapshot
ROOT = Path(__file__).parents[2]


RECOMMENDED = (
    "Evidence", "Evidence(forget=False)", "EpsilonThompson", "IMED", "FollowTheLeader", "UCB1", "UCBV", "Thompson", "TsallisINF",
    "KLUCBPlusPlus", "Exp3S", "Restarting(KLUCB())", "ABE", "Boltzmann",
)  # fmt: skip
ON_GRAPHS = ("Evidence", "EpsilonThompson", "FollowTheLeader")
TO_CORRECT = ("Evidence", "Thompson")
N_ARMS, HORIZON = 10, 10_000
CORRECTED = " with refunds"  # in the name of a player


def make_players(
    url: str, policies: Sequence[str], on_graphs: Sequence[str] = (), corrected: Sequence[str] = ()
) -> list[str]:
    """The names of new players."""
    path = Graph.from_edges([(arm, arm + 1) for arm in range(N_ARMS - 1)])
    wanted = {policy: (policy, None) for policy in policies}
    wanted |= {f"{policy} on a path": (policy, path) for policy in on_graphs}
    with Store.open(url) as store:
        for name, (policy, graph) in wanted.items():
            store.player(name, policy, n_arms=N_ARMS, graph=graph, horizon=HORIZON)
        for policy in corrected:
            name = f"{policy}{CORRECTED}"
            store.player(name, policy, n_arms=N_ARMS, window=3_600, conversions="sum")
            wanted[name] = policy, None
    return list(wanted)


def reward_of(name: str, arm: int | None = None) -> float:
    """The reward of a decision: a function of its id, whoever reports it; or of another arm that is seen with it."""
    text = name if arm is None else f"{name} {arm}"
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % 5 / 4.0


def beside(name: str, arm: int) -> dict[int, float]:
    """What is seen on a path beside the arm of a decision."""
    return {other: reward_of(name, other) for other in (arm - 1, arm + 1) if 0 <= other < N_ARMS}


def is_refunded(name: str) -> bool:
    """Whether a decision has a second conversion, and is sent back as a whole after it: every third."""
    return int(name[-2:], 16) % 3 == 0


class Told:
    """What was acknowledged of one player: decisions with their arms, rewards, and states that were seen."""

    def __init__(self) -> None:
        self.decisions: dict[str, int] = {}
        self.rewards: set[str] = set()
        self.states: list[tuple[int, str]] = []


def read_log(path: Path) -> dict[str, Told]:
    """By player; the last line may be cut off."""
    told: dict[str, Told] = defaultdict(Told)
    if path.exists():
        for line in path.read_text().split("\n")[:-1]:
            kind, *rest, name = line.split(" ", 3 if line[0] in "DS" else 2)
            if kind == "D":
                told[name].decisions[rest[0]] = int(rest[1])
            elif kind == "R":
                told[name].rewards.add(rest[0])
            else:
                told[name].states.append((int(rest[0]), rest[1]))
    return told


def work(url: str, path: Path, total: int, seed: int, names: Sequence[str]) -> None:
    """Decide and reward until ``total`` decisions of this place have had their rewards."""
    rng = random.Random(seed)
    told = read_log(path)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    left = total - sum(len(one.decisions) for one in told.values())
    waiting = {
        name: [(one, arm) for one, arm in told[name].decisions.items() if one not in told[name].rewards]
        for name in names
    }

    def note(lines: Iterable[str]) -> None:
        os.write(log, "".join(f"{line}\n" for line in lines).encode())

    def state(player: SharedPlayer) -> list[str]:
        text, seq = player.text(), player.seq()
        if f'"seq": {seq},' not in text[:300]:
            return []
        return [f"S {seq} {hashlib.sha256(text.encode()).hexdigest()} {player.name}"]

    with Store.open(url, snapshot_every=SNAPSHOTS, deadline=PATIENCE) as store:
        players = {name: store.player(name) for name in names}
        while left > 0 or any(waiting.values()):
            some = {}
            for name in rng.sample(list(names), rng.randint(1, min(3, len(names)))):
                made = [players[name].decide() for _ in range(min(left, rng.randint(0, 4)))]
                left -= len(made)
                some[name] = [(one.id, int(one.arm)) for one in made]
            for name, fresh in some.items():
                player, mine = players[name], waiting[name]
                mine += fresh
                rng.shuffle(mine)
                reported = [mine.pop() for _ in range(min(len(mine), rng.randint(0, 5)))]
                if reported:
                    on_graph = name.endswith(" on a path")
                    player.update_many(
                        [
                            (one, reward_of(one), beside(one, arm) if on_graph else None)
                            for one, arm in reported
                        ]
                    )
                    if name.endswith(CORRECTED):
                        refunded = [one for one, _ in reported if is_refunded(one)]
                        player.update_many([(one, 0.25, None, "again") for one in refunded])
                        for one in refunded:
                            player.correct(one, 0.125)
                else:
                    player.flush()
                # decisions are in the journal before the rewards that follow them
                note(f"D {one} {arm} {name}" for one, arm in fresh)
                note(f"R {one} {name}" for one, _ in reported)
                if rng.random() < 0.02:
                    note(state(player))
            if rng.random() < 0.1:
                time.sleep(rng.random() * 0.005)
        for player in players.values():
            player.refresh()
            with player._lock:
                note(state(player))
    os.close(log)


class Storm:
    """Workers in places 0, 1, ..., each with its file."""

    def __init__(
        self, url: str, names: Sequence[str], folder: Path, places: int, total: int, seed: int
    ) -> None:
        self.url, self.names, self.folder, self.total = url, names, folder, total
        self.rng = random.Random(seed)
        self.kills = 0
        self.workers = {place: self._start(place) for place in range(places)}

    def path(self, place: int) -> Path:
        return self.folder / f"worker{place}.log"

    def _start(self, place: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.players.storm", self.url, str(self.path(place))]
        command += [str(self.total), str(self.rng.randrange(2**31)), *self.names]
        return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)

    def rage(self, kills: int, pause: float, limit: float = PATIENCE) -> None:
        """Kill random workers until all work is done; ``pause`` seconds between kills on average."""
        until = time.monotonic() + limit
        while self.workers:
            if time.monotonic() > until:
                raise TimeoutError(f"the storm did not end within {limit} seconds")
            time.sleep(self.rng.random() * 2.0 * pause if self.kills < kills else 0.05)
            for place, worker in list(self.workers.items()):
                if worker.poll() is not None:
                    errors = worker.stderr.read().decode() if worker.stderr else ""
                    assert worker.returncode == 0, errors[-2000:]
                    del self.workers[place]
            if self.workers and self.kills < kills:
                place = self.rng.choice(list(self.workers))
                if self.path(place).exists():  # it has begun its work
                    self.workers[place].send_signal(signal.SIGKILL)
                    self.workers[place].wait()
                    if self.workers[place].returncode == -signal.SIGKILL:
                        self.kills += 1
                        self.workers[place] = self._start(place)


def replayed(url: str, name: str, wanted: set[int]) -> tuple[dict[int, str], list[Any], str, Any]:
    """From the first event on, one by one: hashes of the state after some events, all events, the final text and replica."""
    journal = journal_at(url)
    journal.connect(create=False)
    record = journal.player(name)
    assert record is not None
    definition = Definition(record.definition, name)
    replica = definition.replica(None)
    template, learning = template_of(replica), SequenceStream(definition.key)
    hashes = {0: hashlib.sha256(state_text(replica, 0).encode()).hexdigest()}
    events, last = list[Any](), 0
    for seq, body in journal.read(record.id, 0, record.head):
        assert seq == last + 1, "sequence numbers have no gaps"
        last = seq
        event = decode(body)
        replica.check(event, template)
        replica.apply(event, learning.at(seq))
        events.append(event)
        if seq in wanted:
            hashes[seq] = hashlib.sha256(state_text(replica, seq).encode()).hexdigest()
    journal.close()
    return hashes, events, state_text(replica, last), replica


def verify(url: str, names: Sequence[str], folder: Path) -> dict[str, int]:
    """No acknowledged event lost, none counted twice, every replica equal to a serial replay, byte for byte; what there was."""
    logs = [read_log(path) for path in folder.glob("worker*.log")]
    found: Counter[str] = Counter()
    with Store(url) as store:
        for name in names:
            found.update(_verify(url, store.player(name), [log[name] for log in logs]))
    return dict(found)


def _verify(url: str, player: SharedPlayer, told: Sequence[Told]) -> dict[str, int]:
    decisions: dict[str, int] = {}
    for one in told:
        assert not decisions.keys() & one.decisions.keys(), "an id was given twice"
        decisions |= one.decisions
    states = [state for one in told for state in one.states]
    hashes, events, text, replica = replayed(url, player.name, {seq for seq, _ in states})
    made = [event for event in events if isinstance(event, Decided)]
    told_of = [event for event in events if isinstance(event, Rewarded)]
    paid = [event for event in told_of if event.key is None and not event.corrects]
    refunded = {event.decision for event in told_of if event.corrects}
    once_more = {event.decision for event in told_of if event.key is not None} - refunded
    arms = {event.id: event.arm for event in made}
    assert len(arms) == len(made), "a decision was written twice"
    assert all(arms.get(one) == arm for one, arm in decisions.items()), "an acknowledged decision is lost"
    rewarded = {event.decision for event in paid}
    assert all(one.rewards <= rewarded for one in told), "an acknowledged reward is lost"
    assert all(event.reward == reward_of(event.decision) for event in paid)
    seen = [
        0.125 if one in refunded else min(1.0, reward_of(one) + 0.25 * (one in once_more)) for one in rewarded
    ]
    if player.name.endswith(" on a path"):
        seen += [reward for one in rewarded for reward in beside(one, arms[one]).values()]
    assert int(replica.tallies.observations.sum()) == len(seen), "a reward was counted twice"
    assert abs(float(replica.tallies.sums.sum()) - sum(seen)) < 1e-6
    assert replica.steps == len(arms)
    for seq, state in states:
        assert hashes[seq] == state, f"a replica differed from the serial replay after event {seq}"
    assert player.text() == text  # from a snapshot and the events after it
    again = len(paid) - len(rewarded)
    return {"decisions": len(arms), "rewards": len(rewarded), "reported again": again, "states": len(states)}


if __name__ == "__main__":
    _, address, file, count, number, *all_names = sys.argv
    work(address, Path(file), int(count), int(number), all_names)
