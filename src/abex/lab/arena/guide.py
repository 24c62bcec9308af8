"""Recommendations: which policy for which problem, read off the scores of the arena by a rule.

A question selects instances, and where it asks for a property also policies. Its answer is the policy of the least geometric mean
score on these instances, with those that the data do not tell from it: their 95 % intervals reach down to its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from abex.lab.arena.instances import Instance
from abex.lab.arena.scores import Results, Score, score_all
from abex.lab.arena.study import PER_ARM, Entry, arms_of
from abex.policies.policy import Policy

MANY = 1_000


@dataclass(frozen=True)
class Question:
    """A known property of a problem, as a choice of instances and of policies."""

    text: str
    instances: Callable[[Instance], bool]
    policies: Callable[[Policy[Any]], bool] = lambda policy: True


def knows_probabilities(policy: Policy[Any]) -> bool:
    """Whether the probability of each decision has a closed form."""
    return type(policy).probabilities is not None


def stays_cheap(policy: Policy[Any]) -> bool:
    """Whether a decision costs nearly the same however many arms there are: samplers find the arm (without a known graph)."""
    return type(policy).__name__ not in PER_ARM


QUESTIONS = (
    Question("anything", lambda one: True),
    Question("fixed means, rewards 0 or 1", lambda one: one.plain_bernoulli),
    Question(
        "fixed distributions of unknown scale",
        lambda one: one.group == "stochastic" and not one.plain_bernoulli,
    ),
    Question("a thousand arms or more", lambda one: arms_of(one.problem) >= MANY),
    Question("a feedback graph", lambda one: one.group == "graphs"),
    Question("rewards that come late or in batches", lambda one: one.group == "late"),
    Question("means that change", lambda one: one.group == "changing"),
    Question("nothing promised about rewards", lambda one: one.group == "adversarial"),
    Question("what a web shop has", lambda one: one.group == "shop"),
    Question("features to boost with", lambda one: one.group == "boosting"),
    Question("no horizon known", lambda one: True, lambda policy: not policy.needs_horizon),
    Question("exact propensities needed", lambda one: True, knows_probabilities),
    Question("decisions that must stay cheap with many arms", lambda one: True, stays_cheap),
)


@dataclass(frozen=True)
class GuideAnswer:
    """The best policy for a question, and those not told apart from it."""

    question: str
    instances: int
    best: Score
    as_good: tuple[Score, ...]


def answers(results: Results, entries: Sequence[Entry], instances: Sequence[Instance]) -> list[GuideAnswer]:
    """The answer to every question for which something was played."""
    policies = {entry.label: entry.policy for entry in entries}
    found = []
    for question in QUESTIONS:
        chosen = [one for one in instances if question.instances(one)]
        if not any(("Uniform", one.name) in results for one in chosen):
            continue
        scores = [s for s in score_all(results, chosen) if question.policies(policies[s.policy])]
        if not scores:
            continue
        best = scores[0]
        close = tuple(s for s in scores[1:] if s.geometric_interval[0] <= best.geometric_interval[1])
        found.append(GuideAnswer(question.text, best.instances, best, close))
    return found
