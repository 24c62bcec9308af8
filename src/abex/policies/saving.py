"""A player as a JSON file: plain numbers and base64 arrays under a checksum, nothing that could run.

A checksum tells damage, not intent. So every number is checked before anything compiled sees it: the state by the rules of its
class (`abex.schema`), the graph by `checked_feedback`, all else here. No array in memory is larger than the file allows.
"""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from abex.errors import UserError, shown, whole_number
from abex.files import decode_array, encode_array, read_text, write_atomically
from abex.graphs import feedback as feedback_records
from abex.graphs.checking import checked_feedback
from abex.kernels import Scalars
from abex.policies.base import MOST_ARMS, Policy, known_policies, parse_policy
from abex.policies.decision_ids import is_life, life_and_number
from abex.samplers.buckets import Buckets
from abex.samplers.tournament import Tournament
from abex.schema import LEAST_CHANCE, agree, check_field, read_array, read_record, write_record

if TYPE_CHECKING:
    from abex.policies.player import Player

FORMAT = "abex-player"
VERSION = 3
FORMER_VERSION = 2  # ids were the seed's tag and the step, the state held scratch, waiting decisions named arms by their place
FORMER_NAMES = {"squares": "spread"}  # present name -> former name
BODY = ',\n"player": '  # what stands between the header and the text under its checksum


def save_player(player: Player, path: str | PathLike[str]) -> None:
    """Write ``player`` to ``path``."""
    write_atomically(path, player_text(player).encode())


def player_text(player: Player) -> str:
    """What the file of a player holds."""
    graph = player._setting.graph
    if graph is not None and type(graph).__name__ not in _graph_records():
        raise UserError(f"a player on a graph of kind {type(graph).__name__} cannot be saved")
    body = {
        "policy": repr(player.policy),
        "module": type(player.policy).__module__,
        "n_arms": player.n_arms,
        "horizon": player._setting.horizon,
        "graph": None if graph is None else [type(graph).__name__, _encoded(graph)],
        "state": write_record(player._state),
        "steps": player._steps,
        "pending": [
            [name, waiting.t, waiting.arm, [encode_array(m) for m in waiting.memory]]
            for name, waiting in player._pending.items()
        ],
        "names": encode_array(player._names),
        "next_name": player._next_name,
        "max_pending": player._max_pending,
        "lives": [[name, made] for name, made in player._lives().items()],
        "random": player._rng.bit_generator.state,
    }
    text = json.dumps(body)
    header = json.dumps({"format": FORMAT, "version": VERSION, "sha256": checksum(text)})
    return f'{{"header": {header}{BODY}{text}}}\n'


def load_player(path: str | PathLike[str], compiled: bool | None) -> Player:
    """The player of ``path``; a damaged or foreign file gives one clear error."""
    return read_player(read_text(path, "player"), f"the player {str(path)!r}", compiled)


def read_player(text: str, where: str, compiled: bool | None) -> Player:
    """The player of what `player_text` wrote."""
    try:
        file = json.loads(text)
        header, body = file["header"], file["player"]
        known = header["format"] == FORMAT and isinstance(body, dict)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(f"cannot load {where}: the file is damaged or not a saved player") from None
    if not known:
        raise UserError(f"cannot load {where}: it is of format {shown(header['format'])}, not {FORMAT!r}")
    version = header.get("version")
    if version not in (VERSION, FORMER_VERSION):
        raise UserError(
            f"cannot load {where}: it was written by another version of abex "
            f"(format {shown(version)}, this one reads {FORMER_VERSION} and {VERSION})"
        )
    if header.get("sha256") != checksum(text[text.find(BODY) + len(BODY) : text.rfind("}")]):
        raise UserError(f"cannot load {where}: the file is damaged, its checksum does not fit")
    try:
        return _player(body, compiled, former=version == FORMER_VERSION)
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        ArithmeticError,
        IndexError,
        MemoryError,
    ) as error:
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__} {error}"
        raise UserError(
            f"cannot load {where}: {reason.splitlines()[0] if reason else 'it is damaged'}"
        ) from error


