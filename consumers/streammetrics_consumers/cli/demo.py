"""`demo`: the main job, end to end, on a simulated stream.

It uses the command line as a person would: it writes events (`streammetrics simulate`), counts them
(`streammetrics run`), prints the results, with the true difference of the stream below the measured
one, and then counts and serves the live page while the stream goes on. All files stay in `.demo`.
With --join, clicks and purchases are separate events that arrive later, and some are sent twice.
"""

from __future__ import annotations

import shlex
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Final, TypeAlias

from msgspec.structs import replace as struct_replace

from streammetrics_consumers.cli.arguments import Arguments
from streammetrics_consumers.cli.exit_codes import DONE
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.render.style import Style, rendered
from streammetrics_consumers.render.text import Truth, advice, results_text
from streammetrics_consumers.simulate.joined_simulation import JoinedSimulation
from streammetrics_consumers.simulate.stream import VARIANTS, Simulation

Stream: TypeAlias = Simulation | JoinedSimulation

FOLDER: Final = Path(".demo")
STORE: Final = FOLDER / "demo.db"
FILES: Final = ("demo.toml", "events.jsonl", "demo.db", "demo.db-wal", "demo.db-shm")
SEED: Final = 1
ITEMS: Final = 10
WIDTH: Final = 100  # of the table, if the width of its reader is not known
PORT: Final = 8765
RATE: Final = 1000  # events a second, while the live page is served
MORE: Final = 600_000  # for ten minutes
LOOKS: Final = "look_every_s = 10"
COMMITS: Final = "commit_interval_s = 1"
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
click_rate = { type = "Ratio", better = "higher", cluster = "groups" }
auc = { type = "HistogramAUC", cluster = "groups" }
auc_within_users = { type = "GroupedAUC" }
ranking = { type = "GroupedScores", measures = ["NDCG@10", "MRR", "HR@3"] }
"confusion_at_0.05" = { type = "BinaryConfusion", threshold = 0.05, cluster = "groups" }

# Declared before the data: what decides, what must not get worse, and the least differences that
# matter. The unit is [event] user.
[experiment]
name = "A new ranker"
hypothesis = "A score that follows the clicks more closely brings more clicks."
control = "control"
decision = ["click_rate"]
guardrails = [{ metric = "auc", margin = 0.01 }]
mdes = { click_rate = 0.002, auc = 0.02 }
look_every_s = 10

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
REVENUE: Final = 'revenue = { type = "UnitMean", inputs = { values = "revenue" } }\n'
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
    arguments: Arguments, run: Callable[[Sequence[str]], int], monotonic: Callable[[], float]
) -> int:
    """Run the demonstration. run: the command line."""
    join = arguments.on("join")
    config = JOINED_CONFIG if join else CONFIG
    if arguments.on("print-config"):
        sys.stdout.write(config)
        return DONE
    events = arguments.number("events") or 0
    FOLDER.mkdir(exist_ok=True)
    for name in FILES:  # of an earlier demonstration
        (FOLDER / name).unlink(missing_ok=True)
    # One look, at the end: how many there are while events are counted depends on the machine. The
    # first is due after the first step, and sees nothing where that step commits nothing.
    counting = config.replace(LOOKS, "look_every_s = 86_400")
    counting = counting.replace(COMMITS, "commit_interval_s = 3600")
    (FOLDER / "demo.toml").write_text(counting, encoding="utf-8")
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
    (FOLDER / "demo.toml").write_text(config, encoding="utf-8")
    _say(f"{events:,} events simulated and counted in {monotonic() - started_s:.1f} s\n")
    sys.stdout.write(_text(STORE, truth_of(events, join=join)))
    sys.stdout.flush()
    if arguments.on("once"):
        _say(f"the page of these results: streammetrics serve {STORE}")
        return DONE
    stream = _stream(events + MORE, join=join)
    return _live(run, stream, arguments.number("port"), events)


def truth_of(events: int, *, join: bool = False) -> Truth:
    """The true differences of the stream, in the limit of infinitely many events."""
    stream = _stream(events, join=join)
    true = stream.truth(LABEL_WINDOW_S) if isinstance(stream, JoinedSimulation) else stream.truth()
    control, treatment = VARIANTS
    return Truth(
        control,
        treatment,
        {
            ("click_rate", "ratio"): float(true[treatment].ctr - true[control].ctr),
            ("auc", "auc"): float(true[treatment].auc - true[control].auc),
        },
    )


def _stream(events: int, *, join: bool) -> Stream:
    plain = Simulation(events=events, seed=SEED, items=ITEMS)
    return JoinedSimulation(plain) if join else plain


def _text(store: Path, truth: Truth) -> str:
    """The results, and at the end what the experiment recommends."""
    with closing(Ledger.open(str(store))) as ledger:
        results = read_results(ledger, Query())
    style = Style.of(sys.stdout)
    if not sys.stdout.isatty():
        style = replace(style, width=WIDTH)
    plain_results = struct_replace(results, recommendation=None)
    text = results_text(plain_results, Query(), style, store=str(store), truth=truth)
    if results.recommendation is None:
        return text
    recommendation = rendered([advice(results.recommendation, results.contamination)], style)
    return f"{text}\nThe experiment recommends:\n{recommendation}\n"


def _live(
    run: Callable[[Sequence[str]], int], stream: Stream, port: int | None, n_written: int
) -> int:
    """Count and serve until Ctrl-C, while the stream goes on after its first `n_written` events."""
    _say(f"in other terminals: streammetrics watch {STORE}, or report {STORE} -o report.html")
    _say(f"the live page, until Ctrl-C, with {RATE:,} more events a second:")
    ended = Event()
    writer = Thread(target=_go_on, args=(stream, n_written, ended), name="stream", daemon=True)
    writer.start()
    try:
        return run(["run", str(FOLDER / "demo.toml"), "--port", str(_port(port))])
    finally:
        ended.set()
        writer.join()


def _go_on(stream: Stream, n_written: int, ended: Event) -> None:
    """Append the events after the first `n_written` to the file, at the rate, until `ended`."""
    with (FOLDER / "events.jsonl").open("ab") as file:
        for batch in stream.batches():
            lines, n_written = batch[n_written:], max(n_written - len(batch), 0)
            for start in range(0, len(lines), RATE // 10):
                file.write(b"".join(line + b"\n" for line in lines[start : start + RATE // 10]))
                file.flush()
                if ended.wait(0.1):
                    return


def _port(port: int | None) -> int:
    """The port to serve on: without a request ours, or any free one if that is taken."""
    if port is not None:
        return port
    try:
        with socket.create_server(("127.0.0.1", PORT)):
            return PORT
    except OSError:
        return 0


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
