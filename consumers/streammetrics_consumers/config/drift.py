"""[drift]: comparisons of the windows of a metric with a reference.

A drift counts nothing: it is computed when results are read, from the states of its metric. So an
entry may be added, changed or removed at any time.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from streammetrics import (
    Accumulator,
    Panel,
    StateError,
    StreamMetricsError,
    drift,
    load,
)
from streammetrics_consumers.config.keys import Required, key, read
from streammetrics_consumers.config.kinds import Text, Whole
from streammetrics_consumers.config.metrics import NAME, MetricConfig
from streammetrics_consumers.config.section import Problem, RefusedSetting, Section, did_you_mean
from streammetrics_consumers.config.tables import WindowsConfig
from streammetrics_consumers.model.generation import DeclaredDrift
from streammetrics_consumers.model.times import iso_to_ms

PREVIOUS: Final = "previous"
MAX_DRIFTS: Final = 100
MAX_STATE_BYTES: Final = 64 << 20  # of a state file
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class DriftEntry:
    """The keys of an entry of [drift]."""

    metric: str = key(
        Text(64),
        Required("the name of a metric of [metrics]", 'name it, such as metric = "scores"', ""),
        "a metric of `Quantiles`, `ExactQuantiles`, `HistogramAUC` or `ExactAUC`",
    )
    reference: str = key(
        Text(),
        PREVIOUS,
        "what a window is compared with: `previous`, the window before it; `START/END` in ISO "
        "UTC, whole windows; or the path of a state file (`export`, or `save` of the library) "
        "of at most 64 MiB, relative to the config",
    )
    label: int | None = key(
        Whole(0, 1),
        None,
        "of `HistogramAUC` and `ExactAUC`: compare the scores of this class alone",
    )
    bins: int = key(Whole(2, 1000), 10, "bins of PSI, cut at the quantiles of the reference")


def read_drifts(
    section: Section, metrics: Sequence[MetricConfig], windows: WindowsConfig, directory: Path
) -> tuple[DeclaredDrift, ...]:
    """Read [drift]. directory: the base of relative paths of state files."""
    n_entries = len(section.table)
    if n_entries > MAX_DRIFTS:
        section.problem(section.title, f"at most {MAX_DRIFTS} entries", n_entries, "cut it")
    by_name = {metric.name: metric for metric in metrics}

    def read_drift(section: Section, name: str) -> DeclaredDrift:
        return _read_drift(section, name, by_name, windows, directory)

    drifts = tuple(section.each(read_drift, MAX_DRIFTS))
    section.done()
    return drifts


def _read_drift(
    section: Section,
    name: str,
    metrics: Mapping[str, MetricConfig],
    windows: WindowsConfig,
    directory: Path,
) -> DeclaredDrift:
    if not NAME.fullmatch(name) or name in metrics:
        expected = "a name of up to 64 letters, digits, `_`, `.` or `-` that no metric has"
        section.problem(f"[drift.{name}]", expected, name, "rename it")
    n_problems = len(section.problems)
    entry = Section(f"drift.{name}", section.raw(name), section.problems)
    declared = read(entry, DriftEntry)
    if len(section.problems) > n_problems:
        raise RefusedSetting
    if declared.metric not in metrics:
        hint = did_you_mean(declared.metric, list(metrics))
        entry.refuse("metric", "a metric of [metrics]", hint)
    metric, label, bins = metrics[declared.metric], declared.label, declared.bins
    if label is not None and "weights" in metric.inputs:
        expected = "nothing, since the rows of each label are not counted where rows have weights"
        entry.refuse("label", expected, "leave it out for the scores of all rows")
    reference = _reference(entry, declared.reference, windows, directory)
    declaration = DeclaredDrift(name, metric.name, reference, label, bins)
    try:
        saved = reference_of(declaration)
        drift(metric.empty if saved is None else saved, metric.empty, label=label, bins=bins)
    except StreamMetricsError as error:
        where = f"{entry.title} ({error.where})"
        entry.problems.append(Problem(where, error.expected, error.got, error.hint))
        raise RefusedSetting from None
    return declaration


def _reference(
    section: Section, text: str, windows: WindowsConfig, directory: Path
) -> str | tuple[int, int]:
    """A reference as it is declared."""
    if text == PREVIOUS:
        return text
    ends = [f"{end}T00:00:00Z" if _DATE.fullmatch(end) else end for end in text.split("/")]
    times, good = iso_to_ms(ends)
    if len(ends) != 2 or not good.all():
        return str((directory / text).resolve())
    start, end = times.tolist()
    size, slide = 1000 * windows.size_s, 1000 * windows.slide_s
    if start % slide or end - start < size or (end - start - size) % slide:
        expected = f"whole windows, {windows.size_s} s long, one every {windows.slide_s} s"
        section.refuse("reference", expected, "windows are aligned to the Unix epoch")
    return start, end


def reference_of(declared: DeclaredDrift) -> Accumulator | None:
    """The saved state that a drift compares with; None if it compares with a window.

    Raises StateError for a file that is not a state, or has none of the metric.
    """
    if declared.reference == PREVIOUS or not isinstance(declared.reference, str):
        return None
    state = _saved(Path(declared.reference))
    if isinstance(state, Panel):
        if declared.metric not in state.metrics:
            raise StateError(
                expected=f"a state of {declared.metric}",
                got=", ".join(state.metrics)[:200],
                where=declared.reference,
                hint=f"export it with --metric {declared.metric}",
            )
        return state.state(declared.metric)
    return state


def _saved(path: Path) -> Accumulator:
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_STATE_BYTES:
            raise StateError(
                expected=f"a file of at most {MAX_STATE_BYTES >> 20} MiB",
                got=f"{about.st_size} bytes" if stat.S_ISREG(about.st_mode) else "no file",
                where=str(path),
                hint="export the state of one metric with --metric",
            )
        return _loaded(path, about.st_ino, about.st_mtime_ns, about.st_size)
    except OSError as error:
        raise StateError(
            expected='"previous", START/END in ISO UTC, or a state file',
            got=str(error.strerror),
            where=str(path),
            hint="correct it, or check the file and its permissions",
        ) from None


@lru_cache(maxsize=8)
def _loaded(path: Path, inode: int, changed_ns: int, size: int) -> Accumulator:
    """The state in a file; a file that changes is read again."""
    with path.open("rb") as file:
        data = file.read(size)
    try:
        return load(data)
    except StateError as error:
        raise error.but(where=str(path)) from None
