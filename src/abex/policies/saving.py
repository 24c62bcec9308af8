"""A player as a JSON file: plain numbers and base64 arrays under a checksum, nothing that could run."""

from __future__ import annotations

import hashlib
import json
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from abex.errors import UserError
from abex.files import decode_array, encode_array, read_text, write_atomically
from abex.graphs import feedback as feedback_records
from abex.policies.base import parse_policy
from abex.scalars import Scalars

if TYPE_CHECKING:
    from abex.policies.player import Player

FORMAT = "abex-player"
VERSION = 2
BODY = ',\n"player": '  # what stands between the header and the text under its checksum


def save_player(player: Player, path: str | PathLike[str]) -> None:
    """Write ``player`` to ``path``."""
    graph = player._setting.graph
    body = {
        "policy": repr(player.policy),
        "n_arms": player.n_arms,
        "horizon": player._setting.horizon,
        "graph": None if graph is None else [type(graph).__name__, encode(graph)],
        "state": encode(player._state),
        "steps": player._steps,
        "pending": [[w.t, w.arm, [encode(m) for m in w.memory]] for w in player._pending.values()],
        "names": encode(player._names),
        "next_name": player._next_name,
        "max_pending": player._max_pending,
        "tag": player._tag,
        "random": player._rng.bit_generator.state,
    }
    text = json.dumps(body)
    header = json.dumps({"format": FORMAT, "version": VERSION, "sha256": checksum(text)})
    write_atomically(path, f'{{"header": {header}{BODY}{text}}}\n'.encode())


def load_player(path: str | PathLike[str], compiled: bool | None) -> Player:
    """The player of ``path``; a damaged or foreign file gives one clear error."""
    from abex.policies.player import Pending, Player

    text = read_text(path, "player")
    where = f"the player {str(path)!r}"
    try:
        file = json.loads(text)
        header, body = file["header"], file["player"]
        known = header["format"] == FORMAT and isinstance(body, dict)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(f"cannot load {where}: the file is damaged or not a saved player") from None
    if not known:
        raise UserError(f"cannot load {where}: it is of format {header['format']!r}, not {FORMAT!r}")
    if header.get("version") != VERSION:
        raise UserError(
            f"cannot load {where}: it was written by another version of abex "
            f"(format {header.get('version')!r}, this one reads {VERSION})"
        )
    if header.get("sha256") != checksum(text[text.find(BODY) + len(BODY) : text.rfind("}")]):
        raise UserError(f"cannot load {where}: the file is damaged, its checksum does not fit")
    try:
        policy = parse_policy(str(body["policy"]))
        graph = None if body["graph"] is None else SavedGraph(body["n_arms"], body["graph"])
        player = Player(
            policy, body["n_arms"], graph=graph, horizon=body["horizon"], seed=0, compiled=compiled
        )
        player._state = decode(body["state"], player._state)
        player._steps = int(body["steps"])
        player._pending = {
            int(t): Pending(int(t), int(arm), tuple(decode_array(m) for m in memory))
            for t, arm, memory in body["pending"]
        }
        if not all(0 <= waiting.arm < player.n_arms for waiting in player._pending.values()):
            raise ValueError("a decision waits for an arm that is not there")
        player._names = decode_array(body["names"])
        player._next_name = int(body["next_name"])
        player._max_pending = int(body["max_pending"])
        player._tag = str(body["tag"])
        player._rng.bit_generator.state = body["random"]
    except UserError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"cannot load {where}: {error}") from error
    return player


class SavedGraph:
    """A feedback graph as a file holds it: enough for a Player to start."""

    def __init__(self, n_arms: int, saved: Any) -> None:
        name, fields = saved
        record = getattr(feedback_records, name, None)
        if not isinstance(record, type) or set(fields) != set(getattr(record, "_fields", ())):
            raise ValueError(f"there is no feedback graph of kind {name!r}")
        self.n_arms = n_arms
        self._record: Any = record(**{key: _part(value) for key, value in fields.items()})

    def feedback(self, key: Any) -> Any:
        """The saved record."""
        return self._record


def _part(value: Any) -> Any:
    """An array, or a number that may have been written as an array without dimensions."""
    array = decode_array(value) if isinstance(value, dict) else value
    return array[()] if isinstance(array, np.ndarray) and array.ndim == 0 else array


def checksum(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def encode(value: Any) -> Any:
    """A state record (arrays, numbers, records inside) as a JSON value."""
    if isinstance(value, np.ndarray):
        return encode_array(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: encode(part) for name, part in value._asdict().items()}
    if isinstance(value, tuple):
        return [encode(part) for part in value]
    if isinstance(value, Scalars):
        return value.asdict()
    if isinstance(value, np.generic):
        return encode_array(np.asarray(value))
    return value


def decode(value: Any, like: Any) -> Any:
    """The record that `encode` wrote, in the shape of ``like``, a fresh one."""
    if isinstance(like, np.ndarray):
        array = decode_array(value)
        if array.dtype != like.dtype or array.shape != like.shape:
            raise ValueError(
                f"an array of {array.dtype}{array.shape} stands where {like.dtype}{like.shape} belongs"
            )
        return array
    if type(like) is tuple:
        return tuple(decode(one, part) for one, part in zip(value, like, strict=True))
    if isinstance(like, tuple):
        names = type(like)._fields  # type: ignore[attr-defined]
        return type(like)(*(decode(value[name], part) for name, part in zip(names, like, strict=True)))
    if isinstance(like, Scalars):
        return type(like)(**{name: value[name] for name in like.fields})
    if isinstance(like, np.generic):
        return like.dtype.type(decode_array(value)[()])
    if isinstance(like, bool) is not isinstance(value, bool) or not isinstance(
        value, type(like) | int | float
    ):
        raise ValueError(f"{value!r} stands where {like!r} belongs")
    return type(like)(value)
