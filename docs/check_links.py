"""Every link and picture inside the built pages leads somewhere: python docs/check_links.py docs/_build/html."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what it leads to and what leads here."""
        given = dict(attrs)
        self.links += [link for name in ("href", "src") if (link := given.get(name))]
        self.anchors |= {name for key in ("id", "name") if (name := given.get(key))}


def broken_links(folder: Path) -> list[str]:
    """Links that lead nowhere, with the page that has them. Other hosts are not asked."""
    pages = {}
    for path in sorted(set(folder.rglob("*.html")) - set(folder.glob("_static/**/*.html"))):
        pages[path.resolve()] = page = Page()
        page.feed(path.read_text(encoding="utf-8"))
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not goal.exists() or (anchor and goal in pages and anchor not in pages[goal].anchors):
                broken.append(f"{path.relative_to(folder.resolve())}: {link}")
    return broken


if __name__ == "__main__":
    found = broken_links(Path(sys.argv[1]))
    print("\n".join(found) or "every link inside the pages leads somewhere")
    sys.exit(bool(found))
