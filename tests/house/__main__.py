"""Print the table: see the docstring of the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import chain

from tests import house
from tests.house import calls, durations, newcomer, sizes, steps, structure, views, vocabulary
from tests.house.figure import Figure


def figures(*, quick: bool = False, timed: Sequence[str] = ()) -> Iterator[Figure]:
    """All lines; quick: without those that take more than some seconds."""
    yield from chain(views.figures(), structure.figures(), calls.figures(), vocabulary.figures())
    yield from chain(sizes.figures(), steps.figures())
    if not quick:
        yield from chain(calls.slow_figures(), vocabulary.slow_figures())
        yield from newcomer.figures()
    yield from durations.figures(durations.stages(), timed)


def main(words: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.house",
        description=house.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--details", action="store_true", help="what each figure consists of")
    parser.add_argument("--quick", action="store_true", help="only what is counted in seconds")
    parser.add_argument("--time", action="append", default=[], metavar="TARGET", help="time it")
    arguments = parser.parse_args(words)
    sys.stdout.write(f"{'':<62} {'now':>18}   goal\n")
    for figure in figures(quick=arguments.quick, timed=arguments.time):
        details = [f"      {line}" for line in figure.details] if arguments.details else []
        sys.stdout.write("\n".join([figure.text(), *details]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
