"""What tasks counted: each once, and only users that they have whole are sealed."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics import (
    InputError,
    OverlapError,
    load,
)
from streammetrics.engines import (
    Positions,
    Sealing,
    Task,
    merge_all,
    merged,
    results_rows,
    seal,
)
from tests.engines.impressions import SPEC, N, log, single, states

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'streammetrics[parquet]'")


def test_a_task_is_counted_once() -> None:
    table = log()
    first, again, other = (
        [row["state"] for row in states(table, SPEC, ["mobile"], counted=Task("job", n))]
        for n in (0, 0, 1)
    )
    with pytest.raises(OverlapError, match=r"job/tasks, \[0\] bucket 0"):
        merged([first[0], again[0]])
    assert merged([first[0], again[0]], replay="skip") == load(first[0])
    assert merged([first[0], first[1], other[0]]).compute()["auc"].rows == sum(
        load(state).compute()["auc"].rows for state in (first[0], first[1], other[0])
    )
    merged_twice = merge_all([first[0], other[0]])
    with pytest.raises(OverlapError):
        merged([first[0], merged_twice], replay="skip")  # some of it is new


def test_positions_are_the_ranges_of_the_tasks_rows() -> None:
    table = log()
    here = Positions(("topic", "log"), "offset")
    (row,) = states(table, SPEC, counted=here)
    ranges = list(load(row["state"]).provenance)
    assert [(source, piece) for source, piece, _, _ in ranges] == [
        ("clicks/0", "[] bucket 0"),
        ("clicks/1", "[] bucket 0"),
    ]
    assert min(start for *_, start, _ in ranges) == 100
    assert max(end for *_, end in ranges) == N + 100
    halves = [table.slice(0, 2000), table.slice(2000)]
    first, second = (states(half, SPEC, counted=here)[0]["state"] for half in halves)
    assert merged([second, first]) == single(table)
    with pytest.raises(OverlapError):
        merged([first, row["state"]])
    backwards = table.take(pa.array(np.arange(N)[::-1]))
    (row,) = states(backwards, SPEC, counted=here)
    assert list(load(row["state"]).provenance) == ranges
    missing = table.set_column(7, "offset", pa.array([None] * N, pa.int64()))
    with pytest.raises(InputError, match="an offset in each row"):
        states(missing, SPEC, counted=here)


@pytest.mark.slow
def test_tasks_that_have_whole_users_seal_them() -> None:
    table, n = log(), 8
    sealing = Sealing(of="user", n_buckets=n, hash="mod", scope="today")
    buckets = pa.array(np.array(table["user"]) % n, pa.int32())
    found = states(
        table.append_column("b", buckets),
        SPEC,
        ["mobile"],
        bucket="b",
        counted=Task("j", 0),
        sealing=sealing,
    )
    for mobile in (False, True):
        mine = [row["state"] for row in found if row["mobile"] is mobile]
        rows = table.filter(pa.compute.equal(table["mobile"], mobile))
        whole = seal(single(rows), Sealing("user", 1, "", "today"))
        total = merged(mine)
        assert total.digest() == whole.digest() and total.complete
        assert merged([*mine, *mine], replay="skip") == total
        assert results_rows(total) == results_rows(single(rows))
    with pytest.raises(OverlapError, match="keep groups apart"):
        merged(row["state"] for row in found)


def test_tasks_that_do_not_have_whole_users_are_noticed() -> None:
    table, n = log(), 8
    sealing = Sealing(of="user", n_buckets=n, hash="mod", scope="today")
    table = table.append_column("b", pa.array(np.array(table["user"]) % n, pa.int32()))
    found = [
        row["state"]
        for number, task in enumerate((table.slice(0, N // 2), table.slice(N // 2)))
        for row in states(task, SPEC, bucket="b", counted=Task("j", number), sealing=sealing)
    ]
    for replay in ("refuse", "skip"):
        with pytest.raises(OverlapError, match=r"sealed/mod\(user\) mod 8/today"):
            merged(found, replay=replay)
