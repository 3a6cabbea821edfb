"""An epoch that nobody foresaw: it is added to an experiment that goes on, or refused."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.looks import count_looks
from streammetrics_consumers.ledger.schema import retry
from streammetrics_consumers.ledger.settings import counted_to_ms, starts_after
from streammetrics_consumers.query.experiment_plan import declared
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results

from tests.consumers.experiment_run import CONFIG, run, write

LAST = "1970-01-01T01:29:57.300Z"  # of the newest event
NEXT = "1970-01-01T01:29:57.301Z"
EQUAL = "{ old = 1, new = 1 }"


def appended(config: Path, experiment: str, at: str = "1970-01-01T01:45:00.000Z") -> Path:
    """The config, and 100 events more at that time."""
    path = config.with_name("clicks.jsonl")
    lines = path.read_text(encoding="utf-8").splitlines()[:100]
    more = [json.dumps({**json.loads(line), "ts": at}) for line in lines]
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(more) + "\n")
    config.write_text(CONFIG.format(experiment=experiment), encoding="utf-8")
    return config


def tried(config: Path) -> int:
    return main(["run", str(config), "--until-end", "--no-serve"])


def looks(store: Path) -> tuple[str, int, tuple[str, ...]]:
    with closing(Ledger.open(str(store))) as ledger:
        found = declared(ledger.generation())
        assert found is not None
        n = ledger.store.read(lambda c: count_looks(c, 1, found.fingerprint))
    return found.fingerprint, n, found.plan.epochs


@pytest.mark.slow
def test_an_epoch_after_all_that_was_counted_is_added_and_the_looks_go_on(tmp_path: Path) -> None:
    store = run(write(tmp_path))
    fingerprint, before, _ = looks(store)
    config = appended(
        tmp_path / "clicks.toml",
        f'mde = 0.05\nepochs = ["{NEXT}"]\nshares = [{EQUAL}, {{ old = 1, new = 9 }}]',
    )
    assert main(["run", str(config), "--check"]) == 0
    run(config)
    assert looks(store) == (fingerprint, before + 1, ("start", NEXT))
    with closing(Ledger.open(str(store))) as ledger:
        results = read_results(ledger, Query())
    (found,) = results.comparisons
    assert found.looks == before + 1 and found.n == results.rows_read  # of both epochs
    assert main(["verify", str(config)]) == 0


LATER = '"1970-01-01T01:31:00Z", "1970-01-01T02:00:00Z"'
TUNED = "horizon = 1000\nbaseline = 0.3"
REFUSED = {  # by the plan that was counted: others, and what is said of them
    "mde = 0.05": [
        (f'mde = 0.05\nepochs = ["{LAST}"]', "starts after all that was counted"),
        (f'mde = 0.06\nepochs = ["{NEXT}"]', "experiment.mde was 0.05"),
        (
            f'mde = 0.05\nepochs = ["{NEXT}"]\nshares = [{{ old = 2, new = 1 }}, {EQUAL}]',
            "experiment.shares was",
        ),
    ],
    f'mde = 0.05\nepochs = ["{NEXT}"]': [
        ("mde = 0.05", "experiment.epochs was"),
        (f"mde = 0.05\nepochs = [{LATER}]", "experiment.epochs was"),
    ],
    TUNED: [
        (
            f'{TUNED}\nepochs = ["{NEXT}"]\nshares = [{EQUAL}, {{ old = 2, new = 1 }}]',
            "experiment.epochs was",
        ),
    ],
}


@pytest.mark.parametrize("before", REFUSED, ids=["plain", "with an epoch", "tuned"])
def test_whatever_else_would_change_what_was_seen_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: str
) -> None:
    run(write(tmp_path, before))
    for after, said in REFUSED[before]:
        capsys.readouterr()
        assert tried(appended(tmp_path / "clicks.toml", after)) == 3, after
        assert said in " ".join(capsys.readouterr().err.split())


def test_a_horizon_stays_as_it_was_tuned_where_shares_are_the_same(tmp_path: Path) -> None:
    run(write(tmp_path, TUNED))
    shares = f"shares = [{EQUAL}, {{ old = 3, new = 3 }}]"
    assert tried(appended(tmp_path / "clicks.toml", f'{TUNED}\nepochs = ["{NEXT}"]\n{shares}')) == 0


def test_after_a_retry_all_of_the_last_window_counts_as_seen(tmp_path: Path) -> None:
    with closing(Ledger.open(str(run(write(tmp_path))))) as ledger:
        engine = ledger.store.engine
        with engine.begin() as connection:
            assert counted_to_ms(connection, 1) == 5_397_300
            connection.execute(retry.insert().values(generation=1, created_ms=0, note=""))
            assert counted_to_ms(connection, 1) == 7_200_000
            assert counted_to_ms(connection, 2) is None
    assert not starts_after("1970-01-01T02:00:00Z", 7_200_000)
    assert starts_after("1970-01-01T02:00:00.001Z", 7_200_000)
