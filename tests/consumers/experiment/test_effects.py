"""Effects: with a covariate, without users of several variants, and on a real stream."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.query import Query, parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results_json import to_json

from tests.consumers.answer_rows import altered
from tests.consumers.experiment_run import CONFIG, run, write
from tests.consumers.obd_men import FILE, METRICS, TOML

CTR = 'ctr = {{ type = "Ratio", better = "higher" }}'
COVARIATE = 'covariates = { ctr = { metric = "before", theta = 0.9 } }'
BOTH = ("u3", 7)  # users of both variants: a text, and a number


def write_lines(path: Path, events: Iterable[object]) -> None:
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")


def with_covariate(folder: Path, experiment: str) -> Path:
    """A store of the small experiment, in which users clicked before nearly as they do now."""
    folder.mkdir()
    config = write(folder, f"mde = 0.05\n{experiment}")
    text = config.read_text(encoding="utf-8")
    before = 'before = { type = "Ratio", inputs = { numerators = "before" } }'
    config.write_text(text.replace("[metrics]", f"[metrics]\n{before}"), encoding="utf-8")
    stream = folder / "clicks.jsonl"
    events = [json.loads(line) for line in stream.read_text(encoding="utf-8").splitlines()]
    for i, event in enumerate(events):
        event["before"] = event["label"] if i // 2 % 10 else 1 - event["label"]
    write_lines(stream, events)
    return run(config)


def comparison(store: Path, window: str = "total", metric: str | None = None) -> dict[str, object]:
    with closing(Ledger.open(str(store))) as ledger:
        query = parse_query(window, metric=metric)
        comparisons = json.loads(to_json(read_results(ledger, query)))["comparisons"]
    row = comparisons[-1]
    assert isinstance(row, dict)
    return row


def test_the_covariate_is_taken_out_of_every_window_and_of_looks(tmp_path: Path) -> None:
    plain = with_covariate(tmp_path / "plain", "")
    cuped_store = with_covariate(tmp_path / "found", COVARIATE)
    for window in ("total", "all"):
        of_plain, of_found = comparison(plain, window), comparison(cuped_store, window)
        assert of_found["std_error"] < 0.7 * of_plain["std_error"]  # type: ignore[operator]
        assert (of_plain["method"], of_found["method"]) == ("newcombe", "cuped")
        assert (
            comparison(cuped_store, window, metric="ctr") == of_found
        )  # which reads what it needs
    assert comparison(cuped_store)["looks"] == 1
    with closing(Ledger.open(str(cuped_store))) as ledger:
        results = read_results(ledger, parse_query())
    assert "ctr is adjusted for the pre-exposure covariate before" in " ".join(results.notes)
    assert {row.metric for row in results.rows} == {"before", "ctr"}
    assert [row.contrast.metric for row in results.comparisons] == ["ctr"]
    config = cuped_store.with_name("clicks.toml")  # another slope is another plan
    config.write_text(config.read_text(encoding="utf-8").replace("0.9", "0.8"), encoding="utf-8")
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 3


def with_users_of_both(folder: Path, cluster: str, word: str, *, has_mixed: bool) -> ResultsAnswer:
    """The results of forty users, of whom two may be in both variants."""
    events = []
    for i in range(800):
        user: str | int = f"u{i % 40}" if i % 40 != 7 else 7
        is_mixed = user in BOTH
        if is_mixed and not has_mixed:
            continue
        variant = ("old", "new")[(i // 40 if is_mixed else i) % 2]
        event = {"ts": f"1970-01-01T00:{i // 20:02d}:00Z", "variant": variant, "user": user}
        events.append({**event, "label": i // 40 % 3 % 2, "score": i * 37 % 101 / 101})
    folder.mkdir()
    write_lines(folder / "clicks.jsonl", events)
    text = CONFIG.replace(CTR, 'ctr = {{ type = "Ratio" }}\ngauc = {{ type = "GroupedAUC" }}')
    text = text.replace('user = "user"', 'user = "user"\nscore = "score"')
    text = text.replace('decision = ["ctr"]', 'decision = ["gauc"]')
    plan = f'mde = 0.05\ncluster = "{cluster}"\non_several_variants = "{word}"'
    config = folder / "clicks.toml"
    config.write_text(text.format(experiment=plan), encoding="utf-8")
    with closing(Ledger.open(str(run(config)))) as ledger:
        return read_results(ledger, Query())


@pytest.mark.parametrize("cluster", ["groups", "none"])
def test_users_of_several_variants_are_ignored_and_stay_stored(
    tmp_path: Path, cluster: str
) -> None:
    dropped = with_users_of_both(tmp_path / "dropped", cluster, "drop", has_mixed=True)
    keep_answer = with_users_of_both(tmp_path / "kept", cluster, "keep", has_mixed=True)
    clean = with_users_of_both(tmp_path / "clean", cluster, "keep", has_mixed=False)
    (drop_rows,), (clean_rows,), (all_,) = (
        [dumps(altered(row, sentence="")) for row in answer.comparisons]
        for answer in (dropped, clean, keep_answer)
    )
    assert drop_rows == clean_rows and drop_rows != all_
    mixed = dropped.contamination
    assert mixed is not None and (mixed.units, mixed.share, mixed.dropped) == (2.0, 0.05, True)
    assert "2 units (5 % of all) were seen in several variants and dropped." in (
        dropped.comparisons[0].finding.sentence
    )
    rows = [(row.metric, row.value, row.digest) for row in dropped.rows]
    assert rows == [(row.metric, row.value, row.digest) for row in keep_answer.rows]


OBD_MEN = """\
[experiment]
control = "random"
unit = "event_id"
on_several_variants = "keep"
decision = ["ctr"]
cluster = "none"
horizon = 10000
baseline = 0.00575
epochs = []
"""


def test_obd_men_convinces_at_one_look_and_not_at_all_looks(data: Path, tmp_path: Path) -> None:
    source = f'kind = "file"\npath = "{data / FILE}"'
    config = tmp_path / "obd.toml"
    text = TOML.format(source=source, metrics=METRICS, store="obd.db", interval_s=5)
    config.write_text(text + OBD_MEN, encoding="utf-8")
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    with closing(Ledger.open(str(tmp_path / "obd.db"))) as ledger:
        answer = json.loads(to_json(read_results(ledger, Query())))
    (row,) = answer["comparisons"]
    assert f"{row['pvalue']:.3f} {row['anytime_pvalue']:.4f}" == "0.031 0.6073"
    assert row["effect_size"] == 0.0023
    assert row["sentence"].startswith("We cannot tell yet")
    assert answer["srm"]["counts"] == {"bts": 10_000, "random": 10_000}
