"""A real Prometheus for the tests: the programs of Debian's package, each test a server of its own.

It scrapes one address every half second, loads the alert rules of docs, and is asked over HTTP.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

START_LIMIT_S = 60.0

CONFIG = """\
global: {{scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}}
rule_files: [{rules}]
scrape_configs:
  - job_name: streammetrics
    static_configs: [{{targets: [{target}]}}]
"""


def program(name: str) -> str | None:
    """Where one of its programs is."""
    return shutil.which(name)


class Prometheus:
    """A server with its folder; a block of `with` leaves none behind."""

    def __init__(self, folder: Path, target: str, rules: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        self.log = folder / "prometheus.log"
        config = folder / "prometheus.yml"
        config.write_text(CONFIG.format(rules=rules, target=target), encoding="utf-8")
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    program("prometheus") or "prometheus",
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

    def get(self, path: str, **parameters: str) -> dict[str, object]:
        """What its API answers, as `data`; an error of it is an AssertionError."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                found = json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{parameters}: {error.read().decode()}") from None
        data = found["data"]
        assert isinstance(data, dict)
        return data

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of every series of an expression now."""
        result = self.get("query", query=expression)["result"]
        assert isinstance(result, list)
        return [(one["metric"], float(one["value"][1])) for one in result]

    def wait_for(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The series of an expression, once there are some."""
        limit_s = time.monotonic() + START_LIMIT_S
        while True:
            assert self._process.poll() is None, self.log.read_text()
            assert time.monotonic() < limit_s, self.log.read_text()
            try:
                found = self.query(expression)
            except (AssertionError, urllib.error.URLError, ConnectionError):
                found = []  # it has not started yet
            if found:
                return found
            time.sleep(0.1)
