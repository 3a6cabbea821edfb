"""The ledger: what goes on, is refused or starts anew when the settings change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from consumers.ledger.ledger import Ledger, SettingsChanged
from consumers.ledger.rows import Generation, Head
from tests.consumers.ledger.small_ledger import (
    DESCRIPTIONS,
    LOG,
    PRINTS,
    TOTAL,
    commit,
)

pytestmark = pytest.mark.usefixtures("each_store")


def test_the_same_settings_go_on_in_the_same_generation(
    ledger: Ledger, generation: Generation
) -> None:
    begun = ledger.begin(PRINTS, DESCRIPTIONS)
    assert (begun.generation, begun.created) == (generation, False)


def test_a_changed_metric_is_refused_and_the_difference_named(
    ledger: Ledger, generation: Generation
) -> None:
    changed = {**DESCRIPTIONS, "auc": {"type": "HistogramAUC", "settings": {"resolution": 7}}}
    with pytest.raises(SettingsChanged) as caught:
        ledger.begin({**PRINTS, "auc": "other"}, changed)
    assert caught.value.exit_code == 3
    assert caught.value.differences == ("metric auc: settings.resolution was 8, is 7",)
    assert ledger.generation() == generation


def test_an_added_metric_starts_where_the_heads_stand_and_the_others_go_on(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    ledger.commit(generation, commit(head, 4, TOTAL))
    begun = ledger.begin({**PRINTS, "ks": "p"}, {**DESCRIPTIONS, "ks": {"type": "HistogramAUC"}})
    assert (begun.added, begun.ended, begun.created) == (("ks",), (), False)
    assert begun.generation.id == generation.id
    starts = {metric.name: metric.start_offsets for metric in begun.generation.metrics}
    assert starts == {"auc": {}, "ctr": {}, "ks": {head.id: 14}}


def test_a_worker_that_does_not_know_the_added_metric_is_refused(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    ledger.begin({**PRINTS, "ks": "p"}, {**DESCRIPTIONS, "ks": {"type": "HistogramAUC"}})
    with pytest.raises(SettingsChanged, match="have changed"):
        ledger.commit(generation, commit(head, 4, TOTAL))
    assert ledger.snapshot().panes == ()


def test_a_metric_that_was_taken_out_ends_and_cannot_come_back(
    ledger: Ledger, generation: Generation
) -> None:
    fewer = {"auc": PRINTS["auc"]}
    begun = ledger.begin(fewer, DESCRIPTIONS)
    assert begun.ended == ("ctr",)
    assert [metric.name for metric in begun.generation.metrics if metric.ended] == ["ctr"]
    assert ledger.begin(fewer, DESCRIPTIONS).ended == ()
    with pytest.raises(SettingsChanged, match="metric ctr: it was taken out"):
        ledger.begin(PRINTS, DESCRIPTIONS)


def test_a_new_generation_starts_empty_and_the_old_one_stays_readable(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    ledger.commit(generation, commit(head, 4, TOTAL))
    begun = ledger.begin({"auc": "other"}, DESCRIPTIONS, new_generation=True)
    assert begun.created
    assert ledger.snapshot().panes == ()
    assert ledger.resolve(begun.generation, LOG, 0).next_offset == 0
    old = ledger.snapshot(lambda seen: [TOTAL], generation=generation.id)
    assert [row.piece.state for row in old.deltas] == [b"state"]
    assert [one.current for one in ledger.generations()] == [False, True]


def test_a_worker_of_an_older_generation_is_refused(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    ledger.begin(PRINTS, DESCRIPTIONS, new_generation=True)
    for write in (
        lambda: ledger.commit(generation, commit(head, 4)),
        lambda: ledger.resolve(generation, replace(LOG, number=1), 0),
        lambda: ledger.skip(generation, head, 20),
        lambda: ledger.raise_floor(generation, 0),
    ):
        with pytest.raises(SettingsChanged, match="generation 1 is closed"):
            write()
