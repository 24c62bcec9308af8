"""A model as one file of C: tables and a few loops, no library but that of C itself."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.boosting.scoring_rule import ScoringRule

ACROSS = 12  # numbers of a table on a line

CODE = """
/* Scores of the row x: `decision_function` is made of them. */
void abex_scores(const double *x, double *scores)
{
    for (int l = 0; l < ABEX_LABELS; l++) scores[l] = 0.0;
    for (int t = 0; t < ABEX_TREES; t++) {
        int node = root[t];
        while (feature[node] >= 0) {
            double value = x[feature[node]];
            int c = category_of[feature[node]];
            if (c >= 0)  /* the position of a category; any other number is as missing as NaN */
                value = value >= 0.0 && value < category_start[c + 1] - category_start[c]
                    ? category_code[category_start[c] + (int)value] : NAN;
            int right = isnan(value) ? missing_right[node] : value > threshold[node];
            node = right ? above[node] : below[node];
        }
        for (int l = 0; l < ABEX_LABELS; l++) scores[l] += leaf_value[below[node]][l];
    }
    for (int l = 0; l < ABEX_LABELS; l++) scores[l] = nearbyint(scores[l] / GRAIN) * GRAIN;
}

static double blended(double share, double choices)
{
    return (ROWS * share + 1.0 / choices) / (ROWS + 1.0);
}

static double votes(double score)
{
    double margin = score / TOTAL;
    margin = margin < -1.0 ? -1.0 : margin > 1.0 ? 1.0 : margin;
    return POWER * log(blended(0.5 * (1.0 + margin), 2.0));
}

/* Calibrated probabilities of the labels of the row x. */
void abex_probabilities(const double *x, double *probabilities)
{
    double sum = 0.0, most = -INFINITY;
    abex_scores(x, probabilities);
    for (int l = 0; l < ABEX_LABELS; l++) {
        double mine = votes(probabilities[l]);
        if (MULTILABEL) mine -= votes(-probabilities[l]);
        probabilities[l] = mine;
        if (mine > most) most = mine;
    }
    for (int l = 0; l < ABEX_LABELS; l++) {
        probabilities[l] = MULTILABEL ? 1.0 / (1.0 + exp(-probabilities[l])) : exp(probabilities[l] - most);
        sum += probabilities[l];
    }
    for (int l = 0; l < ABEX_LABELS; l++)
        probabilities[l] = blended(MULTILABEL ? probabilities[l] : probabilities[l] / sum,
                                   MULTILABEL ? 2.0 : (double)ABEX_LABELS);
}

/* The number of the class of the row x: that with the largest score. */
int abex_predict(const double *x)
{
    double scores[ABEX_LABELS];
    int best = 0;
    abex_scores(x, scores);
    for (int l = 1; l < ABEX_LABELS; l++) if (scores[l] > scores[best]) best = l;
    return best;
}
"""


def c_source(rule: ScoringRule) -> str:
    """The model in C: ``abex_scores``, ``abex_probabilities`` and ``abex_predict`` of a row of doubles."""
    forest = rule.forest
    category_of = np.full(rule.n_features, -1)
    for k, category in enumerate(rule.categories):
        category_of[category.column] = k
    codes = [category.codes for category in rule.categories]
    code_start = np.concatenate([[0], np.cumsum([code.size for code in codes])]).astype(int)
    leaf = forest.feature < 0
    tables = [
        table("int", "root", forest.root[:-1]),
        table("int", "feature", forest.feature),
        table("double", "threshold", np.where(leaf, 0.0, forest.threshold)),
        table("unsigned char", "missing_right", forest.missing_right.astype(int)),
        "/* the node below; of a leaf, its value */",
        table("int", "below", np.where(leaf, forest.leaf, forest.left)),
        table("int", "above", np.where(leaf, 0, forest.right)),
        table("double", "leaf_value", forest.values),
        table("int", "category_of", category_of),
        table("int", "category_start", code_start),
        table("double", "category_code", np.concatenate([*codes, [0.0]])),
    ]
    numbers = {
        "ABEX_FEATURES": rule.n_features,
        "ABEX_LABELS": rule.classes.size,
        "ABEX_TREES": forest.trees,
        "MULTILABEL": int(rule.multilabel),
        "ROWS": float(rule.rows),
        "TOTAL": rule.total or 1.0,
        "POWER": rule.power,
        "GRAIN": rule.grain,
    }
    return "\n".join([
        "/* A boosted classifier. Compile as C99 and link with the mathematical library (-lm).",
        *comment("classes", rule.classes),
        *comment("features", rule.feature_names),
        *(line for c in rule.categories for line in comment(f"categories of {rule.feature_names[c.column]}", c.values)),
        "*/",
        "#include <math.h>",
        "",
        *(f"#define {name} {number(value)}" for name, value in numbers.items()),
        "",
        *tables,
        CODE,
    ])  # fmt: skip


def number(value: Any) -> str:
    """A number that C reads as the same one."""
    if not isinstance(value, float):
        return str(int(value))
    return ("-" if value < 0 else "") + "INFINITY" if np.isinf(value) else repr(float(value))


def table(kind: str, name: str, values: NDArray[Any]) -> str:
    """A constant array."""
    width = f"[{values.shape[1]}]" if values.ndim == 2 else ""
    if values.ndim == 2:
        items = ["{" + ", ".join(map(number, row)) + "}" for row in values.tolist()]
    else:
        items = list(map(number, values.tolist()))
    across = 1 if width else ACROSS
    lines = [", ".join(items[k : k + across]) for k in range(0, len(items), across)]
    return f"static const {kind} {name}[{len(items)}]{width} = {{\n" + ",\n".join(lines) + "\n};"


def comment(title: str, names: Iterable[Any]) -> list[str]:
    """Names by number, as lines inside a comment."""
    words = (json.dumps(str(name)).replace("*/", "* /") for name in names)
    return [f"   {title}:", *(f"     {k} {word}" for k, word in enumerate(words))]
