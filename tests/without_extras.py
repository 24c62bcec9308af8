"""Run as a program: as if nothing but the core were installed. ``python -m tests.without_extras PACKAGE,PACKAGE CODE``."""

import re
import sys

INSTALL = r"pip install '\.\[(?P<extras>[\w,]+)\]'"  # as pages write it


def extras_named_in(text):
    """The extras that a page tells to install."""
    return [extra for extras in re.findall(INSTALL, text) for extra in extras.split(",")]


def missing_without(extras):
    """The packages that none of these extras brings."""
    from abex.support.extras import EXTRA_OF, PACKAGES_OF

    return set(EXTRA_OF) - {package for extra in extras for package in PACKAGES_OF[extra]}


class NotInstalled:
    """A finder that finds none of these packages, before any other is asked."""

    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def hide(packages):
    """From now on these packages are not there."""
    assert not set(packages) & set(sys.modules), "imported already"
    sys.meta_path.insert(0, NotInstalled(set(packages)))


if __name__ == "__main__":
    hide(sys.argv[1].split(","))
    code = sys.argv[2]
    sys.argv[1:] = []
    exec(compile(code, "code", "exec"), {"__name__": "code"})
