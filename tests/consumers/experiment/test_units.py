"""Means and rates over units in a store: config, results, report, Prometheus, verify."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.experiment import GuardrailConfig
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.render.verdict_words import parted_rows
from streammetrics_consumers.server.exposition import exposition
from streammetrics_consumers.server.health import WatchedWorkers

from tests.consumers import small_config
from tests.consumers.small_config import EVENT, config, head
from tests.experiments.test_units import A, B, Shop

CONFIG = (
    head("orders.jsonl", '["control", "new"]')
    + """\
[metrics.revenue]
type = "UnitMean"
inputs = {{ values = "amount" }}
better = "higher"
[metrics.buyers]
type = "UnitRate"
inputs = {{ values = "amount" }}
[metrics.per_row]
type = "Ratio"
inputs = {{ numerators = "amount" }}
better = "higher"
[experiment]
control = "control"
decision = ["revenue", "per_row"]
mde = 1.0
{experiment}
"""
)


def write(folder: Path, arms: tuple[Shop, Shop], experiment: str = "") -> Path:
    """The config, and an hour of orders of both arms."""
    lines = []
    for name, shop in zip(("control", "new"), arms, strict=True):
        n = len(shop.users)
        for i, (user, value) in enumerate(zip(shop.users, shop.values, strict=True)):
            seconds = i * 3599 // n
            ts = f"1970-01-01T00:{seconds // 60:02d}:{seconds % 60:02d}Z"
            event = {"ts": ts, "variant": name, "user": f"u{user}", "amount": float(value)}
            lines.append((seconds, json.dumps(event)))
    lines.sort(key=lambda line: line[0])
    (folder / "orders.jsonl").write_text("\n".join(text for _, text in lines), encoding="utf-8")
    path = folder / "orders.toml"
    path.write_text(CONFIG.format(experiment=experiment), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The config of a store that has counted all orders."""
    path = write(tmp_path_factory.mktemp("orders"), (A, B))
    assert main(["run", str(path), "--until-end", "--no-serve"]) == 0
    return path


def results(
    counted: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, list[dict[str, object]]]:
    capsys.readouterr()
    store = str(counted.with_name("store.db"))
    assert main(["results", store, "--json", "--window", "total"]) == 0
    answer: dict[str, list[dict[str, object]]] = json.loads(capsys.readouterr().out)
    return answer


