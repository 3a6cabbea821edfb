"""Pictures of the page for README and docs: `make screenshots`; run it after a change.

The real page over the real events of obd_men, at three sizes and in both themes. Look at them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from consumers.cli.main import main as streammetrics
from consumers.server import Watched, serving
from tests.browser import Unavailable, running_browser
from tests.requirements import ROOT, data_folder

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SIZES: Final = {"phone": (400, 860), "laptop": (1280, 860), "wall": (2560, 1440)}
THEMES: Final = ("light", "dark")
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
ctr = {{ type = "Ratio" }}
gauc = {{ type = "GroupedAUC", weight = "impressions" }}
propensity_auc = {{ type = "ExactAUC", inputs = {{ scores = "propensity" }} }}
[store]
url = "obd.db"
[experiment]
control = "random"
unit = "event_id"
on_several_variants = "keep"
decision = ["ctr"]
cluster = "none"
horizon = 10000
baseline = 0.00575
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Count, serve, and write `page-SIZE-THEME.png`."""
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", allow_abbrev=False)
    parser.add_argument("-o", type=Path, default=ROOT / "docs" / "pictures", help="the folder")
    parser.add_argument("--query", default="", help="what the page is asked, such as ?metric=auc")
    asked = parser.parse_args(argv)
    asked.o.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        config = Path(folder) / "obd.toml"
        path = data_folder() / "obd_men_events.jsonl"
        config.write_text(CONFIG.format(path=str(path)), encoding="utf-8")
        code = streammetrics(["run", str(config), "--until-end", "--no-serve"])
        if code:
            return code
        watched = Watched(dict, time.monotonic, time.time)
        try:
            with (
                serving(str(Path(folder) / "obd.db"), "127.0.0.1", 0, watched) as url,
                running_browser() as browser,
            ):
                for size in SIZES:
                    for theme in THEMES:
                        _shoot(browser, url + asked.query, size, theme, asked.o)
        except Unavailable as error:
            sys.stderr.write(f"no browser: {error}\n")
            return 1
    return 0


def _shoot(browser: Browser, url: str, size: str, theme: str, folder: Path) -> None:
    width, height = SIZES[size]
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
    )
    page.goto(url)
    page.wait_for_selector("html[data-state=ready]", state="attached")
    page.wait_for_timeout(4000)  # charts in view are drawn one by one, while nothing else is to do
    path = folder / f"page-{size}-{theme}.png"
    page.screenshot(path=path)
    sys.stderr.write(f"{path}\n")
    page.close()


if __name__ == "__main__":
    sys.exit(main())
