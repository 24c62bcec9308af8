"""Every block of Python in the README and in the pages of docs runs (with fewer steps), each in a program of its own.

A block that needs downloaded data, a server or much time has ``<!-- needs data -->`` (or another reason) on the line above it.
"""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?:<!-- needs ([^>]*) -->\n)?```python\n(.*?)```", re.S)
BLOCKS = [
    pytest.param(
        needs, block, f"{page.stem}-{number}", id=f"{page.relative_to(ROOT).with_suffix('')}-{number}"
    )
    for page in PAGES
    if "_build" not in page.parts
    for number, (needs, block) in enumerate(BLOCK.findall(page.read_text()))
]
SMALLER = (
    (r"horizon=[\d_]{5,}", "horizon=2_000"),
    (r"replications=\d+", "replications=2"),
    (r"1_000_000", "20_000"),
)
#: what a page takes for granted
BEFORE = {
    "data-1": """
        import numpy as np, pandas as pd
        from sklearn.datasets import dump_svmlight_file
        table = pd.DataFrame({"weight": np.arange(40.0), "kind": ["pear", "plum"] * 20, "label": [0, 1] * 20})
        table[["weight", "kind"]].to_csv("fruit.csv", index=False)
        table[["weight", "label"]].to_parquet("table.parquet")
        for name in ("train.svm", "test.svm"):
            dump_svmlight_file(table[["weight"]].to_numpy(), table["label"], name)
    """,
    "data-2": """
        import numpy as np, pandas as pd
        rng = np.random.default_rng(0)
        pairs = [(u, i, int(rng.integers(1, 6))) for u in range(30) for i in range(40) if rng.random() < 0.6]
        pd.DataFrame(pairs, columns=["user", "item", "rating"]).to_csv("stars.csv", index=False)
        friends = [(u, (u + step) % 30) for u in range(30) for step in (1, 2, 3)]
        pd.DataFrame(friends, columns=["person", "other"]).to_csv("friends.csv", index=False)
    """,
}


def test_there_are_blocks_and_prefaces_have_theirs():
    names = {param.values[2] for param in BLOCKS}
    assert len(names) > 20
    assert set(BEFORE) <= names


@pytest.mark.parametrize(("needs", "block", "name"), BLOCKS)
def test_example(needs, block, name, tmp_path):
    if needs:
        pytest.skip(f"needs {needs}")
    for large, small in SMALLER:
        block = re.sub(large, small, block)
    script = tmp_path / "example.py"
    if block.lstrip().startswith(">>>"):
        script.write_text(f"r'''\n{block}\n'''\nimport doctest, sys\nsys.exit(doctest.testmod()[0])\n")
    else:
        script.write_text(f"{textwrap.dedent(BEFORE.get(name, ''))}\n{block}")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
