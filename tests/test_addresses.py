"""The addresses that docs/addresses.py puts into a package that is published."""

from __future__ import annotations

import re
import tomllib

import pytest

from docs.addresses import absolute, main, urls, with_urls
from tests.requirements import ROOT

REPOSITORY, COMMIT = "https://github.com/Someone/streammetrics", "abc"
PAGE = """\
[a](docs/a.md#b) and ![a picture](./docs/a.svg "Title"), [here](#here), [there](https://x.example/y)
<picture><source srcset="docs/b.png"><img src="docs/b.png"></picture> `[c](docs/c.md)`
```
[d](docs/d.md)
```
[`e`](E.md)

[f]: docs/f.md
"""


def test_links_become_absolute_pictures_to_their_bytes_and_code_stays() -> None:
    expected = PAGE
    for link, kind in {
        "(docs/a.md": "blob", "(./docs/a.svg": "raw", '"docs/b.png': "raw",
        "(E.md": "blob", " docs/f.md": "blob",
    }.items():  # fmt: skip
        path = link[1:].removeprefix("./")
        expected = expected.replace(link, f"{link[0]}{REPOSITORY}/{kind}/{COMMIT}/{path}")
    assert absolute(PAGE, REPOSITORY, COMMIT) == expected


def test_each_link_of_the_readme_leads_to_a_file_of_the_repository() -> None:
    page = absolute((ROOT / "README.md").read_text(encoding="utf-8"), REPOSITORY, COMMIT)
    paths = re.findall(rf"{REPOSITORY}/(?:raw|blob)/{COMMIT}/([^)\"#\s]+)", page)
    assert len(paths) > 5
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_urls_of_the_project_are_those_of_its_repository() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert tomllib.loads(with_urls(text, REPOSITORY))["project"]["urls"] == {
        "Documentation": "https://someone.github.io/streammetrics/",
        "Source": REPOSITORY,
        "Changelog": f"{REPOSITORY}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{REPOSITORY}/issues",
    }
    elsewhere = "https://git.example/a/b"
    assert urls(elsewhere)["Documentation"] == f"{elsewhere}/blob/HEAD/docs/index.md"
    with pytest.raises(SystemExit, match="got it with one"):
        with_urls(with_urls(text, REPOSITORY), REPOSITORY)


@pytest.mark.parametrize(
    "wrong", ["", "http://github.com/a/b", "https://github.com/a", 'https://h/a/b"']
)
def test_what_is_no_address_changes_nothing(wrong: str) -> None:
    before = (ROOT / "pyproject.toml").read_bytes(), (ROOT / "README.md").read_bytes()
    with pytest.raises(SystemExit, match="expected https://HOST/OWNER/NAME, got "):
        main([wrong, COMMIT])
    assert ((ROOT / "pyproject.toml").read_bytes(), (ROOT / "README.md").read_bytes()) == before
