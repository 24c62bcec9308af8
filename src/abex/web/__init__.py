"""What all pages share: their look (`style.css`), their charts and tables (`charts.js`), and Vega, which draws.

Nothing is fetched from anywhere. The report puts these texts into one file; the service serves them from addresses of its own,
under a content security policy that allows neither inline code nor `eval`.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

__all__ = ["drawing_script", "resource"]


@cache
def resource(package: str, name: str) -> str:
    """A text file of a package.

    >>> resource("abex.web", "charts.js").splitlines()[0]
    '"use strict";'
    """
    return files(package).joinpath(name).read_text(encoding="utf-8")


@cache
def drawing_script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; ``vega/LICENSES.txt`` says whose they are."""
    scripts = [resource("abex.web", f"vega/{name}.min.js") for name in ("vega", "vega-lite", "vega-embed")]
    return "\n".join(scripts).replace("</script", "<\\/script")
