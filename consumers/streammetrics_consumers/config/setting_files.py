"""Settings of metrics in files of their own, such as the vectors of many items."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics_consumers.config.section import RefusedSetting, Section

Table: TypeAlias = "NDArray[np.generic]"

MAX_SETTING_BYTES: Final = 256 << 20


def read_setting_file(section: Section, directory: Path) -> Table:
    """A setting in a file of its own, such as the vectors of many items.

    section: with `path`, relative to `directory`, and `columns`. The file has a row for each item
    number, from 0, in order. `.npy` holds an array of numbers [rows, columns]; `.csv` has a header,
    and its values are numbers if all of them are, else texts.
    """
    unknown = [key for key in section.table if key not in ("path", "columns")]
    for key in unknown:
        section.unknown(section.where(key), "path and columns", key, ["path", "columns"])
    if unknown:
        raise RefusedSetting
    name, columns = section.raw("path"), section.raw("columns")
    if not isinstance(name, str) or Path(name).suffix not in (".csv", ".npy"):
        section.refuse("path", "a .csv or .npy file", "name the file")
    if columns is not None and not (
        name.endswith(".csv")
        and isinstance(columns, list)
        and columns
        and all(isinstance(column, str) for column in columns)
    ):
        hint = "name them, or leave the key out for all columns"
        section.refuse("columns", "names of columns of a .csv file", hint)
    path, where = directory / Path(name).expanduser(), section.where("path")
    try:
        if path.stat().st_size > MAX_SETTING_BYTES:
            raise ValueError(f"more than {MAX_SETTING_BYTES} bytes")
        if path.suffix == ".npy":
            array = np.load(path)
            if not isinstance(array, np.ndarray):
                raise ValueError("several arrays")
            return array
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _csv_columns(list(csv.reader(file, strict=True)), columns)
    except OSError as error:
        section.problem(where, "a readable file", error.strerror, "check the path")
    except (ValueError, EOFError, MemoryError, csv.Error) as error:
        section.problem(where, "a table of items", str(error), "correct the file")
    raise RefusedSetting


def _csv_columns(rows: Sequence[Sequence[str]], names: Sequence[str] | None) -> Table:
    header, *body = rows or [[]]
    columns = names or header
    for name in columns:
        if header.count(name) != 1:
            raise ValueError(f"{header.count(name)} columns {name!r} in its header")
    for number, row in enumerate(body, 2):
        if len(row) != len(header):
            raise ValueError(f"{len(row)} values in row {number}, {len(header)} in its header")
    positions = [header.index(name) for name in columns]
    texts = [[row[place] for place in positions] for row in body]
    try:
        return np.array(texts, np.float64).reshape(len(texts), len(positions))
    except ValueError:
        return np.array(texts, object)
