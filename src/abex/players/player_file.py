"""A player as a JSON file: plain numbers and base64 arrays under a checksum, nothing that could run.

A checksum tells damage, not intent. So every number is checked before anything compiled sees it: the state by the rules of its
class (`abex.kinds`), the graph by `read_graph`, all else by the types and bounds of the fields that are declared here; by hand
only what holds between them. No array in memory is larger than the file allows.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Annotated, Any, TypeVar, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from abex.graphs.graph_file import read_graph, write_graph
from abex.kernels import is_user_defined
from abex.kinds import MOST_COUNT, agree, kept_with_decisions, read, saved, written
from abex.players.answers import Answer
from abex.players.arms import Label
from abex.players.bets import SavedBets
from abex.players.events import Count, Decided, Id, Word, to_builtins
from abex.players.ids import LIFE_AT, is_id
from abex.players.open_windows import SavedWindows
from abex.players.player import Player
from abex.players.player_settings import PlayerSettings, new_state
from abex.players.state import IN_ALL, MOST_SEEN_KEYS, MOST_STEPS, RECENT, PlayerState, Tallies
from abex.policies.naming import installed_policies, parse_policy
from abex.policies.policy import MOST_ARMS, Policy
from abex.support.errors import UserError, checked_name, shown
from abex.support.files import decode_array, encode_array
from abex.support.randomness import stream
from abex.support.reading import check_json, gunzip

FORMAT = "abex-player"
DEFINITION = "abex-shared-player"
SNAPSHOT = "abex-snapshot"
VERSION = 1
Body = TypeVar("Body")
Whole = NDArray[np.int64]
Tally = Annotated[int, msgspec.Meta(ge=0, le=int(MOST_COUNT))]
Size = Annotated[int, msgspec.Meta(ge=1, le=MOST_ARMS)]


class Declared(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is declared of a player when it is made: policy, arms, limits, and the agreement with the application."""

    policy: str
    module: str
    settings: PlayerSettings
    n_arms: Size
    horizon: int | None
    max_pending: int
    graph: dict[str, Any] | None

    def state(
        self, policy: Any, n_arms: int | None, labels: Any, compiled: bool | None, is_shared: bool = False
    ) -> PlayerState:
        """A player that nothing has happened to yet."""
        graph = None if self.graph is None else read_graph(self.graph, self.n_arms)
        more = graph, self.horizon, compiled, self.max_pending, is_shared
        return new_state(self.settings, policy, n_arms, labels, *more)


class DeclaredShared(Declared, kw_only=True):
    """A shared player before its first event."""

    labels: list[Label] | None
    key: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]


class SavedTallies(msgspec.Struct):
    """Counts of the arms at some places; those of all others are 0."""

    places: Whole
    table: NDArray[np.float64]
    recent: Whole
    rewarded: Tally
    expired: Tally
    late: Tally
    corrected: Tally


class SavedState(msgspec.Struct, kw_only=True):
    """All that is a function of the events."""

    n_arms: Size
    state: dict[str, Any]
    steps: Annotated[int, msgspec.Meta(ge=0, le=MOST_STEPS)]
    pending: list[Decided]
    names: Whole
    next_name: Annotated[int, msgspec.Meta(ge=1, le=2**62)]
    labels: list[Label] | None
    tallies: SavedTallies
    lives: list[Id]
    elsewhere: Count
    seen_keys: Annotated[list[Word], msgspec.Meta(max_length=MOST_SEEN_KEYS)]
    windows: SavedWindows | None
    bets: SavedBets
    answers: list[Answer]

    def __post_init__(self) -> None:
        """See what holds between the fields: a name for each arm, before room is made for them."""
        agree(self.names.shape == (self.n_arms,), "names must be one for each arm")
        _check_ascending("names", self.names, self.next_name)
        agree(self.labels is None or len(self.labels) == self.n_arms, "labels must be one an arm")
        agree(self.elsewhere <= self.steps, "elsewhere must be at most steps")
        agree(all(is_id(last) for last in self.lives), "lives must be ids of decisions")


class Snapshot(SavedState, kw_only=True):
    """The state of a shared player after the first ``seq`` events."""

    seq: Count


