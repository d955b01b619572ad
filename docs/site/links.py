"""From the links of the repository to those of the site, and the check that none of them leads to nothing.

A link in a Markdown file is relative to that file, as on a code host. `Links.rewrite` makes of it ``site:gpu.html``, an
address counted from the top of the site, which `extension` makes relative to the page that it stands on.
"""

import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

# The files that become pages of prose, and which: an address without .html, from the top of the site.
PAGES = (
    (r"docs/site/landing/index\.md", r"index"),
    (r"README\.md", r"readme"),
    (r"README\.ja\.md", r"ja/readme"),
    (r"CONTRIBUTING\.md", r"contributing"),
    (r"CHANGELOG\.md", r"changelog"),
    (r"docs/index\.md", r"guides"),
    (r"docs/(\w+)/README\.md", r"\1/index"),
    (r"docs/(.+)\.md", r"\1"),
    (r"examples/lessons/README\.md", r"lessons/index"),
    (r"examples/lessons/((?:\d\d|exercise)_\w+)\.py", r"lessons/\1"),
    (r"examples/lessons/ja/README\.md", r"ja/lessons/index"),
    (r"examples/lessons/ja/(\d\d_\w+)\.md", r"ja/lessons/\1"),
)
IMAGES = {".png", ".svg", ".gif", ".webp"}

# In Markdown: code, which stays as it is; an image; the target of a link; the target of a link defined apart.
MARKDOWN = re.compile(
    r"""(?P<code>^(?P<fence>```+|~~~+).*?^(?P=fence)|(?<!`)(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`))
      | (?P<image>!\[[^]]*\]\()(?P<source>[^)\s]+)
      | (?P<link>\]\(|^\[[^]]+\]:\s+)(?P<target>[^)\s]+)""",
    flags=re.VERBOSE | re.MULTILINE | re.DOTALL)


class BrokenLink(Exception):
    """A link leads to nothing."""


def page_of(path: str) -> str | None:
    """The page that a file of the repository becomes, ``docs/gpu.md`` → ``gpu``; None if it is no page of prose."""
    for pattern, page in PAGES:
        if match := re.fullmatch(pattern, path):
            return match.expand(page)
    return None


class Links:
    """The links of one site: rewrites them, and remembers what they lead to besides pages of prose.

    ``sources`` are the files and folders that need a page under source/, ``images`` the pictures; all are paths from
    the top of the repository.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sources: set[PurePosixPath] = set()
        self.images: set[PurePosixPath] = set()

    def rewrite(self, text: str, page: str) -> str:
        """Markdown of the file ``page`` with links for the site. Raises BrokenLink."""
        def replace(match: re.Match[str]) -> str:
            if match["image"]:
                return match["image"] + self.image(match["source"], page)
            if match["link"]:
                return match["link"] + self.address(match["target"], page)
            return match[0]
        return MARKDOWN.sub(replace, text)

    def address(self, target: str, page: str) -> str:
        """Where a link of the file ``page`` leads: ``site:…``, or the target itself if it is no file."""
        if target.startswith("#") or urlsplit(target).scheme:
            return target
        path, _, anchor = target.partition("#")
        file = self.file(path, page)
        if prose := page_of(str(file)):
            found = f"{prose}.html"
        elif file.suffix in IMAGES:
            self.images.add(file)
            found = f"files/{file}"
        else:
            self.sources.add(file)
            found = source_address(file, self.root)
        return f"site:{found}" + ("#" + anchor if anchor else "")

    def image(self, target: str, page: str) -> str:
        """The picture's place in the source tree of Sphinx."""
        if urlsplit(target).scheme:
            raise BrokenLink(f"{page}: the picture {target} would be a request to elsewhere")
        file = self.file(target, page)
        self.images.add(file)
        return f"/files/{file}"

    def file(self, path: str, page: str) -> PurePosixPath:
        """The file of the repository that a relative link of ``page`` names."""
        named = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(path)))
        if named.startswith("..") or not (self.root / named).exists():
            raise BrokenLink(f"{page}: {path} leads to nothing")
        return PurePosixPath(named)


def source_address(path: PurePosixPath, root: Path) -> str:
    """Where the page of a source file or folder is, from the top of the site."""
    return f"source/{path}/index.html" if (root / path).is_dir() else f"source/{path}.html"


# --- The finished site -------------------------------------------------------------------------------------


class Page(HTMLParser):
    """What other pages may lead to, and what this one leads to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "top"}
        self.targets: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value or "")
            elif name in ("href", "src") and value and tag != "base":
                self.targets.add(value)


def check(site: Path, leave_out: frozenset[str] = frozenset()) -> None:
    """Raise BrokenLink, with all of them, if a link on any page of the site leads to no file or no anchor of it.

    The pages named in ``leave_out`` may be led to; what they lead to is not looked at.
    """
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    pages = {name: Page((site / name).read_text(encoding="utf-8"))
             for name in sorted(files - leave_out) if name.endswith(".html")}
    broken = []
    for name, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = posixpath.join(posixpath.dirname(name), unquote(parts.path)) if parts.path else name
            path = posixpath.normpath(f"{path}index.html" if path.endswith("/") else path)
            anchor = unquote(parts.fragment)
            if path not in files or (path in pages and anchor not in pages[path].anchors):
                broken.append(f"{name}: {target} leads to nothing")
    if broken:
        raise BrokenLink("\n".join(sorted(broken)))
