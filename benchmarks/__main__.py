"""All questions in order, each with a table, then the targets; `--json` stores the answers.

`python -m benchmarks`, as `make bench` runs it. `python -m benchmarks.page` turns the JSON into the
tables and the picture of README and docs/performance.md.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import targets
from benchmarks.answer import Answer
from benchmarks.bench_sorting import advice, disabled_features
from benchmarks.harness import processor, versions
from benchmarks.list_peers import RANX
from benchmarks.questions import QUESTIONS, other_benchmarks
from benchmarks.torch_child import PYTHON
from benchmarks.torch_child import versions as versions_of


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows, in a few minutes")
    parser.add_argument("--only", nargs="+", choices=list(QUESTIONS), help="only these questions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the answers to FILE")
    parser.add_argument(
        "--others",
        action="store_true",
        help="then those that are not on the page, of HTTP and Kafka too",
    )
    return parser.parse_args(argv)


def ask(key: str, quick: bool) -> Answer:
    """The answer to one question, from its module."""
    answer: Answer = importlib.import_module(f"benchmarks.{QUESTIONS[key]}").ask(quick)
    gc.collect()
    return answer


def main(argv: Sequence[str] | None = None) -> None:
    """Ask the questions, print the answers and store them."""
    options = arguments(argv)
    torch = versions_of(PYTHON, "torch", "torchmetrics", "torcheval")
    ranx = versions_of(RANX, "ranx")
    everything = ", ".join(filter(None, (versions(), torch, ranx, disabled_features())))
    print(processor(), everything, advice(), sep="\n", flush=True)
    record: dict[str, Any] = {
        "processor": processor(),
        "versions": everything,
        "quick": options.quick,
    }
    answers: dict[str, Answer] = {}
    for key in options.only or QUESTIONS:
        started = time.monotonic()
        answer = ask(key, options.quick)
        answers[key] = answer
        print(f"\n{answer.text()}\n({time.monotonic() - started:.0f} s)", flush=True)
        if options.json:  # after each question, so that an interrupted run keeps its answers
            record["answers"] = [entry.as_json() for entry in answers.values()]
            text = json.dumps(record, indent=1, ensure_ascii=False)
            options.json.write_text(text + "\n", encoding="utf-8")
    shown = (targets.table(answers, answers), targets.figures(answers, answers))
    print("", *shown, sep="\n", flush=True)
    for module in other_benchmarks() if options.others else ():
        print(f"\n{module}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{module}"], check=True)


if __name__ == "__main__":
    main()
