"""Every answer is what it was, to the byte, and fits its schema. Where one changes on purpose,
`python -m tests.consumers.server.test_answer_snapshots` writes `answers.txt` again."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from streammetrics_consumers.cli.main import main
from streammetrics_consumers.counting.worker_status import PartitionStatus, WorkerStatus
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.server.application import application
from streammetrics_consumers.server.health import WatchedWorkers

from tests import exposed_scenes
from tests.consumers import experiments_run, joined_stream
from tests.consumers.server.asking import EXPERIMENT, Client, fits
from tests.consumers.stores import make_store

FILE: Final = Path(__file__).with_name("answers.txt")
VITALS: Final = WorkerStatus(
    1, 0.0, 0.0, partitions=[PartitionStatus("clicks", 0, 8, 10, record_ms=0)], committed_s=2.0
)
WATCHED: Final = WatchedWorkers(lambda: {"0": VITALS, "1": None}, lambda: 3.5, lambda: 60.0)
PATHS: Final = (
    "/api/results?views=all",
    "/api/results?window=all&by=variant&views=headline",
    "/api/results?window=latest&where=variant=a&views=all",
    "/api/results?window=1970-01-01T00:00:00Z/1970-01-01T01:00:00Z&metric=ctr&views=all",
    "/api/status",
    "/api/quarantine",
    "/api/store",
    "/api/history?metric=ctr",
    "/api/history?metric=auc&view=gini&by=variant,phase",
    "/api/experiment",
    "/api/health",
    "/api/figure?metric=ctr&kind=effect",
    "/api/results?views=headline&window=all&texts=tables",
    "/api/experiment?texts=tables",
    "/api/experiments",
    "/api/results?by=variant,phase&texts=tables&most=1&sort=value&variant=b&order=descending",
    "/api/results?most=0",
    "/api/results?find=eval",
    "/api/results?most=1&sort=size",
    "/api/results?window=nope",
    "/api/history",
    "/assets/nothing",
)
NAMED: Final = (
    "/api/experiments",
    "/api/experiments?texts=tables",
    "/api/experiment?experiment=ranker&texts=tables",
    "/api/experiment?experiment=pricing",
    "/api/experiment?experiment=rankr",
    "/api/results?experiment=ranker&views=all",
    "/api/results?experiment=pricing&window=latest&texts=tables",
    "/api/history?experiment=pricing&metric=ctr",
    "/api/figure?experiment=ranker&metric=slow",
    "/api/store",
    "/api/store?experiment=ranker",
    "/api/results",
    "/results.txt",
)
EXPOSED: Final = (
    "/api/experiment?experiment=checkout&texts=tables",
    "/api/experiment?experiment=reminder",
    "/api/experiments",
    "/api/results?experiment=banner",
    "/api/results?texts=tables",
    "/api/status",
)
PLAIN: Final = ("/api/results?metric=ctr&views=all", "/api/store", "/api/experiment", "/api/health")


def exchanges(folder: Path) -> Iterator[tuple[str, str]]:
    """What is asked, and what is answered."""
    for name, tables in (("plain", ""), ("compared", EXPERIMENT)):
        (folder / name).mkdir()
        store = make_store(folder / name, rest=tables, slices="max_keys = 3")
        watched = WATCHED if tables else WatchedWorkers(dict, lambda: 0.0, lambda: 0.0)
        with closing(Ledger.open(str(store))) as ledger:
            client = Client(application(ledger, watched, store=str(store)))
            for path in PATHS if tables else PLAIN:
                answer = client.get(path)
                fits(path, answer.status_code, answer.content)
                yield f"{name} {path}", answer.text
    (folder / "named").mkdir()
    experiments_store = experiments_run.make(folder / "named")
    with closing(Ledger.open(str(experiments_store))) as ledger:
        client = Client(application(ledger, store=str(experiments_store)))
        for path in NAMED:
            answer = client.get(path)
            if path.startswith("/api"):
                fits(path, answer.status_code, answer.content)
            text = answer.text if path.startswith("/api") else dumps(answer.text).decode()
            yield f"named {path}", text
    (folder / "exposed").mkdir()
    exposed = exposed_scenes.make_store(folder / "exposed")
    with closing(Ledger.open(str(exposed))) as ledger:
        client = Client(application(ledger, store=str(exposed)))
        for path in EXPOSED:
            answer = client.get(path)
            fits(path, answer.status_code, answer.content)
            yield f"exposed {path}", answer.text
    state = str(folder / "all.state")
    assert main(["export", str(store), "-o", state]) == 0
    yield "show", printed("show", state)
    yield "quarantine", printed("quarantine", str(store))
    path = str(folder / "joined.db")
    with closing(Ledger.open(path, create=True)) as ledger:
        parts = joined_stream.logs_of(joined_stream.stream(5, 40).parts)
        joined_stream.run(joined_stream.SPLIT, ledger, parts, close=False)
        client = Client(application(ledger, store=path))
        everything = "/api/results?views=all"
        for request in (everything, f"{everything}&texts=tables", "/api/status"):
            answer = client.get(request)
            fits(request, answer.status_code, answer.content)
            yield f"joined {request}", answer.text


def printed(*words: str) -> str:
    """What a command prints with `--json`."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out):
        assert main([*words, "--json"]) == 0
    out.flush()
    return out.buffer.getvalue().decode()  # type: ignore[attr-defined]


def test_no_answer_has_changed_by_a_byte_and_each_fits_its_schema(tmp_path: Path) -> None:
    lines = FILE.read_text(encoding="utf-8").splitlines(keepends=True)
    expected = dict(zip((line.rstrip("\n") for line in lines[::2]), lines[1::2], strict=True))
    answers = dict(exchanges(tmp_path))
    assert answers.keys() == expected.keys()
    for request, answer in answers.items():
        assert answer == expected[request], request


def _write() -> None:
    with tempfile.TemporaryDirectory() as folder, FILE.open("w", encoding="utf-8") as file:
        for request, answer in exchanges(Path(folder)):
            file.write(f"{request}\n{answer}")


if __name__ == "__main__":
    _write()
