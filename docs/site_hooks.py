"""What MkDocs does besides its plugins: pages of metrics, modules and notebooks; links elsewhere.

MkDocs calls the functions whose names begin with `on_`, since mkdocs.yml names this file as a hook.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from itertools import cycle
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT))  # `docs` is not installed

from docs.metrics_page import metrics, results_of, sections, shorten_powers  # noqa: E402
from docs.notebook_page import notebook_page  # noqa: E402
from docs.reference_pages import TITLES, markdown  # noqa: E402
from docs.reference_pages import pages as reference_pages  # noqa: E402
from docs.site_docstrings import as_markdown  # noqa: E402
from streammetrics import (  # noqa: E402
    classification,
    combine,
    distributions,
    join,
    policies,
    ranking,
)

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
SECTIONS = {
    "Metrics of rows": classification,
    "Metrics of values": distributions,
    "Metrics of lists and groups": ranking,
    "Metrics of policies": policies,
    "Combinations": combine,
    "Joins": join,
}
# The search shows other pages before these, which have words of all kinds.
LAST_FOUND = (
    "reference/",
    "architecture.md",
    "coming_from/atlas.md",
    "performance.md",
    "testing.md",
)
UNLISTED = {"check", "check_settings", "arguments", "settings", "widths", "stored_names"}
SHORT = re.compile(r"<code>(?=[^<\s]*-)([^<\s]{1,24})</code>")
CODE = re.compile(r"<code>([^<\s]+)</code>")
PARTS = re.compile(r"(?<=[a-z0-9][._/,(])(?=\w)|(?<=[a-z])(?=[A-Z])")  # where a name may be broken
IMAGE = re.compile(r'(<img [^>]*\bsrc=")([^":]+)"')
TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
CELL = re.compile(r"<td\b")
NUMBERS = re.compile(r"(<td[^>]*>[\d.,±× –-]+</td>\s*){2}")  # two figures side by side
LINK = re.compile(r"\[([^\]]*)\]\((\.\./[^)#\s]*)(?:#[^)]*)?\)")


def path_of(name: str) -> str:
    """Where the page of a metric is among the sources."""
    return f"reference/{name}.md"


def metric_page(name: str, metric: type) -> str:
    """The page of a metric and of its results, which mkdocstrings fills from the code."""
    names = [
        member for member in vars(metric) if not member.startswith("_") and member not in UNLISTED
    ]
    functions = [
        member for member in names if inspect.isfunction(inspect.unwrap(getattr(metric, member)))
    ]
    members = dict.fromkeys(["update", "compute", *functions])  # in this order
    pieces = [
        f"---\ntitle: {name}\n---\n",
        f"# {name}\n\n```python\n{signature_of(name, metric)}\n```\n",
        object_of(metric, 2, list(members)),
        "Every metric also takes tables (`update_from`), merges, resets, saves and compares: see "
        "[the names that all have](../interface.md#library). "
        "[What each number is](../metrics.md) says which tools define it otherwise.\n",
        *(object_of(result, 2, None) for result in results_of(metric)),
    ]
    return "\n".join(pieces)


def signature_of(name: str, metric: type) -> str:
    """How an instance is made, a setting a line if it is long."""
    plain = inspect.signature(metric)
    settings = [
        shorten_powers(str(parameter.replace(annotation=parameter.empty)))
        for parameter in plain.parameters.values()
    ]
    line = f"{name}({', '.join(settings)})"
    return line if len(line) < 80 else f"{name}(\n    " + ",\n    ".join(settings) + ",\n)"


def object_of(kind: type, level: int, members: list[str] | None) -> str:
    """What mkdocstrings replaces by the docstring of a class and of its members."""
    options = [f"heading_level: {level}"]
    if members is not None:
        options.append("show_root_heading: false")
        options.append("show_root_toc_entry: false")
        options.append(f"members: [{', '.join(members)}]")
    lines = "".join(f"      {option}\n" for option in options)
    return f"::: {kind.__module__}.{kind.__qualname__}\n    options:\n{lines}"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation, with notebooks after the tutorials, and modules and metrics after the
    reference."""
    pages = [
        {title: [{name: path_of(name)} for name in metrics() if name in package.__all__]}
        for title, package in SECTIONS.items()
    ]
    modules = {"Modules": [{TITLES[page.module]: page.path} for page in reference_pages()]}
    notebooks = [f"examples/{path.stem}.md" for path in NOTEBOOKS]
    for entry in config.nav or []:
        entry.get("Tutorials", []).append({"Notebooks": notebooks})
        entry.get("Reference", []).extend([modules, *pages] if "Reference" in entry else [])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of the docs, and a page for each metric, public module and notebook."""
    for name, metric in metrics().items():
        files.append(File.generated(config, path_of(name), content=metric_page(name, metric)))
    for page in reference_pages():
        files.append(File.generated(config, page.path, content=markdown(page, as_markdown)))
    for path in NOTEBOOKS:
        for name, content in notebook_page(path).items():
            files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with names of files in place of links to files that are not in the docs.

    With the address of pictures in HTML, which MkDocs leaves alone, and with the escape that MkDocs
    knows for an angle. What the pages of metrics say is not said again on the page of definitions.
    """
    if page.file.src_uri.startswith(LAST_FOUND):
        page.meta.setdefault("search", {"boost": 0.5})
    if page.file.src_uri == "metrics.md":
        markdown = with_links_to_metrics(markdown)
    folder = (DOCS / page.file.src_uri).parent

    def linked(match: re.Match[str]) -> str:
        target = (folder / match[2]).resolve()
        if target.is_relative_to(DOCS):
            return match[0]
        name = target.relative_to(ROOT).as_posix()
        label = match[1].strip("`")
        return f"`{name}`" if label in name else f"{match[1]} (`{name}`)"

    def shown(match: re.Match[str]) -> str:
        path = os.path.normpath(Path(page.file.src_uri).parent / match[2])
        file = files.get_file_from_path(path)
        return match[0] if file is None else f'{match[1]}{file.url_relative_to(page.file)}"'

    return IMAGE.sub(shown, LINK.sub(linked, markdown)).replace(r"\<", "&lt;")


