"""What each renderer makes of the corpus, and the files that say what it should.

`python -m tests.consumers.render.snapshots` writes them anew; read the difference.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.experiment_plan import DeclaredExperiment
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.render.cells import rows_shown
from streammetrics_consumers.render.html import report_html
from streammetrics_consumers.render.material import Material, Picture
from streammetrics_consumers.render.prometheus import result_gauges
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.terminal import ScreenContents, history_key, screen
from streammetrics_consumers.render.text import results_text

from tests.consumers.render.corpus import PLAN, corpus

FOLDER: Final = Path(__file__).with_name("snapshots")


PLAIN: Final = Style()
COLOURED: Final = Style(100, colour=True)
KINDS: Final = "effects", "roc"
PLANNED: Final = DeclaredExperiment("", PLAN, {})


def text(results: ResultsAnswer, style: Style = PLAIN, *, metric: str | None = None) -> str:
    """As `results` prints it."""
    return results_text(results, Query(metric=metric), style, store="obd.db")


def terminal(results: ResultsAnswer, style: Style = PLAIN) -> str:
    """As `watch` shows it, with a course for each value and each effect."""
    course = [math.nan, 0.1, 0.3, 0.2, 0.9]
    return screen(
        ScreenContents(
            "obd.db, generation 1",
            results,
            "" if results.recommendation is None else "What stands below it.",
            "1,234 events/s",
            {history_key(row): course for row in rows_shown(results)},
            {row.name: course for row in results.comparisons},
        ),
        style,
    )


def report(results: ResultsAnswer) -> str:
    """As `report` writes it, from its first heading on."""
    verdict = "" if results.recommendation is None else "What stands below it."
    pictures = tuple(
        Picture("ctr", kind, "data:", f"{kind} <of> ctr") for kind in ("effects", "roc")
    )
    data = report_html(Material("obd.db", results, PLANNED, verdict, pictures, 2, ("auc, roc: x",)))
    body = data.decode().partition("<main>\n")[2].partition("</main>")[0]
    return re.sub("[0-9a-f]{64}", "(digest)", body)


def prometheus(results: ResultsAnswer) -> str:
    """As `/metrics` has it."""

    class Found:
        def collect(self) -> object:
            return result_gauges({"total": results})

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Found())  # type: ignore[arg-type]
    exposition: bytes = generate_latest(registry)
    # Tails of distributions depend on the processor in their last bits.
    return re.sub(
        r"(?m)^([^#].*) (\S+)$",
        lambda match: f"{match[1]} {float(match[2]):.9g}",
        exposition.decode(),
    )


RENDERERS: Final = {
    "text.txt": lambda results: text(results, COLOURED),
    "terminal.txt": lambda results: terminal(results, COLOURED),
    "report.html": report,
    "prometheus.txt": prometheus,
}


def rendered(name: str) -> Mapping[str, str]:
    """The answers of the corpus as one renderer has them."""
    texts = {case: _readable(RENDERERS[name](results)) for case, results in corpus().items()}
    if name == "text.txt":
        results = corpus()["windows"]
        auc_results = replace(
            results, rows=tuple(row for row in results.rows if row.metric == "auc")
        )
        texts["one metric, with all of its views"] = text(auc_results, metric="auc")
    return texts


def _readable(text: str) -> str:
    """With the colours of tones in braces, and without other styles."""
    text = re.sub(r"\x1b\[((?:1;)?3[123])m(.*?)\x1b\[0m", r"{\1 \2}", text)
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def joined(texts: Mapping[str, str]) -> str:
    """One file of them, in which a comment of Prometheus stands once."""
    lines: dict[object, str] = {}
    for case, content in texts.items():
        for i, line in enumerate([f"======== {case}", *content.splitlines()]):
            lines.setdefault(line if line.startswith("# ") else (case, i), line)
    return "\n".join(lines.values()) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in RENDERERS:
        (FOLDER / name).write_text(joined(rendered(name)), encoding="utf-8")
