"""A stream of which most events are refused: the page says so, without a contents of an event."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import START_MS, Stream

Open = Callable[..., Seen]
SECRET = "<b>secret</b>"


def test_it_is_said_above_the_results_and_gone_when_it_is_over(
    tmp_path: Path, open_page: Open
) -> None:
    stream = Stream.begun(tmp_path)
    events = tmp_path / "events.jsonl"
    bad = {"ts": SECRET, "variant": "control", "user": "u", "label": 1, "score": 0.5, "phase": "x"}
    events.write_text("".join(json.dumps(bad) + "\n" for _ in range(120)), encoding="utf-8")
    stream.count()
    with stream.serve():
        visit = open_page(stream.url)
        visit.page.wait_for_selector("#warnings h2")
        warnings = visit.text("#warnings")
        assert warnings.startswith("Most events are not counted")
        assert "All 120 events were refused: 120 wrong_type in `ts`. The likely key is" in warnings
        assert '[event] time_unit: it is "ms"; set the right one' in warnings
        assert "secret" not in visit.page.content()
        ground = "one => getComputedStyle(one).backgroundColor"
        assert visit.page.eval_on_selector("#warnings", ground) != "rgba(0, 0, 0, 0)"
        visit.page.click("#warnings a")
        visit.page.wait_for_selector("#refused td")
        with events.open("a", encoding="utf-8") as file:
            for index in range(200):
                file.write(json.dumps({**bad, "ts": START_MS + index, "user": str(index)}) + "\n")
        stream.count()
        visit.page.wait_for_selector("#warnings:empty", state="attached")
