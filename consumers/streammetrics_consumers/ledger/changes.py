"""What a config would change in a generation, and what it may not. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

from streammetrics_consumers.ledger.descriptions import (
    KEPT_NO_LATE,
    Description,
    arms_refused,
    as_before,
    as_started,
    differences,
    end_refused,
    kept_no_late,
    more_arms,
    more_epochs,
    more_variants,
    moved_end,
    starts_after,
)
from streammetrics_consumers.ledger.experiment_changes import Ends, experiment_changes
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.former_states import UNREADABLE
from streammetrics_consumers.model.generation import (
    EXPERIMENT,
    KINDS,
    NOTHING_REQUESTED,
    PENDING,
    Changes,
    ExperimentChange,
    Generation,
    Metric,
    Requested,
    experiment_name,
    experiment_set,
)

_COLUMNS: Final = ("inputs.", "settings.columns")
KEEPS_NO_MORE: Final = (
    "since pending events have only the fields that were read when they came: an added "
    "experiment or metric may read these alone"
)
ENDS_EXPERIMENT: Final = (
    ", which ends the running experiment: it counts no event from then on, and its last verdict is "
    "that of the events so far"
)


def compared(
    current: Generation,
    fingerprints: Mapping[str, str],
    descriptions: Mapping[str, Mapping[str, object]],
    counted_ms: int | None,
    requested: Requested = NOTHING_REQUESTED,
) -> Changes:
    """The changes that a config would make to a generation. Writes nothing.

    counted_ms: see `counted_to_ms`. Raises SettingsChanged where a metric differs from the counted
    one, or has ended and is not among those to resume.
    """
    counted = {stored_metric.name: stored_metric for stored_metric in current.metrics}
    restarted = sorted(
        name
        for name, stored_metric in counted.items()
        if name in requested.restart
        and name in fingerprints
        and stored_metric.fingerprint != fingerprints[name]
    )
    accepted = _refuse_changes(
        replace(current, metrics=tuple(m for m in current.metrics if m.name not in restarted)),
        fingerprints,
        descriptions,
        counted_ms,
        requested.resume,
    )
    added = sorted(name for name in fingerprints if name not in counted)
    ended = sorted(
        n
        for n, stored_metric in counted.items()
        if n not in fingerprints and not stored_metric.ended
    )
    resumed = sorted(
        n
        for n, stored_metric in counted.items()
        if n in fingerprints and stored_metric.ended and n not in restarted
    )
    changes = Changes(
        tuple(added),
        tuple(ended),
        tuple(sorted(accepted.variants)),
        tuple(sorted({start for starts in accepted.epochs.values() for start in starts})),
        tuple(resumed),
        tuple(restarted),
        tuple(sorted(accepted.ends)),
    )
    experiments = experiment_changes(current, descriptions, changes, accepted.epochs, accepted.ends)
    problems = [*map(_without_exposures, _begin_without_exposures(experiments, descriptions))]
    if problems:
        raise SettingsChanged(problems, "Nothing was changed.")
    return Changes(*changes[:-1], experiments)


def _begin_without_exposures(
    experiments: Iterable[ExperimentChange], descriptions: Mapping[str, Description]
) -> Iterator[tuple[str, str]]:
    """The metrics, each after its experiment, that count exposures and begin or resume while their
    experiment goes on."""
    for change in experiments:
        for name in change.added if change.kind == "goes on" else ():
            kinds = descriptions[f"{experiment_set(change.name)}/{name}"].get(KINDS)
            if isinstance(kinds, list) and "exposure" in kinds:
                yield change.name, name


def _without_exposures(names: tuple[str, str]) -> str:
    """Why such a metric cannot begin, and what to do."""
    experiment, metric = names
    return (
        f"experiment {experiment}: {metric} cannot be added while it runs, since a mean or a rate "
        "over its units counts each exposure, and those that are closed are not counted again. To "
        "count it, declare an experiment with another name; its units are those that are exposed "
        "from then on"
    )


def refuse_unasked(
    current: Generation, fingerprints: Mapping[str, str], changes: Changes, requested: Requested
) -> None:
    """Raise SettingsChanged where a metric would end without a request, or where a request cannot
    be fulfilled. A metric that has already ended, or was already resumed, is no error: a restart
    repeats its requests."""
    counted = {stored_metric.name: stored_metric for stored_metric in current.metrics}
    ended_sets = {experiment_set(name) for name in changes.ended_experiments}
    problems: list[str] = []
    for name in changes.ended:
        metric_set = counted[name].metric_set
        if is_named(counted[name], requested.drop, current):
            continue
        experiment = experiment_name(metric_set)
        if not experiment or metric_set not in ended_sets:
            is_part = experiment is not None and metric_set not in ended_sets
            drop_argument = name if is_part else metric_set or name
            problems.append(
                f"metric {name}: the store counts it, but it is not in the config. Restore it "
                f"there, or end it with --drop-metric {drop_argument}"
                + (ENDS_EXPERIMENT if metric_set in ended_sets else "")
            )
    problems += [
        f"experiment {name}: the store counts it, but it is not in the config. Restore it there, "
        f"or end it with --drop-metric {experiment_set(name)}{ENDS_EXPERIMENT}"
        for name in changes.ended_experiments
        if name and experiment_set(name) not in requested.drop
    ]
    for name in requested.restart:
        if name not in fingerprints or name not in counted or counted[name].metric_set:
            problems.append(
                f"--restart-metric {name}: expected a metric of [metrics] that the store counts; "
                "correct the name"
            )
    for flag, names in (("--drop-metric", requested.drop), ("--resume-metric", requested.resume)):
        for name in names:
            matches = [
                stored_metric
                for stored_metric in current.metrics
                if is_named(stored_metric, [name], current)
            ]
            if not matches:
                problems.append(
                    f"{flag} {name}: the store does not count this metric; correct the name"
                )
            elif flag == "--drop-metric" and any(
                stored_metric.name in fingerprints for stored_metric in matches
            ):
                problems.append(f"{flag} {name}: it is still in the config; remove it there too")
            elif flag == "--resume-metric" and not any(
                stored_metric.name in fingerprints for stored_metric in matches
            ):
                problems.append(f"{flag} {name}: it is not in the config; add it there too")
    if problems:
        raise SettingsChanged(
            problems,
            "A metric that ends misses all events from then on. Nothing was changed.",
        )


def is_named(metric: Metric, names: Collection[str], current: Generation) -> bool:
    """Whether one of these names matches a metric of a generation: its own, or that of its metric
    set. A name that both have, such as `experiment/ctr`, is that of the metric set."""
    if metric.metric_set and metric.metric_set in names:
        return True
    return metric.name in names and all(m.metric_set != metric.name for m in current.metrics)


class _Differences:
    """Why a config may not go on with the metrics of a store: a text for each metric, and one for
    each experiment with a name, whose metrics share what differs."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._by_experiment: dict[str, dict[str, None]] = {}

    def add(self, text: str) -> None:
        """Add a text, once."""
        self._texts += [] if text in self._texts else [text]

    def add_metric(self, metric: Metric, texts: Iterable[str]) -> None:
        """Add what differs in a metric."""
        name = experiment_name(metric.metric_set)
        if not name:
            self.add(f"metric {metric.name}: {', '.join(texts)}")
            return
        own_name = metric.name.rpartition("/")[2]
        for text in texts:
            of_metric = text.startswith(("inputs.", "settings.", "type "))
            text = f"{text} in {own_name}" if of_metric else text.removeprefix(f"{EXPERIMENT}.")
            self._by_experiment.setdefault(name, {})[text] = None

    @property
    def texts(self) -> list[str]:
        """All texts."""
        return [
            *self._texts,
            *(
                f"experiment {name}: {'; '.join(texts)}. What it counts and its plan cannot change "
                "while it runs. Restore them, or end it and begin another: give it another name "
                f"under [experiments], and add --drop-metric {experiment_set(name)}"
                for name, texts in self._by_experiment.items()
            ),
        ]


