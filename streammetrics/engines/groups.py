"""Groups of rows and buckets of users: columns of keys to tuples of values, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.buffer import NARROW
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.ids.found_keys import NOT_FOUND, FoundKeys
from streammetrics.core.ids.keys import (
    MAX_KEY_BYTES,
    dictionary_column,
    encode_key,
    most_bytes_of,
    tuples_of,
)
from streammetrics.core.ids.unit_hashes import salt_word, unit_hashes
from streammetrics.core.rows import DictionaryColumn, Key, Scalar
from streammetrics.core.tables.arrow_values import encoded_values, numbers

if TYPE_CHECKING:
    import pyarrow as pa

Group: TypeAlias = tuple[Scalar, ...]
Value = TypeVar("Value")

BUCKET: Final = "bucket"
STATE: Final = "state"


def group_names(by: object) -> tuple[str, ...]:
    """The names of the group columns; a text is one name. SettingsError for what are no names."""
    names = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, Iterable) else None
    if names is not None and all(isinstance(name, str) for name in names):
        return cast("tuple[str, ...]", names)
    raise SettingsError(
        expected="the names of columns",
        got=shown(by),
        where="by",
        hint='pass them in a list, as in by=["variant"], or leave it out for all rows together',
    )


def group_types(schema: pa.Schema, by: Sequence[str], bucket: str | None = None) -> list[pa.Field]:
    """The output field of each group column, and of that of the buckets if there is one; InputError
    for a column that cannot be one."""
    import pyarrow as pa

    fields = []
    names = [*by] if bucket is None else [*by, bucket]
    for name in names:
        kind = _value_type(field_of(schema, name, "by").type)
        is_allowed = (
            _is_text(kind)
            or pa.types.is_integer(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_null(kind)
        )
        if not is_allowed:
            raise InputError(
                expected="strings, integers or bools",
                got=str(kind),
                where=f"by, column {name!r}",
                hint="cast the column, for example a date to a string",
            )
        if (name in (BUCKET, STATE) and name in by) or names.count(name) > 1:
            raise InputError(
                expected=f"names of columns, each once, none of them {BUCKET!r} or {STATE!r}",
                got=repr(name),
                where="by",
                hint="rename the column",
            )
        fields.append(pa.field(name, kind))
    return fields


class GroupFields:
    """The output fields of the group columns of batches, which have one type in all of them."""

    def __init__(self, by: Sequence[str], bucket: str | None = None) -> None:
        self.by, self.bucket = by, bucket
        self.fields: list[pa.Field] | None = None
        self._schema: pa.Schema | None = None  # of the last batch

    def see(self, schema: pa.Schema) -> None:
        """Note the columns of a batch; InputError if they are not there, or of other types."""
        if self._schema is not None and self._schema.equals(schema):
            return
        fields = group_types(schema, self.by, self.bucket)
        if self.fields is not None:
            fields = [*map(_united, self.fields, fields)]
        self.fields, self._schema = fields, schema


def _united(earlier: pa.Field, later: pa.Field) -> pa.Field:
    """The output field of a column in all batches. One of nulls goes with any other."""
    import pyarrow as pa

    if pa.types.is_null(earlier.type):
        return later
    both_texts = _is_text(earlier.type) and _is_text(later.type)
    if not (both_texts or earlier.type == later.type or pa.types.is_null(later.type)):
        raise InputError(
            expected=f"{earlier.type}, as in the batches before",
            got=str(later.type),
            where=f"by, column {earlier.name!r}",
            hint="cast the column to one type in all batches",
        )
    return earlier


def grouped(batch: pa.RecordBatch, by: Sequence[str]) -> DictionaryColumn:
    """The group of each row, as tuples of values; bools are 0 and 1 here."""
    return tuples_of([_keys_of(batch.column(name), name) for name in by], batch.num_rows)


class TextGroups:
    """The groups that one column of texts has had, and the slot of each in the map of a state.

    Arrow looks up the texts of a batch, so Python makes objects of the new ones alone. Batches in
    which that costs more than `grouped` are left to it.
    """

    def __init__(self) -> None:
        self.texts: pa.Array | None = None
        self.keys: tuple[Group, ...] = ()
        self.slots = np.empty(0, np.intp)

    def column(
        self, texts: pa.Array, kept_rows: NDArray[np.intp] | None, index: Mapping[Key, int]
    ) -> FoundKeys | None:
        """The group of each row, looked up in `index`, the map of the state; None if `grouped` must
        read them. kept_rows: those to take; None for all."""
        import pyarrow.compute as pc

        n = len(texts) if kept_rows is None else len(kept_rows)
        if not _is_text(texts.type) or n < NARROW or len(self.keys) > 2 * n:
            return None
        earlier = texts.slice(0, 0) if self.texts is None else self.texts
        if earlier.type != texts.type:
            return None
        places = pc.index_in(texts, value_set=earlier)
        if places.null_count:
            if not self._add(texts.filter(places.is_null()).unique()):
                return None
            places = pc.index_in(texts, value_set=self.texts)
        new = np.flatnonzero(self.slots == NOT_FOUND)
        keys = map(self.keys.__getitem__, new.tolist())
        self.slots[new] = [index.get(key, NOT_FOUND) for key in keys]
        codes = numbers(places).astype(np.intp)
        codes = codes if kept_rows is None else codes[kept_rows]
        return FoundKeys(codes, self.keys, index, self.slots[codes])

    def _add(self, texts: pa.Array) -> bool:
        """Add groups; False if one of them may be no key, of which `grouped` tells the rows."""
        import pyarrow as pa

        try:
            keys = [(text,) for text in texts.to_pylist()]
        except UnicodeDecodeError:
            return False
        if most_bytes_of(keys, {tuple}) >= MAX_KEY_BYTES:
            return False
        self.texts = texts if self.texts is None else pa.concat_arrays([self.texts, texts])
        self.keys = (*self.keys, *keys)
        self.slots = np.append(self.slots, np.full(len(keys), NOT_FOUND))
        return True


def _keys_of(column: pa.Array, name: str) -> DictionaryColumn:
    import pyarrow as pa

    if pa.types.is_integer(column.type) and not column.null_count:
        return dictionary_column(numbers(column))  # in half the time of Arrow
    encoded = encoded_values(column, name)
    return DictionaryColumn(encoded.codes, plain_group(encoded.values))


def columns_of(groups: Sequence[Group], fields: Sequence[pa.Field]) -> list[pa.Array]:
    """The column of each group field for these groups."""
    import pyarrow as pa

    typed = typed_groups(groups, fields)
    return [pa.array([group[i] for group in typed], field.type) for i, field in enumerate(fields)]


def typed_groups(groups: Sequence[Group], fields: Sequence[pa.Field]) -> Sequence[Group]:
    """The groups with the values of their columns: bools, where keys have 0 and 1."""
    import pyarrow.types as kinds

    bools = [i for i, field in enumerate(fields) if kinds.is_boolean(field.type)]
    if not bools:
        return groups
    return [
        tuple(
            bool(value) if i in bools and value is not None else value
            for i, value in enumerate(group)
        )
        for group in groups
    ]


def plain_group(values: Iterable[Value]) -> tuple[Value | int, ...]:
    """The values in the form of keys: bools are 0 and 1."""
    return tuple([int(value) if isinstance(value, bool) else value for value in values])


def piece_of(group: Iterable[Scalar], bucket: int) -> str:
    """The name of the rows of a group and a user bucket in provenance.

    >>> piece_of(("a", None), 3)
    '["a",null] bucket 3'
    """
    return f"{piece_of_group(group)} bucket {bucket}"


def piece_of_group(group: Iterable[Scalar]) -> str:
    """The name of the rows of a group, all buckets, in provenance.

    >>> piece_of_group(("a", True))
    '["a",1]'
    """
    return encode_key(plain_group(group)).decode()


def require_batch(batch: object, where: str) -> None:
    """InputError for what is no batch of Arrow, such as a column of a table."""
    import pyarrow as pa

    if not isinstance(batch, pa.RecordBatch):
        raise InputError(
            expected="record batches of Arrow",
            got=shown(type(batch)),
            where=f"{where}(batches)",
            hint="pass pyarrow.table(rows).to_batches() for a table, [batch] for one batch",
        )


def field_of(schema: pa.Schema, name: str, where: str) -> pa.Field:
    """The field of a column; InputError unless there is one of this name."""
    if name not in schema.names:
        raise InputError(
            expected=f"one of the columns ({', '.join(schema.names)})",
            got=repr(name),
            where=where,
            hint="correct the name",
        )
    if schema.names.count(name) > 1:
        raise InputError(
            expected="one column of this name",
            got=f"several columns {name!r}",
            where=where,
            hint="rename the others",
        )
    return schema.field(name)


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _value_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values; texts of a view are texts, since Arrow can do little with views."""
    import pyarrow as pa

    value_type = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if pa.types.is_string_view(value_type) else value_type


