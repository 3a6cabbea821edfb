"""The name of an experiment keeps it apart from all others, whatever it is: its counts, its looks,
and its end."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.query.experiment_plan import declared, experiments_of
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results

from tests.consumers.folded import counted
from tests.consumers.many_experiments import DECIDES, TWO
from tests.consumers.memory_run import Run
from tests.consumers.process.test_experiment_lifecycle import N, go_on, metrics, started, states

# Letters of both cases, digits alone, dashes alone, the longest, and names of metrics.
NAMES = ("a", "A", "0", "007", "-", "--", "_", "units", "ctr", "auc", "x" * 64, "x" * 63 + "-")
WITHOUT = f"[experiment]\n{DECIDES}"


def entry(name: str) -> str:
    """Experiments whose plans are equal."""
    return f'[experiments.{name}]\n{DECIDES}{TWO}variant = "exps.plain"\n'


def looks(run: Run) -> dict[str, int]:
    """The number of looks at each experiment."""
    with closing(Ledger.open(run.config.store.url)) as ledger:
        generation = ledger.generation()
        designs = {name: declared(generation, name) for name in experiments_of(generation)}
        prints = {
            name: design.fingerprint for name, design in designs.items() if design is not None
        }
        assert len(set(prints.values())) == len(designs)

        def count(now: StoreView) -> dict[str, int]:
            return {name: now.looks(fingerprint) for name, fingerprint in prints.items()}

        return view(ledger, count)


def test_names_at_the_limits_keep_experiments_apart(tmp_path: Path) -> None:
    run = started(tmp_path, WITHOUT + "".join(map(entry, NAMES)))
    by_metric = [
        {key.rpartition("/")[2]: state for key, state in states(run, name).items()}
        for name in NAMES
    ]
    assert by_metric == [by_metric[0]] * len(NAMES) and set(by_metric[0]) == {"ctr", "units"}
    before = looks(run)
    assert before.keys() == {"", *NAMES} and min(before.values()) > 0
    with closing(Ledger.open(run.config.store.url)) as ledger:
        plain = counted(ledger).states["experiment/ctr", 0, None]
        assert plain not in by_metric[0].values()
        for name in NAMES:
            assert read_results(ledger, Query(experiment=name)).comparisons
    ended = ("A", "007", "--", "units", "ctr", "x" * 64)
    left = [name for name in NAMES if name not in ended]
    go_on(run, WITHOUT + "".join(map(entry, left)), drop=tuple(f"experiment/{n}" for n in ended))
    assert [name for name in NAMES if all(m.ended for m in metrics(run, name))] == [*ended]
    assert not any(metric.ended for metric in metrics(run, "")), "that without a name goes on"
    after = looks(run)
    assert {name for name in before if after[name] == before[name]} == {*ended}


def test_a_look_at_one_of_two_equal_plans_is_none_at_the_other(tmp_path: Path) -> None:
    run = started(tmp_path, entry("one"))
    before = looks(run)["one"]
    go_on(run, entry("one") + entry("other"))
    after = looks(run)
    assert after["one"] > before >= 1 and after["other"] >= 1
    go_on(run, entry("other"), drop=("experiment/one",))
    assert looks(run)["one"] == after["one"] and looks(run)["other"] > after["other"]
    assert states(run, "one") != states(run, "other")


def test_an_experiment_with_another_name_is_another_one(tmp_path: Path) -> None:
    run = started(tmp_path, entry("one"))
    before = states(run, "one"), looks(run)["one"]
    go_on(run, entry("other"), 0, drop=("experiment/one",))
    assert looks(run)["other"] == 0, "it has none of the former one's"
    go_on(run, entry("other"))
    assert (states(run, "one"), looks(run)["one"]) == before
    assert {tuple(metric.start_offsets.values()) for metric in metrics(run, "other")} == {(N,)}
