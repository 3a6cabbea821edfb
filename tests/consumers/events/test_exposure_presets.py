"""The exposures of other software are read as the page on exposures configures them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.exposure_presets import PRESETS
from streammetrics_consumers.config.exposures import ARM, EXPERIMENT, HAS_UNIT, UNIT
from streammetrics_consumers.events.decoder import Decoded, Decoder
from streammetrics_consumers.events.kinds import exposure_kind
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.model.times import iso_to_ms

from streammetrics import hash_ids
from tests.consumers.messages import arrow
from tests.consumers.small_config import chunk, config
from tests.requirements import ROOT

SAMPLES: Final = Path(__file__).with_name("exposure_samples")
PAGE: Final = (ROOT / "docs" / "exposures.md").read_text(encoding="utf-8")
BASE, *_ = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
TITLES: Final = {
    "openfeature": "OpenFeature",
    "growthbook": "GrowthBook",
    "flagr": "Flagr",
    "posthog": "PostHog",
}
EXPOSED_MS, NEXT_MS, BOUGHT_MS = (
    int(time)
    for time in iso_to_ms(
        ["2026-06-25T12:00:00.250Z", "2026-06-25T12:00:01Z", "2026-06-25T12:00:03Z"]
    )[0]
)


class Exposure(NamedTuple):
    """What an exposure says."""

    unit: str
    experiment: str
    arm: str
    time_ms: int


def configs(preset: str) -> list[str]:
    """The configs of the page under the title of a preset, as texts."""
    section = PAGE.partition(f"\n### {TITLES[preset]}\n")[2].partition("\n### ")[0]
    blocks = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    return [block if "[source]" in block else BASE + block for block in blocks]


def read(settings: Config, lines: Sequence[bytes], topic: str) -> Decoded:
    partition = Partition("test", topic, "id", 0)
    return Decoder(settings).decode(replace(chunk(list(lines)), partition=partition))


def exposures_of(decoded: Decoded, settings: Config, units: Sequence[str]) -> list[Exposure]:
    """The exposures among decoded events. units: the names of their units, which are hashes."""
    assert decoded.kinds is not None
    hashes = np.asarray(hash_ids(list(units))).view(np.uint64).tolist()
    names = dict(zip(hashes, units, strict=True))
    column = decoded.columns[UNIT]
    assert isinstance(column, np.ndarray)
    experiments, arms = decoded.keys[EXPERIMENT], decoded.keys[ARM]
    return [
        Exposure(
            names[int(column.view(np.uint64)[i])],
            str(experiments.values[experiments.codes[i]]),
            str(arms.values[arms.codes[i]]),
            int(decoded.times_ms[i]),
        )
        for i in np.flatnonzero(decoded.kinds == exposure_kind(settings)).tolist()
    ]


FIRST: Final = Exposure("user-123", "checkout-button", "treatment", EXPOSED_MS)


@pytest.mark.parametrize(
    ("preset", "first", "arm", "n_skipped"),
    [
        ("openfeature", FIRST, "off", 1),
        ("growthbook", FIRST._replace(arm="1"), "0", 0),
        ("flagr", FIRST._replace(time_ms=EXPOSED_MS - 250), "off", 2),
        ("posthog", FIRST, "true", 1),
    ],
)
def test_the_sample_of_a_preset_has_its_exposures_beside_an_event_of_a_shop(
    preset: str, first: Exposure, arm: str, n_skipped: int
) -> None:
    text = configs(preset)[0].replace('topic = ["shop", "exposures"]', 'topic = ["shop", "flags"]')
    text = re.sub(r'\ntopic = "[\w-]+"\n', '\ntopic = "flags"\n', text)
    settings = config(text)
    lines = (SAMPLES / f"{preset}.jsonl").read_bytes().splitlines()
    if preset == "posthog":
        decoded = read(settings, lines, "events.jsonl")
        bought, n_bought = decoded, len(decoded) - 1
    else:
        decoded, bought, n_bought = (
            read(settings, lines[:-1], "flags"),
            read(settings, lines[-1:], "shop"),
            0,
        )
    assert (decoded.refused, decoded.skipped) == ((), n_skipped)
    second = Exposure("user-456", "new-search", arm, NEXT_MS)
    assert exposures_of(decoded, settings, ["user-123", "user-456"]) == [first, second]
    assert bought.kinds is not None and bought.refused == ()
    assert (int(bought.kinds[n_bought]), int(bought.times_ms[n_bought])) == (0, BOUGHT_MS)
    has_unit = bought.columns[HAS_UNIT]
    assert isinstance(has_unit, np.ndarray) and has_unit[n_bought]
    revenue = bought.columns[settings.metrics[0].inputs["values"].column]
    assert isinstance(revenue, np.ndarray) and revenue[n_bought] == 12.5


def test_every_preset_has_a_sample_and_a_section_of_the_page_and_a_row_of_its_table() -> None:
    assert {path.stem for path in SAMPLES.glob("*.jsonl")} == set(PRESETS) == set(TITLES)
    lines = [line for line in PAGE.splitlines() if line.startswith("| `")]
    rows = {line.split("`")[1]: line for line in lines[1:]}
    assert list(rows) == list(PRESETS)
    for preset, format_ in PRESETS.items():
        assert configs(preset)
        keys = [format_.mark.field, format_.mark.equals]
        keys += [format_.unit, format_.experiment, format_.arm, format_.time]
        assert re.findall(r"`([^`]+)`", rows[preset])[1:] == keys


def test_every_config_of_the_page_is_good() -> None:
    for preset in PRESETS:
        for text in configs(preset):
            topics = re.findall(r'\ntopic = "([\w-]+)"\n', text)
            names = ", ".join(f'"{topic}"' for topic in ["shop", *topics])
            settings = config(re.sub(r"topic = \[.*\]", f"topic = [{names}]", text))
            assert settings.exposures is not None and settings.exposures.preset == preset


def test_keys_of_the_config_replace_those_of_a_preset() -> None:
    text = f'{BASE}[exposures]\npreset = "growthbook"\ntopic = "exposures"\nunit = "who"\n'
    exposures = config(f'{text}time = "at"\ntime_unit = "s"\n').exposures
    assert exposures is not None
    assert (exposures.mark.plain, exposures.unit, exposures.time, exposures.time_unit) == (
        {"topic": "exposures"}, "who", "at", "s")  # fmt: skip
    assert (exposures.experiment, exposures.arm) == ("experiment_id", "variation_id")
    flagr = f'{BASE}[exposures]\npreset = "flagr"\ntopic = "exposures"\n'
    conditions = config(flagr).exposures
    assert conditions is not None
    assert [condition.path for condition in conditions.where] == [
        "payload.recordSource",
        "payload.variantKey",
    ]
    none = config(f"{flagr}where = {{}}\n").exposures
    assert none is not None and none.where == ()


def test_names_with_dots_are_read_from_columns_too() -> None:
    text = f'{BASE}[exposures]\npreset = "openfeature"\n'.replace(
        'topic = ["shop", "exposures"]', 'topic = "shop"\nformat = "arrow"'
    )
    settings = config(text)
    attributes = {
        "feature_flag.key": "new-search",
        "feature_flag.result.variant": "on",
        "feature_flag.context.id": "user-456",
    }
    row = {
        "name": "feature_flag.evaluation",
        "timestamp": "2026-06-25T12:00:01Z",
        "attributes": attributes,
    }
    nowhere = {**row, "attributes": {**attributes, "feature_flag.result.variant": None}}
    (decoded,) = Decoder(settings).pieces(chunk([arrow([row, nowhere])]))
    assert (decoded.refused, decoded.skipped) == ((), 1)
    assert exposures_of(decoded, settings, ["user-456"]) == [
        Exposure("user-456", "new-search", "on", NEXT_MS)
    ]


def test_evaluations_of_flagr_in_the_same_log_are_other_events() -> None:
    source = '[source]\nkind = "file"\npath = "frames.jsonl"\n'
    text = re.sub(r"\[source\].*?\n\n", source, BASE, flags=re.DOTALL)
    settings = config(f'{text}[exposures]\npreset = "flagr"\n')
    lines = (SAMPLES / "flagr.jsonl").read_bytes().splitlines()
    decoded = read(settings, lines, "frames.jsonl")
    assert decoded.kinds is not None
    assert decoded.kinds.tolist() == [1, 1, 0]
    assert [(entry.offset, entry.field) for entry in decoded.refused] == [(2, "ts")]


def test_frames_of_flagr_that_are_texts_are_refused_with_the_reason() -> None:
    settings = config(f'{BASE}[exposures]\npreset = "flagr"\ntopic = "exposures"\nwhere = {{}}\n')
    decoded = read(
        settings, [b'{"payload": "{\\"flagKey\\": \\"a\\"}", "encrypted": false}'], "exposures"
    )
    (refused,) = decoded.refused
    assert refused.field == "payload.timestamp"
    assert "expected an object on the way to the field" in refused.detail
