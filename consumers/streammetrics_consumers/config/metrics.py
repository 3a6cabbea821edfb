"""[metrics]: the metrics, and the event field for each argument.

An argument reads the field of its role (see event.py), or the field that
`inputs = { scores = "propensity" }` names. A metric of whole lists (with an argument `offsets`)
reads arrays: each event is then one list. An argument that takes a table (see `Declared.widths`)
reads an array of that many values, which is one row of the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, cast

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
from streammetrics_consumers.config.column_expressions import (
    NO_COLUMNS,
    ColumnsConfig,
    fields_read,
    read_condition,
)
from streammetrics_consumers.config.event import (
    ARGUMENT_ROLES,
    ROLE_ARGUMENTS,
    EventConfig,
    Field,
    Kind,
    offsets_column,
)
from streammetrics_consumers.config.join import JoinConfig, read_labels, refuse_arrays
from streammetrics_consumers.config.keys import keys_of, read_keys
from streammetrics_consumers.config.metric_entry import (
    Better,
    MetricEntry,
    count_users,
    read_views,
    without_groups,
)
from streammetrics_consumers.config.section import (
    Problem,
    RefusedSetting,
    Section,
    did_you_mean,
)
from streammetrics_consumers.config.setting_files import read_setting_file
from streammetrics_consumers.config.tables import SlicesConfig
from streammetrics_consumers.model.generation import measures_of_lists
from streammetrics_consumers.model.paths import KEY, is_path

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
_ONE: Final = "one value"
_MANY: Final = "a list"
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class MetricConfig:
    """One entry of [metrics]: its settings, the field of each argument, and the empty metric.

    better: the better direction, if the config declares it. position: its index in the file.
    views: to show beside its headline views. where: the column of flags of the events that it
    counts, None for all.
    """

    name: str
    type: str
    settings: Mapping[str, Setting]
    inputs: Mapping[str, Field]
    empty: Accumulator
    better: Better | None = None
    position: int = 0
    views: tuple[str, ...] = ()
    where: Field | None = None

    @property
    def plain(self) -> Accumulator:
        """The empty metric, without groups of users."""
        return without_groups(self.empty)

    @property
    def has_lists(self) -> bool:
        """Whether each event is a whole list for this metric."""
        return "offsets" in self.empty.arguments()

    @property
    def columns(self) -> dict[str, str]:
        """The column of each argument, in a panel."""
        columns = {argument: field.column for argument, field in self.inputs.items()}
        if self.has_lists:
            first = self.inputs.get("labels") or self.inputs["lists"]
            columns["offsets"] = offsets_column(first.path)
        return columns


class WatchedView(NamedTuple):
    """A metric and one of its views, None for its headline, as an experiment names them."""

    metric: MetricConfig
    view: str | None


def read_metrics(
    section: Section,
    event: EventConfig,
    directory: Path,
    join: JoinConfig | None = None,
    columns: ColumnsConfig = NO_COLUMNS,
    *,
    waiting: str = "",
) -> tuple[MetricConfig, ...]:
    """Read [metrics], and construct each metric once to check its settings.

    directory: the base of relative paths in settings. join: the origin of the labels, if they are
    not in the events themselves. columns: those of [columns]. waiting: the table that makes events
    wait, see `read_windows`.
    """
    n_metrics = len(section.table)
    if not n_metrics:
        hint = 'add one, such as ctr = { type = "Ratio" }'
        section.problem(section.title, "at least one metric", None, hint)
    if n_metrics > MAX_METRICS:
        section.problem(
            section.title, f"at most {MAX_METRICS} metrics", n_metrics, "leave some out"
        )
    metrics = list(
        section.each(
            lambda section, name: _read_metric(
                section, name, event, directory, join, columns, waiting
            ),
            MAX_METRICS,
        )
    )
    section.done()
    if event.weight and not any("weights" in config.empty.arguments() for config in metrics):
        expected = "nothing, since no metric here takes weights"
        section.problem("[event] weight", expected, event.weight, "remove it")
    return tuple(sorted(metrics, key=lambda config: config.name))


def _read_metric(
    section: Section,
    name: str,
    event: EventConfig,
    directory: Path,
    join: JoinConfig | None,
    columns: ColumnsConfig,
    waiting: str,
) -> MetricConfig:
    if not NAME.fullmatch(name):
        expected = "a name of up to 64 letters, digits, `_`, `.` or `-`"
        section.problem(section.where(name), expected, name, "rename it")
    entry = section.entry(name, 'write { type = "HistogramAUC" }')
    declared = read_keys(entry, MetricEntry)
    settings = _read_settings(entry, _metric_type(entry), directory)
    empty, model_paths = count_users(entry, declared, event, _construct(entry, settings))
    entry.require_good("models", "cluster")
    paths, labels = {**model_paths, **declared.inputs}, dict[str, Field]()
    if join is not None:
        paths, labels = read_labels(entry.inner(entry.where("inputs"), paths), join, empty)
    inputs = _read_inputs(entry, paths, event, empty, labels, columns)
    if waiting:
        refuse_arrays(entry, inputs, waiting)
    return MetricConfig(
        name,
        declared.type,
        settings,
        inputs,
        empty,
        declared.better,
        position=list(section.table).index(name),
        views=read_views(entry, empty),
        where=read_condition(entry, event, columns),
    )


def _metric_type(entry: Section) -> type[Accumulator]:
    """The class that `type` names: built-in, of an installed package, or `module:Class`."""
    name, where, expected = entry.raw("type"), entry.where("type"), "a metric, or its module:Class"
    types, names = metric_types(), metric_names()
    if isinstance(name, str) and (name in types or name in names or ":" in name):
        try:
            kind = metric_type(name)
        except SettingsError as error:
            entry.problems.append(Problem(where, error.expected, error.got, error.hint))
            raise RefusedSetting from None
        if kind not in [types[combined] for combined in NOT_IN_A_CONFIG]:
            return kind
    if name == "Paired":
        hint = 'name the metric of both models, and models = ["score", "score_of_the_other"]'
        entry.refuse("type", expected, hint)
    entry.unknown(where, expected, name, [kind for kind in names if kind not in NOT_IN_A_CONFIG])
    raise RefusedSetting


def _read_settings(entry: Section, kind: type[Accumulator], directory: Path) -> dict[str, Setting]:
    """The settings of a metric, with the defaults of a config."""
    own_keys, accepted = list(keys_of(MetricEntry)), [setting.name for setting in fields(kind)]
    names = [name for name in entry.table if name not in own_keys]
    for name in names:
        if name not in accepted:
            expected, hint = (
                f"a setting of {entry.raw('type')}",
                did_you_mean(name, own_keys + accepted),
            )
            entry.problem(entry.where(name), expected, _as_setting(entry.raw(name)), hint)
    settings = {name: _read_setting(entry, name, directory) for name in names if name in accepted}
    settings = {**_defaults(kind, settings), **settings}
    duplicates = settings.get("duplicates", "conflict")
    if duplicates != "conflict":
        # Refusals within one update would depend on how the log is cut into updates.
        entry.problem(entry.where("duplicates"), '"conflict"', duplicates, "leave it out")
        raise RefusedSetting
    return settings


def _read_setting(entry: Section, name: str, directory: Path) -> Setting:
    value = entry.raw(name)
    if isinstance(value, dict):
        array = read_setting_file(entry.inner(entry.where(name), value), directory)
        return cast("Setting", array)
    return _as_setting(value)


def _defaults(kind: type[Accumulator], settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """The defaults of a metric's settings in a config, where they differ from those in Python."""
    accepted = {setting.name for setting in fields(kind)}
    defaults = {name: default for name, default in _DEFAULTS.items() if name in accepted}
    has_buckets = "exact" in accepted and not settings.get("exact")
    if has_buckets or settings.get("grid") is not None:  # a state does not grow with rows
        defaults.pop("max_rows", None)
    elif "max_rows" in accepted:
        defaults["max_rows"] = _max_rows(settings)
    if kind in _SCORE_TYPES:
        defaults["score_type"] = _SCORE_TYPES[kind]
    return defaults


