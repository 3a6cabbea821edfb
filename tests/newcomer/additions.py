"""What a newcomer adds, to try the commands of CONTRIBUTING: a metric, a measure, a key and a view.

Each is as small as a real one, and whole: it is documented, checked, used and tested.
"""

from __future__ import annotations

from tests.house.newcomer import Addition, Edit

DEPTH = '''"""ScrollDepth: how far visitors scroll down a page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.authoring import (
    HIGHER,
    Accumulator,
    Batch,
    Counts,
    ExactSum,
    Inputs,
    Probability,
    Result,
    Slots,
    View,
    ratio,
)


@dataclass(frozen=True, repr=False)
class Depth(Result):
    """The mean depth, and the share of visits that went deep."""

    mean: float = field(metadata=View(better=HIGHER))
    read: float = field(metadata=View(better=HIGHER))
    rows: int


class ScrollDepth(Accumulator, schema="scroll-depth/1"):
    """The mean depth, in [0, 1], and the share of visits with a depth of at least `enough`.

    Settings
        enough: the depth from which on a visit was read.
    State
        An exact sum and two counts.
    Result
        Depth.
    Undefined
        nan without rows.
    Exactness
        Exact; each value is rounded once.
    Cost
        5 ns a row; about 100 bytes.
    Source
        The mean of numbers.

    >>> from streammetrics import ScrollDepth
    >>> depths = ScrollDepth()
    >>> depths.update([0.5, 1.0])
    >>> depths.compute().mean
    0.75
    """

    enough: float = 0.9
    inputs = Inputs(depths=Probability())
    total = ExactSum()
    visits = Counts(2)

    if TYPE_CHECKING:

        def update(self, depths: ArrayLike) -> None: ...

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        depths = batch.depths.astype(np.float64)
        self.total.add(depths, slots)
        self.visits.add((depths >= self.enough).astype(np.intp), slots)

    def compute(self) -> Depth:
        """The mean and the share."""
        self._flush()
        less, deep = self.visits.dense().tolist()
        n = less + deep
        return Depth(ratio(self.total.fraction(), n), ratio(deep, n), n)
'''
CASE = """
DEPTHS = [
    Case(
        ScrollDepth(),
        st.tuples(strategies.probabilities()),
        strategies.columns("depths"),
        refused=[{"depths": [1.5]}, {"depths": ["deep"]}],
        others=[ScrollDepth(enough=0.5)],
        oracle=lambda rows: {
            "mean": sum((Fraction(depth) for (depth,) in rows), Fraction(0)) / len(rows)
            if rows
            else None
        },
        small=[(0.0,), (0.25,), (0.9,), (1.0,)],
    )
]


PLAIN: list"""
TOP = '''"""Top: whether the first item of a list is relevant."""

from __future__ import annotations

from typing import Final

from streammetrics.authoring import SHARE, Ranked, Thresholded, Values, hit


class _Top(Thresholded):
    """1 if the first item is relevant, else 0."""

    name = "Top"
    limits = SHARE
    cuts = "cannot"

    def of(self, lists: Ranked) -> Values:
        return Values(*hit(lists, self.rel, 1))


Top: Final = _Top()
'''
KEY = """    silent_s: float = key(
        Real(1.0, 3600.0, " of seconds"),
        10.0,
        "the time that a client has to complete a request, and to read more of an answer",
    )
    max_slices: int = key(
"""
KEY_TEST = """def test_a_client_may_be_silent_for_as_long_as_the_config_says() -> None:
    assert config(rest="[server]\\nsilent_s = 2.5").server.silent_s == 2.5
    refused("[server] silent_s", "expected a number", rest="[server]\\nsilent_s = 0")


def test_"""
LOGS = """// The logs: how far each one is read. They are asked for when a user opens them.

import { answer } from "/assets/answers.js";
import { byId, h } from "/assets/elements.js";
import { count, name } from "/assets/printed.js";

/** Show them when they are opened. */
export function begin() {
  const box = byId("logs");
  box.addEventListener("toggle", () => box.open && fill());
}

async function fill() {
  const { logs } = await answer("/api/status");
  const text = (log) => `${name(log.topic, 80)} ${log.partition}: ${count(log.rows)} events read`;
  const lines = logs.map((log) => h("li", {}, text(log)));
  byId("logs-body").replaceChildren(h("ul", {}, ...lines));
}
"""
LOGS_TEST = '''"""The logs of the page: each one with the events that were read of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream


def test_each_log_is_listed_when_it_is_asked_for(
    tmp_path: Path, open_page: Callable[..., Seen]
) -> None:
    with (stream := Stream.counted(tmp_path, days=1, events=5)).serve():
        seen = open_page(stream.url)
        seen.page.click("#logs summary")
        seen.page.wait_for_selector("#logs li")
        assert "10 events read" in seen.text("#logs-body")
'''
SERVER = "consumers/streammetrics_consumers/server"
PAGE = f"{SERVER}/page"
CONFIG = "consumers/streammetrics_consumers/config"

