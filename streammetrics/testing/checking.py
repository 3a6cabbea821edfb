"""The laws under hypothesis, which searches for the smallest rows that break one; and every small
multiset of rows against the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations_with_replacement
from random import Random

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from streammetrics.core.conversion import flag
from streammetrics.testing.case import Case, Row, compare
from streammetrics.testing.laws import LAWS, same


def check_laws(case: Case[Row], *, examples: int = 40, max_rows: int = 30) -> None:
    """Run every law on `examples` sets of up to `max_rows` rows; AssertionError if one breaks."""
    _run(case, partial(_keeps, LAWS), examples, max_rows)


def check_law(
    law: Callable[..., None],
    case: Case[Row],
    *,
    examples: int = 40,
    max_rows: int = 30,
    shrink: bool = True,
) -> None:
    """Run one law under hypothesis; `shrink`: search for the smallest rows that break it."""
    is_shrunk = flag(shrink, "check_law(shrink)")
    _run(case, partial(_keeps, (law,)), examples, max_rows, is_shrunk)


def broken_laws(case: Case[Row], *, examples: int = 40, max_rows: int = 30) -> Mapping[str, str]:
    """The laws that a metric breaks, by name, each with its error."""
    broken: dict[str, str] = {}

    def run(case: Case[Row], rows: Sequence[Row], seed: int) -> None:
        for law in LAWS:
            if law.__name__ not in broken:
                try:
                    _follow(law, case, rows, seed)
                except Exception as error:
                    broken[law.__name__] = f"{type(error).__name__}: {error}"

    _run(case, run, examples, max_rows)
    return {law.__name__: broken[law.__name__] for law in LAWS if law.__name__ in broken}


def _keeps(
    laws: Sequence[Callable[..., None]], case: Case[Row], rows: Sequence[Row], seed: int
) -> None:
    for law in laws:
        try:
            _follow(law, case, rows, seed)
        except Exception as error:
            error.add_note(f"{case} breaks the law {law.__name__!r}: {law.__doc__}")
            raise


def _follow(law: Callable[..., None], case: Case[Row], rows: Sequence[Row], seed: int) -> None:
    """Run a law with its own random source, which does not depend on the other laws."""
    law(case, rows, Random(f"{law.__name__} {seed}"))


def _run(
    case: Case[Row],
    check: Callable[[Case[Row], Sequence[Row], int], None],
    examples: int,
    max_rows: int,
    shrink: bool = True,
) -> None:
    """Run `check` on drawn rows, drawn once for all laws because drawing takes as long as a law."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
    )
    @given(st.lists(case.row, max_size=max_rows), st.integers(0, (1 << 32) - 1))
    def run(rows: Sequence[Row], seed: int) -> None:
        check(case, rows, seed)

    run()


def check_exhaustively(case: Case[Row], domain: Sequence[Row], upto: int = 6) -> int:
    """Compare with the oracle on every multiset of up to `upto` rows of `domain`.

    Each is fed at once, and again shuffled and in two batches. Returns the number of multisets.
    """
    n = 0
    random = Random(0)
    for rows in _multisets(domain, upto):
        whole = case.fed(rows)
        if case.oracle is not None:
            compare(str(case), whole.compute(), case.oracle(rows))
        shuffled = list(rows)
        random.shuffle(shuffled)
        cut = random.randint(0, len(rows))
        state = case.fed(shuffled[:cut])
        if shuffled[cut:]:
            state.update(**case.columns(shuffled[cut:]))
        same(state, whole, "in another order", "at once")
        n += 1
    return n


def _multisets(domain: Sequence[Row], max_rows: int) -> Iterator[tuple[Row, ...]]:
    for n in range(max_rows + 1):
        yield from combinations_with_replacement(domain, n)
