"""Logs of inspect_ai and lm-eval, made by hand after their schemas, and the errors of their means.

inspect_ai: `inspect_ai/log/_log.py` (EvalLog, EvalSample, EvalSampleSummary) and
`log/_recorders/eval.py` (the members of a `.eval` file); lm-eval: `lm_eval/result_schema.py`
(SampleResult). The standard errors are those of `inspect_ai/scorer/_metrics/std.py`, written here
by their formula.
"""

from __future__ import annotations

import gzip
import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics import InputError, StreamMetricsError
from streammetrics.evaluation import (
    SampleLog,
    compare_samples,
    evaluate_samples,
    read_sample_log,
    sample_logs,
)
from tests.requirements import Later

stats = Later("scipy.stats")
N, EPOCHS = 24, 3
rng = np.random.default_rng(5)
PASSAGES = [f"p{i}" for i in rng.integers(0, 7, N)]
GRADES = {name: rng.choice(["C", "I", "P", "N"], (N, EPOCHS)) for name in ("a", "b")}
POINTS = {name: rng.random((N, EPOCHS)).round(3) for name in ("a", "b")}
NUMBERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


def samples(model: str, epochs: int = EPOCHS) -> list[dict[str, Any]]:
    """Samples as inspect_ai stores them, but for what they do not need for a score."""
    return [
        {
            "id": f"q{i}",
            "epoch": epoch + 1,
            "input": "?",
            "target": "!",
            "metadata": {
                "passage": PASSAGES[i],
                "hard": i % 3 == 0,
                "tags": ["x"],
                "text": "Key removed from summary (> 1k)",
            },
            "scores": {
                "match": {"value": str(GRADES[model][i, epoch]), "answer": "!"},
                "points": {"value": float(POINTS[model][i, epoch])},
            },
        }
        for epoch in range(epochs)
        for i in range(N)
    ]


def header(model: str, epochs: int = EPOCHS) -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "qa", "model": f"mockllm/{model}", "config": {"epochs": epochs}},
    }


def write_json(path: Path, model: str, epochs: int = EPOCHS) -> Path:
    log = {**header(model, epochs), "samples": samples(model, epochs)}
    path.write_text(json.dumps(log, indent=2), encoding="utf-8")
    return path


def zipped(path: Path, members: dict[str, bytes], method: int) -> Path:
    """A zip file; method 93, of zstd, is what inspect_ai writes, and zipfile does not."""
    if method != 93:
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return path
    body, directory = b"", b""
    for name, data in members.items():
        packed = pa.compress(data, codec="zstd", asbytes=True)
        fields = struct.pack("<HHHHHIIIHH", 63, 0, 93, 0, 33, zlib.crc32(data), len(packed),
                             len(data), len(name), 0)  # fmt: skip
        directory += b"PK\x01\x02" + struct.pack("<H", 63) + fields
        directory += struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name.encode()
        body += b"PK\x03\x04" + fields + name.encode() + packed
    n = len(members)
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, n, n, len(directory), len(body), 0)
    path.write_bytes(body + directory + end)
    return path


def write_eval(path: Path, model: str, method: int = 93, summaries: str = "summaries.json") -> Path:
    members = {"header.json": json.dumps(header(model)).encode()}
    if summaries:
        members[summaries] = json.dumps(samples(model)).encode()
    for sample in samples(model):
        data = b"{}" if summaries else json.dumps(sample).encode()
        members[f"samples/{sample['id']}_epoch_{sample['epoch']}.json"] = data
    return zipped(path, members, method)


def stderr(values: np.ndarray[Any, Any], clusters: Sequence[str] | None = None) -> float:
    """The standard error of a mean by inspect's formulas, with clusters or without."""
    if clusters is None:
        return float(np.std(values, ddof=1) / np.sqrt(len(values)))
    names, variance = np.unique(np.array(clusters)), 0.0
    for name in names:
        residuals = values[np.array(clusters) == name] - values.mean()
        variance += np.outer(residuals, residuals).sum()
    return float(np.sqrt(variance * len(names) / (len(names) - 1)) / len(values))


