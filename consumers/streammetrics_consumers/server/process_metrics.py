"""What each process uses, under the names that Prometheus has for it, and what it runs.

The series of the serving process have no label, as those of any program; a worker that is a process
of its own has the label `worker`.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from functools import partial

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from streammetrics import __version__
from streammetrics_consumers.counting.worker_status import WorkerStatus


def process_metrics(workers: Mapping[str, WorkerStatus]) -> Iterator[Metric]:
    """`process_*` and the build of this process, and of each worker that is another one."""
    others = {name: one.pid for name, one in workers.items() if one.pid != os.getpid()}
    processes = {"": os.getpid(), **others}
    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    alive = {""}
    for worker, pid in processes.items():
        for found in ProcessCollector(pid=partial(int, pid), registry=None).collect():
            kind = CounterMetricFamily if found.type == "counter" else GaugeMetricFamily
            family = families.setdefault(
                found.name, kind(found.name, found.documentation, labels=["worker"])
            )
            for sample in found.samples:
                alive.add(worker)
                family.add_metric([worker], sample.value)
    yield from families.values()
    build = GaugeMetricFamily(
        "streammetrics_build_info", "The program that runs; its value is 1",
        labels=["version", "python", "worker"],
    )  # fmt: skip
    for worker in sorted(alive):
        build.add_metric([__version__, platform.python_version(), worker], 1)
    yield build
