"""How an experiment stands, in one sentence, whatever it finds."""

from __future__ import annotations

from contextlib import closing

import pytest
from msgspec.structs import replace
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.answers import Comparison
from streammetrics_consumers.query.comparisons import experiment_answer, verdict
from streammetrics_consumers.query.experiment_plan import Declared, declared
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results

from streammetrics.experiments import Verdict
from tests.consumers import experiment_run
from tests.consumers.render.corpus import results


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Declared, Comparison]:
    """A small experiment that has decided."""
    config = experiment_run.write(tmp_path_factory.mktemp("verdict"))
    with closing(Ledger.open(str(experiment_run.run(config)))) as ledger:
        of = declared(ledger.generation())
        [row] = read_results(ledger, Query()).comparisons
    assert of is not None
    return of, row


def judged(row: Comparison, verdict: Verdict, said: str = "said.") -> Comparison:
    """The same with another verdict."""
    return replace(row, verdict=verdict, sentence=said)


def guardrail(row: Comparison, verdict: Verdict, said: str) -> Comparison:
    """The same as a guardrail, with a margin of 0.1."""
    return replace(judged(row, verdict, said), guardrail=True, margin=-0.1)


def test_what_is_decided_is_the_sentence_of_the_comparison(
    found: tuple[Declared, Comparison],
) -> None:
    of, row = found
    assert verdict(of, [row]) == ("decided", row.sentence)
    assert row.sentence.startswith("new is better")
    assert verdict(None, ()) == ("none", "No experiment is declared.")
    assert verdict(of, ())[0] == "waiting"


def test_several_comparisons_are_counted(found: tuple[Declared, Comparison]) -> None:
    of, row = found
    open_, won = judged(row, "no_difference_yet"), judged(row, "better", "new is better.")
    assert verdict(of, [open_]) == ("undecided", "said.")
    assert verdict(of, [open_, open_]) == (
        "undecided", "No difference shown yet in any of 2 comparisons.",
    )  # fmt: skip
    assert verdict(of, [won, open_]) == (
        "decided", "new is better. 1 of 2 comparisons show none yet.",
    )  # fmt: skip


def test_doubt_and_a_broken_guardrail_are_said_first(
    found: tuple[Declared, Comparison],
) -> None:
    of, row = found
    doubt = judged(row, "disbelieved", "Units fall as they should not.")
    assert verdict(of, [row, doubt]) == ("distrusted", doubt.sentence)
    broken, kept = guardrail(row, "broken", "It breaks."), guardrail(row, "kept", "It keeps.")
    assert verdict(of, [row, broken]) == ("decided", f"It breaks. {row.sentence}")
    assert verdict(of, [row, kept])[1] == row.sentence
    told = experiment_answer(replace(results(), comparisons=(row,)), of, 3)
    assert told.plan is not None
    assert (told.looks, told.plan.control, told.state) == (3, "old", "decided")
