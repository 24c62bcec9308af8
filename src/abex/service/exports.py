"""The log of a player as a file to download, and other policies valued on it."""

from __future__ import annotations

import math
from typing import Any

from abex.evaluation import Log, evaluate
from abex.evaluation.log_files import log_bytes
from abex.players.definitions import Definition
from abex.players.journal import Journal
from abex.players.journal_log import decision_log
from abex.support.errors import UserError, one_of
from abex.support.files import table_bytes

#: format -> its media type
FORMATS = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet", "dsjson": "application/x-ndjson"}
LEAST = 50_000  # decisions that are looked through whatever is wanted: rewards come late
EVENTS = 4  # that are read for each decision wanted


def log_frame(journal: Journal, name: str, most: int, player: Any) -> Any:
    """The latest decisions of a player as a data frame."""
    record = journal.player(name)
    if record is None:
        raise UserError(f"there is no player {name!r} any more")
    after = max(record.pruned, record.head - EVENTS * max(most, LEAST))
    with player._lock:
        arms = player._state.arms.copy() if after > 0 else None
    events = journal.events(record.id, after)
    return decision_log(events, Definition(record.definition, f"the player {name!r}"), arms).tail(most)


def log_file(frame: Any, kind: str, arms: list[Any]) -> bytes:
    """A data frame of decisions as a file; dsjson has those alone that had their reward."""
    one_of("format", kind, FORMATS)
    if kind == "dsjson":
        return log_bytes(_log(frame, arms), ".dsjson")
    if kind == "parquet":
        frame = frame.assign(arm=frame["arm"].map(str))
    return table_bytes(frame, f".{kind}")


def evaluate_policies(
    frame: Any, arms: list[Any], policies: list[str], learn: float, rewards: tuple[float, float]
) -> dict[str, Any]:
    """What each policy would have earned by decision, by every estimator; a sentence where the log cannot tell."""
    log = _log(frame, arms)
    return {
        "rows": len(log),
        "logged": log.reward.mean(),
        "policies": [_evaluated(log, policy, learn, rewards) for policy in policies],
    }


def _log(frame: Any, arms: list[Any]) -> Log:
    """With all arms of the player, also those that the log never tries, and those of the log that are gone."""
    gone = dict.fromkeys(frame["arm"][~frame["arm"].isin(arms)])
    return Log.from_columns(dict(frame.items()), arms=[*arms, *gone], where="the log")


def _evaluated(log: Log, policy: str, learn: float, rewards: tuple[float, float]) -> dict[str, Any]:
    try:
        found = evaluate(log, policy, learn=learn, rewards=rewards)
    except UserError as error:
        return {"policy": policy, "error": str(error)}
    return {
        "policy": found.policy,
        "rows": found.rows,
        "learned": found.learned,
        "estimates": [
            {
                "estimator": one.estimator,
                "value": one.value,
                "low": one.interval[0],
                "high": one.interval[1],
                "effective": one.effective,
                "largest_weight": one.largest_weight,
                "reason": one.reason or None,
            }
            for one in found.verdicts
            if not (math.isnan(one.raw) and not one.reason)
        ],
    }
