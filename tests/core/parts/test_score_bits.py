"""Codes of floats."""

from __future__ import annotations

import itertools

import numpy as np

from streammetrics.core.parts.score_bits import (
    are_codes,
    codes_of,
    integers_of,
    scores_of,
)


def ladder(kind: type[np.floating]) -> list[float]:
    """Floats of every kind, ascending."""
    info = np.finfo(kind)
    up = [0.0, info.smallest_subnormal, info.tiny, info.eps, 0.5, 1.0, info.max, np.inf]
    return [-float(x) for x in reversed(up[1:])] + [float(x) for x in up]


def test_codes_order_as_their_scores_do_and_lead_back() -> None:
    for kind in (np.float32, np.float64):
        scores = np.array(ladder(kind), kind)
        codes = codes_of(scores)
        assert all(a < b for a, b in itertools.pairwise(codes.tolist()))
        back = scores_of(codes)
        assert back.dtype == kind and back.tolist() == scores.tolist()
        zeros = np.array([-0.0, 0.0], kind)
        assert len(set(codes_of(zeros).tolist())) == 1
        assert not np.signbit(scores_of(codes_of(zeros))).any()
        assert np.signbit(zeros[0])  # the caller's array is as it was


def test_only_codes_of_numbers_are_codes() -> None:
    for kind in (np.float32, np.float64):
        name = np.dtype(kind).name
        good = codes_of(np.array(ladder(kind), kind)).astype(np.uint64)
        assert are_codes(good, name) and are_codes(good[:0], name)
        zero = codes_of(np.array([0.0], kind)).astype(np.uint64)[0]
        # Beside the infinities are NaNs, and below 0.0 is -0.0.
        for bad in (good[0] - np.uint64(1), good[-1] + np.uint64(1), zero - np.uint64(1)):
            assert not are_codes(np.append(good, bad), name)


def test_codes_of_integers_order_as_they_do_and_lead_back() -> None:
    ends = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1]
    codes = codes_of(np.array(ends))
    assert all(a < b for a, b in itertools.pairwise(codes.tolist()))
    assert integers_of(codes).tolist() == ends
    assert codes.tolist()[0] == 0 and codes.tolist()[-1] == 2**64 - 1
    assert are_codes(codes, "int64")
