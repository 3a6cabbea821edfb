"""What the benchmark says of numpy's sorts on this machine."""

from __future__ import annotations

import pytest

from benchmarks import sorting

WIDE = ["X86_V4", "AVX512_ICL"]


@pytest.mark.parametrize(
    ("features", "here", "there", "told"),
    [
        (WIDE, 38.0, 5.0, 'export NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL"'),
        (WIDE, 4.0, 5.0, ""),
        (WIDE, 7.0, 5.0, ""),
        ([], 38.0, 5.0, ""),
    ],
)
def test_what_makes_sorts_much_faster_is_told(
    monkeypatch: pytest.MonkeyPatch, features: list[str], here: float, there: float, told: str
) -> None:
    monkeypatch.setattr(sorting, "wide_features", lambda: features)
    monkeypatch.setattr(sorting, "sort_ns", lambda: here)
    monkeypatch.setattr(sorting, "without", lambda some: there)
    assert sorting.advice().endswith(told) and bool(sorting.advice()) == bool(told)


def test_a_process_without_these_features_uses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    known = set(sorting.wide_features())
    assert all(name == "X86_V4" or name.startswith("AVX512") for name in known)
    assert sorting.without(sorted(known)) > 0
    monkeypatch.delenv(sorting.VARIABLE, raising=False)
    assert sorting.asked_of_numpy() == ""
    monkeypatch.setenv(sorting.VARIABLE, "X86_V4")
    assert sorting.asked_of_numpy() == 'NPY_DISABLE_CPU_FEATURES="X86_V4"'