def test_a_store_has_the_mean_and_the_rate_over_users_of_each_variant(
    counted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {
        (row["metric"], row["view"], row["slice"]["variant"]): row  # type: ignore[index]
        for row in results(counted, capsys)["results"]
    }
    assert rows["revenue", "mean", "new"]["value"] == pytest.approx(B.sums.mean(), rel=1e-12)
    assert rows["revenue", "mean", "new"]["counts"]["units"] == 6_000  # type: ignore[index]
    buyers = rows["buyers", "rate", "control"]
    assert buyers["value"] == pytest.approx((A.sums > 0).mean(), rel=1e-12)
    assert buyers["interval"]["method"] == "wilson"  # type: ignore[index]


def test_an_experiment_decides_by_users_as_scipy_does(
    counted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = results(counted, capsys)["comparisons"]
    rows_by_metric = {row["metric"]: row for row in rows if not row["guardrail"]}
    revenue = rows_by_metric["revenue"]
    assert revenue["effect_size"] == pytest.approx(B.sums.mean() - A.sums.mean(), rel=1e-9)
    assert revenue["n"] == 12_000
    assert revenue["deff"] == 1.0


def test_the_report_and_verify_know_a_mean_over_users(
    counted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    store = str(counted.with_name("store.db"))
    assert main(["verify", str(counted)]) == 0
    with closing(Ledger.open(store)) as ledger:
        text = exposition(ledger, WatchedWorkers(dict, lambda: 1.0, lambda: 1.0)).decode()
    assert 'metric="revenue"' in text and 'view="mean"' in text
    assert main(["report", store, "--output", str(counted.with_name("report.html"))]) == 0
    assert "revenue" in counted.with_name("report.html").read_text(encoding="utf-8")


def test_rows_per_user_stand_beside_a_mean_per_row_on_every_surface(
    counted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = results(counted, capsys)["comparisons"]
    rows_by_metric = {row["metric"]: row for row in rows if not row["guardrail"]}
    assert rows_by_metric["revenue"]["rows_per_unit"] is None
    rows_per_unit = {"control": 24_397 / 6_000, "treatment": 29_278 / 6_000}
    assert rows_by_metric["per_row"]["rows_per_unit"] == {
        **rows_per_unit,
        "differ": True,
        "reason": "",
    }
    assert rows_by_metric["per_row"]["verdict"] not in ("better", "worse")
    sentence = "Rows per unit differ (4.07 and 4.88): an effect would be one on rows, not on units."
    assert str(rows_by_metric["per_row"]["sentence"]).endswith(sentence)
    store = str(counted.with_name("store.db"))
    assert main(["results", store, "--window", "total"]) == 0
    text = capsys.readouterr().out
    assert "rows per unit" in text and "4.07 and 4.88" in text
    assert sentence in " ".join(text.split())
    assert parted_rows(str(rows_by_metric["per_row"]["sentence"]))[1] == sentence
    assert main(["report", store, "--output", str(counted.with_name("report.html"))]) == 0
    report = counted.with_name("report.html").read_text(encoding="utf-8")
    assert "rows per unit 4.07 and 4.88" in report


REVENUE = '{ type = "UnitMean", inputs = { values = "amount" }, better = "%s" }'


@pytest.mark.parametrize(("way", "higher"), [("higher", True), ("lower", False)])
def test_the_rate_beside_a_mean_over_units_is_a_guardrail_by_default(
    way: str, higher: bool
) -> None:
    experiment = config(
        metrics="revenue = " + REVENUE % way,
        rest='[experiment]\ncontrol = "a"\ndecision = ["revenue"]\nmde = 1.0',
    ).experiments[""]
    assert experiment.guardrails == (GuardrailConfig("revenue.rate", 0.0, higher, required=False),)
    assert experiment.plan["guardrails"] == [["revenue.rate", 0.0, higher, False]]
    assert experiment.plan["mdes"] == {"revenue.rate": 0.01}


@pytest.mark.parametrize(
    ("keys", "metrics"),
    [
        ("watch_rates = false", "revenue = " + REVENUE % "higher"),
        ("", "revenue = " + REVENUE % "none"),
        ('guardrails = [{ metric = "revenue.rate", margin = 0.1 }]',
         "revenue = " + REVENUE % "higher"),
        ('guardrails = [{ metric = "buyers", margin = 0.1 }]', "revenue = " + REVENUE % "higher"
         + '\nbuyers = { type = "UnitRate", inputs = { values = "amount" } }'),
        ("", 'revenue = { type = "Ratio", inputs = { numerators = "amount" }, better = "higher" }'),
    ],
)  # fmt: skip
def test_a_rate_is_not_watched_twice_nor_without_a_direction(keys: str, metrics: str) -> None:
    experiment = config(
        metrics=metrics,
        rest=f'[experiment]\ncontrol = "a"\ndecision = ["revenue"]\nmde = 1.0\n{keys}',
    ).experiments[""]
    assert all(guardrail.required for guardrail in experiment.guardrails)
    assert len(experiment.guardrails) == ("guardrails" in keys)


def test_a_store_shows_the_rate_that_is_watched(
    counted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guardrails = [row for row in results(counted, capsys)["comparisons"] if row["guardrail"]]
    assert [(row["metric"], row["view"], row["required"]) for row in guardrails] == [
        ("revenue", "rate", False)
    ]
    assert guardrails[0]["verdict"] == "open"


@pytest.mark.parametrize("key", ["epochs", "[event] epoch"])
def test_epochs_beside_a_mean_over_units_are_refused_in_words(key: str) -> None:
    epochs = 'epochs = ["2026-01-01T00:00:00Z"]' if key == "epochs" else ""
    small_config.refused(
        "[experiment] epochs" if epochs else key,
        "no epochs, since revenue is a UnitMean: all rows of a unit belong to the epoch of its "
        "first one, which events do not say",
        metrics="revenue = " + REVENUE % "higher",
        event=EVENT if epochs else EVENT + 'epoch = "epoch"\n',
        rest=f'[experiment]\ncontrol = "a"\ndecision = ["revenue"]\n{epochs}',
    )


def test_a_mean_over_units_reads_the_user_of_the_events_and_the_unit_of_the_experiment() -> None:
    settings = config(
        metrics='revenue = { type = "UnitMean", inputs = { values = "amount" } }',
        rest='[experiment]\ncontrol = "a"\nunit = "device"\ndecision = ["revenue"]',
    )
    (metric,) = settings.metrics
    assert metric.inputs["units"].path == "user"
    watched = {
        experiment_metric.name: experiment_metric
        for experiment_metric in settings.experiment_metrics[""]
    }
    assert watched["experiment/revenue"].inputs["units"].path == "device"


def test_a_mean_over_units_has_no_groups_or_models_of_its_own() -> None:
    mean = '{ type = "UnitMean", inputs = { values = "amount" }, %s }'
    small_config.refused(
        "[metrics] revenue.cluster",
        "tells users apart by itself",
        metrics="revenue = " + mean % 'cluster = "groups"',
    )
