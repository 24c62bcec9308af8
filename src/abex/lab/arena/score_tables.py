"""Tables of the arena as data frames: recommendations, and all scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from abex.lab.arena.guide import GuideAnswer, answers
from abex.lab.arena.instances import GROUPS, Instance
from abex.lab.arena.scores import Results, Score, score_all, table
from abex.lab.arena.study import Entry
from abex.support.extras import needed


def tables_of(results: Results, entries: Sequence[Entry], instances: Sequence[Instance]) -> dict[str, Any]:
    """Title -> data frame of texts, in the order in which they are shown."""
    parts = parts_of(results, instances)
    scores = {name: found for name, part in parts.items() if (found := score_all(results, part))}
    tables = {"By what your problem has": guide_table(answers(results, entries, instances))}
    for name, found in scores.items():
        tables[f"{name.capitalize()} ({len(parts[name])} instances)"] = score_table(found)
    return tables


def parts_of(results: Results, instances: Sequence[Instance]) -> dict[str, list[Instance]]:
    """All instances that were played, stochastic and graphs together, plain coins, and each group."""
    _, played, _ = table(results, instances)
    parts = {"all groups": played, "stochastic and graphs": [i for i in played if i.group in GROUPS[:2]]}
    parts["plain coins"] = [i for i in played if i.plain_bernoulli]
    for group in GROUPS:
        parts[group] = [i for i in played if i.group == group]
    return {name: part for name, part in parts.items() if part}


def played_text(results: Results, instances: Sequence[Instance]) -> str:
    """The number of policies, instances and runs, in a sentence."""
    names = {one.name for one in instances}
    counts = [played.regret.size for (_, name), played in results.items() if name in names]
    policies = len({policy for policy, name in results if name in names})
    most = max(counts)
    fewer = sum(count < most for count in counts)
    others = f", {fewer:,} of them fewer, {min(counts)} at least" if fewer else ""
    return (
        f"{policies} policies, {len(names)} instances, {len(counts):,} pairs of both with {most} replications each{others}: "
        f"{sum(counts):,} runs."
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
