"""[metrics]: the metrics, and the event field for each argument.

An argument reads the field of its role (see event.py), or the field that
`inputs = { scores = "propensity" }` names. A metric of whole lists (with an argument `offsets`)
reads arrays: each event is then one list. An argument that takes a table (see `Declared.widths`)
reads an array of that many values, which is one row of the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Final, TypeAlias, cast

from streammetrics import (
    Accumulator,
    ExactAUC,
    GroupedAUC,
    GroupedScores,
    MulticlassAUC,
    Paired,
    SettingsError,
    UserGroups,
)
from streammetrics.registry import metric, metric_names, metric_type, metric_types
from streammetrics_consumers.config.event import (
    ARGUMENT_ROLES,
    ROLE_ARGUMENTS,
    EventConfig,
    Field,
    Kind,
    offsets_column,
    reads_subtopics,
)
from streammetrics_consumers.config.join import JoinConfig, labels_of_join, refuse_arrays
from streammetrics_consumers.config.keys import keys_of
from streammetrics_consumers.config.metric_entry import (
    Better,
    MetricEntry,
    read_better,
    read_views,
)
from streammetrics_consumers.config.section import Problem, Section, did_you_mean, is_path
from streammetrics_consumers.config.setting_files import read_setting_file
from streammetrics_consumers.config.tables import SlicesConfig
from streammetrics_consumers.config.users import read_users

Setting: TypeAlias = "bool | int | float | str | Fraction | tuple[Setting, ...] | None"

_OF_BATCHES: Final = ("offsets", "group_sizes")  # arguments that say where lists begin: no field
ID_ARGUMENTS: Final = ("groups", "users", "items", "units")
COMBINATORS: Final = ("Panel", "PerKey", "Windows", "UserGroups", "Paired")
NOT_IN_A_CONFIG: Final = (*COMBINATORS, "Units")
MAX_METRICS: Final = 100
MAX_ROWS: Final = 10_000_000  # scores of an exact state, or units, in a long-running process
_DEFAULTS: Final[Mapping[str, Setting]] = {  # of settings with another default in Python
    "max_rows": MAX_ROWS,  # less if a row has a score for each class
    "max_units": MAX_ROWS,
    "ids": "hashed",
    "item_ids": "hashed",
    "duplicates": "conflict",
}
# As of old, so that stores continue. Scores of events are float64, for which "auto" is no cheaper.
_SCORE_TYPES: Final[Mapping[type[Accumulator], Setting]] = {
    ExactAUC: "float64",
    MulticlassAUC: "float64",
    GroupedAUC: "float32",
    GroupedScores: "float32",
}
_NO_SETTINGS: Final = tuple(keys_of(MetricEntry))
_ONE: Final = "one value"
_MANY: Final = "a list"
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class MetricConfig:
    """One entry of [metrics]: its settings, the field of each argument, and the empty metric.

    better: the better direction, if the config declares it. position: its index in the file.
    views: to show beside its headline views.
    """

    name: str
    type: str
    settings: Mapping[str, Setting]
    inputs: Mapping[str, Field]
    empty: Accumulator
    better: Better | None = None
    position: int = 0
    views: tuple[str, ...] = ()

    @property
    def of_lists(self) -> bool:
        """Whether each event is a whole list for this metric."""
        return "offsets" in self.empty.arguments()

    @property
    def columns(self) -> dict[str, str]:
        """The column of each argument, in a panel."""
        columns = {argument: field.column for argument, field in self.inputs.items()}
        if self.of_lists:
            first = self.inputs.get("labels") or self.inputs["lists"]
            columns["offsets"] = offsets_column(first.path)
        return columns


def read_metrics(
    section: Section, event: EventConfig, directory: Path, join: JoinConfig | None = None
) -> tuple[MetricConfig, ...]:
    """Read [metrics], and construct each metric once to check its settings.

    directory: the base of relative paths in settings. join: the origin of the labels, if they are
    not in the events themselves.
    """
    if not section.table and isinstance(section.table, dict):
        section.problem(
            "[metrics]", "at least one metric", None, 'add one, such as ctr = { type = "Ratio" }'
        )
    if len(section.table) > MAX_METRICS:
        section.problem(
            "[metrics]", f"at most {MAX_METRICS} metrics", len(section.table), "leave some out"
        )
    metrics = []
    for position, name in enumerate(list(section.table)[:MAX_METRICS]):
        entry = _read_metric(section, name, event, directory, join)
        if entry is not None:
            metrics.append(replace(entry, position=position))
    section.done()
    if event.weight and not any("weights" in entry.empty.arguments() for entry in metrics):
        expected = "nothing, since no metric here takes weights"
        hint = "remove it"
        section.problem("[event] weight", expected, event.weight, hint)
    return tuple(sorted(metrics, key=lambda entry: entry.name))


def _read_metric(
    section: Section, name: str, event: EventConfig, directory: Path, join: JoinConfig | None
) -> MetricConfig | None:
    table = section.raw(name)
    where = f"[metrics] {name}"
    if not NAME.fullmatch(name):
        section.problem(
            where, "a name of up to 64 letters, digits, `_`, `.` or `-`", name, "rename it"
        )
    if not isinstance(table, dict):
        section.problem(where, "a table", table, 'write { type = "HistogramAUC" }')
        return None
    type_name = table.get("type")
    kind = _metric_type(section, f"{where}.type", type_name)
    if kind is None or not isinstance(type_name, str):
        return None
    settings = {k: _setting(v) for k, v in table.items() if k not in _NO_SETTINGS}
    accepted = [f.name for f in fields(kind)]
    unknown = [setting for setting in settings if setting not in accepted]
    for setting in unknown:
        section.problem(
            f"{where}.{setting}",
            f"a setting of {type_name}",
            settings.pop(setting),
            did_you_mean(setting, [*_NO_SETTINGS, *accepted]),
        )
    for setting, value in table.items():
        if setting in settings and isinstance(value, dict):
            array = read_setting_file(section, f"{where}.{setting}", value, directory)
            if array is None:
                return None
            settings[setting] = cast("Setting", array)
    defaults = {name: _DEFAULTS[name] for name in _DEFAULTS if name in accepted}
    if "max_rows" in defaults:
        defaults["max_rows"] = _of_each_class(settings)
    if _is_bounded(settings, accepted):
        defaults.pop("max_rows", None)
    settings = {**settings, **{k: v for k, v in defaults.items() if k not in settings}}
    if kind in _SCORE_TYPES:
        settings.setdefault("score_type", _SCORE_TYPES[kind])
    if settings.get("duplicates", "conflict") != "conflict":
        # Refusals within one update would depend on how the log is cut into updates.
        section.problem(f"{where}.duplicates", '"conflict"', settings["duplicates"], "leave it out")
        return None
    try:
        empty = metric(type_name, settings)
    except SettingsError as error:
        words = [word for word in re.findall(r"\w+", error.where) if word in accepted]
        place = f"{where}.{words[-1]}" if words else f"{where} ({error.where})"
        section.problem(place, error.expected, error.got, error.hint)
        return None
    users = read_users(section, where, table, event, empty)
    if users is None:
        return None
    empty, fields_of_models = users
    paths, labels = table.get("inputs", {}), dict[str, Field]()
    paths = {**fields_of_models, **paths} if isinstance(paths, dict) else paths
    if join is not None and isinstance(paths, dict):
        paths, labels = labels_of_join(section, where, paths, join, empty)
    inputs = _read_inputs(section, where, paths, event, empty, labels)
    if join is not None:
        refuse_arrays(section, where, inputs)
    return MetricConfig(
        name,
        type_name,
        settings,
        inputs,
        empty,
        read_better(section, where, table),
        views=read_views(section, where, table, empty),
    )


def _metric_type(section: Section, where: str, name: object) -> type[Accumulator] | None:
    """The class that `type` names: built-in, of an installed package, or `module:Class`."""
    types = metric_types()
    combined = [types[kind] for kind in NOT_IN_A_CONFIG]
    if isinstance(name, str) and (name in types or name in metric_names() or ":" in name):
        try:
            kind = metric_type(name)
        except SettingsError as error:
            section.problems.append(Problem(where, error.expected, error.got, error.hint))
            return None
        if kind not in combined:
            return kind
    names = [kind for kind in metric_names() if kind not in NOT_IN_A_CONFIG]
    if name == "Paired":
        hint = 'name the metric of both models, and models = ["score", "score_of_the_other"]'
        section.problem(where, "a metric, or its module:Class", name, hint)
        return None
    section.unknown(where, "a metric, or its module:Class", name, names)
    return None


def _is_bounded(settings: Mapping[str, Setting], accepted: Sequence[str]) -> bool:
    """Whether a state counts in buckets, so that it does not grow with rows."""
    return settings.get("grid") is not None or ("exact" in accepted and not settings.get("exact"))


def _of_each_class(settings: Mapping[str, Setting]) -> int:
    """The number of rows with MAX_ROWS scores in total, at one score per class and row."""
    n_classes = settings.get("n_classes")
    if not isinstance(n_classes, int) or not 0 < n_classes < MAX_ROWS:
        return MAX_ROWS  # no such setting, or one that the metric refuses
    return MAX_ROWS // n_classes


def _setting(value: object) -> Setting:
    # Settings are immutable, so TOML arrays become tuples; a fraction is written as "1/10".
    if isinstance(value, list):
        # A row of an array of arrays is data; its texts are not converted to fractions.
        return tuple(tuple(v) if isinstance(v, list) else _setting(v) for v in value)
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}/[1-9][0-9]{0,17}", value):
        return Fraction(value)
    return cast("Setting", value)


def _read_inputs(
    section: Section,
    where: str,
    paths: object,
    event: EventConfig,
    empty: Accumulator,
    labels: Mapping[str, Field],
) -> dict[str, Field]:
    takes = {a: required for a, required in empty.arguments().items() if a not in _OF_BATCHES}
    stored_names = empty.stored_names()
    of_lists = "offsets" in empty.arguments()
    if not isinstance(paths, dict):
        section.problem(f"{where}.inputs", "a table", paths, 'write { scores = "propensity" }')
        paths = {}
    for argument, stored_name in stored_names.items():
        if stored_name in paths and argument not in paths:
            paths = {**paths, argument: paths[stored_name]}
            del paths[stored_name]
    for argument, path in paths.items():
        if argument not in takes:
            section.problem(
                f"{where}.inputs.{argument}",
                f"an argument of {type(empty).__name__}",
                path,
                did_you_mean(argument, list(takes)),
            )
        else:
            section.takes_path(f"{where}.inputs.{argument}", path)
    if reads_subtopics(empty):
        takes["subtopics"] = True  # or relevant items would be refused
    elif "subtopics" not in paths:
        takes.pop("subtopics", None)
    inputs = dict(labels)
    for argument, required in takes.items():
        if argument in labels:
            continue
        role = ARGUMENT_ROLES.get(stored_names.get(argument, argument))
        path = paths.get(argument, getattr(event, role) if role else None)
        if isinstance(path, str) and is_path(path):
            of_models = empty.columns or () if isinstance(empty, Paired) else ()
            shared = next((column for column in of_models if argument[:-2] == column), argument)
            plain = _kind(shared, of_lists, _ids(argument, empty))
            widths = empty.widths().get(argument, (None,))
            if argument == "predictions" and argument not in paths:
                widths = widths[-1:]  # a score that is one number is not a predicted class
            inputs[argument] = _field(event.path(path), plain, widths)
        elif required and argument not in paths:
            hint = f"name [event] {role}, or" if role else "write"
            section.problem(
                where,
                f"a field for `{argument}`",
                None,
                f'{hint} inputs = {{ {argument} = "..." }}',
            )
    if of_lists and "labels" in inputs and inputs.get("scores") == inputs["labels"]:
        section.problem(
            where,
            "different fields for labels and scores",
            inputs["labels"].path,
            "name two fields",
        )
    return inputs


def _ids(argument: str, metric: Accumulator) -> object:
    """The kind of the ids in a column as the metric declares it; hashed for UserGroups."""
    if isinstance(metric, Paired):
        return _ids(argument, metric.metric)
    if isinstance(metric, UserGroups):
        is_inner = argument in metric.metric.arguments()
        return _ids(argument, metric.metric) if is_inner else "hashed"
    if argument == "units":
        return "hashed"
    return metric.settings().get("item_ids" if argument == "items" else "ids")


def _field(path: str, plain: Kind, widths: tuple[int | None, ...]) -> Field:
    """A field of one value, of a table row, or of either, as an argument accepts."""
    for width in widths:
        if width is not None:
            either = "_or_row" if None in widths else "_row"
            return Field(path, cast("Kind", plain + either), width)
    return Field(path, plain)


def _kind(argument: str, of_lists: bool, ids: object) -> Kind:
    if of_lists and argument == "lists":
        return "int_list"
    if argument in ID_ARGUMENTS:
        return "int_id" if ids == "integer" else "hashed_id" if ids == "hashed" else "text_id"
    if argument == "subtopics":
        return "ids_list" if of_lists else "id_list"
    if argument in ("n_relevant", "positions"):
        return "count"
    if argument in ("judged", "shown"):
        return "flag_list" if of_lists else "flag"
    if argument in (*ROLE_ARGUMENTS["label"], "teams", "treated"):
        return "label_list" if of_lists else "label"
    return "real_list" if of_lists and argument == "scores" else "real"


def refuse_clashes(
    section: Section,
    event: EventConfig,
    slices: SlicesConfig,
    metrics: Sequence[MetricConfig],
    more: Mapping[str, str],
) -> None:
    """Check that each field is one value, a list, or an object with other fields, and not two of
    these. A field that may be one value or a list fits both; table rows must have one length.

    more: the paths of other fields of one value, by the setting that names them."""
    uses: list[tuple[str, str, str]] = [("[event] time", event.time, _ONE)]
    if event.variant:
        uses.append(("[event] variant", event.variant, _ONE))
    uses += [("[slices] by", event.path(name), _ONE) for name in slices.names]
    uses += [(where, path, _ONE) for where, path in more.items()]
    for entry in metrics:
        for argument, field in entry.inputs.items():
            if field.kind == "outcome":
                continue
            where = f"[metrics] {entry.name}, {argument}"
            if field.width:
                uses.append((where, field.path, f"an array of {field.width} values"))
            if not field.kind.endswith("_or_row"):
                is_list = field.kind.endswith(("_list", "_row"))
                uses.append((where, field.path, _MANY if is_list else _ONE))
    first: dict[tuple[str, bool], tuple[str, str]] = {}
    for where, path, read_as in uses:
        of_width = read_as not in (_ONE, _MANY)
        other_where, known_as = first.setdefault((path, of_width), (where, read_as))
        if read_as != known_as:
            section.problem(
                where,
                f"a field with {read_as}",
                path,
                f"{other_where} reads it as {known_as}; name another",
            )
    places = {path: where for where, path, _ in reversed(uses)}
    for path, where in places.items():
        for other_path, other_where in places.items():
            if path.startswith(other_path + "."):
                hint = f"{other_where} reads {other_path!r} itself; name another"
                section.problem(where, "a field of an object", path, hint)


def metric_of(name: str, metrics: Sequence[MetricConfig]) -> tuple[MetricConfig, str | None] | None:
    """The metric, and the view or None, that `metric` or `metric.view` names. Names may contain
    dots; the longest match wins."""
    for entry in sorted(metrics, key=lambda entry: -len(entry.name)):
        if name == entry.name:
            return entry, None
        if name.startswith(f"{entry.name}."):
            return entry, name.removeprefix(f"{entry.name}.")
    return None
