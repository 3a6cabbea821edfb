"""The ledger: what goes on, is refused or starts anew when the settings change."""

from __future__ import annotations

from dataclasses import replace

import pytest
from streammetrics_consumers.ledger.descriptions import plan_that_stays
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import SHOWN, Changes, Generation, Requested

from tests.consumers.ledger.small_ledger import (
    DESCRIPTIONS,
    LOG,
    PRINTS,
    TOTAL,
    WITH_KS,
    commit,
)
from tests.consumers.stores import stored

pytestmark = pytest.mark.usefixtures("each_store")


def test_a_changed_metric_is_refused_and_the_difference_named(
    ledger: Ledger, generation: Generation
) -> None:
    changed = {
        **DESCRIPTIONS,
        "auc": {
            "type": "HistogramAUC",
            "settings": {"resolution": 7},
            "n": "x" * 78,
            "o": "y" * 79,
        },
    }
    with pytest.raises(SettingsChanged) as caught:
        ledger.begin({**PRINTS, "auc": "other"}, changed)
    assert caught.value.exit_code == 3
    long = f'n is new ("{"x" * 78}"), o is new ("{"y" * 78}…), '
    assert caught.value.differences == (f"metric auc: {long}settings.resolution was 8, is 7",)
    assert ledger.generation() == generation