ADDITIONS = (
    Addition(
        "Add a metric",
        "ScrollDepth",
        files={"streammetrics/classification/scroll_depth.py": DEPTH},
        edits=(
            Edit("tests/plain_cases.py", "\n    Ratio,\n)", "\n    Ratio,\n    ScrollDepth,\n)"),
            Edit("tests/plain_cases.py", "\nPLAIN: list", CASE),
            Edit("tests/plain_cases.py", "    *RATIOS,\n", "    *RATIOS,\n    *DEPTHS,\n"),
        ),
        most=5,
    ),
    Addition(
        "Add a measure of ranked lists",
        "Top",
        files={"streammetrics/ranking/top_measure.py": TOP},
        edits=(
            Edit(
                "streammetrics/ranking/measures.py",
                "import ERRIA, AlphaNDCG, StRecall\n",
                "import ERRIA, AlphaNDCG, StRecall\n"
                "from streammetrics.ranking.top_measure import Top\n",
            ),
            Edit(
                "streammetrics/ranking/measures.py",
                "AlphaNDCG, ERRIA, StRecall),",
                "AlphaNDCG, ERRIA, StRecall, Top),",
            ),
            Edit("tests/oracles/measure_table.py", "    SetP,\n)", "    SetP,\n    Top,\n)"),
            Edit(
                "tests/oracles/measure_table.py",
                "        yield Truth(Bpref(rel=rel), one.bpref(rel), mean.bpref(rel))\n",
                "        yield Truth(Bpref(rel=rel), one.bpref(rel), mean.bpref(rel))\n"
                "        yield Truth(Top(rel=rel), one.hit(rel, 1), mean.hit(rel, 1))\n",
            ),
        ),
    ),
    Addition(
        "Add a config key",
        "silent_s",
        edits=(
            Edit(f"{CONFIG}/tables.py", "    max_slices: int = key(\n", KEY),
            Edit(
                f"{SERVER}/process.py",
                "from contextlib import closing, contextmanager\n",
                "from contextlib import closing, contextmanager\nfrom dataclasses import replace\n",
            ),
            Edit(
                f"{SERVER}/process.py",
                "    limits = limits or Limits.from_peers(settings.connections_per_peer)\n",
                "    limits = limits or Limits.from_peers(settings.connections_per_peer)\n"
                "    limits = replace(limits, silent_s=settings.silent_s)\n",
            ),
            Edit(
                "tests/consumers/config/test_config.py",
                "def test_a_token_",
                KEY_TEST + "a_token_",
            ),
        ),
        most=4,
    ),
    Addition(
        "Add a view to the page",
        "logs",
        files={
            f"{PAGE}/logs.js": LOGS,
            "tests/consumers/server/page/test_logs.py": LOGS_TEST,
        },
        edits=(
            Edit(
                f"{PAGE}/main.js",
                'import * as notice from "/assets/notice.js";\n',
                'import * as logs from "/assets/logs.js";\n'
                'import * as notice from "/assets/notice.js";\n',
            ),
            Edit(f"{PAGE}/main.js", "\nhealth.begin();\n", "\nhealth.begin();\nlogs.begin();\n"),
            Edit(
                f"{PAGE}/index.html",
                '<link rel="modulepreload" href="/assets/notice.js">\n',
                '<link rel="modulepreload" href="/assets/logs.js">\n'
                '<link rel="modulepreload" href="/assets/notice.js">\n',
            ),
            Edit(
                f"{PAGE}/index.html",
                "  <noscript>",
                '  <details id="logs">\n    <summary>Logs</summary>\n'
                '    <div id="logs-body"></div>\n  </details>\n  <noscript>',
            ),
        ),
    ),
)