def with_links_to_metrics(markdown: str) -> str:
    """The page of definitions with links to the page of each metric in place of its docstring."""
    before, head, rest = markdown.partition("## Every metric\n")
    measures = rest[rest.index("## Every measure") : rest.index("## Every result")]
    taken = {line.strip("# ").lower() for line in before.splitlines() if line.startswith("#")}
    links = []
    for name, metric in metrics().items():
        anchor = "" if name.lower() in taken else f'<a id="{name.lower()}"></a>'
        links.append(f"- {anchor}[`{name}`]({path_of(name)}): {sections(metric)[0][0]}")
    results = "## Every result\n\nEach page of a metric has those of its results.\n"
    return f"{before}{head}\n" + "\n".join(links) + f"\n\n{measures}\n{results}"


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with short flags that no line breaks, and with tables for narrow screens."""
    return TABLE.sub(narrow, SHORT.sub(r'<code class="short">\1</code>', html))


def narrow(match: re.Match[str]) -> str:
    """A table whose names break between their words, and whose cells name their columns.

    site.css shows a row of such a table as a card on phones, unless the table is one of figures.
    """
    table = CODE.sub(lambda code: f"<code>{PARTS.sub('<wbr>', code[1])}</code>", match[0])
    titles = re.findall(r"<th[^>]*>(.*?)</th>", table, re.DOTALL)
    if len(titles) < 2 or NUMBERS.search(table):
        return table
    labels = cycle(re.sub(r"<[^>]*>", "", title) for title in titles)
    cells = CELL.sub(lambda _: f'<td data-label="{next(labels)}"', table)
    return cells.replace("<table", '<table data-cards=""', 1)