def means_of(model: str) -> dict[str, np.ndarray[Any, Any]]:
    """The mean of each sample over its epochs."""
    grades = np.vectorize(NUMBERS.__getitem__)(GRADES[model])
    return {"match": grades.mean(axis=1), "points": POINTS[model].mean(axis=1)}


def test_the_error_of_a_mean_is_that_of_inspect_with_clusters_and_without(tmp_path: Path) -> None:
    paths = [write_json(tmp_path / "a.json", "a")]
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, 93):
        paths.append(write_eval(tmp_path / f"{method}.eval", "a", method))
    paths.append(write_eval(tmp_path / "unfinished.eval", "a", 93, "_journal/summaries/1.json"))
    paths.append(write_eval(tmp_path / "former.eval", "a", zipfile.ZIP_DEFLATED, ""))
    expected = means_of("a")
    for path in paths:
        assert read_sample_log(path).model == "mockllm/a"
        plain, clustered = evaluate_samples(path), evaluate_samples(path, users="passage")
        for name, values in expected.items():
            assert plain[name] == clustered[name] == pytest.approx(values.mean(), rel=1e-14)
            error = stderr(values)
            assert plain.interval(name).se == pytest.approx(error, rel=1e-12)
            half = stats.t.ppf(0.975, N - 1) * error
            assert plain.interval(name).upper == pytest.approx(values.mean() + half, rel=1e-12)
            error = stderr(values, PASSAGES)
            assert clustered.interval(name).se == pytest.approx(error, rel=1e-12)
            assert clustered.interval(name).df == len(set(PASSAGES)) - 1


def test_the_mean_over_epochs_is_all_epochs_clustered_by_question(tmp_path: Path) -> None:
    path = write_json(tmp_path / "a.json", "a")
    questions = [f"q{i}" for i in range(N) for _ in range(EPOCHS)]
    error = stderr(POINTS["a"].ravel(), questions)
    assert evaluate_samples(path).interval("points").se == pytest.approx(error, rel=1e-12)


def test_two_models_are_paired_by_question_as_the_paired_t_test_pairs_them(tmp_path: Path) -> None:
    logs = {"a": write_json(tmp_path / "a.json", "a"), "b": write_eval(tmp_path / "b.eval", "b")}
    a, b = means_of("a")["points"], means_of("b")["points"]
    difference = compare_samples(logs).difference("b", "points")
    test = stats.ttest_rel(b, a)
    assert difference.pvalue == pytest.approx(test.pvalue, rel=1e-10)
    interval = test.confidence_interval(0.95)
    assert [difference.lower, difference.upper] == pytest.approx(
        [interval.low, interval.high], rel=1e-10
    )
    clustered = compare_samples(logs, "points", users="passage").difference("b", "points")
    assert clustered.se == pytest.approx(stderr(b - a, PASSAGES), rel=1e-12)
    sliced = compare_samples(logs, "points", users="passage", by="hard")
    is_hard = np.arange(N) % 3 == 0
    assert sliced.difference("b", "points").se == clustered.se
    error = stderr((b - a)[is_hard], np.array(PASSAGES)[is_hard].tolist())
    entry = sliced.slices["true"].difference("b", "points")
    assert (entry.se, entry.queries) == (pytest.approx(error, rel=1e-12), 8)
    swapped = compare_samples(logs, baseline="b").difference("a", "points")
    assert swapped.difference == -difference.difference


def document(i: int, filters: str, **scores: object) -> dict[str, object]:
    """A line as lm-eval stores it."""
    return {"doc_id": i, "doc": {"subject": PASSAGES[i], "question": "?"}, "target": "!",
            "arguments": {"gen_args_0": {"arg_0": "?"}}, "resps": [["!"]], "filtered_resps": ["!"],
            "filter": filters, "metrics": [*scores], "doc_hash": f"{i:064}", "prompt_hash": "0",
            "target_hash": "0", **scores}  # fmt: skip


