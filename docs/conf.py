"""Sphinx configuration."""

import abex

project = "abex"
author = "The abex developers"
release = abex.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "numpydoc"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
numpydoc_show_class_members = False
autodoc_typehints = "none"
html_theme = "alabaster"
exclude_patterns = ["_build"]
