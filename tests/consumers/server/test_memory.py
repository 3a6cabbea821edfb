"""The memory of a server: the limit that it has, and the cache within it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import text
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.server import process
from streammetrics_consumers.server.memory import default_cache_bytes, memory_limit, resident_bytes

from tests import patience
from tests.consumers.server.test_events import ALONE
from tests.consumers.stores import event, make_store
from tests.patience import LIMIT_S
from tests.requirements import ROOT

GIB = 1 << 30
MEMINFO = {"proc/meminfo": "MemTotal:       8388608 kB\nMemFree: 1 kB\n"}
NONE_OF_VERSION_1 = "9223372036854771712\n"


def system(folder: Path, files: Mapping[str, str]) -> Path:
    """A file system with these files."""
    for name, content in {**MEMINFO, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, 8 * GIB),
        # A container sees its own group as the mount.
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{GIB}\n"}, GIB),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 8 * GIB),
        # A service of systemd, in a slice with a lower limit.
        (
            {
                "proc/self/cgroup": "0::/system.slice/clicks.service\n",
                "sys/fs/cgroup/system.slice/clicks.service/memory.max": f"{4 * GIB}\n",
                "sys/fs/cgroup/system.slice/memory.max": f"{2 * GIB}\n",
                "sys/fs/cgroup/memory.max": "max\n",
            },
            2 * GIB,
        ),
        (
            {
                "proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/docker/7\n1:name=systemd:/\n",
                "sys/fs/cgroup/memory/docker/7/memory.limit_in_bytes": f"{GIB // 2}\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": NONE_OF_VERSION_1,
            },
            GIB // 2,
        ),
        # The path of the host is not there within a container of version 1.
        (
            {
                "proc/self/cgroup": "4:memory:/kubepods/pod1\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB}\n",
            },
            GIB,
        ),
        ({"proc/self/cgroup": "4:memory:/\n",
          "sys/fs/cgroup/memory/memory.limit_in_bytes": NONE_OF_VERSION_1}, 8 * GIB),
    ],
    ids=["machine", "v2", "v2 without", "v2 nested", "v1", "v1 container", "v1 without"],
)  # fmt: skip
def test_the_limit_is_that_of_the_control_group(
    tmp_path: Path, files: Mapping[str, str], limit: int
) -> None:
    assert memory_limit(system(tmp_path, files)) == limit
    assert default_cache_bytes(tmp_path) == limit // 4


def test_resident_memory_is_measured() -> None:
    assert (resident_bytes() or 0) > 10 << 20
    assert resident_bytes(2**30) is None


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of a hundred items."""
    events = [event(index % 50, "ab"[index % 2], index % 3 == 0, index % 97 / 97, f"i{index // 20}")
              for index in range(2000)]  # fmt: skip
    return make_store(tmp_path_factory.mktemp("many"), events)


@contextmanager
def served(store: Path, *flags: str) -> Iterator[str]:
    """The address of `streammetrics serve` in a process of its own."""
    command = [sys.executable, "-m", "streammetrics_consumers.cli", "serve", str(store), *flags]
    with ExitStack() as stack:
        served = stack.enter_context(
            subprocess.Popen([*command, "--port", "0"], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        )
        stack.callback(served.terminate)
        assert served.stderr is not None
        yield served.stderr.readline().removeprefix("serving ").strip()


def scraped(url: str) -> Mapping[str, float]:
    """The series of the serving process itself."""
    families = text_string_to_metric_families(httpx.get(url + "metrics", timeout=LIMIT_S).text)
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_a_server_keeps_no_more_than_it_may_and_says_how_much_it_uses(many: Path) -> None:
    limit, sizes, resident = 2_000_000, {}, {}
    for flags in (("--cache-bytes", str(limit)), ()):
        with served(many, *flags) as url:
            for item in range(100):
                query = f"api/results?by=variant,phase&where=phase=i{item}"
                for views in ("headline", "all"):
                    whole = f"{url}{query}&views={views}"
                    assert httpx.get(whole, timeout=LIMIT_S).status_code == 200
            samples = scraped(url)
        sizes[flags] = samples["streammetrics_cache_bytes"]
        resident[flags] = samples["process_resident_memory_bytes"]
        assert samples["process_open_fds"] > 3 and samples["process_cpu_seconds_total"] > 0
        assert samples["streammetrics_build_info"] == 1
        expected = limit if flags else default_cache_bytes()
        assert samples["streammetrics_cache_limit_bytes"] == expected
    (small, large), (little, much) = sizes.values(), resident.values()
    assert small <= limit < large
    # What is removed is given back. Keys that states share are counted for each of them.
    assert much - little > (large - small) / 4


def test_with_little_memory_left_nothing_is_kept(many: Path) -> None:
    emptied: list[str] = []
    full = False
    with closing(Ledger.open(str(many))) as ledger:
        cache = QueryCache(ledger, is_full=lambda: full, emptied=lambda: emptied.append("once"))
        rows = cache.results(Query()).rows
        assert cache.nbytes > 0 and not emptied
        full = True
        assert cache.results(Query()).rows == rows
        assert cache.nbytes == 0 and emptied == ["once"]


def test_connections_that_nobody_uses_are_closed(many: Path) -> None:
    with closing(Ledger.open(str(many))) as ledger:
        pool = ledger.store.engine.pool
        with ExitStack() as stack:
            for _ in range(3):
                connection = stack.enter_context(ledger.store.engine.connect())
                connection.execute(text("SELECT 1"))
        assert re.search(r"Connections in pool: [34]\b", pool.status())
        ledger.close_idle()
        assert "Connections in pool: 0" in ledger.store.engine.pool.status()
        ledger.snapshot()
        pool = ledger.store.engine.pool
        ledger.close_idle()
        assert ledger.store.engine.pool is pool  # one is kept


def test_a_server_closes_them_by_itself(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Ledger] = []
    monkeypatch.setattr(process, "IDLE_S", 0.01)
    monkeypatch.setattr(Ledger, "close_idle", lambda ledger: closed.append(ledger))
    with process.serving(str(many), ServerConfig(port=0), ALONE):
        patience.until(lambda: len(closed) > 1)
