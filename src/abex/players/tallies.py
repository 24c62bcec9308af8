"""What a player counts beside its policy: pulls, observations and rewards of each arm, and the last decisions."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kinds import MOST_COUNT, agree
from abex.support.files import decode_array, encode_array

RECENT = 1_000  # decisions whose share of each arm a summary tells


class Tallies:
    """Counts by the places of the arms; rewards in [0, 1]."""

    def __init__(self, n_arms: int) -> None:
        self.pulls: NDArray[np.int64] = np.zeros(n_arms, np.int64)  # decisions
        self.observations: NDArray[np.int64] = np.zeros(
            n_arms, np.int64
        )  # rewards learned, side observations too
        self.sums: NDArray[np.float64] = np.zeros(n_arms)  # of these rewards
        self.recent: deque[int] = deque(maxlen=RECENT)  # numbers of the arms of the last decisions
        self.rewarded = 0  # decisions that had their reward
        self.expired = 0  # decisions that had none in time

    def decided(self, place: int, number: int) -> None:
        """An arm was chosen."""
        self.pulls[place] += 1
        self.recent.append(number)

    def observed(self, place: int, reward: float) -> None:
        """An arm was observed."""
        self.observations[place] += 1
        self.sums[place] += reward

    def keep(self, places: NDArray[np.int64], n_arms: int) -> None:
        """Go on with these places and empty ones after them."""
        for name in ("pulls", "observations", "sums"):
            old = getattr(self, name)
            new = np.zeros(n_arms, old.dtype)
            new[: places.size] = old[places]
            setattr(self, name, new)

    def copy(self) -> Tallies:
        """The same counts, to be changed independently."""
        twin = Tallies(0)
        twin.__dict__.update(self.__dict__)
        twin.keep(np.arange(self.pulls.size), self.pulls.size)
        twin.recent = deque(self.recent, maxlen=RECENT)
        return twin

    def written(self) -> dict[str, Any]:
        """A JSON value; arms never met are left out, and no count is above the largest that is read."""
        met = np.flatnonzero((self.pulls > 0) | (self.observations > 0))
        return {
            "places": encode_array(met),
            "pulls": encode_array(np.minimum(self.pulls[met], int(MOST_COUNT))),
            "observations": encode_array(np.minimum(self.observations[met], int(MOST_COUNT))),
            "sums": encode_array(np.minimum(self.sums[met], MOST_COUNT)),
            "recent": encode_array(np.array(self.recent, np.int64)),
            "rewarded": min(self.rewarded, int(MOST_COUNT)),
            "expired": min(self.expired, int(MOST_COUNT)),
        }

    @classmethod
    def read(cls, saved: Any, n_arms: int) -> Tallies:
        """What `written` wrote, checked."""
        tallies = cls(n_arms)
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
            bool(np.all(tallies.sums <= tallies.observations * (1.0 + 1e-9))),
            "sums must be of rewards up to 1",
        )
        recent = decode_array(saved["recent"])
        agree(recent.dtype == np.int64 and recent.ndim == 1, "recent must be numbers of arms")
        agree(recent.size <= RECENT and bool((recent >= 0).all()), "recent must be numbers of arms")
        tallies.recent.extend(recent.tolist())
        for name in ("rewarded", "expired"):
            agree(type(saved[name]) is int and 0 <= saved[name] <= MOST_COUNT, f"{name} must be a count")
            setattr(tallies, name, saved[name])
        return tallies
