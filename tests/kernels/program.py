"""A policy and a boosted classifier; prints what must not depend on how they were compiled.

``python -m tests.kernels.program``; the tests run it with other ways to compile than the usual one.
"""

import hashlib

import numpy as np

from abex import ABE, Bernoulli, simulate
from abex.boosting import AdaBoostMHClassifier


def main():
    curves = simulate(ABE(), Bernoulli([0.4, 0.6, 0.5]), horizon=500, replications=2, workers=1)
    print("policy", digest(curves.regret))
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4))
    labels = (rows[:, 0] * rows[:, 1] > 0.1).astype(int) + 2 * (rows[:, 2] > 0.5)
    model = AdaBoostMHClassifier(40, base="stump", random_state=0, calibrate=False).fit(rows, labels)
    print("boosting", digest(model.decision_function(rows)))


def digest(numbers):
    return hashlib.sha256(np.ascontiguousarray(numbers).tobytes()).hexdigest()[:16]


if __name__ == "__main__":
    main()