HASH: Final = "splitmix64"  # its name in a `Sealing` of these buckets
MAX_BUCKETS: Final = 1 << 20
_SALT: Final = salt_word("streammetrics-bucket")


def user_buckets(column: pa.Array, n: int) -> pa.Array:
    """int32 [rows]: the bucket of each user, from 0 to n - 1; stable across machines and releases.

    column: 64-bit integers or strings, plain or as a dictionary. n: the number of buckets, at
    least 1. InputError for a null or another type. The integer 5 and the string "5" are two users.

    >>> import pyarrow as pa
    >>> user_buckets(pa.array(["ann", "bo", "ann"]), 8).to_pylist()
    [5, 4, 5]
    """
    import pyarrow as pa

    require_buckets(n)
    kind = _value_type(column.type)
    are_integers = pa.types.is_integer(kind)
    if pa.types.is_dictionary(column.type) and (are_integers or column.dictionary.null_count):
        column = column.dictionary_decode()  # a null that no row has is none
    if column.null_count:
        raise _refused(f"{column.null_count} rows without a user")
    if not (are_integers or _is_text(kind)):
        raise _refused(f"a column of {column.type}")
    users = np.array(column) if are_integers else encoded_values(column, "users")
    words = unit_hashes(users, _SALT, "users")
    return pa.array((words % np.uint64(n)).astype(np.int32))


def require_users(user: str | None, n_buckets: int | None) -> None:
    """SettingsError for users without buckets or vice versa, or an invalid number of buckets."""
    if (user is None) is not (n_buckets is None):
        raise SettingsError(
            expected="user and n_buckets together, or neither",
            got=f"user={shown(user)}, n_buckets={shown(n_buckets)}",
            where="states",
            hint="pass the column of the users and the number of buckets",
        )
    if n_buckets is not None:
        require_buckets(n_buckets)


def require_buckets(n: int) -> None:
    """SettingsError for an invalid number of buckets."""
    if type(n) is not int or not 1 <= n <= MAX_BUCKETS:
        raise SettingsError(
            expected=f"an integer from 1 to {MAX_BUCKETS}",
            got=shown(n),
            where="n_buckets",
            hint="pass the number of buckets that users are hashed into",
        )


def _refused(got: str) -> InputError:
    return InputError(
        expected="a user for each row, as integers or strings",
        got=got,
        where="the column of the users",
        hint="cast the column, or leave out rows without a user",
    )
