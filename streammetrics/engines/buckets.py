"""Which bucket a user is in, where no engine brings a hash of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.ids.unit_hashes import salt_word, unit_hashes

if TYPE_CHECKING:
    import pyarrow as pa

HASH: Final = "splitmix64"  # what a `Sealing` of these buckets calls it
MAX_BUCKETS: Final = 1 << 20
_SALT: Final = salt_word("streammetrics-bucket")


def user_buckets(column: pa.Array, n: int) -> pa.Array:
    """int32 [rows]: the bucket of each user, from 0 to n - 1; the same everywhere, for ever.

    column: integers of 64 bits or strings, plain or as a dictionary. n: how many buckets, at
    least 1. InputError for a null or another type. The integer 5 and the string "5" are two users.

    >>> import pyarrow as pa
    >>> user_buckets(pa.array(["ann", "bo", "ann"]), 8).to_pylist()
    [5, 4, 5]
    """
    import pyarrow as pa

    require_buckets(n)
    if column.null_count:
        raise _refused(f"{column.null_count} rows without a user")
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_integer(kind):
        plain = column.dictionary_decode() if kind is not column.type else column
        words = unit_hashes(np.array(plain), _SALT, "users")
        return pa.array((words % np.uint64(n)).astype(np.int32))
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise _refused(f"a column of {column.type}")
    dictionary_column = column if kind is not column.type else column.dictionary_encode()
    words = unit_hashes(dictionary_column.dictionary.to_pylist(), _SALT, "users")
    return pa.array((words % np.uint64(n)).astype(np.int32)[np.array(dictionary_column.indices)])


def require_buckets(n: int) -> None:
    """SettingsError for a number of buckets that is none."""
    if type(n) is not int or not 1 <= n <= MAX_BUCKETS:
        raise SettingsError(
            expected=f"an integer from 1 to {MAX_BUCKETS}",
            got=shown(n),
            where="n_buckets",
            hint="pass how many buckets users are hashed into",
        )


def _refused(got: str) -> InputError:
    return InputError(
        expected="a user for each row, as integers or strings",
        got=got,
        where="the column of the users",
        hint="cast the column, or leave out rows without a user",
    )