class SavedPlayer(SavedState, kw_only=True):
    """A player by itself, beside what is declared of it."""

    random: dict[str, Any]


class File(msgspec.Struct):
    """A header, and a body as the text of which the checksum is."""

    header: dict[str, Any]
    player: msgspec.Raw


def player_text(player: Player) -> str:
    """What the file of a player holds."""
    replica = player._state
    replica.state = replica.policy.prepare(replica.state)  # as it is loaded: both go on alike
    body = (
        msgspec.to_builtins(declared(replica))
        | written_state(replica)
        | {"random": player._rng.bit_generator.state}
    )
    return with_checksum(body, FORMAT, VERSION)


def with_checksum(body: Any, format: str, version: int) -> str:
    """A JSON text with a header that holds format, version and checksum of the body."""
    text = json.dumps(body)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    header = json.dumps({"format": format, "version": version, "sha256": checksum})
    return f'{{"header": {header},\n"player": {text}}}\n'


def declared(replica: PlayerState) -> Declared:
    """What is declared of a player."""
    graph = replica.setting.graph
    return Declared(
        policy=repr(replica.policy),
        module=type(replica.policy).__module__,
        settings=replica.settings,
        n_arms=replica.n_arms,
        horizon=replica.setting.horizon,
        max_pending=replica.pending.most,
        graph=None if graph is None else write_graph(graph),
    )


def written_state(replica: PlayerState) -> dict[str, Any]:
    """State, arms, waiting decisions and tallies as JSON values."""
    labels = replica.arms.labels
    replica.settle()
    return {
        "state": written(saved(replica.state)),
        "steps": min(replica.steps, MOST_STEPS),
        "pending": to_builtins(list(replica.pending.values())),
        "names": encode_array(replica.arms.numbers),
        "next_name": replica.arms.next_number,
        "labels": None if labels is None else [labels[number] for number in replica.arms.numbers.tolist()],
        "tallies": _written_tallies(replica.tallies),
        "lives": list(replica.pending.lives.values()),
        "elsewhere": replica.elsewhere,
        "seen_keys": list(replica.seen_keys),
        "windows": None if replica.windows is None else replica.windows.written(),
        "bets": replica.bets.written(),
        "answers": [] if replica.answers is None else replica.answers.written(),
    }


def read_player(
    text: str, where: str, compiled: bool | None, clock: Callable[[], float] | None = None
) -> Player:
    """The player of what `player_text` wrote; a damaged or foreign text gives one clear error."""
    body = verified(text, where, FORMAT, VERSION, "a saved player")
    with _damage_told(f"cannot load {where}"):
        said, saved = decode(body, Declared), decode(body, SavedPlayer)
        policy, rng = read_policy(said), stream(0, "player")
        if compiled is None and is_user_defined(policy.kernels()):
            compiled = False  # interpreted, it looks at every index that the file may have brought
        state = said.state(policy, said.n_arms, None, compiled)
        read_state(state, saved)
        in_order(state)
        _set_random(rng, saved.random)
        player = Player.__new__(Player)
        player._state = state
        player._begin(rng, clock)
        return player


#: what reading damaged or forged values may raise
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, IndexError, MemoryError)


def reason_of(error: BaseException) -> str:
    """Why something could not be read, in one line."""
    reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__} {error}"
    return reason.splitlines()[0] if reason else "it is damaged"


@contextmanager
def _damage_told(task: str) -> Iterator[None]:
    """A context that says what could not be done where values are damaged or forged."""
    try:
        yield
    except DAMAGE as error:
        raise UserError(f"{task}: {reason_of(error)}") from error


def verified(text: str, where: str, format: str, version: int, kind: str) -> bytes:
    """Body of what `with_checksum` made; anything else is refused in one sentence."""
    check_json(text, where)
    try:
        file = msgspec.json.decode(text, type=File)
    except (ValueError, RecursionError):
        raise UserError(f"cannot load {where}: the file is damaged or not {kind}") from None
    header, body = file.header, bytes(file.player)
    if header.get("format") != format:
        raise UserError(f"cannot load {where}: it is of format {shown(header.get('format'))}, not {format!r}")
    found = header.get("version")
    if type(found) is not int or found != version:
        raise UserError(
            f"cannot load {where}: it was written by another version of abex "
            f"(format {shown(found)}, this one reads {version})"
        )
    if header.get("sha256") != hashlib.sha256(body).hexdigest():
        raise UserError(f"cannot load {where}: the file is damaged, its checksum does not fit")
    return body


