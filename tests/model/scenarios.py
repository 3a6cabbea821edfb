"""What protocol.pml is checked with: the logs, and what happens beside commits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MODEL: Final = Path(__file__).with_name("protocol.pml")


@dataclass(frozen=True, slots=True)
class Scenario:
    """The logs of two partitions, and further settings, which are 0 unless they are given.

    times, kinds: a digit of base 16 for each event, those of the first partition first. A kind is 0
    for any event or an impression, 1 and 2 for an exposure to an arm, 1 for a click, and 3 for an
    exposure to the added experiment; 8 more where the event is refused at first. states: how many
    are known to be reached, as a floor.
    """

    times: str
    kinds: str
    settings: str
    states: int

    def flags(self, without: str) -> list[str]:
        """The arguments of Spin; without: the condition to leave out, "0" for none."""
        names = ("PENDING", "WINDOW", "DEPLOYS", "RETRIES", "GOES_BACK", "MERGES", "IDLES")
        options = dict.fromkeys(names, "0") | dict(
            setting.split("=") for setting in self.settings.split()
        )
        values = {
            "RECORDS": len(self.times) // 2,
            "TIMES": int(self.times[::-1], 16),
            "KINDS": int(self.kinds[::-1], 16),
            "WITHOUT": without,
            **options,
        }
        return [f"-D{name}={value}" for name, value in values.items()]


SCENARIOS: Final[Mapping[str, Scenario]] = {
    # Plain events; a metric is added, the store goes back, a refused event is tried again.
    "heads": Scenario("2132", "0080", "DEPLOYS=1 RETRIES=1 GOES_BACK=1", 3_000_000),
    # Two arms, the lesser time comes second; an outcome before every exposure, and a late one.
    "exposures": Scenario("325142", "120000", "PENDING=1 MERGES=1", 1_500_000),
    # An exposure that only a retry counts, and a store that goes back.
    "retried exposures": Scenario("1424", "9000", "PENDING=1 RETRIES=1 GOES_BACK=1", 1_000_000),
    # Exposures to an experiment that is added while others count.
    "added experiment": Scenario("1424", "3300", "PENDING=1 DEPLOYS=1", 100_000),
    # Clicks in disorder, within windows of two units of time.
    "labels": Scenario("126326", "000110", "PENDING=1 WINDOW=2 MERGES=1", 500_000),
    # Silent partitions are passed over, and what they held back may come too late.
    "passed over": Scenario(
        "1424", "0910", "PENDING=1 WINDOW=1 IDLES=1 RETRIES=1 GOES_BACK=1", 1_000_000
    ),
}

# The scenario that shows what each condition is there for.
SHOWN_BY: Final[Mapping[str, str]] = {
    "HEAD_AT_START": "heads",
    "HEAD_OF_LOG": "heads",
    "REVISION_EQUAL": "heads",
    "TOKEN_EQUAL": "heads",
    "ONE_COMMIT": "heads",
    "SEEK_TO_HEAD": "heads",
    "HEADS_COMPARED": "heads",
    "RETRY_OPEN": "heads",
    "ONE_RETRY": "heads",
    "RETRY_REVISION": "heads",
    "RETRY_ERA": "heads",
    "RETRY_NOT_CLOSED": "retried exposures",
    "CLOSED_AT_MOST": "passed over",
    "CLOSED_AT_LEAST": "passed over",
    "ALL_PARTITIONS": "exposures",
    "WINDOW_IS_OVER": "labels",
    "LATE_REFUSED": "exposures",
    "JOIN_STANDS": "retried exposures",
    "ONE_CLOSING": "exposures",
    "ROWS_AS_READ": "retried exposures",
    "KNOWN_AT_ONCE": "exposures",
    "CLOSING_REVISION": "added experiment",
    "ROWS_COUNTED": "exposures",
    "EXPOSED_BEFORE": "exposures",
    "EXPOSED_FIRST": "exposures",
    "EXPOSURES_ENTER": "exposures",
    "EXPOSURES_KEPT": "added experiment",
}
REACHED_END: Final = "REACHED_END"


def conditions() -> list[str]:
    """The conditions that the model can leave out, in its order."""
    text = MODEL.read_text(encoding="utf-8")
    return re.findall(r"^#define ([A-Z_]+) \d+ +/\* `", text, re.MULTILINE)