@dataclass(slots=True)
class _Accepted:
    """The added variants; the added epoch starts and the moved ends, by metric set."""

    variants: set[str] = field(default_factory=set)
    epochs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ends: dict[str, Ends] = field(default_factory=dict)


def _refuse_changes(
    current: Generation,
    fingerprints: Mapping[str, str],
    descriptions: Mapping[str, Mapping[str, object]],
    counted_ms: int | None,
    resume: Collection[str],
) -> _Accepted:
    """The changes that are accepted. Raises SettingsChanged for any other change."""
    refusals, accepted = _Differences(), _Accepted()
    is_older = False
    for stored_metric in current.metrics:
        name, metric_set = stored_metric.name, stored_metric.metric_set
        if name not in fingerprints:
            continue
        if stored_metric.ended and not is_named(stored_metric, resume, current):
            refusals.add(_ended_earlier(stored_metric))
        elif stored_metric.fingerprint != fingerprints[name]:
            # Compared as they are stored, so that a tuple and a list are the same.
            description = stored_metric.description
            now = json.loads(json.dumps(as_started(description, descriptions[name])))
            if UNREADABLE in description:
                refusals.add(_unreadable(stored_metric, now))
                continue
            variants, left, texts = more_variants(description, now) or frozenset(), now, list[str]()
            starts, ends = more_epochs(description, now), moved_end(description, now)
            if variants:
                left = {**left, "variant": [now["variant"][0], _values(description)]}
            if starts and starts_after(starts[0], counted_ms):
                left = as_before(left, description, "epochs", "shares")
            elif starts:
                hint = "only an epoch that starts after all counted events may be added"
                refusals.add_metric(
                    stored_metric, [f"the epoch {starts[0]} starts too early; {hint}"]
                )
            if ends is not None:
                left = as_before(left, description, "end")
                texts += filter(None, [end_refused(ends, counted_ms)])
            arms = more_arms(description, now)
            if arms:
                refusals.add(arms_refused(arms, experiment_name(metric_set) or ""))
                continue
            if kept_no_late(description, now):
                is_older = True
                refusals.add(KEPT_NO_LATE)
                continue
            texts += differences(description, left)
            if name in PENDING and all(text.startswith(_COLUMNS) for text in texts):
                texts.append(KEEPS_NO_MORE)
            if not texts and (variants or starts or ends):
                accepted.variants |= variants
                if starts:
                    accepted.epochs[metric_set] = starts
                if ends is not None:
                    accepted.ends[metric_set] = ends
                continue
            refusals.add_metric(stored_metric, texts or ["its meaning changed"])
    problems = refusals.texts
    if is_older:
        raise SettingsChanged(
            problems,
            "Start over with --new-generation, or continue with the version that counted the "
            f"store; `results --generation {current.id}` still shows its results.",
        )
    if any(UNREADABLE in stored_metric.description for stored_metric in current.metrics):
        raise SettingsChanged(
            problems,
            "Or start over with --new-generation, which keeps the former states for the version "
            "that wrote them.",
        )
    if problems:
        raise SettingsChanged(
            problems,
            "The store was counted with the older settings. Restore them, give the metric "
            "another name, or start over with --new-generation; `results --generation "
            f"{current.id}` then shows the old results.",
        )
    return accepted


