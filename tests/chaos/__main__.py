"""Exactly once, under fire: kill workers, brokers and databases, and compare at the end.

    python -m tests.chaos                                  # a million events, 200 kills a store
    python -m tests.chaos --events=40000 --kills=10        # what CI runs
    python -m tests.chaos --seed=7 --stores=postgres
    python -m tests.chaos --stores=sqlite --assignment=broker   # the group protocol of KIP-848

Prints a table in Markdown. Exit code 0 if every store holds what a fold over its log gives, to the
byte; 1 if not, with the seed; 2 where the broker or the database cannot run here.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests import kafka_broker, postgres_server
from tests.chaos.siege import ASSIGNMENTS, Outcome, Plan, Siege, store_of
from tests.kafka_broker import Broker
from tests.postgres_server import Server

# What each store is besieged with: both libraries, both ways to share out partitions.
WAYS = {
    "sqlite": ("kafka-python", "eager"),
    "postgres": ("confluent-kafka", "cooperative"),
}
COLUMNS = (
    "events", "kills", "stops", "asked to end", "broker restarts", "store restarts", "store locks",
    "compactions", "commits", "fenced", "zombies refused", "read again", "duplicates",
    "quarantined",
)  # fmt: skip


def row(outcome: Outcome) -> str:
    """A line of the table."""
    plan = outcome.plan
    counts = {**outcome.seen, "events": plan.events}
    numbers = (f"{counts.get(name, 0):,}" for name in COLUMNS)
    way = f"{plan.store}, {plan.library}, {plan.assignment}, {plan.workers} workers"
    result = "differs" if outcome.problems else "equal"
    return f"| {way} | {' | '.join(numbers)} | {outcome.seconds:.0f} s | {result} |"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos ARGS=...", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help="for each store")
    parser.add_argument("--kills", type=int, default=200, help="for each store, at least")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stores", default="sqlite,postgres")
    parser.add_argument(
        "--assignment", choices=tuple(ASSIGNMENTS), help="through confluent-kafka, for each store"
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="of fire for each, at most")
    options = parser.parse_args()
    stores = options.stores.split(",")
    if not set(stores) <= WAYS.keys():
        parser.error(f"--stores: expected some of {', '.join(WAYS)}, got {options.stores}")
    say(f"| store | {' | '.join(COLUMNS)} | time | result |")
    say("|---" * (len(COLUMNS) + 3) + "|")
    outcomes = []
    try:
        for store in stores:
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-")))
                why = kafka_broker.missing()
                if why is not None:
                    raise kafka_broker.Unavailable(why)
                broker = stack.enter_context(Broker(folder / "broker"))
                database = None
                if store == "postgres":
                    place = stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-pg-"))
                    database = stack.enter_context(Server(Path(place)))
                url = stack.enter_context(store_of(store, folder, database))
                way = ("confluent-kafka", options.assignment) if options.assignment else WAYS[store]
                plan = Plan(store, *way, options.events, options.kills, options.workers,
                            options.seed, minutes=options.minutes)  # fmt: skip
                outcome = Siege(plan, folder, broker, database, url).run()
                outcomes.append(outcome)
                say(row(outcome))
    except (kafka_broker.Unavailable, postgres_server.Unavailable) as error:
        sys.stderr.write(f"chaos: {error}\n")
        return 2
    for outcome in outcomes:
        for problem in outcome.problems:
            sys.stderr.write(f"{outcome.plan.store}, seed {outcome.plan.seed}: {problem}\n")
    return 1 if any(outcome.problems for outcome in outcomes) else 0


if __name__ == "__main__":
    raise SystemExit(main())
