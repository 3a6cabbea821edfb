"""What MkDocs does besides its plugins: pages of metrics and notebooks; links that leave the docs.

MkDocs calls `on_files` and `on_page_markdown`, since mkdocs.yml names this file as a hook.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # `docs` is not installed

from docs.metrics_page import metrics, results_of  # noqa: E402
from docs.notebook_page import notebook_page  # noqa: E402

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
UNLISTED = {"check_settings", "arguments", "settings", "widths", "former_arguments"}
LINK = re.compile(r"\[([^\]]*)\]\((\.\./[^)#\s]*)(?:#[^)]*)?\)")


def path_of(name: str) -> str:
    """Where the page of a metric is among the sources."""
    return f"reference/{name}.md"


def metric_page(name: str, metric: type) -> str:
    """The page of a metric and of its results, which mkdocstrings fills from the code."""
    own = [one for one in vars(metric) if not one.startswith("_") and one not in UNLISTED]
    functions = [one for one in own if inspect.isfunction(inspect.unwrap(getattr(metric, one)))]
    pieces = [
        f"---\ntitle: {name}\n---\n",
        f"# {name}\n\n```python\n{signature_of(name, metric)}\n```\n",
        object_of(metric, 1, sorted({"update", "compute", *functions})),
        "Every metric also merges, saves and compares: see "
        "[the names that all have](../interface.md#library).\n",
        *(object_of(result, 2, None) for result in results_of(metric)),
    ]
    return "\n".join(pieces)


def signature_of(name: str, metric: type) -> str:
    """How an instance is made, a setting a line if it is long."""
    plain = inspect.signature(metric)
    settings = [str(one.replace(annotation=one.empty)) for one in plain.parameters.values()]
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
    """The navigation, with notebooks after the tutorials, and metrics after the reference."""
    pages = [{name: path_of(name)} for name in metrics()]
    notebooks = [f"examples/{path.stem}.md" for path in NOTEBOOKS]
    for entry in config.nav or []:
        entry.get("Tutorials", []).append({"Notebooks": notebooks})
        entry.get("Reference", []).extend([{"Metrics": pages}] if "Reference" in entry else [])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of the docs, and a page for each metric and for each notebook."""
    for name, metric in metrics().items():
        files.append(File.generated(config, path_of(name), content=metric_page(name, metric)))
    for path in NOTEBOOKS:
        for name, content in notebook_page(path).items():
            files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with names of files in place of links to files that are not in the docs.

    And with the escape that MkDocs knows for an angle.
    """
    folder = (ROOT / "docs" / page.file.src_uri).parent

    def linked(found: re.Match[str]) -> str:
        target = (folder / found[2]).resolve()
        if target.is_relative_to(ROOT / "docs"):
            return found[0]
        name = target.relative_to(ROOT).as_posix()
        said = found[1].strip("`")
        return f"`{name}`" if said in name else f"{found[1]} (`{name}`)"

    return LINK.sub(linked, markdown).replace(r"\<", "&lt;")