def _player(body: dict[str, Any], compiled: bool | None, former: bool) -> Player:
    from abex.policies.player import CAREFUL_STEPS, MANY_ARMS, MOST_STEPS, Player

    policy = _policy(body)
    names = decode_array(body["names"])
    n_arms = whole_number("n_arms", body["n_arms"], least=1, most=MOST_ARMS)
    agree(names.shape == (n_arms,) and names.dtype == np.int64, "names must be one for each arm")
    agree(names[0] >= 0 and bool((np.diff(names) > 0).all()), "names must be increasing")
    graph = None if body["graph"] is None else SavedGraph(n_arms, body["graph"])
    player = Player(policy, n_arms, graph=graph, horizon=body["horizon"], seed=0, compiled=compiled)
    player._names = names
    player._next_name = whole_number("next_name", body["next_name"], least=int(names[-1]) + 1, most=2**62)
    player._max_pending = whole_number("max_pending", body["max_pending"], least=1)
    player._steps = whole_number("steps", body["steps"], most=MOST_STEPS)
    fresh = player._state
    player._state = (
        former_state(policy, body["state"], fresh, n_arms)
        if former
        else read_record(body["state"], fresh, n_arms)
    )
    if former:
        agree(is_life(body["tag"]), "tag must be the name of a life")
        player._earlier = {body["tag"]: player._steps} if player._steps else {}
    else:
        player._earlier = {_life(name): whole_number("lives", made, least=1) for name, made in body["lives"]}
    _read_pending(player, fresh, body["pending"], former)
    _set_random(player._rng, body["random"])
    if type(policy).__module__.split(".")[0] != __package__.split(".")[0]:
        player._careful = CAREFUL_STEPS if n_arms <= MANY_ARMS else CAREFUL_STEPS // 16
    return player


def former_state(policy: Policy[Any], saved: Any, fresh: Any, n_arms: int) -> Any:
    """The state of a file of the former format, in which a sampler's fields stood among those of the state.

    Buckets and the order of unseen arms go along; other samplers are made anew, which changes no distribution.
    """
    agree(isinstance(saved, dict), "state must be a record")
    moved = {name: saved[old] for name, old in FORMER_NAMES.items() if old in saved and name in fresh._fields}
    fields = {name: saved[name] for name in fresh._fields if name in saved} | moved
    for name in fields:
        if isinstance(getattr(fresh, name), Scalars):  # it was an array or two
            numbers = [
                *decode_array(saved[name]).tolist(),
                *(decode_array(saved["due"]).tolist() if "due" in saved else []),
            ]
            fields[name] = dict(zip(getattr(fresh, name).fields, numbers, strict=True))
    sampler = getattr(fresh, "sampler", None)
    if sampler is None:
        return read_record(fields, fresh, n_arms)
    if isinstance(sampler, Buckets):
        filed = dict(saved["weights"])
        filed["bucket"] = filed.pop("level")
        for name in ("clock", "grid"):
            filed[name] = dict(
                zip(getattr(sampler, name).fields, decode_array(filed[name]).tolist(), strict=True)
            )
        return read_record(fields | {"sampler": filed}, fresh, n_arms)
    if isinstance(sampler, Tournament):
        return read_record(fields | {"sampler": {"order": saved["order"]}}, fresh, n_arms)
    fields.pop("sampler", None)
    if "chances" in fields and decode_array(fields["chances"]).shape != fresh.chances.shape:
        fields["chances"] = encode_array(
            fresh.chances
        )  # of all arms; now of the chosen one, which the next decision writes
    return policy.with_sampler(
        read_record(fields, fresh._replace(sampler=None), n_arms)._replace(sampler=sampler)
    )


def _policy(body: dict[str, Any]) -> Policy[Any]:
    """The policy of the file, which must have been imported."""
    text = str(body["policy"])
    head = text.partition("(")[0].strip()
    if head not in known_policies():
        module = body.get("module")
        where = f"the module {module}" if isinstance(module, str) and len(module) < 80 else "the module"
        raise UserError(f"unknown policy {shown(head[:60])}: import {where} that defines it first")
    return parse_policy(text)


