"""Up to how many arms a scan is the faster one (measured by benchmarks/many_arms.py); beyond, a structure takes its place."""

SOFTMAX = 32  # and trials among exponential weights at large
UCB = 66
UCB_FADING = 120  # where counts fade fast
VARIANCE = 96
MOSS = 20
DIVERGENCE = 5
DIVERGENCE_FADING = 250  # where counts fade: close matches of a tournament are played again at every step
GUMBEL = 4
GUMBEL_FADING = 16  # where they fade, but for slowly
BETA = 12
