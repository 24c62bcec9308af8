"""Many replications of policies in one environment, at compiled speed.

**Common random numbers.** Replication r of environment E has a 64-bit key made of (seed, r). The reward of arm k
at step t is a function of (key, t, k) alone, so all policies of a call, and of any later call with the same
seed, face the very same rewards, whatever they pull; differences between policies are paired and therefore precise.
So are the delays of rewards that come late (`abex.simulation.delays`), by a key of their own.
Each policy draws its own choices from a stream named by (seed, r, policy): adding a policy or a
replication changes no other number, nor does the number of workers.
"""

from abex.simulation.arguments import (
    MAX_HORIZON,
    as_checkpoints,
    as_late_rewards,
    as_policies,
    check_setting,
    workers_or_all,
)
from abex.simulation.loop import compiled_loop, loop
from abex.simulation.replication import Replication, play_replication
from abex.simulation.running import simulate

__all__ = [
    "MAX_HORIZON",
    "Replication",
    "as_checkpoints",
    "as_late_rewards",
    "as_policies",
    "check_setting",
    "compiled_loop",
    "loop",
    "play_replication",
    "simulate",
    "workers_or_all",
]
