"""Every block of the tutorials, guides and essays runs, and prints what the page shows.

The pages that compare with a peer, or that need one, run in its environment: `make peers` and
`make site` make these. A page without an environment runs in that of the tests.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from docs import metrics_page
from tests import site_blocks
from tests.patience import LIMIT_S
from tests.ports import free_ports
from tests.requirements import ROOT, Later, absent

if TYPE_CHECKING:
    from tests import kafka_broker
else:
    kafka_broker = Later("tests.kafka_broker")

DOCS = ROOT / "docs"
FOLDERS = ("tutorials", "how_to", "coming_from", "essays")
PAGES = sorted(
    [*(page for folder in FOLDERS for page in (DOCS / folder).glob("*.md")), DOCS / "faq.md"]
)
PAGES += [DOCS / "outgrowing.md", DOCS / "index.md"]
NAMES = {page: str(page.relative_to(DOCS)) for page in PAGES}
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
ON_KAFKA = DOCS / "tutorials" / "live_test.md"
BROKER = DOCS / "how_to" / "kafka_without_docker.md"
START_BROKER = "java @java.options kafka.Kafka server.properties"
# What installs something, or does not end: only these lines do not run.
INSTALLS = ("pip install ", "make ", "docker run ", "streammetrics run ", START_BROKER)


def ran(page: Path, folder: Path) -> None:
    """Fails unless the blocks of a page run in its environment, and print what it shows."""
    environment = site_blocks.environment_of(page.read_text(encoding="utf-8"))
    python = ROOT / ".cache" / environment / "bin" / "python" if environment else sys.executable
    if not Path(python).exists():
        absent(environment, f".cache/{environment} is not there")
    variables = {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'consumers'}",
        "NUMBA_DISABLE_JIT": "1",  # half a minute for the ten lists of a page: tests/peers compiles
    }
    process = subprocess.run(
        [python, site_blocks.__file__, page],
        cwd=folder, capture_output=True, text=True, env={**os.environ, **variables},
    )  # fmt: skip
    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.parametrize("page", PAGES, ids=NAMES.values())
def test_each_block_of_a_page_is_of_a_kind_that_a_test_runs(page: Path) -> None:
    for block in site_blocks.blocks(TEXTS[page]):
        assert block.kind in {"python", "bash", "text", "sh"} or block.title, block
        assert max(map(len, block.text.splitlines())) <= 100, block  # a laptop shows no more
        if block.kind == "sh":
            assert all(line.startswith(INSTALLS) for line in block.text.splitlines()), block


@pytest.mark.docs
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name, marks=pytest.mark.xdist_group(f"page {name}"))
        for page, name in sorted(NAMES.items())
        if page not in (ON_KAFKA, BROKER)
    ],
)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    ran(page, tmp_path)


@pytest.mark.docs
@pytest.mark.kafka
def test_the_tutorial_on_kafka_runs_with_a_broker(kafka: str, tmp_path: Path) -> None:
    text = TEXTS[ON_KAFKA]
    assert text.count("localhost:9092") >= 3
    page = tmp_path / "page.md"
    page.write_text(text.replace("localhost:9092", kafka), encoding="utf-8")
    ran(page, tmp_path)


@contextlib.contextmanager
def started(command: str, folder: Path, port: int) -> Iterator[None]:
    """A broker that a command of a page starts; it ends with the block, or with this process."""
    with (
        (folder / "broker.log").open("wb") as log,
        subprocess.Popen(
            ["sh", "-c", kafka_broker.TIED, "sh", *command.split()], cwd=folder,
            stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
        ) as process,
    ):  # fmt: skip
        try:
            limit = time.monotonic() + LIMIT_S
            while not kafka_broker.answers_api_versions(f"127.0.0.1:{port}"):
                ended = process.poll() is not None or time.monotonic() > limit
                assert not ended, (folder / "broker.log").read_text(errors="replace")
                time.sleep(0.05)
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.docs
@pytest.mark.kafka
def test_the_commands_for_a_broker_without_docker_start_one(tmp_path: Path) -> None:
    if why := kafka_broker.missing():
        absent("kafka", why)
    try:
        folder = kafka_broker.fetch_jars()
    except kafka_broker.Unavailable as error:
        absent("kafka", str(error))
    text, maven = TEXTS[BROKER], " ".join(kafka_broker.COPY_JARS)
    assert text.count(f"{maven} -DoutputDirectory=jars\n") == 1  # what fetch_jars runs
    jars = re.compile("<dependency>.*?</dependency>", re.DOTALL)
    pom = re.sub("<!--.*?-->", "", kafka_broker.POM.read_text("utf-8"), flags=re.DOTALL)
    assert [jar.split() for jar in jars.findall(text)] == [jar.split() for jar in jars.findall(pom)]
    text = text.replace(f"{maven} -DoutputDirectory=jars", f"ln -s {folder} jars")
    ports = free_ports(2)
    for shown_as, port in zip(("localhost:9092", "localhost:9093"), ports, strict=True):
        text = text.replace(shown_as, f"localhost:{port}")
    before, _, after = text.partition(f"```sh\n{START_BROKER}\n```\n")
    page = tmp_path / "page.md"
    page.write_text(before, encoding="utf-8")
    ran(page, tmp_path)
    page.write_text(after, encoding="utf-8")
    with started(START_BROKER, tmp_path, ports[0]):
        ran(page, tmp_path)


def test_a_block_that_prints_something_else_is_found_and_can_be_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n", encoding="utf-8")
    (wrong,) = site_blocks.run(str(page))
    assert "prints\n2\nand the page says\n3" in wrong
    site_blocks.write(str(page))
    assert "```text\n2\n```\n" in page.read_text(encoding="utf-8")


@pytest.mark.docs
@pytest.mark.xdist_group("site")
def test_the_site_is_built_without_a_warning_and_has_a_page_for_each_metric(site: Path) -> None:
    page_names = {page.parent.name for page in (site / "reference").glob("*/index.html")}
    modules = {name for name in page_names if name.islower()}  # tests/test_reference_pages.py
    assert page_names - modules == set(metrics_page.metrics())
    for name in (
        page_names - modules
    ):  # its settings, its arguments and its result, from the docstrings
        text = (site / "reference" / name / "index.html").read_text(encoding="utf-8")
        assert all(f">{heading}<" in text for heading in ("update", "compute", "Rows")), name
