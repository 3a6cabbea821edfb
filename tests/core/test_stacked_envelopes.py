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
from streammetrics.core import stacked as module
from streammetrics.core.bytes.codec import FILE_MAGIC, STATE_MAGIC, frame, unframe
from streammetrics.engines import merge_once, merged
from tests.core.test_stacked import area, widths

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


def test_a_damaged_envelope_among_others_says_what_it_says_alone() -> None:
    for which, bad in enumerate(damaged_envelopes()):
        with pytest.raises(StateError) as alone:
            load(bad)
        for states in (
            [*in_order(3), bad, *in_order(3, start=4)],
            [*in_order(3), bad],
            [*in_order(1), *[bad] * 6],
        ):
            assert told(states) == f"StateError {alone.value}", which


@pytest.mark.parametrize("seed", range(20))
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
