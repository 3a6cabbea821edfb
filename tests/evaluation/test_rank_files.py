"""Files of learning to rank: rows with labels and queries, and the scores of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics import InputError, StreamMetricsError, compare_runs, evaluate
from streammetrics.evaluation.rank_files import read_judgments, read_run_of
from streammetrics.evaluation.trec_files import MAX_LINE

LETOR = b"""# a test set
2 qid:10 1:0.89 2:0.1 #docid = GX001 inc = 1
0 qid:10 1:0.30 # GX002

1.0 qid:10 1:0.2
0 qid:7 1:0.5
3 qid:7 1:0.1 2:7e-3
"""
SCORES = [0.4, 0.5, 0.1, 0.2, 0.2]
MEASURES = ["ndcg@10", "map", "mrr"]
GRADES = {"10": {0: 2, 1: 0, 2: 1}, "7": {3: 0, 4: 3}}
RUN = {"10": {0: 0.4, 1: 0.5, 2: 0.1}, "7": {3: 0.2, 4: 0.2}}


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def same_means(means: Mapping[str, float], expected: Mapping[str, float]) -> bool:
    return dict(means) == dict(expected) and len(means) == len(MEASURES)


def test_rows_of_a_query_are_a_list_and_scores_are_in_the_order_of_the_rows(
    tmp_path: Path,
) -> None:
    rows = written(tmp_path, "test.txt", LETOR)
    assert read_judgments(rows) == GRADES
    expected = evaluate(GRADES, RUN, MEASURES)
    plain = written(tmp_path, "a.pred", "".join(f"{score!r}\n" for score in SCORES).encode())
    savetxt = tmp_path / "b.pred"
    np.savetxt(savetxt, SCORES)
    places = zip(("10", "10", "10", "7", "7"), (0, 1, 2, 0, 1), SCORES, strict=True)
    ranklib = "".join(f"{query}\t{place}\t{score}\n" for query, place, score in places)
    by_place = written(tmp_path, "c.pred", ranklib.encode())
    for run in (plain, savetxt, by_place, SCORES, np.array(SCORES)):
        assert same_means(evaluate(rows, run, MEASURES), expected)
    comparison = compare_runs(rows, {"a": plain, "b": [0.1, 0.2, 0.3, 0.4, 0.5]}, "mrr")
    assert comparison.runs["a"]["mrr"] == expected["mrr"] and comparison.runs["b"]["mrr"] == 1.0


def test_sizes_of_queries_stand_in_a_file_beside_the_rows(tmp_path: Path) -> None:
    expected = evaluate({"1": GRADES["10"], "2": GRADES["7"]}, {"1": RUN["10"], "2": RUN["7"]},
                        MEASURES)  # fmt: skip
    sparse = b"2 1:0.89 2:0.1\n0 1:0.30\n1 1:0.2\n0 1:0.5\n3 1:0.1\n"
    tables = (sparse, b"2\t.8\n0\t.3\n1\t.2\n0\t.5\n3\t.1\n", b"label,x\n2,1\n0,1\n1,1\n0,1\n3,1\n")
    for number, rows in enumerate(tables):
        for suffix in (".query", ".group"):
            path = written(tmp_path, f"rank{number}{suffix[1:]}.test", rows)
            written(tmp_path, path.name + suffix, b"3\n2\n")
            assert same_means(evaluate(path, SCORES, MEASURES), expected)
    written(tmp_path, path.name + ".group", b"3\n1\n")
    with pytest.raises(InputError, match=r"expected 4 rows, the sum of .*\.group, got 5"):
        read_judgments(path)
    written(tmp_path, path.name + ".group", b"999999999\n" * 9)
    with pytest.raises(InputError, match="expected 8,999,999,991 rows"):
        read_judgments(path)
    written(tmp_path, path.name + ".group", b"3 2\n")
    with pytest.raises(InputError, match="line 1: expected one whole number, got '3 2'"):
        read_judgments(path)


BAD_ROWS = {
    b"2 qid:1 1:1\n0 1:1\n": "line 2: expected a label, then qid:QUERY",
    b"2 qid:1 1:1\n0\n": "line 2: expected a label, then qid:QUERY",
    b"0.5 qid:1 1:1\n": "line 1: expected a whole number as the grade, got '0.5'",
    b"nan qid:1 1:1\n": "a whole number as the grade",
    b"1 qid: 1:1\n": "line 1: expected a label",
    b"1 qid:1 " + b"x" * (1 << 20): "at most 1048576 bytes",
}
BAD_SCORES = {
    b"1\n2\n3\n4\n": "expected 5 scores, one a row, got 4",
    b"1\n2\n3\n4\n5\n6\nx\n": "expected 5 scores, one a row, got more",
    b"1\nnan\n": "line 2: expected a number as the score, not nan",
    b"10\t0\t1\n10\t2\t1\n": "line 2: expected query '10', row 1, got '10 2 1'",
    b"7\t0\t1\n": "line 1: expected query '10', row 0, got '7 0 1'",
    b"10 Q0 d 1 0.5 tag\n": "line 1: expected one score, or query, index and score, got 6 words",
}


def test_other_rows_and_scores_are_refused_with_their_line(tmp_path: Path) -> None:
    for data, part in BAD_ROWS.items():
        with pytest.raises(InputError, match="expected") as raised:
            read_judgments(written(tmp_path, "rows", data))
        assert part in str(raised.value), data
    truth = read_judgments(written(tmp_path, "rows", LETOR))
    for data, part in BAD_SCORES.items():
        with pytest.raises(InputError) as raised:
            read_run_of(written(tmp_path, "scores", data), truth)
        assert part in str(raised.value) and raised.value.hint, data
    for path in ("a\0", "\ud800", "1 qid:1 1:1\n" * 1000):
        with pytest.raises(InputError, match="check the path"):
            read_judgments(path)


def test_a_row_of_many_features_is_longer_than_a_line_of_trec(tmp_path: Path) -> None:
    features = b" ".join(b"%d:0.5" % i for i in range(1, MAX_LINE))
    rows = b"1 qid:a " + features + b"\n0 qid:a " + features + b"\n"
    assert read_judgments(written(tmp_path, "rows", rows)) == {"a": {0: 1, 1: 0}}


@given(st.lists(st.sampled_from([b"1", b"qid:1", b"1:2", b"#", b"\n", b" ", b"\xff", b"-", b",",
                                 b"x"]), max_size=30), st.binary(max_size=20))  # fmt: skip
def test_no_rows_do_more_than_parse_or_refuse(words: list[bytes], rest: bytes) -> None:
    import os

    for kind in ("rows", "scores"):
        reader, writer = os.pipe()
        os.write(writer, b"1 qid:1 1:2\n" * (kind == "rows") + b" ".join(words) + rest)
        os.close(writer)
        path = f"/dev/fd/{reader}"
        try:
            if kind == "rows":
                assert read_judgments(path)
            else:
                read_run_of(path, {"q": {"d": 1}})
        except StreamMetricsError as error:
            assert error.hint
        finally:
            os.close(reader)
