"""The lower bounds of what the extras need, as pinned requirements: ``python .ci/oldest.py simulate boosting``."""

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def pinned(requirements: list[str]) -> set[str]:
    """Each requirement at its lower bound; extras of our own are followed."""
    found: set[str] = set()
    for text in requirements:
        if own := re.fullmatch(r"abex\[([\w,]+)\]", text):
            for extra in own[1].split(","):
                found |= pinned(project["optional-dependencies"][extra])
        elif bound := re.match(r"([\w.-]+(?:\[\w+\])?)>=([\w.]+)", text):
            found.add(f"{bound[1]}=={bound[2]}{'.*' if bound[2].count('.') < 2 else ''}")
    return found


print("\n".join(sorted(pinned([*project["dependencies"], f"abex[{','.join(sys.argv[1:])}]"]))))
