"""A model for Treelite: the scores of all labels, in doubles.

Treelite has no output stage for powers of the shares of the votes. So its model gives *scores*, what
`decision_function` is made of; how they become probabilities stands in the attributes of the model, as JSON: `total`, `power`,
`rows` of `abex.boosting.calibration`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abex.boosting.scoring_rule import ScoringRule
from abex.support.extras import needed


def treelite_model(rule: ScoringRule) -> Any:
    """A `treelite.Model` whose answer is (n, 1, L) for classes and (n, L, 1) for several labels."""
    with needed("export"):
        from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation

    forest, labels = rule.forest, rule.classes.size
    several = rule.multilabel or labels < 2
    metadata = Metadata(
        num_feature=rule.n_features,
        task_type="kRegressor" if several else "kMultiClf",
        average_tree_output=False,
        num_target=labels if several else 1,
        num_class=[1] * labels if several else [labels],
        leaf_vector_shape=(labels, 1) if several else (1, labels),
    )
    every = [-1] * forest.trees
    builder: Any = ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=metadata,
        tree_annotation=TreeAnnotation(
            num_tree=forest.trees,
            target_id=every if several else [0] * forest.trees,
            class_id=[0] * forest.trees if several else every,
        ),
        postprocessor=PostProcessorFunc(name="identity" if several else "identity_multiclass"),
        base_scores=[0.0] * labels,
        attributes={"abex": calibration_of(rule)},
    )
    categories = {category.column: category for category in rule.categories}
    for t in range(forest.trees):
        builder.start_tree()
        for node in forest.tree(t):
            builder.start_node(node)
            feature = int(forest.feature[node])
            if feature < 0:
                builder.leaf(forest.values[forest.leaf[node]].tolist())
            else:
                below = {"left_child_key": int(forest.left[node]), "right_child_key": int(forest.right[node])}
                missing_right = bool(forest.missing_right[node])
                if feature in categories:
                    # listed are those opposite the missing values: what is in no list goes with these
                    right = categories[feature].codes > forest.threshold[node]
                    builder.categorical_test(
                        feature, default_left=not missing_right, category_list_right_child=not missing_right,
                        category_list=np.flatnonzero(right != missing_right).tolist(), **below,
                    )  # fmt: skip
                else:
                    builder.numerical_test(
                        feature,
                        float(forest.threshold[node]),
                        default_left=not missing_right,
                        opname="<=",
                        **below,
                    )
            builder.end_node()
        builder.end_tree()
    return builder.commit()


def calibration_of(rule: ScoringRule) -> dict[str, Any]:
    """What turns scores into probabilities, and the names of classes and categories."""
    return {
        "classes": [str(name) for name in rule.classes],
        "multilabel": rule.multilabel,
        "total": rule.total,
        "power": rule.power,
        "rows": rule.rows,
        "categories": {
            rule.feature_names[category.column]: [str(value) for value in category.values]
            for category in rule.categories
        },
    }
