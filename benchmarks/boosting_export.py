"""Exported models against ours on the five data sets of the paper: the largest difference, file sizes, time of a row.

Every base learner is fitted to the training rows (300 classifiers unless told otherwise), exported, and run on the test rows by
onnxruntime, one thread; Shapley values of some rows are added up. Less than a minute of CPU
time (needs ABEX_DATA or the cache, the extra ``export`` and onnxruntime):

    python benchmarks/boosting_export.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime

from abex.boosting import AdaBoostMHClassifier
from abex.lab.datasets import load

SETS = ("pendigits", "usps", "letter", "isolet", "mnist")
BASES = ("stump", "product", "tree")
EXPLAINED = 20  # rows
BACKGROUND = 200


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    result = action()
    return result, time.process_time() - began


def onnx_session(content: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=list(SETS), choices=SETS)
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--rows", type=int, default=2000, help="test rows, at most")
    options = parser.parse_args()
    columns = (
        "scores",
        "prob.",
        "labels",
        "Shapley",
        "MB onnx",
        "us/row ours",
        "onnx",
    )
    print(f"{'':20}" + "".join(f"{name:>13}" for name in columns))
    for name in options.data:
        problem = load(name)
        dense = [
            X.toarray() if hasattr(X, "toarray") else np.asarray(X) for X in (problem.X_train, problem.X_test)
        ]
        train, test = (np.ascontiguousarray(X, np.float64) for X in dense)
        test = test[: options.rows]
        for base in BASES:
            classifier = AdaBoostMHClassifier(options.iterations, base=base, random_state=0)
            classifier.fit(train, problem.y_train)
            classifier.predict_proba(test[:10])
            chances, ours = timed(lambda: classifier.predict_proba(test))  # noqa: B023
            scores = classifier.model_.scores(test)
            content = classifier.to_onnx().SerializeToString()
            session = onnx_session(content)
            answers, by_onnx = timed(lambda: session.run(["label", "probabilities", "scores"], {"X": test}))  # noqa: B023
            values, base_value = classifier.shap_values(test[:EXPLAINED], train[:BACKGROUND])
            sums = values.sum(axis=1) + base_value
            differences = (
                abs(answers[2] - scores).max(), abs(answers[1] - chances).max(),
                np.sum(answers[0] != classifier.predict(test)), abs(sums - scores[:EXPLAINED]).max(),
            )  # fmt: skip
            times = [1e6 * seconds / len(test) for seconds in (ours, by_onnx)]
            cells = [f"{value:13.1e}" for value in differences[:2]] + [
                f"{differences[2]:13d}",
                f"{differences[3]:13.1e}",
            ]
            cells += [f"{len(content) / 1e6:13.1f}", *(f"{value:13.1f}" for value in times)]
            print(f"{name:12}{base:8}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
