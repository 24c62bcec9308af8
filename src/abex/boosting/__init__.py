"""AdaBoost.MH whose features are chosen by a bandit policy."""
