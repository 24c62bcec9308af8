"""The numbers of the arena as Markdown: answers, the bar that the recommended policy is held to, and all scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from abex.arena.guide import answers, guide_text
from abex.arena.instances import Instance
from abex.arena.page import parts_of
from abex.arena.scores import Results, Score, score_all
from abex.arena.study import REPLICATIONS, Entry
from abex.errors import UserError

OURS = "Evidence"
TOGETHER = ("all groups", "stochastic and graphs")
COINS = "plain coins"
HALF = 0.5  # of the best rival's geometric mean
OF_THOMPSON = 1.15  # on plain coins
LINEAR_SHARE = 1e-4  # of the runs on plain coins

Scores = dict[str, list[Score]]


def write_tables(
    path: Path, results: Results, entries: Sequence[Entry], instances: Sequence[Instance]
) -> None:
    """Write the tables into a file."""
    try:
        path.write_text(markdown_of(results, entries, instances), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write the tables of the arena into {str(path)!r}: {error}") from error


def markdown_of(results: Results, entries: Sequence[Entry], instances: Sequence[Instance]) -> str:
    """All tables."""
    scores = {name: score_all(results, part) for name, part in parts_of(results, instances).items()}
    sizes = {name: len(part) for name, part in parts_of(results, instances).items()}
    parts = [
        played_text(results, instances),
        "## By what your problem has\n",
        guide_text(answers(results, entries, instances)),
    ]
    if any(score.policy == OURS for score in scores[TOGETHER[0]]):
        parts += [f"## What {OURS} is held to\n", bar_table(scores)]
    for name, found in scores.items():
        if found:
            parts += [f"## {name.capitalize()} ({sizes[name]} instances)\n", score_table(found)]
    return "\n".join(parts)


def played_text(results: Results, instances: Sequence[Instance]) -> str:
    """How much was played."""
    names = {one.name for one in instances}
    counts = [played.regret.size for (_, name), played in results.items() if name in names]
    policies = len({policy for policy, name in results if name in names})
    full = sum(count >= REPLICATIONS for count in counts)
    return (
        f"{policies} policies, {len(names)} instances, {len(counts):,} pairs of both, {sum(counts):,} runs: {full:,} pairs with "
        f"{REPLICATIONS} replications, the others with {min(counts)} or more (median {sorted(counts)[len(counts) // 2]}).\n"
    )


def score_table(scores: Sequence[Score]) -> str:
    """The scores of a part."""
    lines = [
        "| policy | geometric mean (95 % interval) | mean | 95 % quantile | worst | runs of linear regret |",
        "|---|---|---|---|---|---|",
    ]
    for s in scores:
        low, high = s.geometric_interval
        lines.append(
            f"| {s.policy} | {s.geometric:.2f} ({low:.2f} to {high:.2f}) | {s.mean:.2f} | {s.quantile:.1f} "
            f"| {s.worst:.1f} ({s.worst_instance}) | {s.linear_runs:,} of {s.runs:,} |"
        )
    return "\n".join(lines) + "\n"


def bar_table(scores: Scores) -> str:
    """Each demand, what was measured, and whether it is met."""
    rows = []
    for name in TOGETHER:
        if name not in scores:
            continue
        ours, rivals = _apart(scores[name])
        for what in ("geometric", "mean", "worst"):
            rival = min(rivals, key=lambda score, what=what: getattr(score, what))  # type: ignore[misc]
            own, theirs = getattr(ours, what), getattr(rival, what)
            word = {"geometric": "geometric mean", "mean": "mean", "worst": "worst case"}[what]
            rows.append(
                (
                    f"{name}: the least {word}",
                    f"{own:.2f}, best rival {theirs:.2f} ({rival.policy})",
                    own < theirs,
                )
            )
        best = min(score.geometric for score in rivals)
        rows.append(
            (
                f"{name}: geometric mean at most half of the best rival's",
                f"{ours.geometric / best:.2f} of it; {1.0 / best:.2f} were its own score 1 everywhere, the least there is",
                ours.geometric <= HALF * best,
            )
        )
    if COINS in scores:
        ours, rivals = _apart(scores[COINS])
        rows.append(
            (
                f"{COINS}: at most 1 run in 10,000 with linear regret",
                f"{ours.linear_runs:,} of {ours.runs:,}",
                ours.linear_runs <= LINEAR_SHARE * ours.runs,
            )
        )
        thompson = [score.geometric for score in rivals if score.policy == "Thompson"]
        if thompson:
            ratio = ours.geometric / thompson[0]
            rows.append(
                (
                    f"{COINS}: at most {OF_THOMPSON} times Thompson's geometric mean",
                    f"{ratio:.2f} times",
                    ratio <= OF_THOMPSON,
                )
            )
    lines = ["| demand | measured | met |", "|---|---|---|"]
    lines += [f"| {demand} | {measured} | {'yes' if met else '**no**'} |" for demand, measured, met in rows]
    return "\n".join(lines) + "\n"


def _apart(scores: Sequence[Score]) -> tuple[Score, list[Score]]:
    """Ours, and the others."""
    (ours,) = [score for score in scores if score.policy == OURS]
    return ours, [score for score in scores if score.policy != OURS]
