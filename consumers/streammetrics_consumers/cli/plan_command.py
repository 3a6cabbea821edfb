"""The command `plan`: how many units a test needs, from numbers, a state file or a store."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from streammetrics import Accumulator, StreamMetricsError
from streammetrics.experiments import Gate, Plan, PlannedTest, PlannedUnits, plan_test
from streammetrics_consumers.cli.arguments import PLANNED, Arguments, UsageError
from streammetrics_consumers.cli.exit_codes import DONE
from streammetrics_consumers.model.generation import experiment_set
from streammetrics_consumers.query.json_kinds import Json

_QUANTITIES: Final = ("rate", "mean", "ratio", "auc")
_MOST_NAMES: Final = 10  # that an error lists
_POINT: Final = "plan_test("


def plan(arguments: Arguments) -> int:
    """`plan`: a test for the numbers, or for each decision metric of an experiment."""
    tests = list(_tests(arguments))
    if arguments.is_on("json"):
        from streammetrics_consumers.query.encoding import dumps

        sys.stdout.write(dumps({"format": FORMAT, "tests": [*map(_json, tests)]}).decode())
    else:
        title = f"{PlannedTest.__name__}: "
        sys.stdout.write("\n\n".join(str(test).removeprefix(title) for test in tests) + "\n")
    return DONE


FORMAT: Final = "streammetrics-plan/1"


def _tests(arguments: Arguments) -> Iterator[PlannedTest]:
    path, config, store = (arguments.text(name) for name in ("state", "config", "store"))
    sources = [f"--{name}" for name in (*_QUANTITIES, "state") if name in arguments.given]
    sources += ["--config or --store"] if config or store else []
    if len(sources) != 1:
        raise UsageError(
            "plan: expected one of --rate, --mean, --ratio, --auc, --state, and --config or "
            f"--store, got {' and '.join(sources) or 'none'}; such as: streammetrics plan "
            "--rate 0.05 --effect 2% --units-per-day 20000"
        )
    if config or store:
        yield from _store_tests(arguments, config, store)
    elif path is None:
        yield _planned(arguments, None, None)
    else:
        from streammetrics_consumers.query.state_files import read_state

        state, view = _chosen(read_state(Path(path)), arguments.text("metric"))
        yield _planned(arguments, state, view)


def _chosen(state: Accumulator, name: str | None) -> tuple[Accumulator, str | None]:
    """One metric of the state of a file, and the view that `name` means."""
    from streammetrics_consumers.query.state_files import plain_states

    states = {".".join(plain.path): plain.state for plain in plain_states(state)}
    if "" in states:
        return states[""], name
    if name is None and len(states) == 1:
        return next(iter(states.values())), None
    if name is None:
        raise UsageError(f"--metric: expected one of {_names_text(states)}, got none; name one")
    metric, view = _named(name, states)
    return states[metric], view


def _names_text(names: Collection[str]) -> str:
    first = sorted(names)[:_MOST_NAMES]
    suffix = f" and {len(names) - len(first):,} more" if len(names) > len(first) else ""
    return (", ".join(first) or "no metric") + suffix


def _named(watched: str, names: Collection[str]) -> tuple[str, str | None]:
    """The metric and the view of a name; the longest metric if several match."""
    matches = [name for name in names if watched == name or watched.startswith(f"{name}.")]
    if not matches:
        raise UsageError(
            f"--metric: expected one of {_names_text(names)}, or its view, got {watched!r}; "
            "correct it"
        )
    metric = max(matches, key=len)
    return metric, watched[len(metric) + 1 :] or None


def _store_tests(
    arguments: Arguments, config_path: str | None, store: str | None
) -> Iterator[PlannedTest]:
    from streammetrics_consumers.config.config import load_config
    from streammetrics_consumers.ledger.ledger import Ledger
    from streammetrics_consumers.ledger.store_view import view as read
    from streammetrics_consumers.process.experiment_gates import counted_metric, plan_of_config
    from streammetrics_consumers.query.experiment_plan import declared

    design: Plan | None = None
    experiment_name = arguments.text("experiment")
    if config_path is not None:
        config = load_config(config_path)
        store = store or config.store.url
        if experiment_name is not None and experiment_name not in config.experiments:
            raise UsageError(
                f"--experiment: expected one of {_names_text([*filter(None, config.experiments)])},"
                f" which the config has, got {experiment_name!r}; correct it"
            )
        if (experiment_name or "") in config.experiments:
            design = plan_of_config(config.experiments[experiment_name or ""])
    assert store is not None
    with closing(Ledger.open(store)) as ledger:
        stored = read(ledger, lambda now: {size.pane.metric for size in now.snapshot.panes})
        generation = read(ledger, lambda now: now.version.generation)
        declaration = declared(generation, experiment_name) if design is None else None
        if declaration is not None:
            design = declaration.plan
        of_set = (name.rpartition("/") for name in stored)
        own_set = experiment_set(experiment_name or "")
        names = {name for metric_set, _, name in of_set if metric_set in ("", own_set)}
        metric_name = arguments.text("metric")
        watched = design.decision if metric_name is None and design is not None else (metric_name,)
        for name in watched:
            if name is None:
                raise UsageError(
                    f"--metric: expected one of {_names_text(names)}, since no experiment is "
                    "declared, got none; name one"
                )
            metric, view = _named(name, names)
            counted = read(
                ledger, partial(counted_metric, name=metric, experiment=experiment_name or "")
            )
            if counted is None:
                raise UsageError(
                    f"{name}: expected an earlier period in the store, got none that can be read "
                    "at once; export a state, and pass --state"
                )
            yield from _metric_tests(arguments, name, view, counted, design)


def _metric_tests(
    arguments: Arguments,
    name: str,
    view: str | None,
    counted: tuple[Accumulator, float],
    design: Plan | None,
) -> Iterator[PlannedTest]:
    """The test of a metric, for each treatment that has other shares."""
    state, days = counted
    span = days if days >= 1 and "units-per-day" not in arguments.given else None
    if design is None:
        yield _renamed(_planned(arguments, state, view, days=span), name)
        return
    weights = design.weights(design.epochs[-1] if design.epochs else "")
    total = sum(weights.values())
    horizon = design.horizons.get(name, design.horizon)
    seen_shares = set()
    for treatment in design.treatments:
        shares = weights[design.control] / total, weights[treatment] / total
        if shares in seen_shares:
            continue
        seen_shares.add(shares)
        planned = _planned(
            arguments,
            state,
            view,
            days=span,
            effect=horizon.mde,
            shares=shares,
            level=1.0 - design.alpha,
        )
        yield _renamed(planned, name if len(weights) == 2 else f"{name} of {treatment}")


def _renamed(planned: PlannedTest, name: str) -> PlannedTest:
    gate, *other_gates = planned.gates
    return replace(planned, watched=name, gates=(replace(gate, watched=name), *other_gates))


def _planned(
    arguments: Arguments,
    state: Accumulator | None,
    view: str | None,
    *,
    days: float | None = None,
    effect: float | None = None,
    shares: tuple[float, float] | None = None,
    level: float | None = None,
) -> PlannedTest:
    """The test; flags have precedence over what is declared."""
    flag_values = {name.replace("-", "_"): arguments.real(name) for name in PLANNED}
    numbers = {name: value for name, value in flag_values.items() if value is not None}
    numbers |= {} if days is None or "days" in numbers else {"days": days}
    numbers |= {} if level is None or "level" in numbers else {"level": level}
    absolute, lift = _effect(arguments.text("effect"))
    if absolute is None and lift is None:
        absolute = effect
    if absolute is None and lift is None:
        raise UsageError(
            "--effect: expected a difference, such as 0.001, or 2% of the baseline, got none; pass "
            "the least one that matters, or declare `mde`"
        )
    share = arguments.text("share")
    try:
        return plan_test(
            state,
            view,
            effect=absolute,
            lift=lift,
            share=shares or 0.5 if share is None else _shares(share),
            **numbers,
        )
    except StreamMetricsError as error:
        if not error.where.startswith(_POINT):
            raise
        flag = error.where.removeprefix(_POINT).partition(")")[0].replace("_", "-")
        flag = "effect" if flag == "lift" else flag
        text = f"expected {error.expected}, got {error.got}; {error.hint}"
        raise UsageError(f"--{flag}: {text}") from None


def _effect(text: str | None) -> tuple[float | None, float | None]:
    """The absolute and the relative effect of a text, one of them None."""
    if text is None:
        return None, None
    number, percent, trailing_text = text.replace(" ", "").partition("%")
    try:
        value = float(number)
    except ValueError:
        trailing_text = "?"
        value = 0.0
    if trailing_text:
        raise UsageError(
            f"--effect: expected a number, or a number and %, got {text!r}; write 0.001 or 2%"
        )
    return (None, value / 100.0) if percent else (value, None)


def _shares(text: str) -> float | tuple[float, float]:
    try:
        parts = [float(part) for part in text.split(",")]
    except ValueError:
        parts = []
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        return parts[0], parts[1]
    raise UsageError(
        f"--share: expected one number, or two with a comma, got {text!r}; write 0.5 or 0.05,0.05"
    )


def _json(test: PlannedTest) -> dict[str, Json]:
    return {
        "watched": test.watched,
        "baseline": test.baseline,
        "effect": test.effect,
        "lift": test.lift,
        "power": test.power,
        "level": test.level,
        "unit": test.unit,
        "shares": {"control": test.shares[0], "treatment": test.shares[1]},
        "units_per_day": test.units_per_day,
        "size": _units(test.size),
        "days_are_least": test.days_are_least,
        "one_look": _units(test.one_look),
        "v_opt": test.horizon.v_opt,
        "gates": [_gate(gate) for gate in test.gates],
        "sentences": [*test.sentences()],
    }


def _units(units: PlannedUnits) -> dict[str, Json]:
    return {"control": units.control, "treatment": units.treatment, "days": units.days}


def _gate(gate: Gate) -> dict[str, Json]:
    return {
        "watched": gate.watched,
        "guardrail": gate.guardrail is not None,
        "needs": gate.needs,
        "arm": gate.arm,
        "rows": gate.rows,
        "unit": gate.unit,
        "size": gate.size,
        "days": gate.days[-1],
    }
