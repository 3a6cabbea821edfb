"""Which columns the metrics of a panel read, and which of these are validated once for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.errors import InputError
from streammetrics.core.inputs import Validator, strongest, validated
from streammetrics.core.rows import DictionaryColumn

Given = Mapping[str, "ArrayLike | DictionaryColumn | None"]
Known = Mapping[str, NDArray[np.generic]]  # validated columns, all of one length


class Reader(NamedTuple):
    """A metric of a panel, and for each argument of its `update` which column it reads."""

    name: str
    metric: Accumulator
    inputs: tuple[tuple[str, str, bool], ...]  # argument, column, whether it must be there

    def check(self, columns: Given) -> Batch:
        """Its rows, or InputError."""
        mine = {}
        for argument, column, required in self.inputs:
            given = columns.get(column)
            if given is not None:
                mine[argument] = given
            elif required:
                raise InputError(
                    expected=f"the column {column!r}",
                    got=f"only {', '.join(sorted(columns)) or 'nothing'}",
                    where=f"Panel.update, metric {self.name!r}",
                    hint="pass it as a keyword, or rename another with `inputs`",
                )
        try:
            return self.metric.check(**mine)
        except InputError as error:
            raise InputError(
                expected=error.expected,
                got=error.got,
                where=f"metric {self.name!r}, {error.where}",
                hint=error.hint,
                rows=error.rows,
            ) from None

    def rows(self, shared: Batch) -> Batch:
        """Its rows of columns that are what `validators` wants."""
        known = shared.columns
        mine = {argument: known[column] for argument, column, _ in self.inputs if column in known}
        return self.metric.check(**mine)

    def validators(self, columns: frozenset[str]) -> list[tuple[str, Validator]]:
        """By what `check` is sure to take these columns; none where it alone can tell."""
        known = self.metric._validators
        mine = []
        for argument, column, required in self.inputs:
            if column in columns and argument in known:
                mine.append((column, known[argument]))
            elif column in columns or required:
                return []
        return mine


class Plan(NamedTuple):
    """What is validated where certain columns are given."""

    validators: tuple[tuple[str, Validator], ...]
    needs: tuple[frozenset[str], ...]  # of each metric; empty where it must check by itself
    sure: bool  # none must

    def validated(self, columns: Given) -> Known:
        """Those of the columns that are what they should be; none unless all have one length."""
        known: dict[str, NDArray[np.generic]] = {}
        n = 0
        for name, validator in self.validators:
            column = validated(columns[name], validator)
            if column is not None:
                n = n or len(column)
                if len(column) != n:
                    return {}
                known[name] = column
        return known


def plan_of(readers: Sequence[Reader], columns: frozenset[str]) -> Plan:
    """How to validate these columns once for all who read them."""
    each = [reader.validators(columns) for reader in readers]
    asked: dict[str, set[Validator]] = {}
    for mine in each:
        for column, validator in mine:
            asked.setdefault(column, set()).add(validator)
    every = [(column, strongest(some)) for column, some in asked.items()]
    sure = {column: validator for column, validator in every if validator is not None}
    needs = [frozenset(column for column, _ in mine) for mine in each]
    needs = [some if some <= sure.keys() else frozenset() for some in needs]
    return Plan(tuple(sure.items()), tuple(needs), all(needs))
