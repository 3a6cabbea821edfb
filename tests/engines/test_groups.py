from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streammetrics import InputError, SettingsError
from streammetrics.engines.groups import user_buckets


def test_buckets_are_even_and_do_not_depend_on_the_type_of_the_integers() -> None:
    users = np.arange(100_000)
    found = np.array(user_buckets(pa.array(users), 64))
    counts = np.bincount(found, minlength=64)
    assert counts.min() > 1_400 and counts.max() < 1_750
    for column in (pa.array(users.astype(np.int32)), pa.array(users).dictionary_encode()):
        assert user_buckets(column, 64).to_pylist() == found.tolist()


def test_strings_have_one_bucket_however_they_are_coded() -> None:
    users = ["ann", "bo", "cäcilie", "ann", ""]
    plain = user_buckets(pa.array(users), 1000).to_pylist()
    for kind in (pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        assert user_buckets(pa.array(users, pa.string()).cast(kind), 1000).to_pylist() == plain
    assert plain[0] == plain[3]
    assert len(set(plain)) == 4


def test_buckets_never_change() -> None:
    assert user_buckets(pa.array([0, 1, 2, -1]), 1 << 20).to_pylist() == GOLDEN_INTEGERS
    assert user_buckets(pa.array(["", "ann", "5"]), 1 << 20).to_pylist() == GOLDEN_STRINGS


def test_what_is_no_user_is_refused() -> None:
    for column, got in (
        (pa.array([1, None]), "1 rows without a user"),
        (pa.array([0.5]), "a column of double"),
    ):
        with pytest.raises(InputError, match=got):
            user_buckets(column, 4)


def test_what_is_no_number_of_buckets_is_refused() -> None:
    wrong: list[Any] = [0, True, 1.0, (1 << 20) + 1]
    for n in wrong:
        with pytest.raises(SettingsError):
            user_buckets(pa.array([1]), n)


GOLDEN_INTEGERS = [433170, 948837, 341820, 1014005]
GOLDEN_STRINGS = [239270, 1008437, 257340]
