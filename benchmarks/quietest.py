"""The least disturbed answer to each question from several runs on a shared machine.

`python -m benchmarks.quietest RUN.json RUN.json ... > docs/performance.json`, for runs with the
same versions. An answer is chosen only by its limit, `np.sort` (or the read limit if nothing is
sorted), which a busy machine slows down like everything else; our times and those of peers do not
affect the choice.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.questions import QUESTIONS

Run = Mapping[str, Any]


def quietest(runs: Sequence[Run]) -> Run:
    """One run of the best answers; ValueError if versions differ, or quick and full runs mix."""
    first = {name: value for name, value in runs[0].items() if name != "answers"}
    for run in runs:
        if any(run[name] != value for name, value in first.items()):
            raise ValueError(f"expected runs with {first}, got one with {run['versions']}")
    best: dict[str, Mapping[str, Any]] = {}
    for answer in (answer for run in runs for answer in run["answers"]):
        key = answer["key"]
        if key not in best or _limit(answer) < _limit(best[key]):
            best[key] = answer
    return {**first, "answers": [best[key] for key in QUESTIONS if key in best]}


def _limit(answer: Mapping[str, Any]) -> float:
    """The machine's time for work that never changes."""
    return float(answer["sort"]["median"] or answer["read"]["median"])


if __name__ == "__main__":
    read = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
    print(json.dumps(quietest(read), indent=1, ensure_ascii=False))
