"""A player as a JSON file: plain numbers and base64 arrays under a checksum, nothing that could run.

A checksum tells damage, not intent. So every number is checked before anything compiled sees it: the state by the rules of its
class (`abex.kinds`), the graph by `read_graph`, all else here. No array in memory is larger than the file allows.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable
from itertools import pairwise
from os import PathLike
from sys import intern
from typing import Any

import numpy as np

from abex.graphs.graph_file import read_graph, write_graph
from abex.kinds import MOST_COUNT, agree, kept_with_decisions, read, saved, written
from abex.players.events import MOST_MOMENT, Decided
from abex.players.ids import LIFE_AT, is_id
from abex.players.open_windows import open_windows
from abex.players.player import Player, new_state
from abex.players.player_settings import PlayerSettings, terms
from abex.players.policy_runner import MANY_ARMS
from abex.players.state import MOST_SEEN_KEYS, MOST_STEPS, RECENT, PlayerState, Tallies
from abex.policies.naming import installed_policies, parse_policy
from abex.policies.policy import MOST_ARMS, Policy, Setting
from abex.support.errors import UserError, checked_name, real_number, shown, whole_number
from abex.support.files import decode_array, encode_array, read_text, write_atomically
from abex.support.reading import check_json, gunzip

FORMAT = "abex-player"
DEFINITION = "abex-shared-player"
SNAPSHOT = "abex-snapshot"
VERSION = 1
CAREFUL_STEPS = 64  # first calls of a loaded policy of another package that run with bounds checks
BODY = ',\n"player": '  # what stands between the header and the text under its checksum


def save_player(player: Player, path: str | PathLike[str]) -> None:
    """Write ``player`` to ``path``."""
    write_atomically(path, player_text(player).encode())


def player_text(player: Player) -> str:
    """What the file of a player holds."""
    replica = player._state
    replica.state = replica.policy.prepare(replica.state)  # as it is loaded: both go on alike
    body = (
        {"policy": repr(player.policy), "module": type(player.policy).__module__}
        | written_terms(player._settings)
        | {"n_arms": replica.n_arms, "horizon": replica.setting.horizon, "max_pending": replica.max_pending}
        | {"graph": written_graph(replica.setting)}
        | written_state(replica)
        | {"random": player._rng.bit_generator.state}
    )
    return with_checksum(body, FORMAT, VERSION)


def with_checksum(body: Any, format: str, version: int) -> str:
    """A JSON text with a header that holds format, version and checksum of the body."""
    text = json.dumps(body)
    header = json.dumps({"format": format, "version": version, "sha256": checksum(text)})
    return f'{{"header": {header}{BODY}{text}}}\n'


def written_terms(terms: PlayerSettings) -> dict[str, Any]:
    """The agreement with the application as JSON values."""
    return {
        "rewards": [terms.low, terms.high],
        "expire": terms.expire_seconds,
        "unrewarded": terms.unrewarded,
        "propensities": terms.propensities,
    } | ({"window": True} if terms.weighs else {})


def read_terms(body: Any) -> PlayerSettings:
    """What `written_terms` wrote, checked."""
    agree(body.get("window", True) is True, "window must be true where it is")
    window, expire = (body["expire"], None) if "window" in body else (None, body["expire"])
    return terms(body["rewards"], expire, body["unrewarded"], body["propensities"], window)


def written_state(replica: PlayerState) -> dict[str, Any]:
    """State, arms, waiting decisions and tallies as JSON values."""
    labels = replica.arms.labels
    replica.settle()
    return {
        "state": written(saved(replica.state)),
        "steps": min(replica.steps, MOST_STEPS),
        "pending": [
            [
                name,
                one.t,
                one.arm,
                [encode_array(m) for m in one.memory],
                one.moment,
                one.probability,
                *((one.unit, one.key) if one.unit is not None or one.key is not None else ()),
            ]
            for name, one in replica.pending.items()
        ],
        "names": encode_array(replica.arms.numbers),
        "next_name": replica.arms.next_number,
        "labels": None if labels is None else [labels[number] for number in replica.arms.numbers.tolist()],
        "tallies": _written_tallies(replica.tallies),
        "lives": list(replica.lives.values()),
    } | {
        name: value
        for name, value in (
            ("elsewhere", replica.elsewhere),
            ("seen_keys", list(replica.seen_keys)),
            ("windows", replica.windows and replica.windows.written()),
        )
        if value
    }


def load_player(
    path: str | PathLike[str], compiled: bool | None, clock: Callable[[], float] | None = None
) -> Player:
    """The player of ``path``; a damaged or foreign file gives one clear error."""
    return read_player(read_text(path, "player"), f"the player {str(path)!r}", compiled, clock)


def read_player(
    text: str, where: str, compiled: bool | None, clock: Callable[[], float] | None = None
) -> Player:
    """The player of what `player_text` wrote."""
    body = verified(text, where, FORMAT, VERSION, "a saved player")
    with_reason = f"cannot load {where}"
    try:
        return _player(body, compiled, clock)
    except DAMAGE as error:
        raise UserError(f"{with_reason}: {reason_of(error)}") from error


#: what reading damaged or forged values may raise
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, IndexError, MemoryError)


def reason_of(error: BaseException) -> str:
    """Why something could not be read, in one line."""
    reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__} {error}"
    return reason.splitlines()[0] if reason else "it is damaged"


def verified(text: str, where: str, format: str, version: int, kind: str) -> Any:
    """Body of what `with_checksum` made; anything else is refused in one sentence."""
    check_json(text, where)
    found_sum = _checksum_of_body(text.encode())
    try:
        file = json.loads(text)
        header, body = file["header"], file["player"]
        known = header["format"] == format and isinstance(body, dict)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(f"cannot load {where}: the file is damaged or not {kind}") from None
    if not known:
        raise UserError(f"cannot load {where}: it is of format {shown(header['format'])}, not {format!r}")
    found = header.get("version")
    if type(found) is not int or found != version:
        raise UserError(
            f"cannot load {where}: it was written by another version of abex "
            f"(format {shown(found)}, this one reads {version})"
        )
    if header.get("sha256") != found_sum:
        raise UserError(f"cannot load {where}: the file is damaged, its checksum does not fit")
    return body


def _checksum_of_body(content: bytes) -> str:
    begin = content.find(BODY.encode()) + len(BODY)
    return hashlib.sha256(memoryview(content)[begin : content.rfind(b"}")]).hexdigest()


def _player(body: dict[str, Any], compiled: bool | None, clock: Callable[[], float] | None) -> Player:
    policy = read_policy(body)
    n_arms = whole_number("n_arms", body["n_arms"], least=1, most=MOST_ARMS)
    check_numbers(body, n_arms)
    graph = read_feedback(body["graph"], n_arms)
    options = {"horizon": body["horizon"], "max_pending": body["max_pending"]}
    player = Player(policy, n_arms, graph=graph, seed=0, compiled=compiled, clock=clock, **options)
    player._settings = read_terms(body)
    read_state(player._state, body)
    in_order(player._state)
    _set_random(player._rng, body["random"])
    return player


def written_graph(setting: Setting) -> Any:
    """The feedback graph as a JSON value; None for none."""
    return None if setting.graph is None else write_graph(setting.graph)


def read_feedback(saved: Any, n_arms: int) -> Any:
    """The graph of `written_graph`, checked."""
    return None if saved is None else read_graph(saved, n_arms)


def check_numbers(body: dict[str, Any], n_arms: int) -> None:
    """See that there is a name for each arm, before room is made for them."""
    numbers = decode_array(body["names"])
    agree(numbers.shape == (n_arms,) and numbers.dtype == np.int64, "names must be one for each arm")
    agree(numbers[0] >= 0 and bool((numbers[1:] > numbers[:-1]).all()), "names must be increasing")


def read_state(replica: PlayerState, body: dict[str, Any]) -> None:
    """Fill a fresh replica with what `written_state` wrote; everything is checked."""
    numbers, policy, n_arms = decode_array(body["names"]), replica.policy, replica.n_arms
    replica.arms.numbers = numbers
    least = int(numbers[-1]) + 1
    replica.arms.next_number = whole_number("next_name", body["next_name"], least=least, most=2**62)
    if body["labels"] is not None:
        agree(isinstance(body["labels"], list) and len(body["labels"]) == n_arms, "labels must be one an arm")
        replica.arms.set_labels(dict(zip(numbers.tolist(), body["labels"], strict=True)))
    replica.steps = whole_number("steps", body["steps"], most=MOST_STEPS)
    replica.elsewhere = whole_number("elsewhere", body.get("elsewhere", 0), most=replica.steps)
    fresh = replica.state
    replica.state = policy.resume(replica.setting, read(body["state"], fresh))
    replica.tallies = _read_tallies(body["tallies"], n_arms)
    agree(all(is_id(last) for last in body["lives"]), "lives must be ids of decisions")
    replica.lives = {last[LIFE_AT:]: last for last in body["lives"]}
    _read_pending(replica, fresh, body["pending"])
    if (windows := body.get("windows")) is not None:
        window = whole_number("window", windows["window"], least=1, most=2**44)
        silence = real_number("silence", windows["silence"], least=0.0, most=1.0)
        replica.windows = open_windows(policy, replica.setting, window, silence)
        replica.windows.read(windows, replica.arms)
    seen = body.get("seen_keys", [])
    agree(isinstance(seen, list) and len(seen) <= MOST_SEEN_KEYS, "seen_keys must be keys of observations")
    replica.seen_keys.update((str(read_word(key, "key")), None) for key in seen)
    if type(policy).__module__.split(".")[0] != __package__.split(".")[0]:
        replica.be_careful(CAREFUL_STEPS if n_arms <= MANY_ARMS else CAREFUL_STEPS // 16)


def read_policy(body: dict[str, Any]) -> Policy[Any]:
    """The policy of the file, which must have been imported or be offered by an installed package."""
    text = str(body["policy"])
    head = text.partition("(")[0].strip()
    if head not in installed_policies([head]):
        module = body.get("module")
        where = f"the module {module}" if isinstance(module, str) and len(module) < 80 else "the module"
        raise UserError(f"unknown policy {shown(head[:60])}: import {where} that defines it first")
    return parse_policy(text)


def _read_pending(replica: PlayerState, fresh: Any, saved: Any) -> None:
    """The waiting decisions, oldest first: of known lives, with probabilities that their policy can divide by."""
    agree(
        isinstance(saved, list) and len(saved) <= replica.max_pending, "pending must be at most max_pending"
    )
    for name, t, arm, memory, moment, probability, *asked in saved:
        arm = whole_number("arm", arm)
        agree(replica.arms.has(arm), "a decision waits for an arm that is not there")
        t = whole_number("t", t, least=1, most=2**62)
        agree(bool(replica.has_made(name)), "a decision waits that was never made")
        agree(name not in replica.pending, "a decision waits twice")
        agree(isinstance(memory, list), "a decision remembers something else")
        arrays = tuple(decode_array(one) for one in memory)
        moment = whole_number("moment", moment, most=MOST_MOMENT)
        unit, key = asked or (None, None)
        unit, key = read_word(unit, "unit"), read_word(key, "key")
        agree(replica.open_decision(unit, key) is None, "two decisions wait for one unit")
        event = Decided(name, moment, arm, t, arrays, read_probability(probability), unit=unit, key=key)
        replica.check_memory(event, fresh)
        replica.add_pending(event)


def in_order(replica: PlayerState) -> None:
    """See that waiting decisions of one process are in order."""
    steps = [waiting.t for waiting in replica.pending.values()]
    agree(all(1 <= early < late for early, late in pairwise(steps)), "waiting decisions must be in order")
    agree(not steps or steps[-1] <= replica.steps, "a decision waits that was never made")


def read_word(value: Any, name: str) -> str | None:
    """The name of a unit or a key, or None."""
    return None if value is None else checked_name(name, value)


def read_probability(value: Any) -> float | None:
    """A probability, or None."""
    agree(
        value is None or (type(value) in (int, float) and 0.0 <= value <= 1.0),
        "probability must be within 0 to 1",
    )
    return None if value is None else float(value)


def _written_tallies(tallies: Tallies) -> dict[str, Any]:
    """A JSON value; arms never met are left out, and no count is above the largest that is read."""
    met = np.flatnonzero((tallies.pulls > 0) | (tallies.observations > 0))
    return {
        "places": encode_array(met),
        "pulls": encode_array(np.minimum(tallies.pulls[met], int(MOST_COUNT))),
        "observations": encode_array(np.minimum(tallies.observations[met], int(MOST_COUNT))),
        "sums": encode_array(np.minimum(tallies.sums[met], MOST_COUNT)),
        "recent": encode_array(np.array(tallies.recent, np.int64)),
        "rewarded": min(tallies.rewarded, int(MOST_COUNT)),
        "expired": min(tallies.expired, int(MOST_COUNT)),
    }


def _read_tallies(saved: Any, n_arms: int) -> Tallies:
    """What `_written_tallies` wrote, checked."""
    tallies = Tallies(n_arms)
    places = decode_array(saved["places"])
    agree(places.dtype == np.int64 and places.ndim == 1, "tallies must be of arms")
    if places.size:
        agree(
            places[0] >= 0 and places[-1] < n_arms and bool((places[1:] > places[:-1]).all()),
            "tallies must be of arms",
        )
    for name in ("pulls", "observations", "sums"):
        values = decode_array(saved[name])
        target = getattr(tallies, name)
        agree(values.shape == places.shape and values.dtype == target.dtype, f"{name} must be one an arm")
        agree(bool(np.all((values >= 0) & (values <= MOST_COUNT))), f"{name} must be numbers >= 0")
        target[places] = values
    agree(
        bool(np.all(tallies.sums <= tallies.observations * (1.0 + 1e-9))), "sums must be of rewards up to 1"
    )
    recent = decode_array(saved["recent"])
    agree(recent.dtype == np.int64 and recent.ndim == 1, "recent must be numbers of arms")
    agree(recent.size <= RECENT and bool((recent >= 0).all()), "recent must be numbers of arms")
    tallies.recent.extend(recent.tolist())
    for name in ("rewarded", "expired"):
        agree(type(saved[name]) is int and 0 <= saved[name] <= MOST_COUNT, f"{name} must be a count")
        setattr(tallies, name, saved[name])
    return tallies


def _set_random(rng: np.random.Generator, saved: Any) -> None:
    """The state of the random numbers; an even increment would shorten their period to next to nothing."""
    numbers = saved["state"]
    limits = [(numbers["state"], 2**128), (numbers["inc"], 2**128), (saved["has_uint32"], 2)]
    limits.append((saved["uinteger"], 2**32))
    fine = all(type(number) is int and 0 <= number < limit for number, limit in limits)
    agree(fine and numbers["inc"] % 2 == 1, "random must be a state of PCG64")
    rng.bit_generator.state = saved


def checksum(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


# -- a shared player: its definition, written once into its journal, and snapshots of its state ------------------------


def definition_text(replica: PlayerState, terms: PlayerSettings) -> str:
    """The definition of a player that nothing has happened to yet."""
    arms = replica.arms
    saved(replica.state)  # which says why where it cannot be
    body = {
        "policy": repr(replica.policy),
        "module": type(replica.policy).__module__,
        "n_arms": replica.n_arms,
        "labels": None if arms.labels is None else arms.all_labels(),
        "horizon": replica.setting.horizon,
        "graph": written_graph(replica.setting),
        "max_pending": replica.max_pending,
        "key": os.urandom(16).hex(),
    }
    return with_checksum(body | written_terms(terms), DEFINITION, VERSION)


class Definition:
    """What `definition_text` wrote, checked; makes fresh replicas."""

    def __init__(self, text: str, where: str) -> None:
        body = verified(text, where, DEFINITION, VERSION, "the definition of a player")
        self.body = {intern(name): value for name, value in body.items()}  # one copy for all open players
        self.where = where
        try:
            self.terms = read_terms(self.body)
            self.key = int(str(self.body["key"]), 16) & (2**128 - 1)
            self.n_arms = whole_number("n_arms", self.body["n_arms"], least=1, most=MOST_ARMS)
        except DAMAGE as error:
            raise UserError(f"cannot open {where}: {reason_of(error)}") from error

    def replica(self, compiled: bool | None, n_arms: int | None = None) -> PlayerState:
        """A replica before the first event; with another number of arms, to be filled from a snapshot."""
        try:
            body = self.body
            graph = read_feedback(body["graph"], self.n_arms)
            policy = read_policy(body)
            labels = body["labels"] if n_arms is None else None
            many = None if labels is not None else self.n_arms if n_arms is None else n_arms
            options = (
                graph,
                body["horizon"],
                compiled,
                body["max_pending"],
                self.terms.propensities is not False,
            )
            replica = new_state(policy, many, labels, *options)
            replica.draws_leave_state = True
            return replica
        except UserError:
            raise
        except DAMAGE as error:
            raise UserError(f"cannot open {self.where}: {reason_of(error)}") from error

    def first_difference(self, replica: PlayerState, terms: PlayerSettings) -> str | None:
        """In what a player as the caller wants it differs from this one, but for its arms, which may have changed since."""
        wanted = json.loads(definition_text(replica, terms))["player"]
        names = ("policy", "horizon", "graph", "rewards", "expire", "unrewarded", "window")
        for name in names:
            ours, theirs = self.body.get(name), wanted.get(name)
            if ours != theirs:
                unit = " seconds" if name == "expire" else ""
                return f"{name} is {shown(ours)}{unit} in the journal, not {shown(theirs)}{unit}"
        return None


def state_text(replica: PlayerState, seq: int) -> str:
    """All that is a function of the first ``seq`` events, as text; equal for equal states."""
    body = written_state(replica)
    return with_checksum({"seq": seq, "n_arms": replica.n_arms} | body, SNAPSHOT, VERSION)


def snapshot_of(replica: PlayerState, seq: int) -> bytes:
    """A snapshot for the journal."""
    return gzip.compress(state_text(replica, seq).encode(), 1, mtime=0)


def from_snapshot(definition: Definition, packed: bytes, compiled: bool | None) -> tuple[PlayerState, int]:
    """The replica of a snapshot, and the number of the last event in it."""
    where = f"a snapshot of {definition.where}"
    text = gunzip(packed, where).decode("utf-8", "replace")
    body = verified(text, where, SNAPSHOT, VERSION, "a snapshot")
    try:
        n_arms = whole_number("n_arms", body["n_arms"], least=1, most=MOST_ARMS)
        check_numbers(body, n_arms)
        replica = definition.replica(compiled, n_arms)
        read_state(replica, body)
        return replica, whole_number("seq", body["seq"], least=0, most=2**62)
    except DAMAGE as error:
        raise UserError(f"cannot read {where}: {reason_of(error)}") from error


def template_of(replica: PlayerState) -> Any:
    """A state as the policy starts, by which what decisions remember is checked; None where they remember nothing."""
    return replica.policy.start(replica.setting) if kept_with_decisions(replica.state) else None
