"""Files of players that earlier versions wrote: format 2 (other ids, scratch in the state), format 3 (no names, no tallies)."""

from __future__ import annotations

from typing import Any

import numpy as np

from abex.files import decode_array, encode_array
from abex.players.decision_ids import is_life, moment_of
from abex.players.replica import Replica
from abex.players.tallies import Tallies
from abex.policies.base import Policy
from abex.policies.forgetting import Forgotten
from abex.samplers.bounded_scan import BoundedScan
from abex.samplers.buckets import Buckets
from abex.samplers.evidence import FadingTournament
from abex.samplers.fading_gumbel import FadingGumbel
from abex.samplers.gumbel import GumbelExceedance
from abex.samplers.indices import IndexScan
from abex.samplers.tournament import Tournament
from abex.schema import agree, read_record

#: 2: ids were the seed's tag and the step, the state held scratch, waiting decisions named arms by their place;
#: 3: arms had numbers for names, rewards were in [0, 1], nothing expired or was counted beside the policy
FORMER_VERSIONS = (2, 3)


def modern(body: dict[str, Any], version: int) -> dict[str, Any]:
    """The body of a former file as the present format has it; the state of format 2 is left to `former_state`."""
    body = dict(body)
    if version == 2:
        agree(is_life(body["tag"]), "tag must be the name of a life")
        body["lives"] = [[body["tag"], body["steps"]]] if body["steps"] else []
        numbers = decode_array(body["names"])
        pending = []
        for t, place, memory in body["pending"]:
            agree(type(place) is int and 0 <= place < numbers.size, "arm must be one that is there")
            pending.append([f"{body['tag']}-{t}", t, int(numbers[place]), memory])
        body["pending"] = pending
    body["pending"] = [
        [name, t, arm, memory, moment_of(str(name)), None] for name, t, arm, memory in body["pending"]
    ]
    body |= {"labels": None, "tallies": None}
    return body | {"rewards": [0.0, 1.0], "expire": None, "unrewarded": 0.0, "propensities": None}


def former_tallies(replica: Replica) -> Tallies:
    """What a file of format 2 or 3 tells of the arms: observations and means, where the policy keeps them."""
    tallies = Tallies(replica.n_arms)
    state = replica.state
    counts: Any = getattr(state, "observations", None)
    means: Any = getattr(state, "means", None)
    shape = (replica.n_arms,)
    if getattr(counts, "shape", None) == shape and getattr(means, "shape", None) == shape:
        tallies.observations[:] = counts
        tallies.sums[:] = np.where(
            np.asarray(counts) > 0, np.asarray(counts) * np.where(np.isfinite(means), means, 0.0), 0.0
        )
    return tallies


def former_state(policy: Policy[Any], saved: Any, fresh: Any, n_arms: int) -> Any:
    """The state of a file of the former format, in which a sampler's fields stood among those of the state.

    Buckets and the order of unseen arms go along; other samplers are made anew, which changes no distribution.
    """
    fields = {name: saved[name] for name in fresh._fields if name in saved}
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
    if (
        "probabilities" in fields and decode_array(fields["probabilities"]).shape != fresh.probabilities.shape
    ):  # of all arms; now of the chosen one, which the next decision writes
        fields["probabilities"] = encode_array(fresh.probabilities)
    return with_new_sampler(policy, fields, fresh, n_arms)


def sampler_was_otherwise(saved: Any, fresh: Any) -> bool:
    """Whether the file has something else where few arms have a `BoundedScan` now, or where counts fade another sampler."""
    if not isinstance(saved, dict):
        return False
    if isinstance(fresh, Forgotten):
        return sampler_was_otherwise(saved.get("inner"), fresh.inner)
    sampler, filed = getattr(fresh, "sampler", None), saved.get("sampler")
    if isinstance(sampler, FadingTournament | FadingGumbel) and filed == {}:
        return True
    if isinstance(sampler, IndexScan):
        return isinstance(filed, dict) and "order" in filed
    if isinstance(sampler, GumbelExceedance | FadingGumbel) and isinstance(filed, dict):
        sampler, filed = sampler.buckets, filed.get("buckets")
    return isinstance(sampler, BoundedScan) and isinstance(filed, dict) and "reach" not in filed


def with_new_sampler(policy: Policy[Any], saved: Any, fresh: Any, n_arms: int) -> Any:
    """The state of a file with a sampler made anew, which changes no distribution."""
    if isinstance(fresh, Forgotten):
        within = {name: value for name, value in saved["inner"].items() if name != "sampler"}
        bare = read_record(
            saved | {"inner": within}, fresh._replace(inner=fresh.inner._replace(sampler=None)), n_arms
        )
        if isinstance(fresh.inner.sampler, IndexScan):  # which remembers nothing
            return bare._replace(inner=bare.inner._replace(sampler=fresh.inner.sampler))
        forgetting: Any = policy
        inner = forgetting.policy.with_sampler(bare.inner)
        return Forgotten(forgetting.adapted(inner, bare.memory), bare.memory)
    fields = {name: value for name, value in saved.items() if name != "sampler"}
    bare = read_record(fields, fresh._replace(sampler=None), n_arms)
    return policy.with_sampler(bare._replace(sampler=fresh.sampler))


def former_memory(memory: Any, place: int, sizes: list[int]) -> Any:
    """What a decision of format 2 remembers: all arms' probabilities stood where now the chosen one's does."""
    agree(isinstance(memory, list) and len(memory) == len(sizes), "a decision remembers something else")
    return [
        encode_array(decode_array(value)[place : place + 1]) if size == 1 else value
        for value, size in zip(memory, sizes, strict=True)
    ]