def _values(description: Description) -> list[object]:
    """The declared values of the variant."""
    return cast("list[list[object]]", description["variant"])[1]


def _ended_earlier(metric: Metric) -> str:
    """Why a metric that has ended cannot go on unasked, and what to do."""
    name = experiment_name(metric.metric_set)
    subject = f"experiment {name}" if name else f"metric {metric.name}"
    return (
        f"{subject}: it was removed from the config earlier and has missed events since. Resume it "
        f"with --resume-metric {metric.metric_set or metric.name} (results state what it missed), "
        "or give it another name"
    )


def _unreadable(metric: Metric, now: Description) -> str:
    """Why a metric cannot go on with its stored states, and what to do."""
    name = metric.name
    text = (
        f"metric {name}: the store holds states of {metric.description.get('type')}, which this "
        f"version, with {now['type']}, cannot read"
    )
    experiment = experiment_name(metric.metric_set)
    if experiment is not None:
        table = f"[experiments.{experiment}]" if experiment else "[experiment]"
        return (
            f"{text}; to go on without the experiment, take {table} out of the config and end it "
            f"with --drop-metric {metric.metric_set}"
        )
    if metric.metric_set:
        return text
    return (
        f"{text}; to count it anew from the offsets reached so far, without these states, add "
        f"--restart-metric {name}"
    )
