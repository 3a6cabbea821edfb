"""`demo`: the main job, end to end, on a simulated stream.

It uses the command line as a person would: it writes events (`streammetrics simulate`), counts them
(`streammetrics run`), prints the results, with the true difference of the stream below the measured
one, and serves the live page. All files stay in `.demo` for inspection. With --join, clicks and
purchases are separate events that arrive later, and some events are sent twice.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

from msgspec.structs import replace as struct_replace

from streammetrics_consumers.cli.arguments import DONE, FATAL, Arguments
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.process.stop import Stop, signals_request
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.render.text import Style, Truth, advice, rendered, results_text
from streammetrics_consumers.server import ServeError
from streammetrics_consumers.server.health import Watched
from streammetrics_consumers.server.process import announce, serving
from streammetrics_consumers.simulate.joined_simulation import JoinedSimulation
from streammetrics_consumers.simulate.stream import VARIANTS, Simulation

Clock = Callable[[], float]

FOLDER: Final = Path(".demo")
FILES: Final = ("demo.toml", "events.jsonl", "demo.db", "demo.db-wal", "demo.db-shm")
SEED: Final = 1
ITEMS: Final = 10
WIDTH: Final = 100  # of the table, if the width of its reader is not known
PORT: Final = 8765
CONFIG: Final = """\
# An A/B test of two rankers. The stream is simulated: each request shows a list of ten items to a
# user, an event is an item of it, and the label is whether it was clicked.
#     streammetrics simulate --items 10 --events 200000 -o events.jsonl
#     streammetrics run demo.toml
[source]
kind = "file"
path = "events.jsonl"

[event]
time = "ts"
variant = "variant"
variants = ["control", "treatment"]
user = "user"
list = "list"
label = "label"
score = "score"

[windows]
size_s = 21600

[slices]
by = [[], ["variant"], ["segment"], ["variant", "segment"]]

[metrics]
click_rate = { type = "Ratio", better = "higher" }
auc = { type = "HistogramAUC" }
auc_within_users = { type = "GroupedAUC" }
ranking = { type = "GroupedScores", measures = ["NDCG@10", "MRR", "HR@3"] }
"confusion_at_0.05" = { type = "BinaryConfusion", threshold = 0.05 }

# Declared before the data: what decides, what must not get worse, and the least differences that
# matter. The unit is [event] user.
[experiment]
name = "A new ranker"
hypothesis = "A score that follows the clicks more closely brings more clicks."
control = "control"
decision = ["click_rate"]
guardrails = [{ metric = "auc", margin = 0.01 }]
mdes = { click_rate = 0.002, auc = 0.02 }

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
    CONFIG.replace(
        "user, an event is an item of it, and the label is whether it was clicked.",
        "user. Each item shown is an event, and so are clicks and purchases, which come later.",
    )
    .replace("streammetrics simulate", "streammetrics simulate --join")
    .replace('label = "label"\n', "")
    .replace("[windows]", JOIN + "[windows]")
    .replace("auc = {", REVENUE + "auc = {", 1)
)


def demo(
    arguments: Arguments, run: Callable[[Sequence[str]], int], monotonic: Clock, wall: Clock
) -> int:
    """Run the demonstration. run: the command line."""
    join = arguments.on("join")
    config = JOINED_CONFIG if join else CONFIG
    if arguments.on("print-config"):
        sys.stdout.write(config)
        return DONE
    events, store = arguments.number("events") or 0, FOLDER / "demo.db"
    FOLDER.mkdir(exist_ok=True)
    for name in FILES:  # of an earlier demonstration
        (FOLDER / name).unlink(missing_ok=True)
    (FOLDER / "demo.toml").write_text(config, encoding="utf-8")
    started_s = monotonic()
    for command in (
        ["simulate", *["--join"] * join, "--items", str(ITEMS), "--events", str(events), "--seed",
         str(SEED), "-o", str(FOLDER / "events.jsonl")],
        ["run", str(FOLDER / "demo.toml"), "--until-end", "--no-serve"],
    ):  # fmt: skip
        _say(f"$ streammetrics {shlex.join(command)}")
        code = run(command)
        if code != DONE:
            return code
    _say(f"{events:,} events simulated and counted in {monotonic() - started_s:.1f} s\n")
    sys.stdout.write(_text(store, truth_of(events, join=join)))
    sys.stdout.flush()
    if arguments.on("once"):
        _say(f"the live page of these results: streammetrics serve {store}")
        return DONE
    return _serve(store, arguments.number("port"), Watched(dict, monotonic, wall))


def truth_of(events: int, *, join: bool = False) -> Truth:
    """The true differences of the stream, in the limit of infinitely many events."""
    stream = Simulation(events=events, seed=SEED, items=ITEMS)
    true = JoinedSimulation(stream).truth(LABEL_WINDOW_S) if join else stream.truth()
    control, treatment = VARIANTS
    return Truth(
        control,
        treatment,
        {
            ("click_rate", "ratio"): float(true[treatment].ctr - true[control].ctr),
            ("auc", "auc"): float(true[treatment].auc - true[control].auc),
        },
    )


def _text(store: Path, truth: Truth) -> str:
    """The results, and at the end what the experiment recommends."""
    with closing(Ledger.open(str(store))) as ledger:
        results = read_results(ledger, Query())
    style = Style.of(sys.stdout)
    if not sys.stdout.isatty():
        style = replace(style, width=WIDTH)
    told = struct_replace(results, recommendation=None)
    text = results_text(told, Query(), style, store=str(store), truth=truth)
    if results.recommendation is None:
        return text
    said = rendered([advice(results.recommendation, results.contamination)], style)
    return f"{text}\nThe experiment recommends:\n{said}\n"


def _serve(store: Path, port: int | None, watched: Watched) -> int:
    """Serve the live page until Ctrl-C; at any free port if none is asked for and ours is taken."""
    stop, to = Stop(), str(store)
    _say(f"in other terminals: streammetrics watch {to}, or report {to} -o report.html")
    for at in (PORT, 0) if port is None else (port,):
        try:
            with signals_request(stop, "ending"), serving(to, "127.0.0.1", at, watched) as url:
                _say("the live page, until Ctrl-C:")
                announce(url, _say)
                while not stop.wait(3600):
                    pass
            return DONE
        except ServeError as error:
            refused = error
    _say(f"streammetrics: {refused}")
    return FATAL


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
