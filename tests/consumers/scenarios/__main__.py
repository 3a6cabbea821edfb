"""Writes what the consumer says of each scenario into sentences.md, to be read and reviewed."""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.consumers.scenarios.sentences import PAGE, page_of
from tests.consumers.scenarios.stories import SCENARIOS


def text_of(name: str) -> str:
    """The text of a scenario, run in a folder of its own."""
    with TemporaryDirectory() as folder:
        return SCENARIOS[name].text(Path(folder))


if __name__ == "__main__":
    chosen = [name for name in SCENARIOS if not sys.argv[1:] or name in sys.argv[1:]]
    with ProcessPoolExecutor(2) as pool:
        texts = dict(zip(chosen, pool.map(text_of, chosen), strict=True))
    PAGE.write_text(page_of(texts), encoding="utf-8")
