"""docs/performance.md and README say what docs/performance.json has; nothing is timed here."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
from pathlib import Path

import pytest

from benchmarks import bench_sorting, growth_picture, page, targets
from benchmarks.answer import Answer
from benchmarks.harness import Timing
from benchmarks.questions import QUESTIONS, other_benchmarks
from benchmarks.quietest import quietest

KEPT = json.loads(page.FIGURES.read_text(encoding="utf-8"))
ANSWERS = {answer["key"]: Answer.of_json(answer) for answer in KEPT["answers"]}
# Figures may have been measured before some of the questions were there.
WHOLE = list(ANSWERS) == list(QUESTIONS)


def answered(*timings: Timing) -> Answer:
    read, sort = Timing("read limit", 0.5, 0.4, 0.6), Timing("np.sort float32", 4, 4, 4)
    return Answer("one", "One", "row", 5, read, sort, [*timings])


def _measured(table: str) -> str:
    [line] = [line for line in table.splitlines()[2:] if "not measured" not in line]
    return line


def test_the_pages_say_what_was_measured() -> None:
    assert page.stale(page.tables()) == []


def test_the_page_has_a_place_for_each_question_and_an_answer_in_it() -> None:
    text = (page.ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert sorted(page.marks(text)) == sorted([*QUESTIONS, "targets", "versions"])
    assert list(ANSWERS) == [key for key in QUESTIONS if key in ANSWERS]
    for answer in ANSWERS.values():
        assert answer.timings or answer.points or answer.notes


def test_the_page_on_outgrowing_has_the_figures_of_the_sections_that_it_links() -> None:
    folder = page.ROOT / "docs"
    text = (folder / "outgrowing.md").read_text(encoding="utf-8")
    cited = re.findall(r"\[([^]]*\d[^]]*)\]\(([a-z]+\.md)#([a-z-]+)\)", text)
    assert len(cited) > 20
    for figure, name, anchor in cited:
        section = _section((folder / name).read_text(encoding="utf-8"), anchor)
        [number, *_] = re.findall(r"\d[\d,.]*", figure)
        assert re.search(rf"(?<![\d,.]){re.escape(number)}(?![\d,.]*\d)", section), (figure, anchor)


def test_the_page_on_outgrowing_says_what_its_table_of_workers_shows() -> None:
    text = (page.ROOT / "docs" / "outgrowing.md").read_text(encoding="utf-8")
    assert page.marks(text) == ["workers"]
    runs = {(p["workers"], p["partitions"]): p for p in ANSWERS["workers"].points}
    assert len(runs) == 6
    assert len({(run["events"], run["states"]) for run in runs.values()}) == 1
    for partitions in (4, 16):
        single_worker, two, four = (runs[workers, partitions] for workers in (1, 2, 4))
        assert single_worker["workers_s"] < two["workers_s"] < four["workers_s"]
        commits = [run["commits"] for run in (single_worker, two, four)]
        assert max(commits) <= 1.1 * min(commits)
    assert 2 < runs[1, 16]["workers_s"] / runs[1, 4]["workers_s"] < 2.5
    for run in runs.values():
        assert 2 <= round(run["idle_s"] / run["workers"] * 1e3) <= 7
        assert 2 <= round(run["database_s"] / run["commits"] * 1e3) <= 4
        assert run["database_s"] < (run["workers_s"] + run["database_s"]) / 7


def _section(text: str, anchor: str) -> str:
    """A section of a page, with those below it."""
    parts = re.split(r"^(#+) (.*)$", text, flags=re.MULTILINE)
    depths, names, texts = parts[1::3], parts[2::3], parts[3::3]
    slugs = [re.sub(r"[^a-z -]", "", name.lower()).replace(" ", "-") for name in names]
    first = slugs.index(anchor)
    deeper = [i for i, depth in enumerate(depths) if i > first and len(depth) <= len(depths[first])]
    return "".join(texts[first : deeper[0] if deeper else None])


def test_the_readme_says_which_processor_features_were_off() -> None:
    settings = re.findall(rf'{bench_sorting.VARIABLE}="[^"]*"', KEPT["versions"])
    [setting] = settings or [f"no {bench_sorting.VARIABLE}"]
    assert setting in (page.ROOT / "README.md").read_text(encoding="utf-8")


def test_the_pages_name_the_processor_and_say_what_was_not_measured(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    path.write_text(json.dumps({**KEPT, "processor": "A 7", "answers": KEPT["answers"][:1]}))
    parts = page.tables(path)
    assert parts["versions"].startswith("Processor: A 7. Measured with Python ")
    assert "\n\nProcessor: A 7. Measured with Python " in parts["summary"]
    [measured] = [key for key in QUESTIONS if parts[key] != "Not measured."]
    assert measured == KEPT["answers"][0]["key"]
    assert parts["targets"].count("not measured") > 50


def test_the_picture_stands_on_the_page_and_names_each_line() -> None:
    picture = page.PICTURE.read_text(encoding="utf-8")
    points = growth_picture.points(page.FIGURES)
    assert points
    for name in {point["series"] for point in points}:
        assert name in picture
    text = (page.ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert page.PICTURE.name in text


def test_each_target_is_of_a_line_that_was_measured() -> None:
    for target in targets.TARGETS:
        assert target.key in QUESTIONS
        answer = ANSWERS.get(target.key)
        if answer is None or not target.measured(answer):
            assert KEPT["quick"] or not WHOLE, target  # a quick run leaves out the largest
            assert f"{target.key}: {target.line} | not measured" in page.tables()["targets"]
            continue
        timing = targets.timing_of(answer, target.line)
        assert target.limit(answer) > 0
        measured = {t.peer for t in answer.timings if t.peer and t.task == timing.task}
        assert set(target.ahead) <= measured


def test_each_figure_with_a_target_was_measured() -> None:
    for figure in targets.FIGURES:
        value = figure.value(ANSWERS.get(figure.key))
        assert value is not None or KEPT["quick"] or not WHOLE, figure.name


def test_a_figure_is_read_of_points_and_marked_where_it_is_missed() -> None:
    rows = [{"series": "ExactAUC", "rows": n, "ns": ns} for n, ns in ((10**7, 4), (10**8, 8))]
    growth = dataclasses.replace(answered(), key="growth", points=rows)
    [line] = [s for s in targets.figures({"growth": growth}, ["growth"]).splitlines() if "✗" in s]
    assert line.endswith("ExactAUC, updates of 100,000,000 rows, of 10,000,000 | 1.50 | 2.00 ✗ |")


@pytest.mark.parametrize(
    ("key", "line", "ns", "limit", "missed"),
    [
        ("histogram-auc", "uniform, batches of 1,000,000", 2.5, 0.14, False),
        ("histogram-auc", "uniform, batches of 1,000,000", 1.9, 0.1, True),
        ("exact-auc", "float32 in [0, 1], one batch", 8, 5.4, False),
        ("exact-auc", "float32 in [0, 1], one batch", 6.9, 3.9, True),
    ],
    ids=["counts on a slow machine", "on a fast one", "sorts on a slow machine", "on a fast one"],
)
def test_a_target_that_has_a_ratio_to_a_limit_is_judged_by_it(
    key: str, line: str, ns: float, limit: float, missed: bool
) -> None:
    timing, limit_timing = Timing(line, ns, ns, ns), Timing("the other limit", 1, 1, 1)
    limits = {"sort": limit_timing, "read": limit_timing}
    limits["read" if key == "histogram-auc" else "sort"] = Timing("", limit, limit, limit)
    answer = dataclasses.replace(answered(timing), **limits)
    cells = _measured(targets.table({key: answer}, [key])).split("|")
    assert [("✗" in cell) for cell in cells[3:6]] == [False, False, missed]


def test_a_target_that_has_none_is_judged_by_nanoseconds() -> None:
    timing = Timing("HistogramAUC, 4,096 buckets", 4_301, 4_301, 4_301)
    cells = _measured(targets.table({"merging": answered(timing)}, ["merging"])).split("|")
    assert [("✗" in cell) for cell in cells[3:6]] == [True, False, False]


def test_each_question_is_a_file_that_can_be_asked() -> None:
    for module in QUESTIONS.values():
        assert callable(importlib.import_module(f"benchmarks.{module}").ask), module
        assert module not in other_benchmarks()


def test_of_several_runs_the_answers_stand_that_were_least_disturbed() -> None:
    def run(versions: str = "numpy 2", **sorts: float) -> dict[str, object]:
        answers = [
            {**answered().as_json(), "key": key, "sort": {"median": ns}, "title": versions}
            for key, ns in sorts.items()
        ]
        return {"versions": versions, "quick": False, "answers": answers}

    best = quietest([run(confusion=4, ranking=5), run(ranking=3, confusion=6), run(ranking=4)])
    assert [(answer["key"], answer["sort"]["median"]) for answer in best["answers"]] == [
        ("ranking", 3),
        ("confusion", 4),
    ]
    with pytest.raises(ValueError, match="numpy 3"):
        quietest([run(ranking=4), run("numpy 3", ranking=3)])


def test_the_best_peer_is_the_fastest_one_at_the_same_task() -> None:
    timing = Timing("ours", 2, 1, 3, task="all")
    answer = answered(
        timing,
        Timing("fast", 6, 6, 6, task="all", peer="fast"),
        Timing("slow", 60, 60, 60, repeats=1, task="all", peer="slow"),
        Timing("else", 1, 1, 1, task="another", peer="else"),
    )
    best = answer.best_peer(timing)
    assert best is not None and best.peer == "fast"
    assert answer.cells(timing)[6] == "3.00 (fast)"
    assert answer.cells(answer.timings[2])[0] == "slow, once"
    assert answer.best_peer(Timing("no task", 1, 1, 1)) is None
    assert answer.markdown().splitlines()[2].startswith("| read limit |")
    assert Answer.of_json(answer.as_json()) == answer


def test_a_mark_without_a_measurement_is_refused() -> None:
    text = "<!-- measured nothing -->\nold\n<!-- end -->"
    with pytest.raises(SystemExit, match="nothing"):
        page.filled(text, {})
    assert "new" in page.filled(text, {"nothing": "new"})
