"""The columns that the metrics of a panel read, and those that are validated once for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.errors import InputError
from streammetrics.core.rows import DictionaryColumn
from streammetrics.core.validators import Validator, strongest, validated

Given = Mapping[str, "ArrayLike | DictionaryColumn | None"]
Known = Mapping[str, NDArray[np.generic]]  # validated columns, all of one length


class Reader(NamedTuple):
    """A metric of a panel, and the column that each argument of its `update` reads."""

    name: str
    metric: Accumulator
    inputs: tuple[tuple[str, str, bool], ...]  # argument, column, whether it must be there

    def check(self, columns: Given) -> Batch:
        """The rows of the metric, or InputError."""
        arguments = {}
        for argument, column, required in self.inputs:
            column_values = columns.get(column)
            if column_values is not None:
                arguments[argument] = column_values
            elif required:
                raise InputError(
                    expected=f"the column {column!r}",
                    got=f"columns {', '.join(sorted(columns))}" if columns else "no columns",
                    where=f"Panel.update, metric {self.name!r}",
                    hint="pass it as a keyword, or name another with `inputs`",
                )
        try:
            return self.metric.check(**arguments)
        except InputError as error:
            raise InputError(
                expected=error.expected,
                got=error.got,
                where=f"metric {self.name!r}, {error.where}",
                hint=error.hint,
                rows=error.rows,
            ) from None

    def rows(self, shared: Batch) -> Batch:
        """The rows of the metric, from columns that `validators` accepted."""
        columns = shared.columns
        arguments = {
            argument: columns[column] for argument, column, _ in self.inputs if column in columns
        }
        return self.metric.check(**arguments)

    def validators(self, columns: frozenset[str]) -> list[tuple[str, Validator]]:
        """The validators after which `check` accepts these columns; none if only it can decide."""
        validators = self.metric._validators
        pairs = []
        for argument, column, required in self.inputs:
            if column in columns and argument in validators:
                pairs.append((column, validators[argument]))
            elif column in columns or required:
                return []
        return pairs


class Plan(NamedTuple):
    """The validation for one set of given columns."""

    validators: tuple[tuple[str, Validator], ...]
    needs: tuple[frozenset[str], ...]  # by metric; empty if it must check by itself
    sure: bool  # no metric must

    def validated(self, columns: Given) -> Known:
        """The valid columns; none unless all of them have one length."""
        valid: dict[str, NDArray[np.generic]] = {}
        n = 0
        for name, validator in self.validators:
            column = validated(columns[name], validator)
            if column is not None:
                n = n or len(column)
                if len(column) != n:
                    return {}
                valid[name] = column
        return valid


def plan_of(readers: Sequence[Reader], columns: frozenset[str]) -> Plan:
    """The plan to validate these columns once for all metrics that read them."""
    all_pairs = [reader.validators(columns) for reader in readers]
    by_column: dict[str, set[Validator]] = {}
    for pairs in all_pairs:
        for column, validator in pairs:
            by_column.setdefault(column, set()).add(validator)
    every = [(column, strongest(validators)) for column, validators in by_column.items()]
    sure = {column: validator for column, validator in every if validator is not None}
    needs = [frozenset(column for column, _ in pairs) for pairs in all_pairs]
    needs = [needed if needed <= sure.keys() else frozenset() for needed in needs]
    return Plan(tuple(sure.items()), tuple(needs), all(needs))
