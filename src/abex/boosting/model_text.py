"""A model as text."""

from __future__ import annotations

import numpy as np

from abex.boosting.categories import Category
from abex.boosting.learners import Model
from abex.boosting.settings import KINDS, STUMP, TREE


def text_of(
    model: Model, feature_names: list[str], label_names: list[str], categories: tuple[Category, ...] = ()
) -> str:
    """The model as text a person can read, one classifier a paragraph."""
    lines = []
    of_column = {category.column: category for category in categories}
    for t in range(model.n_learners):
        lines.append(f"classifier {t + 1}: {KINDS[model.kind]}, coefficient {model.coefficient[t]:.6g}")
        for k in np.flatnonzero(model.feature[t] >= 0):
            name = feature_names[model.feature[t, k]]
            missing = "right" if model.missing_right[t, k] else "left"
            test = f"> {model.threshold[t, k]:.17g}"
            if model.feature[t, k] in of_column:
                category = of_column[model.feature[t, k]]
                right = category.values[category.codes > model.threshold[t, k]]
                test = f"in {{{', '.join(map(str, right.tolist()))}}}"
            line = f"  {'node ' if model.kind == TREE else 'term '}{k}: {name} {test}"
            if model.kind == TREE:
                names = [
                    f"node {n}" if n >= 0 else f"leaf {~n}" for n in (model.left[t, k], model.right[t, k])
                ]
                line += f" ? {names[1]} : {names[0]}"
            else:
                line += " ? +1 : -1"
            lines.append(f"{line} (missing: {missing})")
        for leaf in range(model.votes.shape[1]):
            votes = model.votes[t, leaf]
            if votes.any():
                agreed = [label_names[label] for label in np.flatnonzero(votes > 0)]
                where = f"leaf {leaf}: " if model.kind == TREE else "" if model.kind == STUMP else "product: "
                lines.append(f"  {where}votes for {', '.join(agreed) or 'nothing'}")
    return "\n".join(lines) + "\n"
