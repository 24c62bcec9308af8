"""The definition of a shared player, written once into its journal, and snapshots of its state."""

from __future__ import annotations

import gzip
import json
import os
from typing import Any

from abex.kinds import kept_with_decisions, saved
from abex.players.player import new_state
from abex.players.player_file import (
    DAMAGE,
    check_numbers,
    read_feedback,
    read_policy,
    read_replica,
    read_terms,
    reason_of,
    verified,
    with_checksum,
    written_graph,
    written_replica,
    written_terms,
)
from abex.players.player_settings import PlayerSettings
from abex.players.state import PlayerState
from abex.policies.policy import MOST_ARMS
from abex.support.errors import UserError, shown, whole_number
from abex.support.reading import gunzip

FORMAT = "abex-shared-player"
VERSION = 1
SNAPSHOT = "abex-snapshot"


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
    return with_checksum(body | written_terms(terms), FORMAT, VERSION)


class Definition:
    """What `definition_text` wrote, checked; makes fresh replicas."""

    def __init__(self, text: str, where: str) -> None:
        self.body = verified(text, where, FORMAT, VERSION, "the definition of a player")
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
        names = ("policy", "horizon", "graph", "rewards", "expire", "unrewarded")
        for name in names:
            if wanted[name] != self.body[name]:
                return f"{name} is {shown(self.body[name])} in the journal, not {shown(wanted[name])}"
        return None


def replica_text(replica: PlayerState, seq: int) -> str:
    """All that is a function of the first ``seq`` events, as text; equal for equal states."""
    body = written_replica(replica)
    return with_checksum({"seq": seq, "n_arms": replica.n_arms} | body, SNAPSHOT, VERSION)


def snapshot_of(replica: PlayerState, seq: int) -> bytes:
    """A snapshot for the journal."""
    return gzip.compress(replica_text(replica, seq).encode(), 1, mtime=0)


def from_snapshot(definition: Definition, packed: bytes, compiled: bool | None) -> tuple[PlayerState, int]:
    """The replica of a snapshot, and the number of the last event in it."""
    where = f"a snapshot of {definition.where}"
    text = gunzip(packed, where).decode("utf-8", "replace")
    body = verified(text, where, SNAPSHOT, VERSION, "a snapshot")
    try:
        n_arms = whole_number("n_arms", body["n_arms"], least=1, most=MOST_ARMS)
        check_numbers(body, n_arms)
        replica = definition.replica(compiled, n_arms)
        read_replica(replica, body)
        return replica, whole_number("seq", body["seq"], least=0, most=2**62)
    except DAMAGE as error:
        raise UserError(f"cannot read {where}: {reason_of(error)}") from error


def template_of(replica: PlayerState) -> Any:
    """A state as the policy starts, by which what decisions remember is checked; None where they remember nothing."""
    return replica.policy.start(replica.setting) if kept_with_decisions(replica.state) else None
