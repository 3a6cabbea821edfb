from __future__ import annotations

from importlib.util import find_spec

from tests.requirements import absent


def test_spark_is_in_this_environment() -> None:
    if find_spec("pyspark") is None:
        absent("spark", "pyspark is not installed in this environment")
