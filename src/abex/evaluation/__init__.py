r"""What would another policy have earned? Evaluation of policies on the log of the decisions of another one.

A `Log` holds decisions with their arm, the probability of choosing it, and the reward. `evaluate` values a distribution
over the arms, or a policy, by six estimators, each with an interval, the effective sample size and the largest weight,
and with a sentence in place of the number where the log cannot answer; one interval more holds at every moment. `LogReplay`
makes an environment of a log.

==============  =========================================================================================
`log`           the `Log`, and how it is made of columns or of a player's events
`log_files`     CSV, Parquet, Vowpal Wabbit's dsjson
`target`        what is valued: a distribution, or a policy that learns from a part of the log
`estimators`    the contributions of the rows
`uncertainty`   intervals for one look, and at every moment for logs of any policy
`sequence`      the h-weighted interval that holds at every moment, where the probabilities of all arms are known
`evaluating`    `evaluate`: the table, and when there is no answer
`replay`        rejection replay of a policy that learns; `LogReplay`
==============  =========================================================================================
"""

from abex.evaluation.evaluating import EstimateResult, Evaluation, evaluate
from abex.evaluation.log import Log, Side
from abex.evaluation.replay import LogReplay, Replayed, replay

__all__ = ["EstimateResult", "Evaluation", "Log", "LogReplay", "Replayed", "Side", "evaluate", "replay"]
