"""Up to how many arms a scan is the faster one (measured by benchmarks/many_arms.py); beyond, a structure takes its place."""

SOFTMAX = 32  # and trials among exponential weights at large
UCB = 66
UCB_FADING = 120  # where counts fade fast
VARIANCE = 96
MOSS = 20
DIVERGENCE = 5
DIVERGENCE_CONTENDERS = 32  # from DIVERGENCE to here, those that can win are scanned (`contenders`)
SHARED_CONTENDERS = 14  # where the level is fixed: a tournament plays few matches again
DIVERGENCE_FADING = 250  # where counts fade: close matches of a tournament are played again at every step
GUMBEL = 4
GUMBEL_FADING = 16  # where they fade, but for slowly
BETA = 12
