"""The alerts and the dashboard ask for series that are there, as a real Prometheus reads them."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from streammetrics_consumers.cli.arguments import parse
from streammetrics_consumers.counting.worker_status import WorkerStatus
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.answers import Join
from streammetrics_consumers.render.prometheus import join_gauges
from streammetrics_consumers.server.exposition import exposition
from streammetrics_consumers.server.health import WatchedWorkers
from streammetrics_consumers.server.openapi import OF_JSON, OTHERS

from tests import patience
from tests.consumers import experiment_run, interacting_run, meeting_run
from tests.consumers.running import Running, until
from tests.patience import LIMIT_S
from tests.ports import free_ports
from tests.requirements import ROOT, absent

RULES = ROOT / "consumers/alerts.yml"
DASHBOARD = json.loads((ROOT / "consumers/grafana-dashboard.json").read_text(encoding="utf-8"))

CONFIG = """\
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: streammetrics
    static_configs: [{{targets: [{target}]}}]
"""
SERIES = re.compile(r"\bstreammetrics_\w+")
NO_JOIN = Join(None, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {}, ())  # its series are there all the same
VARIABLES = {
    "$instance": ".*",
    "$experiment": ".*",
    "$metric": ".*",
    "$slice": ".*",
    "$window": "total",
    "$__rate_interval": "1m",
}
# What a process that has nothing to complain of does not have.
NOT_ALWAYS = (
    *("quarantined_total", "refused_total", 'verdict="broken"'),
    *("layer_alarm", "overlap_alarm", "interaction_differs"),
)


def expressions(**values: str) -> Iterator[str]:
    """Every query of the dashboard, of all rows and metrics, or with these values of variables."""
    variables = VARIABLES | {f"${name}": value for name, value in values.items()}
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            text = target["expr"]
            for name, value in variables.items():
                text = text.replace(name, value)
            yield text


class Prometheus:
    """A server of its own, which scrapes one address every second and loads the alerts."""

    def __init__(self, folder: Path, target: str) -> None:
        self.url = f"http://127.0.0.1:{free_ports(1)[0]}"
        self.log = folder / "prometheus.log"
        config = folder / "prometheus.yml"
        config.write_text(CONFIG.format(rules=RULES, target=target), encoding="utf-8")
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={config}",
                    f"--storage.tsdb.path={folder / 'series'}",
                    f"--web.listen-address={self.url.removeprefix('http://')}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Prometheus:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def get(self, path: str, **parameters: str) -> dict[str, Any]:
        """The `data` that its API answers."""
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=parameters, timeout=LIMIT_S)
        assert answer.is_success, f"{parameters}: {answer.text}"
        content: dict[str, Any] = answer.json()["data"]
        return content

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of every series of an expression now."""
        samples = self.get("query", query=expression)["result"]
        return [(sample["metric"], float(sample["value"][1])) for sample in samples]

    def wait_for(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The series of an expression, once there are some."""
        samples: list[tuple[dict[str, str], float]] = []

        def has_some() -> bool:
            assert self._process.poll() is None, self.log.read_text()
            with contextlib.suppress(AssertionError, httpx.TransportError):  # it has not started
                samples[:] = self.query(expression)
            return bool(samples)

        patience.until(has_some, lambda: f"{expression}: {self.log.read_text()}")
        return samples


@pytest.fixture(scope="module")
def programs() -> None:
    """Skips where Prometheus is not installed."""
    for name in ("prometheus", "promtool"):
        if shutil.which(name) is None:
            absent("prometheus", f"`{name}` is not on the PATH")


def promtool(*words: str | Path, text: bytes = b"") -> str:
    process = subprocess.run(
        ["promtool", *map(str, words)],
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output = process.stdout.decode()
    assert process.returncode == 0, output
    return output


def scrape(store: Path) -> bytes:
    reported = WorkerStatus(1, 0.0, 0.0, quarantined={"empty": 1})
    with closing(Ledger.open(str(store))) as ledger:
        return exposition(ledger, WatchedWorkers(lambda: {"0": reported}, lambda: 1.0, lambda: 1.0))


def test_every_series_that_they_name_is_one_that_we_write(tmp_path: Path) -> None:
    text = scrape(experiment_run.run(experiment_run.write(tmp_path))).decode()
    text += scrape(meeting_run.make(tmp_path / "meeting")).decode()
    text += scrape(interacting_run.make(tmp_path / "interacting")).decode()
    text += "".join(f"# TYPE {gauge.name} gauge\n" for gauge in join_gauges(NO_JOIN))
    series_names = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    series_names |= {
        f"{name}{end}" for name in series_names for end in ("_bucket", "_count", "_sum")
    }
    mentions = set(SERIES.findall(" ".join(expressions()) + RULES.read_text(encoding="utf-8")))
    assert mentions <= series_names
    # Results, effects and what every alert is about are on the dashboard.
    assert {"streammetrics_result", "streammetrics_effect_lower"} <= mentions


def test_the_panels_of_the_dashboard_lie_beside_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        grid = panel["gridPos"]
        cells = {(x, y) for x in range(grid["x"], grid["x"] + grid["w"])
                 for y in range(grid["y"], grid["y"] + grid["h"])}  # fmt: skip
        assert not cells & taken and grid["x"] + grid["w"] <= 24
        taken |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)


def test_each_alert_leads_to_its_section_of_the_runbook() -> None:
    alerts = re.findall(
        r"- alert: (\w+)\n(?:(?!- alert:)[\s\S])*?annotations:\n +runbook_url: (\S+)\n",
        RULES.read_text(encoding="utf-8"),
    )
    names = [name for name, _ in alerts]
    assert len(names) == RULES.read_text(encoding="utf-8").count("- alert:") == 22
    assert alerts == [(name, f"docs/runbook.md#{name.lower()}") for name in names]
    page = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    _, *sections = re.split(r"^## ", page, flags=re.MULTILINE)
    assert [section.partition("\n")[0] for section in sections] == names
    for section in sections:
        parts = re.findall(r"^\*\*(.+?)\.\*\* \S|^```$", section, re.MULTILINE)
        assert parts[:2] == ["What it means", "What to look at"], section
        assert parts[2:5] == ["", "", "What to do"], section


def test_the_commands_of_the_runbook_are_commands() -> None:
    page = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    commands = re.findall(r"^streammetrics (.+)$", page, re.MULTILINE)
    assert len(commands) > 18
    for command in commands:
        assert parse(command.split(), {}).command == command.split()[0]
    paths = set(re.findall(r"^curl -s http://ADDRESS(/\S+)$", page, re.MULTILINE))
    assert paths <= {*OF_JSON, *OTHERS}


@pytest.mark.usefixtures("programs")
def test_the_rules_are_valid() -> None:
    assert "SUCCESS" in promtool("check", "rules", RULES)


@pytest.mark.usefixtures("programs")
def test_a_scrape_is_valid_and_without_complaint(tmp_path: Path) -> None:
    store = experiment_run.run(experiment_run.write(tmp_path))
    assert promtool("check", "metrics", text=scrape(store)) == ""
    meeting = meeting_run.make(tmp_path / "meeting")
    assert promtool("check", "metrics", text=scrape(meeting)) == ""


@pytest.mark.usefixtures("programs")
def test_the_alerts_go_off_when_they_should_and_not_before(tmp_path: Path) -> None:
    rules = (ROOT / "tests" / "alerts_test.yml").read_text(encoding="utf-8")
    path = tmp_path / "alerts_test.yml"
    path.write_text(rules.replace("alerts.yml", str(RULES)), encoding="utf-8")
    assert "SUCCESS" in promtool("test", "rules", path)


@pytest.mark.usefixtures("programs")
def test_a_real_prometheus_scrapes_and_answers_every_query(tmp_path: Path) -> None:
    config = experiment_run.write(tmp_path)
    with Running(config) as running:
        until(lambda: running.total("streammetrics_effect_e_value") > 0, running)
        target = running.url.removeprefix("http://").rstrip("/")
        with Prometheus(tmp_path, target) as server:
            ((_, effect),) = server.wait_for("streammetrics_effect")
            assert effect == 0.25
            server.wait_for("rate(streammetrics_events_total[1m])")
            for expression in expressions():
                # On a loaded machine a scrape may miss its time, and the next one does not.
                if any(name in expression for name in (*NOT_ALWAYS, "lag_", "e_value")):
                    server.query(expression)
                else:
                    server.wait_for(expression)
            groups = server.get("rules")["groups"]
            rules = [rule for group in groups for rule in group["rules"]]
            assert len(rules) == RULES.read_text(encoding="utf-8").count("- alert:")
            assert {rule.get("lastError", "") for rule in rules} == {""}
            server.wait_for("up == 1")


@pytest.mark.usefixtures("programs")
def test_the_panels_of_experiments_are_of_those_that_are_chosen(tmp_path: Path) -> None:
    config = interacting_run.write(tmp_path, interacting_run.entries())
    chosen = [text for text in expressions(experiment="ranker") if '"ranker"' in text]
    variables = [variable["name"] for variable in DASHBOARD["templating"]["list"]]
    assert "experiment" in variables and len(chosen) > 8
    with Running(config) as running:
        until(lambda: running.total("streammetrics_interaction_differs") == 2, running)
        target = running.url.removeprefix("http://").rstrip("/")
        with Prometheus(tmp_path, target) as server:
            server.wait_for("streammetrics_interaction_differs")
            for expression in chosen:
                if any(name in expression for name in ('"broken"', "e_value")):
                    continue
                labels = [labels for labels, _ in server.wait_for(expression)]
                assert {label_set.get("experiment", "ranker") for label_set in labels} == {"ranker"}
            everything = server.query("count by (action) (streammetrics_recommendation == 1)")
            assert sum(value for _, value in everything) == 3
