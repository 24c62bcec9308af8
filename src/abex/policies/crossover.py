"""Up to how many arms the plain loop over all of them is the faster one (measured by benchmarks/many_arms.py).

Beyond, `Policy.kernels` and `Policy.start` give kernels and records of the same law whose step does not pay for every arm.
"""

BOLTZMANN = 6  # ABE and Boltzmann
INDEX = 66  # UCB1
VARIANCE = 96  # UCB-V
MINIMAX = 20  # MOSS, with and without a horizon
DIVERGENCE = 5  # KL-UCB
GUMBEL = 4  # Boltzmann-Gumbel
THOMPSON = 12
WEIGHTS = 1  # EXP3, EXP3-IX with a given rate
