"""`streammetrics report`: one file, the numbers of the results, nothing that runs or loads."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.model import formatting

from tests.consumers import experiment_run
from tests.consumers.render.corpus import corpus
from tests.consumers.render.snapshots import report
from tests.consumers.stores import HOSTILE, event, make_store

pytest.importorskip("vl_convert", reason="no vl-convert-python: pip install '.[plot]' in a clone")

VOID = {"meta", "img"}


class Read(HTMLParser):
    """The elements of a file, its text, and whether every one of them is closed."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.cells: list[str] = []
        self.text = ""
        self.feed(data.decode())
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("td", "th"):
            self.cells.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data

    def attributes(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attributes for name, attributes in self.elements if name == tag)


def pictures(data: bytes) -> list[str]:
    sources = [str(image["src"]).partition(",") for image in Read(data).attributes("img")]
    assert {kind for kind, _, _ in sources} <= {"data:image/svg+xml;base64"}
    return [base64.b64decode(data).decode() for _, _, data in sources]


def test_quantiles_of_independent_rows_have_a_column_for_their_band(tmp_path: Path) -> None:
    events = [event(i % 60, "ab"[i % 2], i % 3 == 0, i / 128) for i in range(128)]
    wait = '[metrics.wait]\ntype = "Quantiles"\ninputs = { values = "score" }\n'
    store, out = make_store(tmp_path, events, rest=wait), tmp_path / "report.html"
    assert main(["report", str(store), "-o", str(out)]) == 0
    read = Read(out.read_bytes())
    head = read.cells.index("band")
    assert "Band: it holds for all quantiles together" in read.text
    width = len(["metric", "view", "variant", "value", "exact", "ci", "band", "rows"])
    lines = [read.cells[i : i + width] for i in range(head + 2, len(read.cells) - width, width)]
    bands = {line[1]: line[6] for line in lines if line[0] == "wait"}
    assert bands["p99"].endswith("to inf") and " to 0." in bands["median"]
    assert {line[6] for line in lines if line[0] in ("auc", "ctr")} == {""}


def only_shows(text: str) -> None:
    """Nothing in it runs or comes from elsewhere."""
    assert not re.search(r"<(script|link|iframe|object|foreignObject)", text, re.IGNORECASE)
    assert not re.search(r"\son\w+=|javascript:|@import|url\((?!#)", text, re.IGNORECASE)
    # Names of XML's vocabularies are no addresses to load from.
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


def test_every_report_is_well_formed_and_only_shows() -> None:
    for results in corpus().values():
        body = report(results)
        Read(body.encode("utf-8", "backslashreplace"))
        only_shows(body)
        assert "\x1b" not in body


def test_a_report_is_one_file_with_the_numbers_of_the_results_and_a_figure_each(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    store = experiment_run.run(experiment_run.write(tmp_path))
    path = tmp_path / "report.html"
    assert main(["report", str(store), "-o", str(path)]) == 0
    document = path.read_bytes()
    capfdbinary.readouterr()
    assert main(["report", str(store), "-o", "-"]) == 0
    assert capfdbinary.readouterr().out == document  # the same store gives the same bytes
    assert main(["results", str(store), "--json", "--views", "all"]) == 0
    digest = hashlib.sha256(capfdbinary.readouterr().out).hexdigest()
    read, drawn = Read(document), pictures(document)
    assert {"0.250", "0.500", "+0.250", "+0.182 to +0.318", "2,000"} <= set(read.cells)
    assert digest in read.text
    assert len(drawn) >= 2 and all(picture.startswith("<svg") for picture in drawn)
    assert all(image["alt"] for image in read.attributes("img"))
    assert read.text.count("effect, look by look") == 1
    for text in (document.decode(), *drawn):
        only_shows(text)
    [policy] = [meta["content"] for meta in read.attributes("meta") if "http-equiv" in meta]
    style = re.search(r"<style>(.*?)</style>", document.decode(), re.DOTALL)
    assert policy and style and "default-src 'none'" in policy
    assert base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode() in policy
    # A file that cannot be written leaves none.
    assert main(["report", str(store), "-o", str(tmp_path / "no" / "r.html")]) == 1
    (tmp_path / "r.html").mkdir()
    assert main(["report", str(store), "-o", str(tmp_path / "r.html")]) == 1
    assert not list(tmp_path.glob("*.part"))


def test_hostile_names_are_text_and_one_metric_and_slice_can_be_asked_for(tmp_path: Path) -> None:
    events = [event(minute, HOSTILE, minute % 2, 0.5) for minute in range(4)]
    store, path = make_store(tmp_path, events, variants=""), tmp_path / "r.html"
    words = ["--metric", "ctr", "--where", f"variant={HOSTILE}", "--window", "latest"]
    assert main(["report", str(store), "-o", str(path), *words]) == 0
    data = path.read_bytes()
    read = Read(data)
    assert b"<script" not in data and b"\x1b" not in data
    assert formatting.name(HOSTILE, 24) in read.cells and "auc" not in read.cells
    assert "1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z" in read.text
    assert not any("<script" in picture for picture in pictures(data))


def test_what_it_cannot_do_is_said(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        ([], "report: expected -o FILE"),
        (["-o", "r.html", "--window", "all"], "--window: expected one window, got 'all'"),
        (["-o", "r.html", "--metric", "nope"], "--metric: expected a metric of this store"),
    ):
        assert main(["report", str(store), *words]) == 2
        assert message in capsys.readouterr().err