def _construct(entry: Section, settings: Mapping[str, Setting]) -> Accumulator:
    """The empty metric."""
    type_name = str(entry.raw("type"))
    try:
        return metric(type_name, settings)
    except SettingsError as error:
        accepted = {setting.name for setting in fields(metric_type(type_name))}
        words = [word for word in re.findall(r"\w+", error.where) if word in accepted]
        where = entry.where(words[-1]) if words else f"{entry.title} ({error.where})"
        entry.problem(where, error.expected, error.got, error.hint)
        raise RefusedSetting from None


def _max_rows(settings: Mapping[str, Setting]) -> int:
    """The number of rows with MAX_ROWS scores in total, at one score per class and row."""
    n_classes = settings.get("n_classes")
    if not isinstance(n_classes, int) or not 0 < n_classes < MAX_ROWS:
        return MAX_ROWS  # no such setting, or one that the metric refuses
    return MAX_ROWS // n_classes


def _as_setting(value: object) -> Setting:
    # Settings are immutable, so TOML arrays become tuples; a fraction is written as "1/10".
    if isinstance(value, list):
        # A row of an array of arrays is data; its texts are not converted to fractions.
        return tuple(tuple(v) if isinstance(v, list) else _as_setting(v) for v in value)
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}/[1-9][0-9]{0,17}", value):
        return Fraction(value)
    return cast("Setting", value)


