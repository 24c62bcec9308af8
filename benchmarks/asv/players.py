"""Decisions and rewards of a Player."""

from __future__ import annotations

from abex import Player


class Decisions:
    """A thousand decisions with their rewards, interpreted."""

    params = (10, 100)
    param_names = ("arms",)

    def setup(self, arms: int) -> None:
        """A player that has seen every arm."""
        self.player = Player(n_arms=arms, seed=1)
        for arm in range(arms):
            self.player.update(arm, float(arm % 2))

    def time_decide_and_update(self, arms: int) -> None:
        """A thousand of each."""
        for step in range(1_000):
            self.player.update(self.player.decide(), float(step % 3 == 0))


class Memory:
    """Bytes of a saved player."""

    params = (10, 1_000)
    param_names = ("arms",)

    def track_saved_bytes(self, arms: int) -> int:
        """The length of its file."""
        from abex.players.player_file import player_text

        return len(player_text(Player(n_arms=arms, seed=1)))
