"""The command: runs tables, prints them, and writes them to docs/inference.md if asked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.coverage import page
from benchmarks.coverage.progress import Progress
from benchmarks.coverage.table import Table
from benchmarks.coverage.tables import TABLES


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of the command."""
    keys = [table.key for table in TABLES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--replicates", type=int, help="for every row, instead of its default")
    parser.add_argument("--only", nargs="+", choices=keys, help="only these tables (default: all)")
    parser.add_argument(
        "--page",
        action="store_true",
        help="write them to docs/inference.md and draw the picture",
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the requested tables."""
    options = arguments(argv)
    chosen = [table for table in TABLES if not options.only or table.key in options.only]
    work = sum((options.replicates or r.replicates) * r.ms for table in chosen for r in table.rows)
    progress = Progress(work)
    for table in chosen:
        text, figures = run(table, options.replicates, progress)
        sys.stdout.write(f"{table.key}\n\n{text}\n\n")
        sys.stdout.flush()
        if options.page:
            page.write_table(table.key, text)
            if table.key == page.PICTURED:
                page.draw(figures)
    progress.end()


def run(
    table: Table, replicates: int | None, progress: Progress
) -> tuple[str, dict[str, list[float]]]:
    """The table as Markdown, and its figures by row."""
    results = []
    for row in table.rows:
        progress.name = f"{table.key}: {row.name}"
        n = replicates or row.replicates
        results.append((row, n, row.run(n, progress.add)))
    return table.markdown(results), {row.name: means for row, _, means in results}


if __name__ == "__main__":
    main()