def _life(name: Any) -> str:
    agree(is_life(name), "lives must have names")
    return str(name)


def _read_pending(player: Player, fresh: Any, saved: Any, former: bool) -> None:
    """The waiting decisions, oldest first: of known lives, with probabilities that their policy can divide by."""
    from abex.policies.player import Decision, Pending

    agree(
        isinstance(saved, list) and len(saved) <= player._max_pending, "pending must be at most max_pending"
    )
    for entry in saved:
        if former:
            t, place, memory = entry
            whole_number("arm", place, most=player.n_arms - 1)
            name, arm = f"{player._earlier and next(iter(player._earlier))}-{t}", int(player._names[place])
        else:
            name, t, arm, memory = entry
        inner = player._inner(arm)
        t = whole_number("t", t, least=1, most=player._steps)
        life, number = life_and_number(name) or ("", 0)
        agree(1 <= number <= player._earlier.get(life, 0), "a decision waits that was never made")
        agree(name not in player._pending, "a decision waits twice")
        fields = player.policy.remembers
        agree(isinstance(memory, list) and len(memory) == len(fields), "a decision remembers something else")
        if former:  # all arms' probabilities stood where now the chosen one's does
            memory = [
                encode_array(decode_array(value)[inner : inner + 1])
                if getattr(fresh, field).size == 1
                else value
                for field, value in zip(fields, memory, strict=True)
            ]
        arrays = tuple(
            read_array(value, getattr(fresh, field), field)
            for field, value in zip(fields, memory, strict=True)
        )
        for field, array in zip(fields, arrays, strict=True):
            check_field(player._state, fresh, field, array, player.n_arms)
            if field == "chances":
                chance = array[inner] if array.size == player.n_arms else array[0]
                agree(bool(chance >= LEAST_CHANCE), "a decision waits that could not be made")
        player._await(Decision(name, int(arm)), Pending(t, int(arm), arrays))
    steps = [waiting.t for waiting in player._pending.values()]
    agree(all(early < late for early, late in pairwise(steps)), "waiting decisions must be in order")


def _set_random(rng: np.random.Generator, saved: Any) -> None:
    """The state of the random numbers; an even increment would shorten their period to next to nothing."""
    numbers = saved["state"]
    limits = [(numbers["state"], 2**128), (numbers["inc"], 2**128), (saved["has_uint32"], 2)]
    limits.append((saved["uinteger"], 2**32))
    fine = all(type(number) is int and 0 <= number < limit for number, limit in limits)
    agree(fine and numbers["inc"] % 2 == 1, "random must be a state of PCG64")
    rng.bit_generator.state = saved


class SavedGraph:
    """A feedback graph as a file holds it: enough for a Player to start."""

    def __init__(self, n_arms: int, saved: Any) -> None:
        name, fields = saved
        record = _graph_records().get(str(name))
        if record is None or set(fields) != set(record._fields):
            raise ValueError(f"there is no feedback graph of kind {shown(name)[:60]}")
        self.n_arms = n_arms
        self._record: Any = checked_feedback(record(**{key: _part(fields[key]) for key in fields}), n_arms)

    def feedback(self, key: Any) -> Any:
        """The saved record."""
        return self._record


def _graph_records() -> dict[str, Any]:
    return {
        kind.__name__: kind
        for kind in (feedback_records.Alone, feedback_records.Links, feedback_records.Changing)
    }


def _encoded(record: Any) -> dict[str, Any]:
    """A feedback record as a JSON value."""
    return {
        name: encode_array(np.asarray(part)) if isinstance(part, np.ndarray | np.generic) else part
        for name, part in record._asdict().items()
    }


def _part(value: Any) -> Any:
    """An array, or a number that may have been written as an array without dimensions."""
    array = decode_array(value) if isinstance(value, dict) else value
    return array[()] if isinstance(array, np.ndarray) and array.ndim == 0 else array


def checksum(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
