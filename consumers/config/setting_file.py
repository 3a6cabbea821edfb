"""A setting that stands in a file of its own, as the vectors of many items do.

`vectors = { path = "items.csv", columns = ["colour", "brand"] }`: a row for each item number, from
0, in the order of the file. `.npy` holds an array of numbers [rows, columns]; `.csv` has a header,
and its values are numbers where all of them are, else texts.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from consumers.config.schema import Section, did_you_mean

Table: TypeAlias = "NDArray[np.generic]"

MAX_SETTING_BYTES: Final = 256 << 20


def read_setting_file(
    section: Section, where: str, given: dict[str, object], directory: Path
) -> Table | None:
    """The array in a file, or None after noting what is wrong.

    given: `path`, relative to `directory`, and `columns`.
    """
    unknown = [key for key in given if key not in ("path", "columns")]
    for key in unknown:
        section.problem(f"{where}.{key}", "path and columns", key,
                        did_you_mean(key, ["path", "columns"]))  # fmt: skip
    if unknown:
        return None
    name, columns = given.get("path"), given.get("columns")
    if not isinstance(name, str) or Path(name).suffix not in (".csv", ".npy"):
        section.problem(f"{where}.path", "a .csv or .npy file", name, "name the file")
        return None
    if columns is not None and not (
        name.endswith(".csv")
        and isinstance(columns, list)
        and columns
        and all(isinstance(column, str) for column in columns)
    ):
        section.problem(f"{where}.columns", "names of columns of a .csv file", columns,
                        "name them, or leave it out for all")  # fmt: skip
        return None
    path = directory / Path(name).expanduser()
    try:
        if path.stat().st_size > MAX_SETTING_BYTES:
            raise ValueError(f"more than {MAX_SETTING_BYTES} bytes")
        if path.suffix == ".npy":
            array = np.load(path)
            if not isinstance(array, np.ndarray):
                raise ValueError("several arrays")
            return array
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _columns(list(csv.reader(file, strict=True)), columns)
    except OSError as error:
        section.problem(f"{where}.path", "a readable file", error.strerror, "check the path")
    except (ValueError, EOFError, MemoryError, csv.Error) as error:
        section.problem(f"{where}.path", "a table of items", str(error), "correct the file")
    return None


def _columns(rows: Sequence[Sequence[str]], names: Sequence[str] | None) -> Table:
    header, *body = rows or [[]]
    wanted = names or header
    for name in wanted:
        if header.count(name) != 1:
            raise ValueError(f"{header.count(name)} columns {name!r} in its header")
    for number, row in enumerate(body, 2):
        if len(row) != len(header):
            raise ValueError(f"{len(row)} values in row {number}, {len(header)} in its header")
    at = [header.index(name) for name in wanted]
    texts = [[row[place] for place in at] for row in body]
    try:
        return np.array(texts, np.float64).reshape(len(texts), len(at))
    except ValueError:
        return np.array(texts, object)
