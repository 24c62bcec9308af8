"""A shared player under fire: processes that decide and reward in random order, killed at random moments.

A worker writes what was acknowledged to a file of its own (a write survives the process). The one that takes its place goes on
with the decisions that were left, so a reward that was written but not acknowledged is reported again. `verify` compares the
journal with these files, and every replica with a serial replay from the first event.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from abex import Player
from abex.players.definitions import Definition, replica_text, template_of
from abex.players.events import Decided, Rewarded, decode
from abex.players.journal import journal_at
from abex.players.seeding import SequenceStream
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]


def reward_of(name: str) -> float:
    """The reward of a decision: a function of its id, so that whoever reports it reports the same."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 5 / 4.0


def read_log(path: Path) -> tuple[dict[str, str], set[str], list[tuple[int, str]]]:
    """Decisions and rewards that were acknowledged, and states that were seen; the last line may be cut off."""
    decisions, rewards, states = {}, set(), []
    if path.exists():
        for line in path.read_text().split("\n")[:-1]:
            kind, *rest = line.split(" ")
            if kind == "D":
                decisions[rest[0]] = rest[1]
            elif kind == "R":
                rewards.add(rest[0])
            elif kind == "S":
                states.append((int(rest[0]), rest[1]))
    return decisions, rewards, states


def work(url: str, name: str, path: Path, total: int, seed: int) -> None:
    """Decide and reward until ``total`` decisions of this place have had their rewards."""
    rng = random.Random(seed)
    decisions, rewards, _ = read_log(path)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    waiting = [decision for decision in decisions if decision not in rewards]
    made = len(decisions)
    player = Player.open(url, name)

    def note(lines: list[str]) -> None:
        os.write(log, "".join(f"{line}\n" for line in lines).encode())

    while made < total or waiting:
        fresh = [player.decide() for _ in range(min(total - made, rng.randint(0, 4)))]
        made += len(fresh)
        waiting += [decision.id for decision in fresh]
        rng.shuffle(waiting)
        reported = [waiting.pop() for _ in range(min(len(waiting), rng.randint(0, 5)))]
        if reported:
            player.update_many([(one, reward_of(one)) for one in reported])
        else:
            player.flush()
        # decisions are in the journal before the rewards that follow them
        note([f"D {one.id} {one.arm}" for one in fresh] + [f"R {one}" for one in reported])
        if rng.random() < 0.1:
            time.sleep(rng.random() * 0.005)
        if rng.random() < 0.02:
            text, seq = player.text(), player.seq()
            if f'"seq": {seq},' in text[:300]:
                note([f"S {seq} {hashlib.sha256(text.encode()).hexdigest()}"])
    player.refresh()
    with player._lock:
        text, seq = player.text(), player.seq()
    note([f"S {seq} {hashlib.sha256(text.encode()).hexdigest()}"])
    player.close()
    os.close(log)


class Storm:
    """Workers in places 0, 1, ..., each with its file."""

    def __init__(self, url: str, name: str, folder: Path, places: int, total: int, seed: int) -> None:
        self.url, self.name, self.folder, self.total = url, name, folder, total
        self.rng = random.Random(seed)
        self.kills = 0
        self.workers = {place: self._start(place) for place in range(places)}

    def path(self, place: int) -> Path:
        return self.folder / f"worker{place}.log"

    def _start(self, place: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.players.storm", self.url, self.name, str(self.path(place))]
        command += [str(self.total), str(self.rng.randrange(2**31))]
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
    hashes, events, last = {}, [], 0
    for seq, body in journal.events(record.id):
        assert seq == last + 1, "sequence numbers have no gaps"
        last = seq
        event = decode(body)
        replica.check(event, template)
        replica.apply(event, definition.terms, learning.at(seq))
        events.append(event)
        if seq in wanted:
            hashes[seq] = hashlib.sha256(replica_text(replica, seq).encode()).hexdigest()
    journal.close()
    return hashes, events, replica_text(replica, last), replica


def verify(url: str, name: str, folder: Path) -> dict[str, int]:
    """No acknowledged event lost, none counted twice, every replica equal to a serial replay, byte for byte."""
    decisions: dict[str, str] = {}
    rewards: set[str] = set()
    states: list[tuple[int, str]] = []
    for path in folder.glob("worker*.log"):
        chosen, paid, seen = read_log(path)
        assert not decisions.keys() & chosen.keys(), "an id was given twice"
        decisions |= chosen
        rewards |= paid
        states += seen
    hashes, events, text, replica = replayed(url, name, {seq for seq, _ in states})
    made = [event for event in events if isinstance(event, Decided)]
    told = [event for event in events if isinstance(event, Rewarded)]
    arms = {event.id: str(event.arm) for event in made}
    assert len(arms) == len(made), "a decision was written twice"
    assert all(arms.get(one) == arm for one, arm in decisions.items()), "an acknowledged decision is lost"
    rewarded = {event.decision for event in told}
    assert rewards <= rewarded, "an acknowledged reward is lost"
    assert all(event.reward == reward_of(event.decision) for event in told)
    assert int(replica.tallies.observations.sum()) == len(rewarded), "a reward was counted twice"
    assert abs(float(replica.tallies.sums.sum()) - sum(map(reward_of, rewarded))) < 1e-6
    assert replica.steps == len(arms)
    for seq, found in states:
        assert hashes[seq] == found, f"a replica differed from the serial replay after event {seq}"
    with Player.open(url, name) as opened:  # from a snapshot and the events after it
        assert opened.text() == text
    again = len(told) - len(rewarded)
    return {"decisions": len(arms), "rewards": len(rewarded), "reported again": again, "states": len(states)}


if __name__ == "__main__":
    _, address, player_name, file, count, number = sys.argv
    work(address, player_name, Path(file), int(count), int(number))