def write_lines(path: Path, lines: Sequence[object]) -> Path:
    path.parent.mkdir(exist_ok=True)
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_documents_of_lm_eval_have_its_error_and_a_filter_where_there_are_several(
    tmp_path: Path,
) -> None:
    values = POINTS["a"]
    lines = [document(i, "none", acc=bool(values[i, 0] > 0.5), f1=values[i, 1]) for i in range(N)]
    right = values[:, 0] > 0.5
    for name in ("samples_qa_2025-01-01.jsonl", "samples_qa.jsonl.gz"):
        path = write_lines(tmp_path / "org__model" / name, lines)
        result = evaluate_samples(path, users="subject")
        assert read_sample_log(path).model == "org__model"
        assert (result["acc"], [*result]) == (right.mean(), ["acc", "f1"])
        assert result.interval("acc").se == pytest.approx(
            stderr(right.astype(float), PASSAGES), rel=1e-12
        )
        assert evaluate_samples(path, "f1").interval("f1").se == pytest.approx(
            stderr(values[:, 1]), rel=1e-12
        )
    documents = [document(i, f, exact_match=values[i, j], bleu=["!", "?"])
            for i in range(N) for j, f in enumerate(("strict", "flexible"))]  # fmt: skip
    former = [{key: value for key, value in line.items() if key != "metrics"} for line in documents]
    for lines in (documents, former):
        result = evaluate_samples(write_lines(tmp_path / "two.jsonl", lines))
        assert [*result] == ["exact_match(strict)", "exact_match(flexible)"]
        assert result["exact_match(flexible)"] == pytest.approx(values[:, 1].mean(), rel=1e-14)


def test_the_tasks_of_a_folder_are_one_log_with_the_task_as_a_field(tmp_path: Path) -> None:
    values, folder = POINTS["a"], tmp_path / "org__model"
    for task, j in (("qa", 0), ("long_task", 1)):
        lines = [document(i, "none", acc=values[i, j]) for i in range(N)]
        write_lines(folder / f"samples_{task}_2025-01-02T00-00-00.jsonl", lines)
    write_lines(folder / "samples_qa_2025-01-01T00-00-00.jsonl", [document(0, "none", acc=0.0)])
    assert sample_logs.is_sample_log(folder) and not sample_logs.is_sample_log(tmp_path)
    result = evaluate_samples(folder, by="task")
    assert result["acc"] == pytest.approx(values[:, :2].mean(), rel=1e-14)
    assert [*result.slices] == ["long_task", "qa"]
    assert result.slices["qa"].interval("acc").se == pytest.approx(stderr(values[:, 0]), rel=1e-12)
    assert read_sample_log(folder).model == "org__model" and "qa/3" in result.queries


def test_only_samples_that_both_logs_score_are_compared_and_the_rest_is_counted() -> None:
    nan = float("nan")
    old = SampleLog("old", {"m": {1: 0.0, 2: 1.0, 3: 0.0, 4: nan, 6: 1.0}})
    new = SampleLog("new", {"m": {1: 1.0, 2: 1.0, 3: 0.5, 4: 1.0, 5: 1.0}, "other": {1: 1.0}})
    comparison = compare_samples({"old": old, "new": new})
    entry = comparison.difference("new", "m")
    test = stats.ttest_rel([1.0, 1.0, 0.5], [0.0, 1.0, 0.0])
    assert (entry.mean, entry.baseline_mean, entry.queries) == (2.5 / 3, 1 / 3, 3)
    assert entry.pvalue == pytest.approx(test.pvalue, rel=1e-10)
    text = str(comparison)
    assert "1 sample without m: left out" in text
    assert "1 sample that not every log has: left out" in text
    assert [*comparison.runs["old"]] == ["m"]


