"""Up to how many arms the plain loop over all of them is the faster one (measured by benchmarks/many_arms.py).

Beyond, `Policy.kernels` and `Policy.start` give kernels and records of the same law whose step does not pay for every arm.
"""

BOLTZMANN = 6
INDEX = 160
GUMBEL = 16
THOMPSON = 12
DIVERGENCE = 12
