"""Names and numbers of the page are those of the command line, letter for letter."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable

import pytest
from streammetrics_consumers.model import formatting

from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream

pytestmark = pytest.mark.slow
Open = Callable[..., Seen]


def test_numbers_are_rounded_as_the_command_line_rounds_them(
    served: Stream, open_page: Open
) -> None:
    chance = random.Random(7)
    values = [struct.unpack("<d", chance.randbytes(8))[0] for _ in range(300)]
    values += [chance.random() * 10.0**e for e in range(-9, 16) for _ in range(8)]
    values += [0.0, -0.0, 0.5, 1.5, 2.5, 0.125, -0.375, 1e15, 999.9995, 0.70074, -1e-12]
    values = [value for value in values if math.isfinite(value)]
    asked = [[value, decimals] for value in values for decimals in (0, 2, 4, 10)]
    found = open_page(served.url).page.evaluate(
        """async (asked) => {
          const printed = await import("/assets/printed.js");
          const { number, bounds, chance, evidence, decimalsFor } = printed;
          return asked.map(([x, decimals]) =>
            [number(x, decimals), number(x, decimals, true), chance(x), bounds(x, x, decimals),
             evidence(x), decimalsFor([x]), decimalsFor([x, 0.3, 7])]);
        }""",
        asked,
    )
    for (value, places), shown in zip(asked, found, strict=True):
        decimals = int(places)
        assert shown == [
            formatting.number(value, decimals),
            formatting.number(value, decimals, signed=True),
            formatting.chance(value),
            formatting.interval(value, value, decimals),
            formatting.evidence(value),
            formatting.decimals_for([value]),
            formatting.decimals_for([value, 0.3, 7]),
        ], (value, decimals)


def test_names_are_shown_as_the_command_line_shows_them(served: Stream, open_page: Open) -> None:
    names = [
        "",
        "plain",
        "<b>&amp;",
        "a\x1b[31m\n\t",
        "\u202eabc",
        "\u00a0\u2028",
        "\U000e0001",
        "ß🎈",
        "x" * 41,
        "\n" * 39,
        "é" * 60,
    ]
    found = open_page(served.url).page.evaluate(
        """async (names) => {
          const { name } = await import("/assets/printed.js");
          return names.map((one) => name(one));
        }""",
        names,
    )
    assert found == [formatting.name(name) for name in names]