def decode(body: bytes, cls: type[Body]) -> Body:
    """The part of a body that ``cls`` declares; raises ValueError."""
    return msgspec.json.decode(body, type=cls, dec_hook=_array)


def _array(declared: Any, value: Any) -> NDArray[Any]:
    """An array whose numbers are of the type that is declared."""
    array, (wanted,) = decode_array(value), get_args(get_args(declared)[1])
    agree(wanted is Any or array.dtype == wanted, f"an array of {array.dtype} should be of another type")
    return array


def _check_ascending(name: str, numbers: Whole, below: int) -> None:
    agree(numbers.ndim == 1 and bool((numbers[1:] > numbers[:-1]).all()), f"{name} must be increasing")
    agree(bool(((numbers >= 0) & (numbers < below)).all()), f"{name} must be from 0 to {below - 1}")


def read_state(replica: PlayerState, saved: SavedState) -> None:
    """Fill a fresh replica with what `written_state` wrote; what its fields do not say is checked here."""
    numbers, policy, n_arms = saved.names, replica.policy, replica.n_arms
    replica.arms.numbers, replica.arms.next_number = numbers, saved.next_name
    if saved.labels is not None:
        replica.arms.set_labels(dict(zip(numbers.tolist(), saved.labels, strict=True)))
    replica.steps, replica.elsewhere = saved.steps, saved.elsewhere
    fresh = replica.state
    replica.state = policy.resume(replica.setting, read(saved.state, fresh))
    replica.tallies = _read_tallies(saved.tallies, n_arms)
    replica.pending.lives = {last[LIFE_AT:]: last for last in saved.lives}
    _read_pending(replica, fresh, saved.pending)
    if saved.windows is not None:
        if replica.windows is None:
            raise ValueError("windows are of a player whose silence counts by its age")
        replica.windows.read(saved.windows, replica.arms)
    replica.bets.read(saved.bets)
    replica.bets.check(replica.pending)
    if saved.answers:
        if replica.answers is None:
            raise ValueError("answers are of a player whose rewards may change")
        replica.answers.read(saved.answers)
    for name in replica.bets.changing:
        agree(
            replica.answers is not None and replica.answers.find(name) is not None,
            "what may change must be paid",
        )
    replica.seen_keys.update((checked_name("key", key), None) for key in saved.seen_keys)


def read_policy(said: Declared) -> Policy[Any]:
    """The policy of the file, which must have been imported or be offered by an installed package."""
    head = said.policy.partition("(")[0].strip()
    if head not in installed_policies([head]):
        where = f"the module {said.module}" if len(said.module) < 80 else "the module"
        raise UserError(f"unknown policy {shown(head[:60])}: import {where} that defines it first")
    return parse_policy(said.policy)


def _read_pending(replica: PlayerState, fresh: Any, saved: list[Decided]) -> None:
    """The waiting decisions, oldest first: of known lives, with probabilities that their policy can divide by."""
    agree(len(saved) <= replica.pending.most, "pending must be at most max_pending")
    for one in saved:
        agree(replica.arms.has(one.arm), "a decision waits for an arm that is not there")
        agree(bool(replica.pending.has_made(one.id)), "a decision waits that was never made")
        agree(one.id not in replica.pending, "a decision waits twice")
        agree(replica.pending.open_decision(one.unit, one.key) is None, "two decisions wait for one unit")
        replica.check(one, fresh)
        replica.pending.add(one)


def in_order(replica: PlayerState) -> None:
    """See that waiting decisions of one process are in order."""
    steps = [waiting.t for waiting in replica.pending.values()]
    agree(all(1 <= early < late for early, late in pairwise(steps)), "waiting decisions must be in order")
    agree(not steps or steps[-1] <= replica.steps, "a decision waits that was never made")


