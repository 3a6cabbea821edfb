"""One Spark for all tests: it takes seven seconds to start, and a process has one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.requirements import ROOT, absent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Without Spark, nothing here is imported but the test that skips and says how to enable it.
if find_spec("pyspark") is None:
    here = Path(__file__).parent
    collect_ignore = [path.name for path in here.glob("*.py") if path.name != "test_environment.py"]

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


# Jobs of seconds: what the better compiler of a JVM costs is more than it gives, twice as much.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="session", autouse=True)
def _quick_jvms() -> Iterator[None]:
    """Every JVM that starts from here, those of further processes too."""
    with pytest.MonkeyPatch.context() as patch:
        options = os.environ.get("JAVA_TOOL_OPTIONS", "")
        patch.setenv("JAVA_TOOL_OPTIONS", f"{options} {QUICK_JVM}".strip())
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two cores, two tries for each task, small batches, so that each task has several."""
    from pyspark.sql import SparkSession

    patch = pytest.MonkeyPatch()
    patch.setenv("PYSPARK_PYTHON", sys.executable)
    patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    builder = SparkSession.builder.master("local[2,2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()
        patch.undo()


@pytest.fixture(scope="session")
def spark_kafka(spark: SparkSession, kafka: str) -> str:
    """The broker, where Spark has its source of Kafka; its jars come from Maven."""
    from tests.kafka_broker import Unavailable, fetch_jars

    try:
        jars = fetch_jars(ROOT / ".cache" / "spark-kafka", Path(__file__).parent / "pom.xml")
    except (Unavailable, FileNotFoundError) as error:
        absent("kafka", str(error))
    for jar in sorted(jars.glob("*.jar")):
        spark.sql(f"ADD JAR '{jar}'")
    return kafka