def test_parts_of_a_score_have_names_and_a_sample_without_a_score_is_left_out(
    tmp_path: Path,
) -> None:
    values: list[object] = [{"style": 3, "fact": "yes"}, {"style": "0.5", "fact": "no"}, None]
    log = {**header("a"), "status": "cancelled", "samples": [
        *({"id": i, "epoch": 1, "scores": {"my judge": {"value": value}}}
          for i, value in enumerate(values)),
        {"id": 3, "epoch": 1, "error": {}},
    ]}  # fmt: skip
    log["eval"]["config"] = {"epochs": 2, "epochs_reducer": ["max"]}
    log["samples"].append({"id": 0, "epoch": 2, "scores": {"my judge": {"value": {"style": 1}}}})
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log), encoding="utf-8")
    result = evaluate_samples(path, ["my_judge(style)", "my_judge(fact)"])
    assert dict(result) == {"my_judge(style)": 1.25, "my_judge(fact)": 0.5}
    text = str(result)
    assert "2 samples without any score: left out" in text
    assert "the log ended as 'cancelled': samples may be missing" in text
    assert "inspect reduced epochs by ['max']; here a sample is their mean" in text


REFUSED: list[tuple[Callable[[Path], Path], str]] = [
    (lambda f: _text(f, "{"), "expected JSON"),
    (lambda f: _text(f, "[1]"), "expected a JSON object, got [1]"),
    (lambda f: _text(f, "[" * 100_000), "too many nested brackets"),
    (lambda f: _text(f, '{"x": 1}'), "the keys 'x'"),
    (lambda f: _text(f, "{}"), "the keys of none"),
    (lambda f: _text(f, '{"eval": {}, "samples": [1]}'), "expected a sample with an id, got 1"),
    (lambda f: _text(f, '{"eval": {}, "samples": []}'), "a score that is a number"),
    (lambda f: _text(f, '{"doc_id": 1}\n[]'), "line 2: expected a JSON object"),
    (lambda f: _text(f, '{"doc_id": true}'), "a `doc_id` of each line, got True"),
    (lambda f: _text(f, '{"doc_id": 1, "acc": 1}\n{"doc_id": 1, "acc": 0}'), "1 twice"),
    (lambda f: _text(f, '{"doc_id": 1, "acc": 1}\n{"doc_id": 2, "acc": "x"}'),
     "expected a number as 'acc' of each sample, got 'x' of 2"),
    (lambda f: _text(f, '{"doc_id": 1, "acc": "x"}'), "texts other than C, I, P and N"),
    (lambda f: _text(f, '{"doc_id": 1, "acc": 1' + "0" * 400 + "}"), "expected"),
    (lambda f: zipped(f, {"header.json": b"{}"}, 0), "expected a score that is a number"),
    (lambda f: zipped(f, {"header.json": b"[]"}, 0), "a JSON object in header.json"),
    (lambda f: zipped(f, {"summaries.json": b"{"}, 8), "expected JSON"),
    (lambda f: zipped(f, {"summaries.json": b"{}"}, 12), "by method 12; convert it"),
    (lambda f: _cut(zipped(f, {"summaries.json": b"[]" * 99}, 93)), "checksum"),
    (lambda f: _text(f, "PK\x03\x04rest"), "which is a zip file"),
    (lambda f: f.parent, "check the path"),
    (lambda f: f.with_name("absent"), "check the path"),
]  # fmt: skip


