"""Up to how many arms a scan is the faster one (measured by benchmarks/many_arms.py); beyond, a structure takes its place."""

SOFTMAX = 6
UCB = 66
VARIANCE = 96
MOSS = 20
DIVERGENCE = 5
GUMBEL = 4
BETA = 12
