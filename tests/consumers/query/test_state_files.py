"""State files: cut out of a store, added up, and looked at."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main

from streammetrics import HistogramAUC, Panel, PerKey, Ratio, Windows, load
from tests.consumers.stores import EVENTS, event, make_store, write_config, write_events

Capture = pytest.CaptureFixture[str]
FIRST, SECOND = "1970-01-01T00:00:00Z", "1970-01-01T01:00:00Z"
THIRD = "1970-01-01T02:00:00Z"


def export(store: Path, path: Path, *words: str) -> Path:
    """A state file of the store."""
    assert main(["export", str(store), "-o", str(path), *words]) == 0
    return path


def test_one_metric_of_one_slice_is_its_plain_state(
    store: Path, tmp_path: Path, capsys: Capture
) -> None:
    words = ["--metric", "auc", "--where", "variant=a"]
    state = load(export(store, tmp_path / "auc", *words))
    fed = HistogramAUC()
    fed.update([0, 1, 0, 1], [0.1, 0.3, 0.5, 0.7])
    assert state == fed
    main(["results", str(store), "--json", "--by", "variant", *words])
    digests = {row["digest"] for row in json.loads(capsys.readouterr().out)["results"]}
    assert digests == {state.digest()}


def test_what_a_slice_is_cut_out_of_may_be_larger_than_memory_may_hold(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in ([], ["--metric", "auc", "--where", "variant=a"], ["--window", "latest"]):
        whole = export(store, tmp_path / "whole", *words)
        with monkeypatch.context() as patch:
            patch.setattr("streammetrics_consumers.query.reader.HELD_BYTES", 10)
            patch.setattr("streammetrics_consumers.query.reader.RANGE_BYTES", 200)
            streamed = export(store, tmp_path / "streamed", *words)
        assert streamed.read_bytes() == whole.read_bytes()


def test_a_file_says_which_offsets_it_counted_for_which_piece(store: Path, tmp_path: Path) -> None:
    path = export(store, tmp_path / "s", "--metric", "ctr", "--where", "variant=b")
    (entry,) = load(path).provenance
    source, shard, start, end = entry
    assert source.startswith("file/") and source.endswith("/clicks.jsonl/0")
    assert (shard, start, end) == ('total/{"variant": "b"}/ctr', 0, 10)


def test_windows_add_up_to_the_total_and_slices_to_all_rows(
    store: Path, tmp_path: Path, capsys: Capture
) -> None:
    windows = [f"{FIRST}/{SECOND}", f"{SECOND}/{THIRD}"]
    parts = [export(store, tmp_path / f"w{i}", "--window", w) for i, w in enumerate(windows)]
    slices = [export(store, tmp_path / v, "--where", f"variant={v}") for v in "ab"]
    total = load(export(store, tmp_path / "total"))
    for i, files in enumerate((parts, slices)):
        merged = tmp_path / f"merged{i}"
        assert main(["merge", *map(str, files), "-o", str(merged)]) == 0
        assert load(merged) == total
    span = load(export(store, tmp_path / "span", "--window", f"{FIRST}/{THIRD}"))
    sum_state = load(parts[0]) + load(parts[1])
    assert sum_state == span
    assert sum_state.provenance == span.provenance


def test_files_that_may_share_rows_are_refused_although_their_windows_or_slices_differ(
    store: Path, tmp_path: Path, capsys: Capture
) -> None:
    first, second = (f"--window={FIRST}/{SECOND}", f"--window={SECOND}/{THIRD}")
    selections = {
        "all": [],
        "first": [first],
        "second": [second],
        "a": ["--where=variant=a"],
        "b": ["--where=variant=b"],
        "a eval": ["--where=variant=a", "--where=phase=eval"],
        "first a": [first, "--where=variant=a"],
    }
    files = {
        name: str(export(store, tmp_path / name, "--metric", "ctr", *words))
        for name, words in selections.items()
    }
    sharing = ["all first", "all a", "first all", "a all", "a a_eval", "first first_a", "a first"]
    for names, code in (
        *((names, 1) for names in sharing),
        ("second first_a", 0),
        ("b a_eval", 0),
    ):
        paths = [files[name.replace("_", " ")] for name in names.split()]
        assert main(["merge", *paths, "-o", str(tmp_path / "sum")]) == code, names
        is_refused = "expected rows that were not counted before, got [0, 10) for "
        assert (is_refused in capsys.readouterr().err) == (code == 1), names


def test_pieces_of_other_programs_are_refused_only_where_they_are_equal(
    tmp_path: Path, capsys: Capture
) -> None:
    pieces = ("total/{}/m", "total/{a}/m", "2026-99-99T00:00:00Z+60s/{}/m", "mine")
    for piece in pieces:
        state = Ratio()
        state.update([1, 0])
        state.provenance.add("clicks/0", 0, 5, piece)
        state.save(tmp_path / str(pieces.index(piece)))
    paths = [str(tmp_path / str(i)) for i in range(len(pieces))]
    words = ["-o", str(tmp_path / "sum")]
    assert main(["merge", *paths, *words]) == 0
    assert main(["merge", *paths, paths[-1], *words]) == 1
    assert "got [0, 5) twice" in capsys.readouterr().err


def test_a_file_that_is_wholly_counted_may_be_skipped_and_no_other(
    store: Path, tmp_path: Path, capsys: Capture
) -> None:
    first, pair = (
        export(store, tmp_path / name, "--window", f"{FIRST}/{end}")
        for name, end in (("one", SECOND), ("both", THIRD))
    )
    target = tmp_path / "sum"
    assert main(["merge", str(first), str(pair), "-o", str(target)]) == 1
    err = capsys.readouterr().err
    assert "expected rows that were not counted before, got [0, 10) twice" in err
    assert not target.exists()
    words = ["-o", str(target), "--replay", "skip"]
    assert main(["merge", str(pair), str(first), str(pair), *words]) == 0
    assert "one is skipped: all its rows are counted already" in capsys.readouterr().err
    assert target.read_bytes() == pair.read_bytes()
    assert main(["merge", str(first), str(pair), *words]) == 1  # some of its rows are
    assert "got [0, 10) twice" in capsys.readouterr().err


def test_a_file_without_provenance_or_of_other_settings_is_never_skipped(
    tmp_path: Path, capsys: Capture
) -> None:
    state = Ratio()
    state.update([1, 0])
    state.save(tmp_path / "bare")
    target = tmp_path / "sum"
    words = ["-o", str(target), "--replay", "skip"]
    assert main(["merge", str(tmp_path / "bare"), str(tmp_path / "bare"), *words]) == 0
    assert load(target).compute().rows == 4  # type: ignore[attr-defined]
    for name, metric in (("a", HistogramAUC(resolution=8)), ("b", HistogramAUC(resolution=6))):
        metric.provenance.add("clicks/0", 0, 5)
        metric.save(tmp_path / name)
    assert main(["merge", str(tmp_path / "a"), str(tmp_path / "b"), *words]) == 3
    assert "expected resolution=8" in capsys.readouterr().err


def test_a_state_with_events_of_a_retry_is_not_taken_for_one_without(tmp_path: Path) -> None:
    store = make_store(tmp_path, [*EVENTS, {**event(3, "a", 1, 0.5), "variant": "c"}])
    before = export(store, tmp_path / "before", "--metric", "ctr")
    config = write_config(tmp_path, variants='variants = ["a", "b", "c"]')
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    assert main(["quarantine", "retry", str(store), "--config", str(config)]) == 0
    after = export(store, tmp_path / "after", "--metric", "ctr")
    assert load(after).provenance.covers(load(before).provenance)
    assert not load(before).provenance.covers(load(after).provenance)
    words = ["-o", str(tmp_path / "sum"), "--replay", "skip"]
    assert main(["merge", str(after), str(before), *words]) == 0
    assert main(["merge", str(before), str(after), *words]) == 1


def test_stores_of_other_logs_add_up(store: Path, tmp_path: Path) -> None:
    second_store = make_store(tmp_path, EVENTS[5:9])
    files = [export(store, tmp_path / "x"), export(second_store, tmp_path / "y")]
    assert main(["merge", *map(str, files), "-o", str(tmp_path / "z")]) == 0
    assert load(tmp_path / "z").state("ctr").compute().rows == 12  # type: ignore[attr-defined]


def test_what_is_not_one_state_is_not_exported(
    store: Path, tmp_path: Path, capsys: Capture
) -> None:
    for words, message in (
        (["--window", "all"], "--window: expected one window, got 'all'"),
        (["--where", "variant=z"], "--where: expected a variant of this store (a, b), got 'z'"),
        (["--where", "variant=a", "--where", "phase=z"], "--where: expected a slice with rows"),
        (
            ["--where", "phase=eval"],
            "expected a --where NAME=VALUE for each name of a grouping of this store",
        ),
    ):
        assert main(["export", str(store), "-o", str(tmp_path / "x"), *words]) == 2
        assert message in capsys.readouterr().err
        assert not (tmp_path / "x").exists()


def test_a_store_without_all_rows_in_one_state_asks_for_a_slice(
    tmp_path: Path, capsys: Capture
) -> None:
    write_events(tmp_path)
    config = write_config(tmp_path)
    config.write_text(config.read_text(encoding="utf-8").replace("by = [[], ", "by = ["))
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    words = ["export", str(tmp_path / "store.db"), "-o", str(tmp_path / "x")]
    assert main(words) == 2
    stderr = capsys.readouterr().err
    assert "expected a --where NAME=VALUE for each name of a grouping" in stderr
    assert "got none; give all names of one grouping: this store does not have all rows" in stderr
    assert main([*words, "--where", "variant=a"]) == 0


def damages(whole: bytes) -> dict[str, bytes]:
    """Ways in which a file may be damaged."""
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    return {
        "empty": b"",
        "truncated": whole[: len(whole) // 2],
        "one byte less": whole[:-1],
        "one byte altered": bytes(flipped),
        "one byte more": whole + b"\0",
        "another file": b"PK\x03\x04" + bytes(100),
        "a huge size": whole[:6] + struct.pack("<Q", 1 << 60) + whole[14:],
    }


def test_a_file_that_cannot_be_read_is_refused_with_what_to_do(
    store: Path, tmp_path: Path, capsys: Capture
) -> None:
    good, bad = export(store, tmp_path / "good", "--metric", "ctr"), tmp_path / "bad"
    data = good.read_bytes()

    def refusal(content: bytes, code: int, *words: str) -> str:
        bad.write_bytes(content)
        assert main([*(words or ("show",)), str(bad)]) == code
        err = capsys.readouterr().err
        assert err.startswith(f"streammetrics: {bad}: expected ") and ", got " in err
        assert "Traceback" not in err
        return err

    for damaged in damages(data).values():
        assert "; " in refusal(damaged, 1)
    refusal(b"", 1, "merge", "-o", str(tmp_path / "sum"), str(good))
    # Of another version: exit 3, and not called damaged.
    assert b'"ratio/2"' in data
    later = refusal(data[:4] + bytes([data[4] + 1]) + data[5:], 3)
    unknown = refusal(resealed(data.replace(b'"ratio/2"', b'"ratio/9"')), 3)
    assert "expected format version 1" in later and "expected a known schema" in unknown
    assert "damaged" not in later + unknown


def resealed(data: bytes) -> bytes:
    """A state file with the checksums of what it holds now."""
    inner = data.index(b"SMST")
    state = data[inner:-8]
    state += zlib.crc32(state).to_bytes(4, "little")
    whole = data[:inner] + state
    return whole + zlib.crc32(whole).to_bytes(4, "little")


def test_show_prints_settings_results_digest_and_provenance(
    store: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = export(store, tmp_path / "ctr", "--metric", "ctr", "--window", f"{FIRST}/{SECOND}")
    assert main(["show", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("ctr: Ratio\n")
    assert "ratio        0.600" in out
    assert f"digest {load(path).digest()}" in out
    assert "offsets 0 to 9:" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_show_walks_through_windows_and_keys(tmp_path: Path, capsys: Capture) -> None:
    state = Windows(PerKey(Ratio(), max_keys=1), size_s=60)
    state.update([0, 0, 60_000], keys=["a", ("b", None), "a"], numerators=[1, 0, 1])
    state.save(tmp_path / "w")
    assert main(["show", str(tmp_path / "w"), "--json"]) == 0
    paths = [result["path"] for result in json.loads(capsys.readouterr().out)["results"]]
    assert ["1970-01-01T00:01:00Z/1970-01-01T00:02:00Z", '"a"'] in paths
    assert any(path[-1] == "(other)" for path in paths)
    assert any(path[0] == "total" for path in paths)


def test_a_file_is_written_whole_or_not_at_all(store: Path, tmp_path: Path) -> None:
    target = tmp_path / "there"
    target.mkdir()
    assert main(["export", str(store), "-o", str(target)]) == 1
    assert list(tmp_path.iterdir()) == [target]


def test_a_slice_whose_rows_all_weigh_nothing_is_no_state(tmp_path: Path, capsys: Capture) -> None:
    weightless = [{**event(i, "b", 1, 0.5), "w": 0} for i in range(3)]
    events = [{**event(9, "a", 1, 0.5), "w": 1}, *weightless]
    slices = 'max_keys = 9\n[metrics.weighted]\ntype = "Calibration"\ninputs = { weights = "w" }'
    store = make_store(tmp_path, events, slices=slices)
    path = tmp_path / "b.state"
    words = ["export", str(store), "-o", str(path), "--metric", "weighted", "--where"]
    assert main([*words, "variant=b"]) == 2
    assert "one without rows, or only with rows of weight 0" in capsys.readouterr().err
    assert not path.exists()
    assert main([*words, "variant=a"]) == 0
    # A panel has all metrics of a slice in which some metric has rows.
    panel = load(export(store, path, "--where", "variant=b"))
    assert isinstance(panel, Panel)
    assert panel.state("weighted").compute().rows == 0  # type: ignore[attr-defined]
    assert panel.state("ctr").compute().rows == 3  # type: ignore[attr-defined]