def _text(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _cut(path: Path) -> Path:
    data = bytearray(path.read_bytes())
    start = data.index(b"PK\x01\x02")
    data[start + 16 : start + 20] = b"\0\0\0\0"  # the checksum that the directory states
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(("write", "part"), REFUSED, ids=[part for _, part in REFUSED])
def test_other_files_are_refused(write: Callable[[Path], Path], part: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        evaluate_samples(write(tmp_path / "log"))
    assert part in str(raised.value) and raised.value.hint
    assert len(str(raised.value)) < 600


def test_a_path_that_no_file_can_have_is_refused() -> None:
    for path in ("a\0", "\ud800", "{}" * 1000):
        assert not sample_logs.is_sample_log(path)
        with pytest.raises(InputError, match="check the path"):
            read_sample_log(path)


def test_what_does_not_end_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_logs, "MAX_JSON", 1000)
    monkeypatch.setattr(sample_logs, "MAX_SAMPLE", 1000)
    monkeypatch.setattr(sample_logs, "MAX_LINES", 4000)
    monkeypatch.setattr(sample_logs, "MAX_DIRECTORY", 2000)
    many = {f"samples/{i}.json": b'{"id": 1, "x": "' + b"x" * 300 + b'"}' for i in range(9)}
    line = json.dumps({"doc_id": 1, "x": "x" * 700}) + "\n"
    bombs = [
        zipped(tmp_path / "a.eval", {"summaries.json": b"[" + b" " * 100_000 + b"]"}, 8),
        zipped(tmp_path / "b.eval", {"summaries.json": b"[" + b" " * 100_000 + b"]"}, 93),
        zipped(tmp_path / "c.eval", many, 8),
        _text(tmp_path / "d.json", "x" * 1001),
        _text(tmp_path / "e.json", "{\n" + " " * 1001),
        _text(tmp_path / "f.jsonl", line + "x" * 1001),
        _text(tmp_path / "g.jsonl", line * 9),
        Path("/dev/zero"),
        zipped(tmp_path / "h.eval", {f"{i}": b"" for i in range(50)}, 8),
    ]
    for path in bombs:
        with pytest.raises(InputError, match=r"expected (a file of |a directory of )?at most"):
            read_sample_log(path)


def test_names_that_are_not_there_are_refused_with_those_that_are(tmp_path: Path) -> None:
    path = write_json(tmp_path / "a.json", "a")
    with pytest.raises(InputError, match=r"'match', 'points', got 'matsh'; did you mean 'match'"):
        evaluate_samples(path, "matsh")
    with pytest.raises(InputError, match=r"'passage', 'hard', 'tags', got 'pasage'; did you mean"):
        evaluate_samples(path, users="pasage")
    for name in ("tags", "text"):  # a list, and what inspect leaves out of summaries
        with pytest.raises(InputError, match=f"got '{name}'"):
            evaluate_samples(path, users=name)
    log = read_sample_log(path)
    with pytest.raises(InputError, match="expected one of the runs, 'a', 'b', got 'c'"):
        compare_samples({"a": log, "b": log}, baseline="c")
    with pytest.raises(InputError, match="use evaluate_samples"):
        compare_samples({"a": log})
    disjoint_log = SampleLog("b", {"match": {"z": 1.0}})
    with pytest.raises(InputError, match=r"samples that every log has, got none; .*'q0', 'z'"):
        compare_samples({"a": log, "b": disjoint_log})
    with pytest.raises(InputError, match="got none that every log has"):
        compare_samples({"a": log, "b": SampleLog("b", {"x": {"q0": 1.0}})})
    documents = [write_lines(tmp_path / f"{i}.jsonl", [{**document(0, "none", acc=1.0),
                 "doc_hash": str(i)}]) for i in range(2)]  # fmt: skip
    with pytest.raises(InputError, match="sample 0: expected the same document in every log"):
        compare_samples({"a": documents[0], "b": documents[1]})


@given(st.binary(max_size=40), st.integers(0, 400), st.binary(min_size=1, max_size=6))
def test_no_bytes_do_more_than_parse_or_refuse(data: bytes, place: int, patch: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        whole = zipped(Path(folder) / "x.eval", {"summaries.json": b'[{"id": 1}]'}, 93)
        changed = bytearray(whole.read_bytes())
        changed[place : place + len(patch)] = patch
        for content in (data, bytes(changed)):
            whole.write_bytes(content)
            try:
                read_sample_log(whole)
            except StreamMetricsError as error:
                assert error.hint