def _written_tallies(tallies: Tallies) -> dict[str, Any]:
    """A JSON value; arms never met are left out, and no count is above the largest that is read."""
    met = np.flatnonzero(tallies.table.any(axis=0))
    return {
        "places": encode_array(met),
        "table": encode_array(np.minimum(tallies.table[:, met], MOST_COUNT)),
        "recent": encode_array(np.array(tallies.recent, np.int64)),
    } | {name: min(getattr(tallies, name), int(MOST_COUNT)) for name in IN_ALL}


def _read_tallies(saved: SavedTallies, n_arms: int) -> Tallies:
    """What `_written_tallies` wrote, checked."""
    tallies, places, recent = Tallies(n_arms), saved.places, saved.recent
    _check_ascending("places", places, n_arms)
    table = saved.table
    fine = table.shape == (len(tallies.table), places.size) and bool(
        ((table >= 0.0) & (table <= MOST_COUNT)).all()
    )
    agree(fine, "table must be four numbers >= 0 an arm")
    tallies.table[:, places] = table
    within = tallies.sums <= tallies.observations * (1.0 + 1e-9)
    agree(bool(within.all()), "sums must be of rewards up to 1")
    fine = recent.ndim == 1 and recent.size <= RECENT and bool((recent >= 0).all())
    agree(fine, "recent must be numbers of arms")
    tallies.recent.extend(recent.tolist())
    for name in IN_ALL:
        setattr(tallies, name, getattr(saved, name))
    return tallies


def _set_random(rng: np.random.Generator, saved: dict[str, Any]) -> None:
    """The state of the random numbers; an even increment would shorten their period to next to nothing."""
    numbers = saved["state"]
    limits = [(numbers["state"], 2**128), (numbers["inc"], 2**128), (saved["has_uint32"], 2)]
    limits.append((saved["uinteger"], 2**32))
    fine = all(type(number) is int and 0 <= number < limit for number, limit in limits)
    agree(fine and numbers["inc"] % 2 == 1, "random must be a state of PCG64")
    rng.bit_generator.state = saved


# -- a shared player: its definition, written once into its journal, and snapshots of its state ------------------------


def definition_text(replica: PlayerState) -> str:
    """The definition of a player that nothing has happened to yet."""
    saved(replica.state)  # which says why where it cannot be
    labels = None if replica.arms.labels is None else replica.arms.all_labels()
    body = msgspec.to_builtins(declared(replica)) | {"labels": labels, "key": os.urandom(16).hex()}
    return with_checksum(body, DEFINITION, VERSION)


class Definition:
    """What `definition_text` wrote, checked; makes fresh replicas."""

    def __init__(self, text: str, where: str) -> None:
        body = verified(text, where, DEFINITION, VERSION, "the definition of a player")
        self.where = where
        with _damage_told(f"cannot open {where}"):
            self.declared = decode(body, DeclaredShared)
        self.terms = self.declared.settings
        self.key = int(self.declared.key, 16)

    def replica(self, compiled: bool | None, n_arms: int | None = None) -> PlayerState:
        """A replica before the first event; with another number of arms, to be filled from a snapshot."""
        said = self.declared
        labels = said.labels if n_arms is None else None
        many = None if labels is not None else said.n_arms if n_arms is None else n_arms
        with _damage_told(f"cannot open {self.where}"):
            return said.state(read_policy(said), many, labels, compiled, is_shared=True)

    def first_difference(self, replica: PlayerState) -> str | None:
        """In what a player as the caller wants it differs from this one, but for its arms, which may have changed since."""
        here, wanted = (
            {name: getattr(one, name) for name in ("policy", "horizon", "graph")} | one.settings.as_given
            for one in (self.declared, declared(replica))
        )
        for name, ours in here.items():
            if ours != (theirs := wanted[name]):
                unit = " seconds" if name in ("expire", "window", "corrections") else ""
                there, given = (shown(value) + unit * (value is not None) for value in (ours, theirs))
                return f"{name} is {there} in the journal, not {given}"
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
    with _damage_told(f"cannot read {where}"):
        found = decode(body, Snapshot)
        replica = definition.replica(compiled, found.n_arms)
        read_state(replica, found)
        return replica, found.seq


def template_of(replica: PlayerState) -> Any:
    """A state as the policy starts, by which what decisions remember is checked; None where they remember nothing."""
    return replica.policy.start(replica.setting) if kept_with_decisions(replica.state) else None
