"""`python -m streammetrics`: what is installed here and where to go next; with arguments, the
command line.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, metadata, version
from textwrap import wrap
from typing import Final

from streammetrics_consumers.model.version import program_version

# The extras that users install, and what each is for.
EXTRAS: Final = {
    "serve": "the ledger, the live page, reports and all commands",
    "kafka": "topics of Kafka, by kafka-python",
    "confluent": "topics of Kafka, by librdkafka",
    "postgres": "a ledger on PostgreSQL",
    "parquet": "parquet files",
    "plot": "charts in notebooks and as pictures",
    "spark": "DataFrames and streams of Spark",
    "beam": "pipelines of Beam",
    "testing": "the laws, for metrics of your own",
}
_NAME: Final = re.compile(r"\s*([\w.-]+)\s*(?:\[([\w.,\s-]+)\])?")
_EXTRA: Final = re.compile(r"""extra\s*==\s*['"]([\w.-]+)['"]""")

NEXT: Final = """\
next
  python -c 'import streammetrics as sm; help(sm.HistogramAUC)'
                                    each metric says what it counts, with an example
  streammetrics --help              the commands, which need the extra `serve`
  streammetrics demo                three A/B tests, simulated, counted and shown on a live page
"""


def packages_of(extra: str, requirements: Sequence[str]) -> list[str]:
    """The packages that an extra requires, those of the extras that it names included.

    `requirements` are lines as a wheel's metadata has them.

    >>> lines = ["numpy", "rich>=13; extra == 'serve'", "streammetrics[serve]; extra == 'kafka'",
    ...          "kafka-python[lz4]>=3; extra == 'kafka'"]
    >>> packages_of("kafka", lines)
    ['rich', 'kafka-python']
    """
    packages: list[str] = []
    for line in requirements:
        condition, needed = _EXTRA.search(line), _NAME.match(line)
        if condition is None or condition[1] != extra or needed is None:
            continue
        if needed[1] == "streammetrics":
            for inner_extra in (needed[2] or "").split(","):
                packages += packages_of(inner_extra.strip(), requirements)
        else:
            packages.append(needed[1])
    return list(dict.fromkeys(packages))


def installed() -> str:
    """The version and its surroundings, each extra with its packages, and what to do next.

    For an extra that is not complete it names the missing packages and how to install them.
    """
    package = metadata("streammetrics")
    lines = [
        f"streammetrics {program_version()}",
        f"  Python {platform.python_version()}, numpy {_version('numpy')}, "
        f"{platform.system()} {platform.machine()}",
        "",
        "extras",
    ]
    shown: set[str] = set()
    for extra, purpose in EXTRAS.items():
        names = packages_of(extra, package.get_all("Requires-Dist") or [])
        versions = {name: _version(name) for name in names}
        missing = [name for name, number in versions.items() if number is None]
        lines.append(f"  {extra:<10} {'no ' if missing else 'yes'}  {purpose}")
        text = ", ".join(f"{name} {versions[name]}" for name in names if name not in shown)
        if missing:
            new = [name for name in missing if name not in shown]
            earlier_packages = ["packages above"] if len(new) < len(missing) else []
            text = f"missing {', '.join([*new, *earlier_packages])}"
        indent = " " * 18
        lines += wrap(
            text, 98, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
        )
        if missing:
            lines.append(f"{indent}pip install '.[{extra}]' in a clone of streammetrics")
        shown.update(names)
    pages = [f"  {line.replace(', ', ': ', 1)}" for line in package.get_all("Project-URL") or []]
    return "\n".join([*lines, "", NEXT.rstrip("\n"), *pages, ""])


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def main(argv: Sequence[str] | None = None) -> int:
    """Print what is installed, or run a command line; the exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments:
        from streammetrics_consumers.cli import main as command_line

        return command_line(argv)
    sys.stdout.write(installed())
    return 0


if __name__ == "__main__":
    sys.exit(main())
