"""Results as an HTML file: the lines of every other document, escaped, with what print says."""

from __future__ import annotations

import csv
from html.parser import HTMLParser
from io import StringIO

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streammetrics import InputError, PerKey, Ratio, SettingsError, compare
from streammetrics.present import html_page
from tests.experiments.arms import clicks, two
from tests.present.test_every_result import examples


class Page(HTMLParser):
    """The elements, cells and sentences that a reader of the file finds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.addresses: list[str] = []
        self.rows: list[list[str]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.addresses += [name for name, _ in attributes if name in ("src", "href")]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")
        elif tag in ("h1", "h2", "p"):
            self.texts.setdefault(tag, []).append("")

    def handle_data(self, text: str) -> None:
        if self.elements and self.elements[-1] in ("th", "td") and text.strip():
            self.rows[-1][-1] += text
        elif self.elements and self.elements[-1] in ("h1", "h2", "p") and text.strip():
            self.texts[self.elements[-1]][-1] += text


def keyed(*keys: object) -> PerKey:
    metric = PerKey(Ratio())
    metric.update(list(keys), numerators=[1] * len(keys))
    return metric


def rows_of_csv(text: str) -> list[list[str]]:
    rows = list(csv.reader(StringIO(text)))
    return [row[:-1] if rows[0][-1] == "reason" else row for row in rows]


def csv_number(cell: str) -> str:
    cell = "nan" if cell == "undefined" else cell
    return cell.replace(",", "") if cell.replace(",", "").replace(".", "").isdigit() else cell


def test_the_table_of_a_page_has_the_lines_of_the_csv_file() -> None:
    for options in ({}, {"units": True}, {"stars": True, "level": 0.9}):
        for result in (
            keyed("a", "b", "a").compute(),
            compare(clicks(46, 1_000), clicks(69, 1_000)),
        ):
            rows = Page(result.to_html(**options)).rows
            expected = rows_of_csv(result.to_csv(**options))
            assert [list(map(csv_number, row)) for row in rows] == expected


@given(st.text(min_size=1, max_size=20))
@example("<script>alert(1)</script>")
@example('"><img src=x onerror=alert(1)>')
@example("</style></table>")
def test_no_text_becomes_an_element(text: str) -> None:
    plain = Page(html_page({"a": keyed("b").compute()}, title="c"))
    page = Page(html_page({text: keyed(text).compute()}, title=f"c{text}"))
    assert page.elements == plain.elements and not page.addresses


def test_a_page_has_each_result_under_its_heading_and_is_never_cut() -> None:
    names = [f"campaign {i:03}" for i in range(300)]
    page = Page(html_page({"All": keyed(*names).compute(), "One": keyed("a").compute()}, title="T"))
    assert page.texts["h1"] == ["T"] and page.texts["h2"] == ["All", "One"]
    assert [row[0] for row in page.rows[1:301]] == [f"{name}: ratio" for name in names]
    assert len(page.rows) == 1 + 300 + 2


def test_the_page_of_a_report_begins_with_the_recommendation() -> None:
    report = two((46, 1_000), (69, 1_000)).report()
    sentences = Page(report.to_html()).texts["p"]
    start = sentences.index(report.recommendation.sentence)
    assert sentences[start + 1] == report.findings[0].sentence


def test_every_result_has_a_page() -> None:
    for result in examples():
        assert Page(result.to_html()).rows, type(result)


def test_what_is_no_result_is_refused() -> None:
    for wrong in ([Ratio().compute()], {"ctr": Ratio()}, {"ctr": 0.5}):
        with pytest.raises(InputError, match="html_page"):
            html_page(wrong)  # type: ignore[arg-type]
    for option in ("stars", "units", "level"):
        with pytest.raises((InputError, SettingsError), match=option):
            Ratio().compute().to_html(**{option: np.array([1, 2])})
