"""The main job, end to end, on a simulated stream.

Run it as `python -m streammetrics_consumers.demo [--once] [--port N]`. With --join, clicks and
purchases are separate events that arrive later, and some events are sent twice.

The demo uses the command line as a person would: it writes events (`streammetrics simulate`),
counts them (`streammetrics run`), and prints the results, with the true difference of the stream
beside the measured one. All files stay in `.demo` for inspection.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from streammetrics_consumers.cli.arguments import DONE, FATAL
from streammetrics_consumers.cli.main import main as streammetrics
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.process.stop import Stop, signals_request
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.render.text import Style, Truth, results_text
from streammetrics_consumers.server import ServeError
from streammetrics_consumers.server.health import Watched
from streammetrics_consumers.server.process import announce, serving
from streammetrics_consumers.simulate.joined_simulation import JoinedSimulation
from streammetrics_consumers.simulate.stream import VARIANTS, Simulation

FOLDER: Final = Path(".demo")
EVENTS: Final = 200_000
SEED: Final = 1
CONFIG: Final = """\
# The stream that `streammetrics simulate` writes. Run it again with
#     streammetrics run .demo/demo.toml
[source]
kind = "file"
path = "events.jsonl"
[event]
time = "ts"
variant = "variant"
variants = ["control", "treatment"]
user = "user"
label = "label"
score = "score"
[windows]
size_s = 21600
[slices]
by = [[], ["variant"], ["segment"], ["variant", "segment"]]
[metrics]
auc = { type = "HistogramAUC" }
ctr = { type = "Ratio", better = "higher" }
gauc = { type = "GroupedAUC" }
[experiment]
control = "control"
decision = ["ctr"]
guardrails = [{ metric = "auc", margin = 0.01 }]
# Declared before the data: the least differences that matter. The unit is [event] user.
mdes = { ctr = 0.002, auc = 0.02 }
[store]
url = "demo.db"
commit_interval_s = 1
"""
LABEL_WINDOW_S: Final = 1800
JOIN: Final = f"""\
[join]
id = "request_id"
impression = {{ field = "kind", equals = "impression" }}
label_window_s = {LABEL_WINDOW_S}
[join.outcomes]
click = {{ field = "kind", equals = "click" }}
revenue = {{ field = "kind", equals = "purchase", counts = "sum", value = "amount" }}
"""
REVENUE: Final = 'revenue = { type = "Ratio", inputs = { numerators = "revenue" } }\n'
JOINED_CONFIG: Final = (  # of `streammetrics simulate --join`
    CONFIG.replace("simulate`", "simulate --join`")
    .replace('label = "label"\n', "")
    .replace("[windows]", JOIN + "[windows]")
    .replace("[experiment]", REVENUE + "[experiment]")
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demonstration, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m streammetrics_consumers.demo", allow_abbrev=False
    )
    parser.add_argument("--once", action="store_true", help="print the table and end")
    parser.add_argument("--join", action="store_true", help="clicks are events of their own")
    parser.add_argument("--port", type=int, default=8765, help="the port to serve at; 0: any")
    parser.add_argument("--events", type=int, default=EVENTS, help="how many events")
    asked = parser.parse_args(argv)
    try:
        return _demo(asked.events, once=asked.once, port=asked.port, join=asked.join)
    except KeyboardInterrupt:
        return DONE


def _demo(events: int, *, once: bool, port: int, join: bool) -> int:
    store = FOLDER / "demo.db"
    # Files of an earlier demonstration may be removed; the folder has no other use.
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    (FOLDER / "demo.toml").write_text(JOINED_CONFIG if join else CONFIG, encoding="utf-8")
    started_s = time.monotonic()
    for command in (
        ["simulate", *(["--join"] if join else []), "--events", str(events), "--seed", str(SEED),
         "-o", str(FOLDER / "events.jsonl")],
        ["run", str(FOLDER / "demo.toml"), "--until-end", "--no-serve"],
    ):  # fmt: skip
        _say(f"$ streammetrics {shlex.join(command)}")
        code = streammetrics(command)
        if code != DONE:
            return code
    _say(f"{events:,} events simulated and counted in {time.monotonic() - started_s:.1f} s\n")
    with closing(Ledger.open(str(store))) as ledger:
        results = read_results(ledger, Query())
    text = results_text(
        results, Query(), Style.of(sys.stdout), store=str(store), truth=truth_of(events, join=join)
    )
    sys.stdout.write(text)
    sys.stdout.flush()
    return DONE if once else _serve(store, port)


def truth_of(events: int, *, join: bool = False) -> Truth:
    """The true differences of the stream, in the limit of infinitely many events."""
    stream = Simulation(events=events, seed=SEED)
    true = JoinedSimulation(stream).truth(LABEL_WINDOW_S) if join else stream.truth()
    control, treatment = VARIANTS
    return Truth(
        control,
        treatment,
        {
            ("ctr", "ratio"): float(true[treatment].ctr - true[control].ctr),
            ("auc", "auc"): float(true[treatment].auc - true[control].auc),
        },
    )


def _serve(store: Path, port: int) -> int:
    stop, shown = Stop(), Watched(dict, time.monotonic, time.time)
    try:
        with signals_request(stop, "ending"), serving(str(store), "127.0.0.1", port, shown) as url:
            _say("")
            announce(url, _say)
            _say(f"JSON: {url}api/results  text: {url}results.txt  end: Ctrl-C")
            while not stop.wait(3600):
                pass
    except ServeError as error:
        _say(f"streammetrics: {error}")
        return FATAL
    return DONE


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
