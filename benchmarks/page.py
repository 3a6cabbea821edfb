"""From JSON to pages: the tables between marks of the pages, and the picture.

`python -m benchmarks --json docs/performance.json` measures; `python -m benchmarks.page` (also run
by `make docs`) writes the figures to the pages. With `--check` nothing is written, and the exit
code is 1 if a page is stale. Nothing is timed here.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from benchmarks import bench_sorting, growth_picture, targets
from benchmarks.answer import Answer
from benchmarks.chinese import translated
from benchmarks.questions import QUESTIONS

ROOT: Final = Path(__file__).resolve().parent.parent
FIGURES: Final = ROOT / "docs" / "performance.json"
PICTURE: Final = ROOT / "docs" / "performance.svg"
PAGES: Final = tuple(
    ROOT / name
    for name in ("README.md", "README.zh-CN.md", "docs/performance.md", "docs/outgrowing.md")
)
# The text between these two lines is generated; everything else is written by hand.
_MARKED: Final = re.compile(r"(<!-- measured ([a-z-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def tables(path: Path = FIGURES) -> dict[str, str]:
    """Each generated part by the name of its mark."""
    record = json.loads(path.read_text(encoding="utf-8"))
    answers = {entry["key"]: Answer.of_json(entry) for entry in record["answers"]}
    quick = " This was a quick run, with fewer rows." if record["quick"] else ""
    parts = {key: answer.title + ".\n\n" + answer.markdown() for key, answer in answers.items()}
    missed = [key for key in QUESTIONS if key not in answers]
    parts.update(dict.fromkeys(missed, "Not measured."))
    processor = record.get("processor", "")
    intro = f"Processor: {processor}. " if processor else ""
    parts["versions"] = f"{intro}Measured with {record['versions']}.{quick}"
    parts["targets"] = (
        f"{targets.table(answers, QUESTIONS)}\n\n{targets.figures(answers, QUESTIONS)}"
    )
    parts["summary"] = f"{targets.summary(answers)}\n\n{_conditions(intro, record['versions'])}"
    parts["summary-zh"] = translated(parts["summary"])
    return parts


def _conditions(intro: str, versions: str) -> str:
    """A sentence on the processor, Python, numpy and CPU features behind the README's figures."""
    parts = versions.split(", ")
    packages = [part for part in parts if part.startswith(("Python ", "numpy "))]
    flags = [part for part in parts if part.startswith(bench_sorting.VARIABLE)]
    setting = f"`{flags[0]}`" if flags else f"no {bench_sorting.VARIABLE}"
    return f"{intro}Measured with {', '.join(packages)} and {setting}; see docs/performance.md."


def filled(text: str, parts: Mapping[str, str]) -> str:
    """A page with its marked parts replaced."""

    def part(match: re.Match[str]) -> str:
        start, name, _, end = match.groups()
        if name not in parts:
            raise SystemExit(f"no measurement for the mark {name}")
        return f"{start}\n{parts[name]}\n\n{end}"

    return _MARKED.sub(part, text)


def marks(text: str) -> list[str]:
    """The names of the marked parts of a page."""
    return [match.group(2) for match in _MARKED.finditer(text)]


def stale(parts: Mapping[str, str]) -> list[str]:
    """The pages that differ from the measured figures."""
    texts = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
    return [name for name, text in texts.items() if filled(text, parts) != text]


def main() -> int:
    """Write the pages and the picture, or report stale pages."""
    parts = tables()
    if "--check" in sys.argv[1:]:
        for name in (old := stale(parts)):
            sys.stderr.write(f"{name} is stale: run `make docs`\n")
        return int(bool(old))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(filled(text, parts), encoding="utf-8")
    points = growth_picture.points(FIGURES)
    if points:
        PICTURE.write_text(growth_picture.drawn(points), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
