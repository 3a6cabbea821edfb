"""States from bytes are read side by side where they can be, and always give the same sum."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Sequence
from functools import reduce
from operator import add
from random import Random

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    HistogramAUC,
    OverlapError,
    Panel,
    Ratio,
    SettingsError,
    StateError,
    StreamMetricsError,
    load,
)
from streammetrics.combine.sealed import Sealing, seal
from streammetrics.core import stacked as module
from streammetrics.core.codec import FILE_MAGIC, STATE_MAGIC, Stack, Unlike, frame, unframe
from streammetrics.core.parts.exact_sum import ExactSum
from streammetrics.core.stacked import summed
from streammetrics.core.updates import MAX_TOTAL_COUNT
from streammetrics.engines import merge_once, merged

RANDOM = np.random.default_rng(7)


def area(rows: int = 3_000) -> HistogramAUC:
    state = HistogramAUC(grid="equal", resolution=6)
    state.update(RANDOM.integers(0, 2, rows), RANDOM.random(rows))
    return state


def ratio(values: Sequence[float] = (0.25, 0.75)) -> Ratio:
    state = Ratio()
    state.update(values)
    return state


def panel() -> Panel:
    state = Panel({"b": Ratio(), "a": HistogramAUC(grid="equal", resolution=6)})
    labels = RANDOM.integers(0, 2, 3_000)
    state.update(labels=labels, scores=RANDOM.random(3_000), numerators=labels)
    return state


def widths(states: Sequence[bytes]) -> list[int]:
    width_list = []

    def add(total: Accumulator | None, state: Accumulator) -> Accumulator:
        width_list.append(state._width)
        return state if total is None else total + state

    summed(states, load, add)
    return width_list


def one_by_one(states: Sequence[bytes]) -> Accumulator:
    total: Accumulator = reduce(add, map(load, states))
    return total


def test_states_that_are_laid_out_alike_come_as_one() -> None:
    for make in (area, ratio, panel):
        state = make().to_bytes()
        assert widths([state] * 9) == [1, 8]
        assert merged([state] * 9) == one_by_one([state] * 9)


def test_tables_of_any_width_have_the_sum_that_they_have_one_by_one() -> None:
    for rows in (100, 3_000, 400_000, 40_000_000):
        empty, states = HistogramAUC(grid="equal", resolution=6), []
        for _ in range(20):
            counts = RANDOM.multinomial(rows, np.full(128, 1 / 128))
            state = empty.from_counts(np.repeat([0, 1], 64), [*range(64)] * 2, counts)
            states.append(state.to_bytes())
        assert max(widths(states)) > 4
        total = merged(states)
        assert total == one_by_one(states)
        total.merge(load(states[0]))
        assert total == one_by_one([*states, states[0]])


def test_states_of_several_lengths_wait_for_their_like(monkeypatch: pytest.MonkeyPatch) -> None:
    states = [ratio([1.0] * n).to_bytes() for n in (1, 3, 300) for _ in range(30)]
    Random(2).shuffle(states)
    expected = one_by_one(states)
    assert len(widths(states)) < 12
    for room in (0, 300, 2_000):
        monkeypatch.setattr(module, "_ROOM", room)
        assert sum(widths(states)) == len(states)
        assert merged(states) == expected
    assert max(widths(states)) <= 2_000 // len(states[0])


def test_a_state_with_a_byte_altered_is_taken_among_others_if_it_is_alone() -> None:
    for make in (area, ratio, panel):
        good = make().to_bytes()
        head, body = unframe(STATE_MAGIC, good)
        refused, end = 0, len(body)
        for position in range(end) if end < 80 else [*range(12), *range(end - 24, end)]:
            for new in {0, 2, 0x80} - {body[position]}:
                bad = frame(
                    STATE_MAGIC,
                    head,
                    body[:position].tobytes() + bytes((new,)) + body[position + 1 :],
                )
                states = [good, good, bad, good, good, good]
                try:
                    load(bad)
                except StateError as error:
                    with pytest.raises(StateError) as refusal:
                        merged(states)
                    assert str(refusal.value) == str(error)
                    with pytest.raises(StateError):  # and if all are so
                        merged([good, *[bad] * 5])
                    refused += 1
                else:
                    assert merged(states) == one_by_one(states)
                    assert merged([good, *[bad] * 5]) == one_by_one([good, *[bad] * 5])
        assert refused > 5


def test_a_table_that_should_be_sparse_is_refused_among_its_like() -> None:
    good = area().to_bytes()
    head, body = unframe(STATE_MAGIC, good)
    assert body[:2].tobytes() == b"\1\1"
    bad = frame(STATE_MAGIC, head, b"\1\1" + b"\1" * 32 + bytes(96) + body[130:])
    with pytest.raises(StateError, match="32 occupied"):
        merged([good, *[bad] * 6])


def test_exact_sums_are_read_side_by_side_if_they_are_as_they_are_written() -> None:
    for body, taken in (
        (b"\1\1" + b"\1\x88" + b"\0" + b"\0" + b"\3", True),
        (b"\1\1" + b"\1\x88" + b"\1\1" + b"\0" + b"\3", True),
        (b"\1\1" + b"\1\x88" + b"\1\2" + b"\0" + b"\3", False),  # a sign that is none
        (b"\1\1" + b"\1\x88" + b"\0" + b"\0" + b"\0", False),  # a zero at an end
        (b"\0" + b"\0" + b"\0" + b"\0", True),
        (b"\0" + b"\1\5" + b"\0" + b"\0", False),  # another form of zero
        (b"\0" + b"\0" + b"\1\1" + b"\0", False),
        (b"\1\xff" + b"\1\x11" + b"\0" + b"\0" + b"\3" * 255, True),
        (b"\1\xff" + b"\1\x12" + b"\0" + b"\0" + b"\3" * 255, False),  # out of range
    ):
        stack = Stack([body] * 5, 0, len(body))
        if taken:
            read = ExactSum().decode_stack(Ratio(), stack)
            assert (read.width, len(read.infinities)) == (5, 5)
            stack.finish()
        else:
            with pytest.raises(Unlike):
                ExactSum().decode_stack(Ratio(), stack)


def test_a_table_of_zeros_takes_no_memory_before_it_is_refused() -> None:
    empty = HistogramAUC(grid="equal", resolution=20)
    good = empty.to_bytes()
    head, body = unframe(STATE_MAGIC, good)
    bad = frame(STATE_MAGIC, head, b"\1" + body[1:])  # dense, of integers of no bytes
    tracemalloc.start()
    try:
        with pytest.raises(StateError, match="a table of 2097152 cells"):
            merged([good, *[bad] * 2_000])
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_counts_past_an_int64_are_refused_together_as_one_by_one() -> None:
    empty = HistogramAUC(grid="equal", resolution=2)
    whole = range(4)

    def heavy(rows: int) -> bytes:
        return empty.from_counts([0] * 4 + [1] * 4, [*whole] * 2, [rows // 8] * 8).to_bytes()

    near = heavy(MAX_TOTAL_COUNT // 7)
    assert len({len(near), len(heavy(MAX_TOTAL_COUNT // 40))}) == 1
    assert merged([near] * 7) == one_by_one([near] * 7)
    for states in ([near] * 8, [heavy(MAX_TOTAL_COUNT // 2)] * 9, [near] * 20):
        with pytest.raises(StateError, match=r"at most \d+ rows"):
            merged(states)


# -- envelopes, which say what they counted --------------------------------------------------------
GOOD = area(3_000)
HEAD, BODY = unframe(STATE_MAGIC, GOOD.to_bytes())
# Dense, of integers of one byte: the first of them made so that another width were right.
WRONG = frame(STATE_MAGIC, HEAD, b"\1\2" + BODY[2:].tobytes())


def noted(*ranges: tuple[str, int, int] | tuple[str, int, int, str]) -> bytes:
    """A state of the one layout, in an envelope that says that it counted these."""
    state = GOOD.copy()
    for row in ranges:
        state.provenance.add(*row)
    return state.to_file_bytes()


def in_order(n: int, start: int = 0) -> list[bytes]:
    return [noted(("clicks/0", 10 * i, 10 * i + 10)) for i in range(start, start + n)]


def once_each(states: Sequence[bytes], replay: str = "refuse") -> Accumulator:
    total = load(states[0])
    for data in states[1:]:
        merge_once(total, load(data), replay)
    return total


def error_text(states: Sequence[bytes], replay: str = "refuse") -> str:
    """What is raised for them, which must be what is raised one by one."""
    with pytest.raises(StreamMetricsError) as single_error:
        once_each(states, replay)
    with pytest.raises(StreamMetricsError) as together:
        merged(states, replay=replay)
    assert type(together.value) is type(single_error.value)
    assert str(together.value) == str(single_error.value)
    return f"{single_error.type.__name__} {single_error.value}"


def test_envelopes_that_are_laid_out_alike_come_as_one_beside_bare_states() -> None:
    plain = [GOOD.to_file_bytes()] * 9
    assert widths(plain) == [1, 8]
    assert merged(plain).to_file_bytes() == once_each(plain).to_file_bytes()
    states = [*in_order(5), GOOD.to_bytes(), *plain[:2], *in_order(5, start=5)]
    assert widths(states) == [1, 12]
    assert merged(states).to_file_bytes() == once_each(states).to_file_bytes()
    assert list(merged(states).provenance) == [("clicks/0", "", 0, 100)]


def test_a_replay_that_is_damaged_or_has_other_settings_is_refused_though_it_is_left_out() -> None:
    states = in_order(6)
    head = unframe(FILE_MAGIC, states[3])[0]
    assert "StateError" in error_text([*states, frame(FILE_MAGIC, head, WRONG)], "skip")
    ratio_state = Ratio()
    ratio_state.provenance.add("clicks/0", 30, 40)
    assert "SettingsError" in error_text([*states, ratio_state.to_file_bytes()], "skip")
    with pytest.raises(SettingsError):
        merged([*states, ratio_state.to_file_bytes()])


def damaged_envelopes() -> list[bytes]:
    good = noted(("clicks/0", 30, 40))
    head, inner = unframe(FILE_MAGIC, good)
    state = bytes(inner)
    longer = good[:-4] + b"\0"
    crc = state[:-1] + bytes((state[-1] ^ 1,))
    return [
        good[:-1],
        good + b"\0",
        good[:20],
        good[:-9] + b"!" + good[-8:],
        good[:4] + b"\2" + good[5:],
        b"SMFJ" + good[4:],
        good[:5] + b"\xff\xff\xff\xff" + good[9:],
        longer + zlib.crc32(longer).to_bytes(4, "little"),
        frame(FILE_MAGIC, head, WRONG),
        frame(FILE_MAGIC, head, crc),
        frame(FILE_MAGIC, head, b""),
        frame(FILE_MAGIC, head, good),
        frame(FILE_MAGIC, head, state + b"\0"),
        frame(FILE_MAGIC, b"", state),
        frame(FILE_MAGIC, b"{", state),
        frame(FILE_MAGIC, b"{", WRONG),
        frame(FILE_MAGIC, b"[ ]", state),
        frame(FILE_MAGIC, b"\xff", state),
        frame(FILE_MAGIC, b"[" * 5_000, state),
        frame(FILE_MAGIC, b'[["a","",5,3]]', state),
        frame(FILE_MAGIC, b'[["a","",0,3],["a","",2,4]]', state),
        frame(FILE_MAGIC, b'[["a","",0,3],["a","",3,4]]', state),
        frame(FILE_MAGIC, b'[["a","",0,3.5]]', state),
    ]


def test_a_damaged_envelope_among_others_says_what_it_says_alone() -> None:
    for number, bad in enumerate(damaged_envelopes()):
        with pytest.raises(StateError) as single_error:
            load(bad)
        for states in (
            [*in_order(3), bad, *in_order(3, start=4)],
            [*in_order(3), bad],
            [*in_order(1), *[bad] * 6],
        ):
            assert error_text(states) == f"StateError {single_error.value}", number


def random_envelopes(random: Random) -> list[bytes]:
    states, start = [], 0
    for _ in range(random.randrange(1, 25)):
        kind = random.random()
        end = start + random.randrange(1, 6)
        replay_start = max(0, start - random.randrange(12))
        if kind < 0.12:
            states.append(noted(("a", replay_start, replay_start + 2, random.choice(["", "b"]))))
        elif kind < 0.2:
            states.append(random.choice([GOOD.to_bytes(), GOOD.to_file_bytes()]))
        elif kind < 0.23:
            states.append(random.choice([ratio().to_file_bytes(), WRONG]))
        else:
            states.append(noted(("a", start, end, "b" * (kind < 0.5))))
            start = end
    return states


def test_random_envelopes_are_summed_and_refused_as_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for seed in range(12):
        random = Random(seed)
        monkeypatch.setattr(module, "_ROOM", random.choice([0, 500, 3_000, 1 << 19]))
        states = random_envelopes(random)
        for replay in ("refuse", "skip"):
            try:
                total = once_each(states, replay)
            except StreamMetricsError:
                error_text(states, replay)
            else:
                assert merged(states, replay=replay).to_file_bytes() == total.to_file_bytes()


def sealed(bucket: int, hash_: str = "xxhash64") -> bytes:
    return seal(GOOD, Sealing("user", 8, hash_, "day"), bucket).to_file_bytes()


def test_sealed_states_are_merged_with_their_proofs() -> None:
    states = [sealed(bucket) for bucket in range(8)]
    assert widths(states) == [1] * 8
    assert merged(states).to_file_bytes() == once_each(states).to_file_bytes()
    assert error_text([*states[:6], sealed(6, "crc32")]).startswith("OverlapError Sealed.merge")
    assert error_text([*states[:6], load(states[7]).to_bytes()]).startswith("StateError Sealed")
    with pytest.raises(OverlapError):
        merged([*states, states[3]])
