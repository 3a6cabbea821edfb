"""Pictures for README and docs: `make screenshots`; run it after a change.

The real page over the real events of obd_men, at three sizes and in both themes; the beginning of
the report, and the screen of `watch`, of the same store; the index of twenty simulated experiments.
`--scenes` takes the page of each store of `tests.page_scenes`, `tests.metric_scenes`,
`tests.experiment_scenes` and `tests.exposed_scenes` instead: few metrics and many, a loss, a broken
guardrail, a sample-ratio alarm, no data, every newer metric, many experiments, and exposed units.
Look at them.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text
from streammetrics_consumers.cli.main import main as streammetrics
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.terminal import Watcher, screen
from streammetrics_consumers.server.health import WatchedWorkers
from streammetrics_consumers.server.process import serving

from benchmarks.browser import Unavailable, running_browser
from tests.consumers.running import Running
from tests.experiment_scenes import EXPERIMENT_SCENES
from tests.exposed_scenes import EXPOSED_SCENES
from tests.metric_scenes import METRIC_SCENES
from tests.page_scenes import SCENES
from tests.requirements import ROOT, data_folder

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Width, height, and pixels of the picture for each of those: files stay small.
SIZES: Final = {"phone": (390, 1400, 1.0), "laptop": (1280, 1140, 1.0), "wall": (2560, 1440, 0.75)}
READ: Final = "20,000"  # events of obd_men
THEMES: Final = ("light", "dark")
ALONE: Final = WatchedWorkers(dict, time.monotonic, time.time)
DRAWN: Final = """() => [...document.querySelectorAll("figure")].every((one) =>
  one.getBoundingClientRect().top > innerHeight || one.ariaBusy === "false")"""
COLUMNS: Final = 84  # of the terminal
REPORT: Final = (900, 1150)  # of the report, from its beginning
CONFIG: Final = """\
[source]
kind = "file"
path = {path!r}
[event]
time = "ts"
variant = "variant"
variants = ["random", "bts"]
user = "user"
label = "label"
score = "score"
[windows]
size_s = 86400
[slices]
by = [[], ["variant"], ["phase"], ["variant", "phase"]]
[metrics]
auc = {{ type = "HistogramAUC" }}
calibration = {{ type = "Calibration" }}
ctr = {{ type = "Ratio", better = "higher" }}
gauc = {{ type = "GroupedAUC", weight = "impressions" }}
propensity_auc = {{ type = "ExactAUC", inputs = {{ scores = "propensity" }} }}
[store]
url = "obd.db"
[experiment]
name = "Bernoulli TS against random items"
hypothesis = "Learned recommendations raise the click rate."
days = 7
control = "random"
unit = "event_id"
on_several_variants = "keep"
decision = ["ctr"]
cluster = "none"
horizon = 10000
baseline = 0.00575
[server]
port = 0
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job, and write `page-SIZE-THEME.png`, `report.png`, `watch.svg` and
    `experiments.png`."""
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", allow_abbrev=False)
    parser.add_argument("-o", type=Path, default=ROOT / "docs" / "pictures", help="the folder")
    parser.add_argument("--query", default="", help="what the page is asked, such as ?metric=auc")
    parser.add_argument("--scenes", action="store_true", help="the page of each scene; needs -o")
    options = parser.parse_args(argv)
    options.o.mkdir(parents=True, exist_ok=True)
    if options.scenes:
        return _scenes(options.o, options.query)
    with TemporaryDirectory() as folder:
        config = Path(folder) / "obd.toml"
        path = data_folder() / "obd_men_events.jsonl"
        config.write_text(CONFIG.format(path=str(path)), encoding="utf-8")
        try:
            with running_browser() as browser, Running(config) as worker:
                for size in SIZES:
                    for theme in THEMES:
                        _shoot(browser, worker.url + options.query, size, theme, options.o)
                worker.end()
                store = Path(folder) / "obd.db"
                _report(browser, store, options.o)
                _watch(store, options.o)
                _index(browser, options.o)
        except Unavailable as error:
            sys.stderr.write(f"no browser: {error}\n")
            return 1
    return 0


def _scenes(folder: Path, query: str) -> int:
    """The page of each scene, as `SCENE-SIZE-THEME.png`."""
    with running_browser() as browser:
        scenes = {**SCENES, **METRIC_SCENES, **EXPERIMENT_SCENES, **EXPOSED_SCENES}
        for name, make in scenes.items():
            with TemporaryDirectory() as store_folder:
                store = make(Path(store_folder))
                with serving(str(store), ServerConfig(port=0), ALONE) as url:
                    for size in SIZES:
                        for theme in THEMES:
                            path = folder / f"{name}-{size}-{theme}.png"
                            _picture(browser, url + query, size, theme, path)
    return 0


def _index(browser: Browser, folder: Path) -> None:
    """The index of twenty experiments."""
    with TemporaryDirectory() as store_folder:
        store = EXPERIMENT_SCENES["twenty_experiments"](Path(store_folder))
        with serving(str(store), ServerConfig(port=0), ALONE) as url:
            _picture(browser, url, "laptop", "light", folder / "experiments.png")


def _shoot(browser: Browser, url: str, size: str, theme: str, folder: Path) -> None:
    _picture(browser, url, size, theme, folder / f"page-{size}-{theme}.png", READ)


def _picture(browser: Browser, url: str, size: str, theme: str, path: Path, read: str = "") -> None:
    """The page, once it has read so many events and has drawn the charts in view."""
    width, height, scale = SIZES[size]
    page = browser.new_page(
        viewport={"width": width, "height": height},
        device_scale_factor=scale,
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
    )
    page.goto(url)
    if read:
        page.wait_for_selector(f'#health [data-field=read] dd:text-is("{read}")')
    page.wait_for_selector("html:is([data-state=ready], [data-state=empty])", state="attached")
    page.wait_for_function(DRAWN)  # charts in view, one by one, while nothing else is to do
    page.screenshot(path=path)
    sys.stderr.write(f"{path}\n")
    page.close()


def _report(browser: Browser, store: Path, folder: Path) -> None:
    written = store.with_name("report.html")
    assert streammetrics(["report", str(store), "-o", str(written)]) == 0
    width, height = REPORT
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
    page.goto(written.as_uri())
    page.screenshot(path=folder / "report.png")
    sys.stderr.write(f"{folder / 'report.png'}\n")
    page.close()


def _watch(store: Path, folder: Path) -> None:
    with closing(Ledger.open(str(store))) as ledger:
        shown = Watcher(ledger, Query(), lambda: 0.0).look()
    text = screen(shown, Style(COLUMNS, colour=True))
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(f"$ streammetrics watch {store.name}\n{text.rstrip()}"))
    drawn = console.export_svg(title="streammetrics", theme=MONOKAI, unique_id="watch")
    # Rich would have the reader's browser fetch a font from another host.
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"<!--.*?-->", "", drawn).replace("Fira Code", "ui-monospace, Menlo, Consolas")
    (folder / "watch.svg").write_text(drawn, encoding="utf-8")
    sys.stderr.write(f"{folder / 'watch.svg'}\n")


if __name__ == "__main__":
    sys.exit(main())
