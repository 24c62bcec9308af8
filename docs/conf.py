"""Sphinx configuration: Markdown by MyST, executed notebooks, docstrings by numpydoc, formulas without a network."""

import sys
from pathlib import Path

import abex

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from figure_pages import write_figures  # noqa: E402
from public_names import write_reference  # noqa: E402

project = "abex"
author = "The abex developers"
release = version = abex.__version__
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # brings MathJax along: pages show formulas without a network
    "sphinx_design",
]
exclude_patterns = [
    "_build",
    "changing_worlds_table.md",
    "experiments_tables.md",
    "which_policy_tables.md",
    "why_one_may_look_tables.md",
]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "cache"  # a notebook runs again when it has changed
nb_execution_in_temp = True  # what a notebook writes does not stay beside it
nb_execution_timeout = 300
nb_execution_raise_on_error = True

numpydoc_show_class_members = False
autodoc_typehints = "none"
autosummary_generate = True
suppress_warnings = ["ref.ref"]  # labels of scikit-learn's pages in what we inherit from it
write_reference(HERE / "api")
write_figures(HERE / "experiments.md", HERE / "paper")

highlight_language = (
    "none"  # what names no language is a command or what it printed; doctests are Python anyway
)
html_theme = "pydata_sphinx_theme"
html_title = "abex"
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 4,
    "pygments_dark_style": "github-dark",  # its comments are grey
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
