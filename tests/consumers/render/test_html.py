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
from tests.consumers.stores import HOSTILE, event, make_store

pytest.importorskip("vl_convert", reason="no vl-convert-python: pip install 'streammetrics[plot]'")

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

    def of(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attributes for name, attributes in self.elements if name == tag)


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return experiment_run.run(experiment_run.write(tmp_path_factory.mktemp("experiment")))


@pytest.fixture(scope="module")
def made(tested: Path) -> bytes:
    path = tested.with_name("report.html")
    assert main(["report", str(tested), "-o", str(path)]) == 0
    return path.read_bytes()


def pictures(data: bytes) -> list[str]:
    sources = [str(image["src"]).partition(",") for image in Read(data).of("img")]
    assert {kind for kind, _, _ in sources} <= {"data:image/svg+xml;base64"}
    return [base64.b64decode(data).decode() for _, _, data in sources]


@pytest.mark.slow
def test_its_numbers_are_those_of_the_results(
    tested: Path, made: bytes, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    cells = Read(made).cells
    assert {"0.2500", "0.5000", "+0.2500", "+0.1820 to +0.3180", "2,000"} <= set(cells)
    capfdbinary.readouterr()
    assert main(["results", str(tested), "--json"]) == 0
    digest = hashlib.sha256(capfdbinary.readouterr().out).hexdigest()
    assert digest in Read(made).text


@pytest.mark.slow
def test_it_has_the_figures_with_a_description_each(made: bytes) -> None:
    found = pictures(made)
    assert len(found) >= 2 and all(one.startswith("<svg") for one in found)
    assert all(image["alt"] for image in Read(made).of("img"))
    assert Read(made).text.count("effect, look by look") == 1


def test_nothing_in_it_runs_or_comes_from_elsewhere(made: bytes) -> None:
    for text in (made.decode(), *pictures(made)):
        assert not re.search(r"<(script|link|iframe|object|foreignObject)", text, re.IGNORECASE)
        assert not re.search(r"\son\w+=|javascript:|@import|url\((?!#)", text, re.IGNORECASE)
        # Names of XML's vocabularies are no addresses to load from.
        assert set(re.findall(r"https?://[^\s\"'<]+", text)) <= {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1999/xlink",
        }
    [policy] = [meta["content"] for meta in Read(made).of("meta") if "http-equiv" in meta]
    style = re.search(r"<style>(.*?)</style>", made.decode(), re.DOTALL)
    assert policy and style and "default-src 'none'" in policy
    assert base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode() in policy


@pytest.mark.slow
def test_the_same_store_gives_the_same_bytes(tested: Path, made: bytes, tmp_path: Path) -> None:
    assert main(["report", str(tested), "-o", str(tmp_path / "again.html")]) == 0
    assert (tmp_path / "again.html").read_bytes() == made


@pytest.mark.slow
def test_hostile_names_are_text(tmp_path: Path) -> None:
    events = [event(minute, HOSTILE, minute % 2, 0.5) for minute in range(4)]
    store = make_store(tmp_path, events, variants="")
    assert main(["report", str(store), "-o", str(tmp_path / "r.html")]) == 0
    data = (tmp_path / "r.html").read_bytes()
    assert b"<script" not in data and b"\x1b" not in data
    assert formatting.name(HOSTILE, 24) in Read(data).cells
    assert not any("<script" in one for one in pictures(data))


def test_one_metric_and_one_slice_can_be_asked_for(store: Path, tmp_path: Path) -> None:
    words = ["--metric", "ctr", "--where", "variant=a", "--window", "latest"]
    assert main(["report", str(store), "-o", str(tmp_path / "r.html"), *words]) == 0
    read = Read((tmp_path / "r.html").read_bytes())
    assert "auc" not in read.cells and "b" not in read.cells
    assert "1970-01-01T01:00:00Z to 1970-01-01T02:00:00Z" in read.text


def test_it_goes_to_standard_output_too(
    tested: Path, made: bytes, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    capfdbinary.readouterr()
    assert main(["report", str(tested), "-o", "-"]) == 0
    assert capfdbinary.readouterr().out == made


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "report: expected -o FILE"),
        (["-o", "r.html", "--window", "all"], "--window: expected one window, got 'all'"),
        (["-o", "r.html", "--metric", "nope"], "--metric: expected a metric of this store"),
    ],
)
def test_what_it_cannot_do_is_said(
    store: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(store), *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_a_file_that_cannot_be_written_leaves_none(tested: Path, tmp_path: Path) -> None:
    assert main(["report", str(tested), "-o", str(tmp_path / "no" / "r.html")]) == 1
    (tmp_path / "r.html").mkdir()
    assert main(["report", str(tested), "-o", str(tmp_path / "r.html")]) == 1
    assert not list(tmp_path.glob("*.part"))
