"""Envelopes are read side by side where they can be; what is counted twice is told as ever."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from random import Random

import pytest

from streammetrics import (
    Accumulator,
    OverlapError,
    Ratio,
    SettingsError,
    StateError,
    StreamMetricsError,
    load,
)
from streammetrics.combine.sealed import Sealing, seal
from streammetrics.core.bytes import stacked as module
from streammetrics.core.bytes.codec import FILE_MAGIC, STATE_MAGIC, frame, unframe
from streammetrics.engines import merge_once, merged
from tests.core.bytes.test_stacked import area, widths

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


def one_by_one(states: Sequence[bytes], replay: str = "refuse") -> Accumulator:
    total = load(states[0])
    for data in states[1:]:
        merge_once(total, load(data), replay)
    return total


def told(states: Sequence[bytes], replay: str = "refuse") -> str:
    """What is raised for them, which must be what is raised one by one."""
    with pytest.raises(StreamMetricsError) as alone:
        one_by_one(states, replay)
    with pytest.raises(StreamMetricsError) as together:
        merged(states, replay=replay)
    assert type(together.value) is type(alone.value)
    assert str(together.value) == str(alone.value)
    return f"{alone.type.__name__} {alone.value}"


def test_envelopes_that_are_laid_out_alike_come_as_one_beside_bare_states() -> None:
    plain = [GOOD.to_file_bytes()] * 9
    assert widths(plain) == [1, 8]
    assert merged(plain).to_file_bytes() == one_by_one(plain).to_file_bytes()
    states = [*in_order(5), GOOD.to_bytes(), *plain[:2], *in_order(5, start=5)]
    assert widths(states) == [1, 12]
    assert merged(states).to_file_bytes() == one_by_one(states).to_file_bytes()
    assert list(merged(states).provenance) == [("clicks/0", "", 0, 100)]


def test_what_they_counted_is_united_whatever_its_order_and_pieces() -> None:
    states = [
        noted(
            (f"clicks/{i % 3}", i, i + 1 + i % 2, f"window {j}"),
            ("views", 50 * j + i, 50 * j + i + 1),
        )
        for i in range(0, 30, 2)
        for j in range(4)
    ]
    Random(3).shuffle(states)
    assert max(widths(states)) > 4
    assert merged(states).to_file_bytes() == one_by_one(states).to_file_bytes()


@pytest.mark.parametrize("replay", ["refuse", "skip"])
@pytest.mark.parametrize("at", range(1, 8))
@pytest.mark.parametrize("found", [(0, 5), (25, 35), (69, 71), (0, 1000)])
def test_an_overlap_is_refused_in_the_same_words_wherever_it_comes(
    replay: str, at: int, found: tuple[int, int]
) -> None:
    states = in_order(7)
    states.insert(at, noted(("clicks/0", *found), ("views", 0, 1)))
    assert told(states, replay).startswith("OverlapError clicks/0")


def test_what_is_counted_already_is_left_out_even_while_that_waits() -> None:
    states = in_order(8)
    again = [
        *states[:3],
        states[2],
        *states[3:],
        states[0],
        *states[5:7],
        noted(("clicks/0", 5, 65)),
    ]
    total = merged(again, replay="skip")
    assert total.to_file_bytes() == one_by_one(states).to_file_bytes()
    assert total.to_file_bytes() == one_by_one(again, "skip").to_file_bytes()
    assert told(again).startswith("OverlapError")
    assert told([*again, noted(("clicks/0", 75, 85))], "skip").startswith("OverlapError")


def test_what_says_nothing_is_no_replay() -> None:
    states = [*in_order(3), GOOD.to_file_bytes(), *in_order(3, start=3), GOOD.to_file_bytes()]
    assert merged(states, replay="skip") == one_by_one(states)


def test_a_replay_that_is_damaged_or_has_other_settings_is_refused_though_it_is_left_out() -> None:
    states = in_order(6)
    said = unframe(FILE_MAGIC, states[3])[0]
    assert "StateError" in told([*states, frame(FILE_MAGIC, said, WRONG)], "skip")
    other = Ratio()
    other.provenance.add("clicks/0", 30, 40)
    assert "SettingsError" in told([*states, other.to_file_bytes()], "skip")
    with pytest.raises(SettingsError):
        merged([*states, other.to_file_bytes()])


def damaged_envelopes() -> list[bytes]:
    good = noted(("clicks/0", 30, 40))
    said, inner = unframe(FILE_MAGIC, good)
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
        frame(FILE_MAGIC, said, WRONG),
        frame(FILE_MAGIC, said, crc),
        frame(FILE_MAGIC, said, b""),
        frame(FILE_MAGIC, said, good),
        frame(FILE_MAGIC, said, state + b"\0"),
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


@pytest.mark.parametrize("which", range(len(damaged_envelopes())))
def test_a_damaged_envelope_among_others_says_what_it_says_alone(which: int) -> None:
    bad = damaged_envelopes()[which]
    with pytest.raises(StateError) as alone:
        load(bad)
    for states in (
        [*in_order(3), bad, *in_order(3, start=4)],
        [*in_order(3), bad],
        [*in_order(1), *[bad] * 6],
    ):
        assert told(states) == f"StateError {alone.value}"


def test_of_several_that_are_wrong_the_first_is_told() -> None:
    first, *rest = in_order(7)
    wrong = frame(FILE_MAGIC, unframe(FILE_MAGIC, rest[2])[0], WRONG)
    assert "StateError" in told([first, *rest[:2], wrong, *rest[3:], first])
    assert "OverlapError" in told([first, *rest[:2], first, wrong, *rest[3:]])
    assert "StateError" in told([first, *rest[:2], wrong, rest[3][:-1]])
    assert "StateError" in told([first, *rest[:2], wrong, Ratio().to_file_bytes()])
    assert "SettingsError" in told([first, *rest[:2], Ratio().to_file_bytes(), wrong])


def test_one_that_repeats_and_is_damaged_is_damaged() -> None:
    states = in_order(6)
    bad = frame(FILE_MAGIC, unframe(FILE_MAGIC, states[0])[0], WRONG)
    for replay in ("refuse", "skip"):
        assert told([*states, bad], replay).startswith("StateError")


@pytest.mark.parametrize("seed", range(40))
def test_random_envelopes_are_summed_and_refused_as_one_by_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    monkeypatch.setattr(module, "_ROOM", random.choice([0, 500, 3_000, 1 << 19]))
    ratio = Ratio()
    ratio.update([0.25, 0.75])
    states, at = [], 0
    for _ in range(random.randrange(1, 25)):
        kind = random.random()
        end = at + random.randrange(1, 6)
        again = max(0, at - random.randrange(12))
        if kind < 0.12:
            states.append(noted(("a", again, again + 2, random.choice(["", "b"]))))
        elif kind < 0.2:
            states.append(random.choice([GOOD.to_bytes(), GOOD.to_file_bytes()]))
        elif kind < 0.23:
            states.append(random.choice([ratio.to_file_bytes(), WRONG]))
        else:
            states.append(noted(("a", at, end, "b" * (kind < 0.5))))
            at = end
    for replay in ("refuse", "skip"):
        try:
            total = one_by_one(states, replay)
        except StreamMetricsError:
            told(states, replay)
        else:
            assert merged(states, replay=replay).to_file_bytes() == total.to_file_bytes()


def sealed(bucket: int, hash_: str = "xxhash64") -> bytes:
    return seal(GOOD, Sealing("user", 8, hash_, "day"), bucket).to_file_bytes()


def test_sealed_states_are_merged_with_their_proofs() -> None:
    states = [sealed(bucket) for bucket in range(8)]
    assert widths(states) == [1] * 8
    assert merged(states).to_file_bytes() == one_by_one(states).to_file_bytes()
    assert told([*states[:6], sealed(6, "crc32")]).startswith("OverlapError Sealed.merge")
    assert told([*states[:6], load(states[7]).to_bytes()]).startswith("StateError Sealed")
    with pytest.raises(OverlapError):
        merged([*states, states[3]])
