"""A choice that waits for its reward, with the probability of having been made."""

from __future__ import annotations

from typing import Any, NamedTuple

from abex.players.arms import Label
from abex.players.batch_probability import inclusion_probability
from abex.players.policy_runner import PolicyRunner
from abex.support.errors import UserError


class ProbabilitySource(NamedTuple):
    """Where the probability of a decision can be worked out, as long as nothing has been learned since."""

    replica: PolicyRunner
    version: int
    t: int
    place: int
    batch: int  # decisions made at once

    def probability(self) -> float | None:
        """The probability that the arm is in the batch; None if something has been learned since."""
        if self.replica.version != self.version:
            return None
        if self.batch == 1:
            return self.replica.probability(self.t, self.place)
        return inclusion_probability(self.replica, self.t, self.batch, self.place)


class Batch(NamedTuple):
    """Decisions made at once, on different arms: what they share."""

    id: str
    size: int


class _Pair(NamedTuple):
    id: str
    arm: Label


class Decision(_Pair):
    """A choice that waits for its reward: ``id``, ``arm``, the ``probability`` of choosing it, and its ``batch``.

    It unpacks into id and arm; two decisions of the same id and arm are equal.
    """

    _probability: float | None
    _origin: ProbabilitySource | None
    batch: (
        Batch | None
    )  # of `Player.decide_many`: ``batch.id`` and ``batch.size``; None for a decision by itself

    def __new__(
        cls,
        id: str,
        arm: Label,
        probability: float | None = None,
        source: ProbabilitySource | None = None,
        batch: Batch | None = None,
    ) -> Decision:
        """A decision whose probability is known, can be worked out, or neither."""
        self = super().__new__(cls, id, arm)
        self._probability, self._origin, self.batch = probability, source, batch
        return self

    @property
    def probability(self) -> float | None:
        """The probability with which the player chose this arm; of a batch, that the arm is in it.

        Worked out when it is asked for, at the latest before the player learns something new; ``Player(propensities=True)``
        works it out with every decision, ``propensities=False`` never: then it is None.
        """
        if self._probability is None and self._origin is not None:
            self._probability = self._origin.probability()
            if self._probability is None:
                raise UserError(
                    "the player has learned since this decision: ask for its probability at once, "
                    "or make the player with propensities=True"
                )
            self._origin = None
        return self._probability

    def join(self, batch: Batch) -> None:
        """Become one of several decisions made at once, before the probability is asked for."""
        self.batch = batch
        if self._origin is not None:
            self._origin = self._origin._replace(batch=batch.size)

    def compute_probability(self) -> float | None:
        """Work the probability out now; None if it is too late or turned off."""
        if self._probability is None and self._origin is not None:
            origin, self._origin = self._origin, None
            try:
                self._probability = origin.probability()
            except UserError:  # the policy has none, or it would take too long
                self._probability = None
        return self._probability

    def __reduce__(self) -> Any:
        return type(self), (self.id, self.arm, self._probability, None, self.batch)
