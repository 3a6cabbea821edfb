"""`demo`: the main job, end to end, on a simulated stream.

It uses the command line as a person would: it writes events (`streammetrics simulate`), counts them
(`streammetrics run`), prints the results, with the true differences of the stream below the
measured ones, and then counts and serves the live page while the stream goes on. All files stay in
`.demo`. Three experiments run in the stream: one whose new arm is better, one that breaks its
guardrail, and one without any difference. With --join there is one experiment, clicks and purchases
are separate events that arrive later, and some are sent twice. With --exposures there are five, and
what users do names no arm: they were exposed before.
"""

from __future__ import annotations

import shlex
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Final

from msgspec.structs import replace as struct_replace

from streammetrics_consumers.cli.arguments import Arguments
from streammetrics_consumers.cli.demo_configs import (
    EXPERIMENTS_CONFIG,
    EXPOSURES_CONFIG,
    JOINED_CONFIG,
    LABEL_WINDOW_S,
)
from streammetrics_consumers.cli.exit_codes import DONE
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.text import Truth, recommendations, results_text
from streammetrics_consumers.simulate.experiments_simulation import (
    ARMS,
    ExperimentsSimulation,
    true_rates,
)
from streammetrics_consumers.simulate.exposures_simulation import ExposuresSimulation
from streammetrics_consumers.simulate.joined_simulation import JoinedSimulation
from streammetrics_consumers.simulate.output import Stream
from streammetrics_consumers.simulate.stream import VARIANTS, Simulation

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
TRUE: Final = """\
three experiments in one stream, as simulated:
  ranker     the new arm is better
  autoplay   brings clicks and drives users away: its guardrail is broken
  placebo    both arms are the same
"""
TRUE_OF_EXPOSED: Final = """\
five experiments of a company, as simulated, of users who were exposed:
  checkout   the new arm has half as many purchases again
  feed       brings a quarter more clicks, and crashes: its guardrail is broken
  placebo    both arms are the same
  pricing    lower prices for 5 % of the users bring a quarter less revenue
  delivery   purchases come later within a week of the exposure, and are as many
"""
EVENTS_OF_A_USER: Final = 16  # about as many come in two weeks


_CONFIGS: Final = {
    "experiments": EXPERIMENTS_CONFIG,
    "join": JOINED_CONFIG,
    "exposures": EXPOSURES_CONFIG,
}


def demo(
    arguments: Arguments, run: Callable[[Sequence[str]], int], monotonic: Callable[[], float]
) -> int:
    """Run the demonstration. run: the command line."""
    kind = next((name for name in ("join", "exposures") if arguments.is_on(name)), "experiments")
    config = _CONFIGS[kind]
    if arguments.is_on("print-config"):
        sys.stdout.write(config)
        return DONE
    events = arguments.number("events") or 0
    FOLDER.mkdir(exist_ok=True)
    for name in FILES:  # of an earlier demonstration
        (FOLDER / name).unlink(missing_ok=True)
    # One look at each experiment, at the end: how many there are while events are counted depends
    # on the machine. The first is due after the first step, and sees nothing where that step
    # commits nothing.
    counting = config.replace(LOOKS, "look_every_s = 86_400")
    counting = counting.replace(COMMITS, "commit_interval_s = 3600")
    (FOLDER / "demo.toml").write_text(counting, encoding="utf-8")
    if truth_text := {"experiments": TRUE, "exposures": TRUE_OF_EXPOSED}.get(kind):
        _say(truth_text)
    size = ["--n-users", str(_users(events))] if kind == "exposures" else ["--items", str(ITEMS)]
    started_s = monotonic()
    for command in (
        ["simulate", f"--{kind}", *size,
         "--events", str(events), "--seed", str(SEED), "-o", str(FOLDER / "events.jsonl")],
        ["run", str(FOLDER / "demo.toml"), "--until-end", "--no-serve"],
    ):  # fmt: skip
        _say(f"$ streammetrics {shlex.join(command)}")
        code = run(command)
        if code != DONE:
            return code
    (FOLDER / "demo.toml").write_text(config, encoding="utf-8")
    _say(f"{events:,} events simulated and counted in {monotonic() - started_s:.1f} s\n")
    names = list(load_config(FOLDER / "demo.toml").experiments)
    truths = {} if kind == "exposures" else truths_of(join=kind == "join")
    sys.stdout.write(_text(STORE, truths, names))
    sys.stdout.flush()
    if arguments.is_on("once"):
        _say(f"the page of these results: streammetrics serve {STORE}")
        return DONE
    total_events = events + MORE
    stream: Stream = _experiments(total_events)
    if kind == "join":
        stream = _joined(total_events)
    elif kind == "exposures":
        stream = ExposuresSimulation(_users(events), SEED)
    return _live(run, stream, arguments.number("port"), events)


def truths_of(*, join: bool = False) -> Mapping[str, Truth]:
    """The true differences of the stream by experiment, in the limit of infinitely many events."""
    if join:
        true = _joined(0).truth(LABEL_WINDOW_S)
        control, treatment = VARIANTS
        effects = {
            ("click_rate", "ratio"): float(true[treatment].ctr - true[control].ctr),
            ("auc", "auc"): float(true[treatment].auc - true[control].auc),
        }
        return {"": Truth(control, treatment, effects)}
    truths = {}
    for name, by_arm in true_rates().items():
        control, treatment = ARMS[name]
        before, after = by_arm[control], by_arm[treatment]
        effects = {
            ("ctr", "ratio"): float(after.ctr - before.ctr),
            ("bounce_rate", "ratio"): float(after.bounce_rate - before.bounce_rate),
        }
        truths[name] = Truth(control, treatment, effects)
    return truths


def _joined(events: int) -> JoinedSimulation:
    return JoinedSimulation(Simulation(events=events, seed=SEED, items=ITEMS))


def _experiments(events: int) -> ExperimentsSimulation:
    return ExperimentsSimulation(events=events, seed=SEED, items=ITEMS)


def _users(events: int) -> int:
    """How many users have this number of events in two weeks."""
    return max(events // EVENTS_OF_A_USER, 1)


def _text(store: Path, truths: Mapping[str, Truth], names: Sequence[str]) -> str:
    """The results, those of each experiment that has a name, and at the end what they recommend."""
    style = Style.from_stream(sys.stdout)
    if not sys.stdout.isatty():
        style = replace(style, width=WIDTH)
    queries = [Query(), *(Query(experiment=name) for name in names if name)]
    with closing(Ledger.open(str(store))) as ledger:
        answers = [(query, read_results(ledger, query)) for query in queries]
    texts = [
        results_text(
            struct_replace(results, recommendation=None),
            query,
            style,
            store=str(store),
            truth=truths.get(query.experiment or ""),
        )
        for query, results in answers
    ]
    advice = recommendations(((query.experiment, results) for query, results in answers), style)
    return "\n".join([*texts, advice])


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
