"""How soon a policy noticed that the world had changed, and how often it noticed what was not there."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

import numpy as np


def detection(
    alarms: Sequence[tuple[int, int]], changes: Sequence[int], horizon: int, single: bool
) -> dict[str, float]:
    """Delay of the first alarm after each change, changes without any, and false alarms.

    An alarm is false if nothing has changed before it, or if the same arm (any arm, where all start anew) has raised one since
    the last change.

    Parameters
    ----------
    alarms : list of (step, arm)
        In order.
    changes : list of int
        The first steps of new means, ascending.
    horizon : int
        The last step.
    single : bool
        Whether an alarm concerns its arm alone.

    Examples
    --------
    >>> detection([(50, 0), (120, 1), (130, 1)], [101, 201], 300, single=False)
    {'detection delay': 19.0, 'missed changes': 1.0, 'false alarms': 2.0}
    """
    raised: dict[int, set[int]] = {}
    first: dict[int, int] = {}
    false = 0
    for step, arm in alarms:
        since = bisect.bisect_right(changes, step)  # changes before it
        who = arm if single else 0
        if since == 0 or who in raised.setdefault(since, set()):
            false += 1
        else:
            raised[since].add(who)
            first.setdefault(since, step - changes[since - 1])
    known = [change for change in changes if change <= horizon]
    return {
        "detection delay": float(np.mean(list(first.values()))) if first else float(horizon),
        "missed changes": float(len(known) - len(first)),
        "false alarms": float(false),
    }


def detection_report(policy: Any, state: Any, environment: Any, horizon: int) -> dict[str, float]:
    """What `detection` says of a played state, where the policy raises alarms and the environment knows its changes."""
    alarms = getattr(policy, "alarms", None)
    changes = environment.changes(horizon)
    if alarms is None or not changes:
        return {}
    return detection(alarms(state), changes, horizon, single=getattr(policy, "restart", "all") == "arm")