def _read_inputs(
    entry: Section,
    paths: Mapping[str, object],
    event: EventConfig,
    empty: Accumulator,
    labels: Mapping[str, Field],
    columns: ColumnsConfig,
) -> dict[str, Field]:
    """The field of each argument: by its path, else by its role. labels: those of outcomes."""
    takes = {a: required for a, required in empty.arguments().items() if a not in _OF_BATCHES}
    stored_names = empty.stored_names()
    renamed = {name: argument for argument, name in stored_names.items() if argument not in paths}
    paths = {renamed.get(name, name): path for name, path in paths.items()}
    section = entry.inner(entry.where("inputs"), paths)
    for argument, path in paths.items():
        if argument in takes:
            section.takes_path(section.where(argument), path)
        else:
            expected = f"an argument of {type(empty).__name__}"
            section.bad(argument, expected, did_you_mean(argument, list(takes)))
    measures, are_complete = measures_of_lists(empty)
    if any(measure.subtopics for measure in measures):
        takes["subtopics"] = True  # or relevant items would be refused
    elif "subtopics" not in paths:
        takes.pop("subtopics", None)
    inputs = dict(labels)
    for argument, required in takes.items():
        if argument in labels:
            continue
        role = ARGUMENT_ROLES.get(stored_names.get(argument, argument))
        path = paths.get(argument, getattr(event, role) if role else None)
        if is_path(path):
            field = _field(
                columns.path(event.path(str(path))), argument, empty, by_role=argument not in paths
            )
            computed = columns.field(field)
            if computed is None:
                expected = f"for `{argument}` a field of the event, or a computed number or flag"
                entry.problem(
                    entry.where("inputs"), expected, path, "a column of [columns] has one value"
                )
            inputs[argument] = computed or field
        elif required and argument not in paths:
            hint = f"name [event] {role}, or" if role else "write"
            hint += f' inputs = {{ {argument} = "..." }}'
            entry.problem(entry.title, f"a field for `{argument}`", None, hint)
    recall = next((measure for measure in measures if measure.has_recall), None)
    if (
        recall and not are_complete and not inputs.keys() & {"n_relevant", "judged"}
    ):  # or events would be refused
        expected = f"a field for `n_relevant`, which {recall} needs"
        hint = 'write inputs = { n_relevant = "..." }, or complete_lists = true if each list holds '
        entry.problem(entry.title, expected, None, hint + "all of its relevant items")
    if "offsets" in empty.arguments() and "labels" in inputs:
        label = inputs["labels"]
        if inputs.get("scores") == label:
            expected = "different fields for labels and scores"
            entry.problem(entry.title, expected, label.path, "name two fields")
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


def _field(path: str, argument: str, empty: Accumulator, *, by_role: bool) -> Field:
    """A field of one value, of a table row, or of either, as an argument accepts."""
    of_models = empty.columns or () if isinstance(empty, Paired) else ()
    shared = argument[:-2] if argument[:-2] in of_models else argument
    kind = _kind(shared, "offsets" in empty.arguments(), _ids(argument, empty))
    widths = empty.widths().get(argument, (None,))
    if argument == "predictions" and by_role:
        widths = widths[-1:]  # a score that is one number is not a predicted class
    for width in widths:
        if width is not None:
            either = "_or_row" if None in widths else "_row"
            return Field(path, cast("Kind", kind + either), width)
    return Field(path, kind)


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
    other_paths: Mapping[str, str],
    tested: Mapping[str, str],
) -> None:
    """Check that each field is one value, a list, or an object with other fields, and not two of
    these. A field that may be one value or a list fits both; table rows must have one length.

    other_paths: those of other fields of one value, by the setting that names them; tested: those
    of fields that may also be lists, but have no other field inside."""
    uses: list[tuple[str, str, str]] = [("[event] time", event.time, _ONE)]
    if event.variant:
        uses.append(("[event] variant", event.variant, _ONE))
    uses += [("[slices] by", event.path(name), _ONE) for name in slices.names]
    uses += [(where, path, _ONE) for where, path in other_paths.items()]
    for entry in metrics:
        for argument, field in entry.inputs.items():
            if field.kind == "outcome":
                continue
            where = f"[metrics] {entry.name}, {argument}"
            if field.computed is not None:
                uses += [(where, read.path, _ONE) for read in fields_read([field])[1:]]
                continue
            if field.width:
                uses.append((where, field.path, f"an array of {field.width} values"))
            if not field.kind.endswith("_or_row"):
                is_list = field.kind.endswith(("_list", "_row"))
                uses.append((where, field.path, _MANY if is_list else _ONE))
        if entry.where is not None:
            where = f"[metrics] {entry.name}, where"
            uses += [(where, read.path, _ONE) for read in fields_read([entry.where])[1:]]
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
    places = {path: where for where, path in tested.items()}
    places |= {path: where for where, path, _ in reversed(uses)}
    refuse_objects(section, places)


def refuse_objects(section: Section, places: Mapping[str, str]) -> None:
    """Check that no field is an object with another one of these. places: by path, the setting that
    names it. The key of a Kafka record may be read as a whole and by field."""
    for path, where in places.items():
        for other_path, other_where in places.items():
            is_key = section.source == "kafka" and other_path == KEY
            if path.startswith(other_path + ".") and not is_key:
                hint = f"{other_where} reads {other_path!r} itself; name another"
                section.problem(where, "a field of an object", path, hint)


def find_watched(name: object, metrics: Sequence[MetricConfig]) -> WatchedView | None:
    """What `metric` or `metric.view` names. Names may contain dots; the longest match wins."""
    for config in sorted(metrics, key=lambda config: -len(config.name)):
        if name == config.name:
            return WatchedView(config, None)
        if isinstance(name, str) and name.startswith(f"{config.name}."):
            return WatchedView(config, name.removeprefix(f"{config.name}."))
    return None