def test_an_added_metric_starts_where_the_heads_stand_and_the_others_go_on(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    ledger.commit(generation, commit(head, 4, TOTAL))
    begun = ledger.begin(*WITH_KS)
    assert (begun.changes, begun.created) == (Changes(added=("ks",)), False)
    assert begun.generation.id == generation.id
    starts = {metric.name: metric.start_offsets for metric in begun.generation.metrics}
    assert starts == {"auc": {}, "ctr": {}, "ks": {head.id: 14}}
    restart = ledger.begin(*WITH_KS)
    assert (restart.generation, restart.changes.added, restart.created) == (
        begun.generation,
        (),
        False,
    )
    with pytest.raises(SettingsChanged, match="have changed"):  # it does not know what was added
        ledger.commit(generation, commit(ledger.heads(generation)[0], 4, TOTAL))
    assert ledger.snapshot().counters.rows == 4


def test_a_metric_that_was_dropped_ends_and_does_not_come_back_unasked(
    ledger: Ledger, generation: Generation
) -> None:
    fewer = {"auc": PRINTS["auc"]}
    for begin in (ledger.begin, ledger.compare):
        with pytest.raises(SettingsChanged, match=r"or end it with --drop-metric ctr") as caught:
            begin(fewer, DESCRIPTIONS)
        assert caught.value.exit_code == 3
    assert ledger.generation() == generation
    begun = ledger.begin(fewer, DESCRIPTIONS, requested=Requested(drop=("ctr",)))
    assert begun.changes.ended == ("ctr",)
    assert [metric.name for metric in begun.generation.metrics if metric.ended] == ["ctr"]
    assert ledger.begin(fewer, DESCRIPTIONS).changes.ended == ()
    assert ledger.begin(fewer, DESCRIPTIONS, requested=Requested(drop=("ctr",))).changes.ended == ()
    with pytest.raises(SettingsChanged, match=r"Resume it with --resume-metric ctr"):
        ledger.begin(PRINTS, DESCRIPTIONS)


def test_what_cannot_be_done_to_a_metric_is_refused(ledger: Ledger, generation: Generation) -> None:
    for prints, requested, message in (
        (PRINTS, Requested(drop=("ks",)), "--drop-metric ks: the store does not count"),
        (PRINTS, Requested(drop=("ctr",)), "--drop-metric ctr: it is still in the config"),
        (
            PRINTS,
            Requested(resume=("ks",)),
            "--resume-metric ks: the store does not count",
        ),
        (
            {"auc": PRINTS["auc"]},
            Requested(("ctr",), ("ctr",)),
            "--resume-metric ctr: it is not in the config",
        ),
    ):
        with pytest.raises(SettingsChanged, match=message):
            ledger.begin(prints, DESCRIPTIONS, requested=requested)
    assert ledger.generation() == generation


def test_a_family_of_metrics_ends_by_its_name(ledger: Ledger) -> None:
    names = ("auc", "experiment/auc", "experiment/units")
    about = {name: {"type": "Ratio"} for name in names}
    ledger.begin(dict.fromkeys(names, "p"), about)
    with pytest.raises(SettingsChanged, match="--drop-metric experiment"):
        ledger.begin({"auc": "p"}, about)
    begun = ledger.begin({"auc": "p"}, about, requested=Requested(drop=("experiment",)))
    assert begun.changes.ended == names[1:]
    restart = ledger.begin(
        dict.fromkeys(names, "p"), about, requested=Requested(resume=("experiment",))
    )
    assert restart.changes.resumed == names[1:]


def test_a_metric_goes_on_with_a_hole_from_its_last_state_to_where_the_heads_stand(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    fewer, drop = {"auc": PRINTS["auc"]}, Requested(drop=("auc",))
    first = ledger.commit(generation, commit(head, 4, TOTAL))
    now = ledger.begin({"ctr": PRINTS["ctr"]}, DESCRIPTIONS, requested=drop).generation
    second = ledger.commit(now, commit(first, 6))
    begun = ledger.begin(PRINTS, DESCRIPTIONS, requested=Requested(resume=("auc",)))
    assert begun.changes.resumed == ("auc",)
    (auc,) = [metric for metric in begun.generation.metrics if metric.name == "auc"]
    assert (auc.ended, auc.holes) == (False, {head.id: ((14, 20),)})
    assert [auc.counts(head.id, offset) for offset in (13, 14, 19, 20)] == [
        True,
        False,
        False,
        True,
    ]
    assert dict(auc.description) == DESCRIPTIONS["auc"]
    # Whoever starts again asks again; another description for display keeps the hole.
    shown = {**DESCRIPTIONS, "auc": {**DESCRIPTIONS["auc"], SHOWN: {"x": 1}}}
    restart = ledger.begin(PRINTS, shown, requested=Requested(resume=("auc",)))
    assert restart.changes.resumed == ()
    third = ledger.commit(restart.generation, commit(second, 5, TOTAL))
    now = ledger.begin({"ctr": PRINTS["ctr"]}, shown, requested=drop).generation
    ledger.commit(now, commit(third, 5))
    twice = ledger.begin(PRINTS, shown, requested=Requested(resume=("auc",))).generation
    (auc,) = [metric for metric in twice.metrics if metric.name == "auc"]
    assert auc.holes == {head.id: ((14, 20), (25, 30))}
    assert fewer.keys() < PRINTS.keys()


def declared(*variants: str) -> tuple[dict[str, str], dict[str, dict[str, object]]]:
    """Two metrics of a config that declares these variants; none for any."""
    about: dict[str, object] = {
        "type": "Ratio",
        "variant": ["variant", sorted(variants) or None],
        SHOWN: {"variants": list(variants)},
    }
    return {name: "-".join(variants) for name in PRINTS}, dict.fromkeys(PRINTS, about)


def test_more_variants_go_on_and_are_what_the_store_declares_from_then_on(ledger: Ledger) -> None:
    assert ledger.compare(*declared("b", "a")) is None
    first = ledger.begin(*declared("b", "a")).generation
    head = ledger.resolve(first, LOG, 10)
    comparison = ledger.compare(*declared("b", "c", "a"))
    assert comparison is not None and (comparison.changes.variants, comparison.created) == (
        ("c",),
        False,
    )
    assert ledger.generation() == first
    begun = ledger.begin(*declared("b", "c", "a"))
    assert (begun.changes.variants, begun.changes.added, begun.changes.ended, begun.created) == (
        ("c",),
        (),
        (),
        False,
    )
    now = begun.generation
    assert (now.id, now.revision) == (first.id, first.revision + 1)
    assert {metric.variants for metric in now.metrics} == {("b", "c", "a")}
    restart = ledger.begin(*declared("b", "c", "a"))
    assert (restart.changes.variants, restart.generation) == ((), now)
    # Whoever comes second counts no more.
    with pytest.raises(SettingsChanged, match="metrics or variants of generation 1 have changed"):
        ledger.commit(first, commit(head, 4))
    with pytest.raises(SettingsChanged, match=r'variant was .*"c".*, is '):
        ledger.begin(*declared("b", "a"))


def test_a_variant_that_is_taken_out_or_named_anew_is_refused(ledger: Ledger) -> None:
    ledger.begin(*declared("a", "b"))
    before = ledger.generation()
    for now in (("a",), ("a", "c"), ()):
        for ask in (ledger.begin, ledger.compare):
            with pytest.raises(SettingsChanged, match=r'metric auc: variant was .*\["a", "b"\]'):
                ask(*declared(*now))
    assert ledger.generation() == before
    prints, about = declared("a", "b", "c")  # more variants excuse no other change
    descriptions = {
        name: {**description, "type": "HistogramAUC"} for name, description in about.items()
    }
    with pytest.raises(SettingsChanged) as caught:
        ledger.begin(prints, descriptions)
    assert caught.value.differences[0] == 'metric auc: type was "Ratio", is "HistogramAUC"'


def test_an_experiment_is_known_by_its_plan_without_what_may_be_appended() -> None:
    plan = {"control": "a", "epochs": ["1970-01-01T00:00:00Z"], "shares": [], "horizon": None}
    assert plan_that_stays(plan) == {"control": "a", "horizon": None}


def test_a_new_generation_starts_empty_and_the_old_one_stays_readable(
    ledger: Ledger, generation: Generation, head: Head
) -> None:
    ledger.commit(generation, commit(head, 4, TOTAL))
    begun = ledger.begin({"auc": "other"}, DESCRIPTIONS, new_generation=True)
    assert begun.created
    assert ledger.snapshot().panes == ()
    assert ledger.resolve(begun.generation, LOG, 0).next_offset == 0
    assert [state for _, state in stored(ledger, generation.id).rows] == [b"state"]
    assert [entry.current for entry in ledger.generations()] == [False, True]


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
