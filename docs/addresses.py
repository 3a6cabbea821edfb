"""The addresses of the repository, for the package that is published from it.

A clone does not know where it is public; the workflow that publishes it does. There

    python -m docs.addresses https://github.com/OWNER/NAME COMMIT

adds `[project.urls]` to pyproject.toml, and makes the links of README.md absolute, since the page
of a package index has no files beside it. Nothing of this is committed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
REPOSITORY: Final = re.compile(r"https://(?P<host>[\w.-]+)/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)")
PICTURES: Final = (".svg", ".png")
# Targets within the repository, of [text](target), ![text](target) and [text]: target, and of src,
# srcset and href.
TARGET: Final = re.compile(
    r"(?P<before>\]\(|^\[[^]\n]+\]: |\b(?:src|srcset|href)=\")(?!\w+:|#|/)(?P<path>[^)\"\s]+)",
    re.MULTILINE,
)


def urls(repository: str) -> dict[str, str]:
    """Labels and addresses that a package index shows beside a package."""
    match = REPOSITORY.fullmatch(repository)
    if match is None:
        raise SystemExit(
            f"addresses: expected https://HOST/OWNER/NAME, got {repository!r} as the repository; "
            "pass what $GITHUB_SERVER_URL/$GITHUB_REPOSITORY says"
        )
    # .github/workflows/docs.yml publishes the site there.
    site = f"https://{match['owner'].lower()}.github.io/{match['name']}/"
    hosted = match["host"] == "github.com"
    return {
        "Documentation": site if hosted else f"{repository}/blob/HEAD/docs/index.md",
        "Source": repository,
        "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def with_urls(project: str, repository: str) -> str:
    """The text of pyproject.toml with `[project.urls]`."""
    if re.search(r"^\[project\.urls\]", project, re.MULTILINE):
        raise SystemExit(
            "addresses: expected pyproject.toml without [project.urls], got it with one; "
            "start from a clean clone"
        )
    lines = [f'{label} = "{address}"' for label, address in urls(repository).items()]
    return "\n".join([project, "[project.urls]", *lines, ""])


def absolute(page: str, repository: str, commit: str) -> str:
    """The text of a page at the top of the repository, with absolute links to this commit."""

    def whole(match: re.Match[str]) -> str:
        path = match["path"].removeprefix("./")
        kind = "raw" if path.endswith(PICTURES) else "blob"
        return f"{match['before']}{repository}/{kind}/{commit}/{path}"

    # Code between backticks or fences is kept: every second part.
    parts = re.split(r"(^```.*?^```|`[^`\n]+`)", page, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if i % 2 else TARGET.sub(whole, part) for i, part in enumerate(parts))


def main(argv: list[str]) -> int:
    """Rewrite pyproject.toml and README.md of this folder."""
    if len(argv) != 2:
        raise SystemExit("usage: python -m docs.addresses https://HOST/OWNER/NAME COMMIT")
    repository, commit = argv
    project, readme = ROOT / "pyproject.toml", ROOT / "README.md"
    texts = {
        project: with_urls(project.read_text(encoding="utf-8"), repository),
        readme: absolute(readme.read_text(encoding="utf-8"), repository, commit),
    }
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
