"""Tables of the arena as data frames: recommendations, demands on the recommended policy, and all scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from abex.lab.arena.guide import GuideAnswer, answers
from abex.lab.arena.instances import GROUPS, Instance
from abex.lab.arena.scores import Results, Score, score_all, table
from abex.lab.arena.study import REPLICATIONS, Entry
from abex.support.extras import needed

OURS = "Evidence"
TOGETHER = ("all groups", "stochastic and graphs")
COINS = "plain coins"
HALF = 0.5  # of the best rival's geometric mean
OF_THOMPSON = 1.15  # on plain coins
LINEAR_SHARE = 1e-4  # of the runs on plain coins


def tables_of(results: Results, entries: Sequence[Entry], instances: Sequence[Instance]) -> dict[str, Any]:
    """Title -> data frame of texts, in the order in which they are shown."""
    parts = parts_of(results, instances)
    scores = {name: found for name, part in parts.items() if (found := score_all(results, part))}
    tables = {"By what your problem has": guide_table(answers(results, entries, instances))}
    if any(score.policy == OURS for score in scores.get(TOGETHER[0], ())):
        tables[f"What {OURS} is held to"] = demand_table(scores)
    for name, found in scores.items():
        tables[f"{name.capitalize()} ({len(parts[name])} instances)"] = score_table(found)
    return tables


def parts_of(results: Results, instances: Sequence[Instance]) -> dict[str, list[Instance]]:
    """All instances that were played, stochastic and graphs together, plain coins, and each group."""
    _, played, _ = table(results, instances)
    parts = {TOGETHER[0]: played, TOGETHER[1]: [i for i in played if i.group in GROUPS[:2]]}
    parts[COINS] = [i for i in played if i.plain_bernoulli]
    for group in GROUPS:
        parts[group] = [i for i in played if i.group == group]
    return {name: part for name, part in parts.items() if part}


def played_text(results: Results, instances: Sequence[Instance]) -> str:
    """The number of policies, instances and runs, in a sentence."""
    names = {one.name for one in instances}
    counts = [played.regret.size for (_, name), played in results.items() if name in names]
    policies = len({policy for policy, name in results if name in names})
    full = sum(count >= REPLICATIONS for count in counts)
    return (
        f"{policies} policies, {len(names)} instances, {len(counts):,} pairs of both, {sum(counts):,} runs: {full:,} pairs with "
        f"{REPLICATIONS} replications, the others with {min(counts)} or more (median {sorted(counts)[len(counts) // 2]})."
    )


def score_table(scores: Sequence[Score]) -> Any:
    """The scores of a part, a row for each policy."""
    return _frame(
        {
            "policy": s.policy,
            "geometric mean (95 % interval)": "{:.2f} ({:.2f} to {:.2f})".format(
                s.geometric, *s.geometric_interval
            ),
            "mean": f"{s.mean:.2f}",
            "95 % quantile": f"{s.quantile:.1f}",
            "worst": f"{s.worst:.1f} ({s.worst_instance})",
            "runs of linear regret": f"{s.linear_runs:,} of {s.runs:,}",
        }
        for s in scores
    )


def guide_table(found: Sequence[GuideAnswer]) -> Any:
    """The answer to each question."""
    return _frame(
        {
            "your problem has": answer.question,
            "instances": str(answer.instances),
            "play": answer.best.policy,
            "geometric mean": f"{answer.best.geometric:.2f}",
            "not told apart from it": ", ".join(f"{s.policy} ({s.geometric:.2f})" for s in answer.as_good[:4])
            or "none",
        }
        for answer in found
    )


def demand_table(scores: dict[str, list[Score]]) -> Any:
    """Each demand on the recommended policy, what was measured, and whether it is met."""
    rows: list[tuple[str, str, bool]] = []
    for name in TOGETHER:
        if name not in scores:
            continue
        ours, rivals = _apart(scores[name])
        for field, words in (("geometric", "geometric mean"), ("mean", "mean"), ("worst", "worst case")):
            own, (theirs, rival) = getattr(ours, field), min((getattr(s, field), s.policy) for s in rivals)
            rows.append(
                (f"{name}: the least {words}", f"{own:.2f}, best rival {theirs:.2f} ({rival})", own < theirs)
            )
        best = min(score.geometric for score in rivals)
        share = f"{ours.geometric / best:.2f} of it; {1.0 / best:.2f} were its own score 1 everywhere, the least there is"
        demand = f"{name}: geometric mean at most half of the best rival's"
        rows.append((demand, share, ours.geometric <= HALF * best))
    if COINS in scores:
        ours, rivals = _apart(scores[COINS])
        linear = f"{ours.linear_runs:,} of {ours.runs:,}"
        demand = f"{COINS}: at most 1 run in 10,000 with linear regret"
        rows.append((demand, linear, ours.linear_runs <= LINEAR_SHARE * ours.runs))
        demand = f"{COINS}: at most {OF_THOMPSON} times Thompson's geometric mean"
        ratios = [ours.geometric / score.geometric for score in rivals if score.policy == "Thompson"]
        rows += [(demand, f"{ratio:.2f} times", ratio <= OF_THOMPSON) for ratio in ratios]
    return _frame(
        {"demand": demand, "measured": measured, "met": "yes" if met else "no"}
        for demand, measured, met in rows
    )


def _apart(scores: Sequence[Score]) -> tuple[Score, list[Score]]:
    """Ours, and the others."""
    (ours,) = [score for score in scores if score.policy == OURS]
    return ours, [score for score in scores if score.policy != OURS]


def instance_table(results: Results, instances: Sequence[Instance]) -> Any:
    """The score of every policy on every instance, nan where it was not played."""
    with needed():
        from pandas import DataFrame, MultiIndex

    names, played, scores = table(results, instances)
    columns = MultiIndex.from_tuples([("", "policy"), *((one.group, one.name) for one in played)])
    return DataFrame(
        [[name, *row] for name, row in zip(names, scores.tolist(), strict=True)], columns=columns
    )


def _frame(rows: Any) -> Any:
    with needed():
        from pandas import DataFrame

    return DataFrame(list(rows))
