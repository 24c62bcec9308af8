"""Every notebook of docs runs from the first cell to the last and shows at least one picture.

What is installed are the extras that it names above its first cell.
"""

import re
from pathlib import Path

import nbclient
import nbformat
import pytest

from tests.waiting import KERNEL_PATIENCE
from tests.without_extras import extras_named_in, missing_without

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.md"))
CELL = re.compile(r"```\{code-cell\}\n(.*?)```", re.S)


def notebook_of(page):
    """The code cells of a page of MyST Markdown, as a notebook; before them what hides the packages that are not installed."""
    text = page.read_text(encoding="utf-8")
    extras = extras_named_in(text.partition("```{code-cell}")[0])
    hiding = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        f"from tests.without_extras import hide; hide({missing_without(extras)!r})"
    )
    cells = [nbformat.v4.new_code_cell(code) for code in [hiding, *CELL.findall(text)]]
    return nbformat.v4.new_notebook(cells=cells)


def pictures(outputs):
    """What is drawn in these outputs: images, and HTML that holds one."""
    shown = [output.get("data", {}) for output in outputs]
    return [
        data for data in shown if "image/png" in data or re.search("<img|<svg", data.get("text/html", ""))
    ]


def test_there_are_seven_and_each_has_its_header():
    assert len(NOTEBOOKS) == 7
    for page in NOTEBOOKS:
        text = page.read_text(encoding="utf-8")
        assert text.startswith("---\nfile_format: mystnb\nkernelspec:\n  name: python3\n"), page.name
        assert text.count("{code-cell}") == len(CELL.findall(text)) > 4, page.name


@pytest.mark.parametrize("page", NOTEBOOKS, ids=[page.stem for page in NOTEBOOKS])
def test_notebook(page, tmp_path):
    notebook = notebook_of(page)
    nbclient.NotebookClient(
        notebook, kernel_name="python3", **KERNEL_PATIENCE, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()  # raises CellExecutionError where a cell does
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    assert pictures(outputs)
    assert not [output["text"] for output in outputs if output.get("name") == "stderr"]
