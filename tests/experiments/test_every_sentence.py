"""Every sentence over a grid of situations can be read aloud: no symbol of a machine is in one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import cycle, product

import numpy as np

from streammetrics import Ratio, UserGroups
from streammetrics.experiments import (
    ACTIONS,
    VERDICTS,
    Horizon,
    Look,
    Monitor,
    Report,
    Safeguard,
)
from streammetrics.experiments.one_look import Anytime
from tests.experiments.arms import followed, of_states, two

BAD = re.compile(
    r"\d[eE][+-]?\d|\bnan\b|\binf\b|\(unnamed\)|p 0\.0+\b|  |: ?\.|\(\)|None|no look has been taken"
)
RATES = [(0, 0), (0, 50), (50, 50), (4, 90), (10, 500), (46, 10_000), (690, 9000), (99_000, 10**6)]
HORIZONS = [Horizon(), Horizon(mde=1e-5), Horizon(mde=0.02), Horizon(units=10_000, baseline=0.1)]
DIRECTIONS: list[dict[str, str | float]] = [{}, {"ctr": "higher"}, {"ctr": "lower"}, {"ctr": 0.05}]
LOOKS = [
    (Anytime(0.01, 0.03, 5.0), Anytime(-0.001, 0.015, 0.0)),
    (Anytime(-0.07, -0.05, 5.0), Anytime(-0.06, -0.001, 2.0)),
    (Anytime(0.01, 0.02, 9.0), Anytime()),
    (Anytime(), Anytime(gated=True, reason="an arm has too little")),
    (Anytime(0.2, 0.3), Anytime(0.4, 0.5)),
]


def reports() -> Iterator[Report]:
    """Of decisions and guardrails, with looks and without, with units and without."""
    declared = cycle(product(HORIZONS, DIRECTIONS))
    for control, treatment in product(RATES, RATES):
        horizon, better = next(declared)
        yield two(control, treatment, horizon=horizon, better=better).report()
    name = "ctr.ratio/bts"
    for arms, readings, guarded in product(
        (((46, 10_000), (69, 10_000)), ((690, 9000), (460, 9000))), LOOKS, (False, True)
    ):
        rows = [Look.at("x", 1, {"a": i}, {name: reading}) for i, reading in enumerate(readings)]
        watched = {name: Monitor.of(rows).watched("x", 1, name)}
        rails = {"decision": (), "guardrails": (Safeguard("ctr", 0.002),)} if guarded else {}
        yield two(*arms, **rails).report(watched)
    for arms, margin, higher in product(
        product(RATES[::2], RATES[1::2]), (0.001, 0.1), (True, False)
    ):
        rail = Safeguard("ctr", margin, higher)
        yield two(*arms, decision=(), guardrails=(rail,)).report()
    for overlap, word in product((0, 1, 30), ("keep", "error")):
        ids = range(1000), range(1000 - overlap, 2000)
        yield two((460, 9000), (690, 9000), variant_ids=ids, on_several_variants=word).report()
    for rails in ({}, {"decision": (), "guardrails": (Safeguard("ctr", 0.01),)}):
        settings: dict[str, object] = {"horizon": Horizon(mde=0.02), "better": {"ctr": "higher"}}
        for second in (((6000, 40_000), (6600, 40_000)), ((12_000, 80_000), (14_400, 80_000))):
            first = two((3000, 20_000), (3600, 20_000), **settings, **rails)
            yield followed([first, two(*second, **settings, **rails)])
    for scale, lift in product((1e-6, 1e9), (1.01, 3.0)):
        arms = revenue(1, scale), revenue(2, scale * lift)
        yield of_states(*arms, cluster="groups", horizon=Horizon(mde=0.1 * scale)).report()


def revenue(seed: int, scale: float) -> UserGroups:
    rng, state = np.random.default_rng(seed), UserGroups(Ratio())
    state.update(groups=np.arange(1000), numerators=rng.exponential(scale, 1000))
    return state


def test_every_sentence_can_be_read_aloud() -> None:
    verdicts, actions = set(), set()
    for report in reports():
        recommendation = report.recommendation
        actions.add(recommendation.action)
        verdicts.update(entry.verdict for entry in report.findings)
        names = {entry.contrast.name for entry in report.findings}
        assert set(recommendation.rests_on) <= names
        for sentence in (*(entry.sentence for entry in report.findings), recommendation.sentence):
            assert not BAD.search(sentence), sentence
            assert sentence.endswith("."), sentence
        for finding in report.findings:
            assert finding.distrusted == (finding.verdict == "disbelieved")
            assert (finding.verdict == "not_started") <= bool(finding.reason)
            assert ("is better" in finding.sentence) == (finding.verdict == "better")
            assert ("is worse" in finding.sentence) == (finding.verdict == "worse")
    assert verdicts == set(VERDICTS) and actions == set(ACTIONS)
