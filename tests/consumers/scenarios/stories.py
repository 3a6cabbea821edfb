"""The scenarios: what happens in each experiment, and its config."""

from __future__ import annotations

from itertools import chain
from typing import Final

from tests.consumers.scenarios.events import (
    arm,
    arms,
    bot,
    changing,
    combine,
    from_day,
    guarded,
    heavy_clickers,
    ramp,
    returning,
    shopping,
    until_day,
)
from tests.consumers.scenarios.scenario import (
    Scenario,
    normal,
    rate,
    visits,
)

CLICKS: Final = 'ctr = { type = "Ratio", better = "higher", inputs = { numerators = "click" } }'
CRASHES: Final = 'crash = { type = "Ratio", better = "lower", inputs = { numerators = "crash" } }'
BUYS: Final = 'buys = { type = "Ratio", better = "higher", inputs = { numerators = "buy" } }'
LATENCY: Final = (
    'latency = { type = "ExactQuantiles", better = "lower", inputs = { values = "ms" } }'
)
REVENUE: Final = 'revenue = { type = "Ratio", better = "higher", inputs = { numerators = "paid" } }'
UNIT_REVENUE: Final = (
    'revenue = { type = "UnitMean", better = "higher", inputs = { values = "paid" } }'
)
ROW_REVENUE: Final = (
    'revenue = { type = "Moments", better = "higher", inputs = { values = "paid" } }'
)
CONVERSION: Final = (
    'conversion = { type = "UnitRate", better = "higher", inputs = { values = "buy" } }'
)
CTR: Final = 'decision = ["ctr"]\nmde = 0.02\n'
GUARDED: Final = f'{CTR}guardrails = [{{ metric = "crash", margin = 0.005 }}]\n'


RAMP: Final = (
    'epochs = ["2025-12-03T00:00:00Z"]\nshares = [{ old = 95, new = 5 }, { old = 1, new = 1 }]\n'
)
SCENARIOS: Final[dict[str, Scenario]] = {
    "a clear win": Scenario(
        story="The new ranking lifts the click rate from 20 % to 26 %.",
        metrics=CLICKS,
        experiment=CTR,
        days=4,
        day=arms(rate(0.20), rate(0.26), name="click"),
    ),
    "a win too small to see yet": Scenario(
        story="The new ranking lifts the click rate from 20 % to 20.5 %; four days are not enough.",
        metrics=CLICKS,
        experiment=CTR,
        days=4,
        day=arms(rate(0.20), rate(0.205), name="click"),
    ),
    "a clear loss": Scenario(
        story="The new ranking lowers the click rate from 20 % to 15 %.",
        metrics=CLICKS,
        experiment=CTR,
        days=4,
        day=arms(rate(0.20), rate(0.15), name="click"),
    ),
    "two equal arms": Scenario(
        story="Both arms are the same. An effect of the planned size would have been seen.",
        metrics=CLICKS,
        experiment='decision = ["ctr"]\nmde = 0.03\n',
        days=6,
        day=arms(rate(0.20), rate(0.20), name="click", users=(2_000, 2_000)),
    ),
    "the first hour": Scenario(
        story="Twenty users of each arm have come.",
        metrics=CLICKS,
        experiment=CTR,
        days=1,
        day=arms(rate(0.25), rate(0.5), name="click", users=(20, 20)),
    ),
    "a rate without a direction": Scenario(
        story="Nobody said whether a higher rate is better, and it rises.",
        metrics='ctr = { type = "Ratio", inputs = { numerators = "click" } }',
        experiment=CTR,
        days=4,
        day=arms(rate(0.20), rate(0.26), name="click"),
    ),
    "bounces that fall": Scenario(
        story="Fewer users leave at once: 40 % in place of 46 %.",
        metrics='bounce = { type = "Ratio", better = "lower", inputs = { numerators = "bounce" } }',
        experiment='decision = ["bounce"]\nmde = 0.03\n',
        days=4,
        day=arms(rate(0.46), rate(0.40), name="bounce"),
    ),
    "a dead arm": Scenario(
        story="The new arm logs nothing at all.",
        metrics=CLICKS,
        experiment=CTR,
        days=2,
        day=arm("old", 1_000, click=rate(0.2)),
    ),
    "clicks are not logged": Scenario(
        story="The new page forgot to log clicks: 0 of 50,000 events, 2,500 of 50,000 in the old.",
        metrics=CLICKS,
        experiment=CTR,
        days=1,
        day=arms(rate(0.05), rate(0.0), name="click", users=(50_000, 50_000)),
    ),
    "everything is a click": Scenario(
        story="The new page logs a click for each impression.",
        metrics=CLICKS,
        experiment=CTR,
        days=2,
        day=arms(rate(0.05), rate(1.0), name="click"),
    ),
    "the new version crashes": Scenario(
        story="Clicks rise, but 3 % of the sessions of the new version crash, and 0 of the old.",
        metrics=f"{CLICKS}\n{CRASHES}",
        experiment=GUARDED,
        days=2,
        day=guarded((0.20, 0.0), (0.26, 0.03), (2_000, 2_000)),
    ),
    "the new version stops the crashes": Scenario(
        story="3 % of the sessions of the old version crash, and none of the new.",
        metrics=f"{CLICKS}\n{CRASHES}",
        experiment=GUARDED,
        days=3,
        day=guarded((0.20, 0.03), (0.20, 0.0), (3_000, 3_000)),
    ),
    "a canary that crashes": Scenario(
        story="5 % of the users have the new version, which crashes in 4 % of the sessions.",
        metrics=f"{CLICKS}\n{CRASHES}",
        experiment=f"{GUARDED}shares = {{ old = 95, new = 5 }}\n",
        days=3,
        day=guarded((0.20, 0.002), (0.20, 0.04), (9_500, 500)),
    ),
    "a harmless canary": Scenario(
        story="5 % of the users have the new version, which is like the old.",
        metrics=f"{CLICKS}\n{CRASHES}",
        experiment=f"{GUARDED}shares = {{ old = 95, new = 5 }}\n",
        days=3,
        day=guarded((0.20, 0.002), (0.20, 0.002), (9_500, 500)),
    ),
    "a win within its guardrail": Scenario(
        story="Clicks rise from 20 % to 26 %, and crashes stay at 0.5 %.",
        metrics=f"{CLICKS}\n{CRASHES}",
        experiment=GUARDED,
        days=5,
        day=guarded((0.20, 0.005), (0.26, 0.005), (4_000, 4_000)),
    ),
    "a late start": Scenario(
        story="The new arm is switched on two days late, and then gets half of the users.",
        metrics=CLICKS,
        experiment=CTR,
        days=6,
        day=combine(
            arm("old", 1_000, click=rate(0.2)), from_day(2, arm("new", 1_000, click=rate(0.2)))
        ),
    ),
    "an arm that stops in the middle": Scenario(
        story="The new arm is switched off on the fourth day of six.",
        metrics=CLICKS,
        experiment=CTR,
        days=6,
        day=combine(
            arm("old", 1_000, click=rate(0.2)), until_day(3, arm("new", 1_000, click=rate(0.26)))
        ),
    ),
    "a small sample-ratio mismatch": Scenario(
        story="600 users in the old arm and 300 in the new; half and half were planned.",
        metrics=CLICKS,
        experiment=CTR,
        days=1,
        day=arms(rate(0.2), rate(0.4), name="click", users=(600, 300)),
    ),
    "a mismatch that balances itself": Scenario(
        story="800 to 200 users a day on four days, then 200 to 800; half and half were planned.",
        metrics=CLICKS,
        experiment=CTR,
        days=8,
        day=ramp(
            *[(800, 200)] * 4, *[(200, 800)] * 4, name="click", old=rate(0.20), new=rate(0.30)
        ),
    ),
    "users in both arms": Scenario(
        story="One user in ten sees both versions.",
        metrics=CLICKS,
        experiment=CTR,
        days=2,
        day=combine(
            arms(rate(0.20), rate(0.26), name="click"),
            lambda random, day: iter(
                {"variant": name, "user": f"both-{day}-{i}", "click": int(random.random() < 0.2)}
                for i in range(100)
                for name in ("old", "new")
            ),
        ),
    ),
    "a bot": Scenario(
        story="One user has 40 % of the rows of the new arm, and clicks on everything.",
        metrics=CLICKS,
        experiment=CTR,
        days=3,
        day=combine(arms(rate(0.20), rate(0.20), name="click"), bot("new", 667, 1)),
    ),
    "doubled events in one arm": Scenario(
        story="The new client sends each event twice.",
        metrics=CLICKS,
        experiment=CTR,
        days=3,
        day=combine(
            lambda random, day: visits("old", 1_000, day=day, click=rate(0.2))(random),
            lambda random, day: chain.from_iterable(
                (event, event) for event in visits("new", 1_000, day=day, click=rate(0.2))(random)
            ),
        ),
    ),
    "doubled events in both arms": Scenario(
        story="All clients send each event twice, and nothing else differs.",
        metrics=CLICKS,
        experiment=CTR,
        days=3,
        day=lambda random, day: chain.from_iterable(
            (event, event) for event in arms(rate(0.2), rate(0.2), name="click")(random, day)
        ),
    ),
    "a ramp": Scenario(
        story="5 % of the users for two days, then half. Weekends click more in both arms.",
        metrics=CLICKS,
        experiment=CTR + RAMP,
        days=5,
        day=combine(
            until_day(2, arms(rate(0.30), rate(0.30), name="click", users=(1_900, 100))),
            from_day(2, arms(rate(0.20), rate(0.20), name="click", users=(1_000, 1_000))),
        ),
    ),
    "a ramp that wins": Scenario(
        story="5 % of the users for two days, then half; the click rate rises by 6 points.",
        metrics=CLICKS,
        experiment=CTR + RAMP,
        days=6,
        day=combine(
            until_day(2, arms(rate(0.20), rate(0.26), name="click", users=(1_900, 100))),
            from_day(2, arms(rate(0.20), rate(0.26), name="click", users=(1_500, 1_500))),
        ),
    ),
    "a latency that stays": Scenario(
        story="Clicks rise, and the 95th percentile of the latency stays within 20 ms.",
        metrics=f"{CLICKS}\n{LATENCY}",
        experiment=(
            'decision = ["ctr"]\nhorizon = 20_000\nbaseline = 0.2\n'
            'guardrails = [{ metric = "latency.quantile(0.95)", margin = 20 }]\n'
        ),
        days=4,
        day=combine(
            arm("old", 2_000, click=rate(0.20), ms=normal(200.0, 30.0)),
            arm("new", 2_000, click=rate(0.26), ms=normal(201.0, 30.0)),
        ),
    ),
    "a latency that grows": Scenario(
        story="Clicks rise, and the 95th percentile of the latency grows by 50 ms.",
        metrics=f"{CLICKS}\n{LATENCY}",
        experiment=(
            'decision = ["ctr"]\nhorizon = 20_000\nbaseline = 0.2\n'
            'guardrails = [{ metric = "latency.quantile(0.95)", margin = 20 }]\n'
        ),
        days=4,
        day=combine(
            arm("old", 2_000, click=rate(0.20), ms=normal(200.0, 30.0)),
            arm("new", 2_000, click=rate(0.26), ms=normal(250.0, 30.0)),
        ),
    ),
    "three arms, one wins": Scenario(
        story="One of two new rankings lifts the click rate, the other one lowers it.",
        metrics=CLICKS,
        experiment=CTR,
        days=4,
        variants=("old", "new", "other"),
        day=combine(
            arms(rate(0.20), rate(0.27), name="click"), arm("other", 1_000, click=rate(0.14))
        ),
    ),
    "three arms, none differs": Scenario(
        story="Both new rankings are like the old one.",
        metrics=CLICKS,
        experiment=CTR,
        days=4,
        variants=("old", "new", "other"),
        day=combine(
            arms(rate(0.20), rate(0.20), name="click"), arm("other", 1_000, click=rate(0.20))
        ),
    ),
    "three arms, one is dead": Scenario(
        story="One of two new rankings gets no users.",
        metrics=CLICKS,
        experiment=CTR,
        days=2,
        variants=("old", "new", "other"),
        day=arms(rate(0.20), rate(0.26), name="click"),
    ),
    "few users with many rows": Scenario(
        story="400 users of each arm come every day; 4 % of them click nearly always.",
        metrics=CLICKS,
        experiment=CTR,
        days=4,
        day=combine(heavy_clickers("old", 400, 10, 0.04), heavy_clickers("new", 400, 10, 0.04)),
    ),
    "a small arm without a heavy user": Scenario(
        story="3,000 users in the old arm, of whom 4 % click nearly always; 100 in the new, none.",
        metrics=CLICKS,
        experiment=f"{CTR}shares = {{ old = 30, new = 1 }}\n",
        days=2,
        day=combine(heavy_clickers("old", 3_000, 5, 0.04), heavy_clickers("new", 100, 5, 0.0)),
    ),
    "returning users who like it": Scenario(
        story="2,000 users of each arm come every day, and click in 26 % in place of 20 %.",
        metrics=CLICKS,
        experiment=CTR,
        days=3,
        day=combine(
            returning("old", 2_000, 2, click=rate(0.20)),
            returning("new", 2_000, 2, click=rate(0.26)),
        ),
    ),
    "revenue per user": Scenario(
        story="Users of the new arm come more often and pay more in all, but less at each visit.",
        metrics=UNIT_REVENUE,
        experiment='decision = ["revenue"]\nmde = 0.5\n',
        days=4,
        day=combine(
            shopping("old", 1_500, 4, 0.25, 1.0, 0.5), shopping("new", 1_500, 5, 0.24, 1.0, 0.5)
        ),
    ),
    "revenue per row": Scenario(
        story="The same experiment, but counted per row.",
        metrics=REVENUE,
        experiment='decision = ["revenue"]\nmde = 0.1\n',
        days=4,
        day=combine(
            shopping("old", 1_500, 4, 0.25, 1.0, 0.5), shopping("new", 1_500, 5, 0.24, 1.0, 0.5)
        ),
    ),
    "revenue with a heavy tail in a small arm": Scenario(
        story="5 % of the users have the new version, which changes nothing; few users pay a lot.",
        metrics=UNIT_REVENUE,
        experiment='decision = ["revenue"]\nmde = 1.0\nshares = { old = 95, new = 5 }\n',
        days=3,
        day=combine(
            shopping("old", 3_800, 1, 0.05, 2.0, 1.5), shopping("new", 200, 1, 0.05, 2.0, 1.5)
        ),
    ),
    "revenue that stops": Scenario(
        story="Nobody can pay in the new version, which 5 % of the users have.",
        metrics=UNIT_REVENUE,
        experiment='decision = ["revenue"]\nmde = 0.5\nshares = { old = 95, new = 5 }\n',
        days=3,
        day=combine(
            shopping("old", 9_500, 1, 0.05, 2.0, 1.0), shopping("new", 500, 1, 0.0, 2.0, 1.0)
        ),
    ),
    "revenue per row that stops": Scenario(
        story="Nobody can pay in the new version, which 5 % of the users have; each looks twice.",
        metrics=ROW_REVENUE,
        experiment='decision = ["revenue"]\nmde = 0.5\nshares = { old = 95, new = 5 }\n',
        days=3,
        day=combine(
            shopping("old", 9_500, 2, 0.05, 2.0, 1.0), shopping("new", 500, 2, 0.0, 2.0, 1.0)
        ),
    ),
    "fewer buyers who spend more": Scenario(
        story="3 % of the users buy in place of 6 %, and each of them spends twice as much.",
        metrics=UNIT_REVENUE,
        experiment='decision = ["revenue"]\nmde = 0.2\n',
        days=4,
        day=combine(
            shopping("old", 3_000, 1, 0.06, 2.0, 0.5), shopping("new", 3_000, 1, 0.03, 2.7, 0.5)
        ),
    ),
    "conversion per user": Scenario(
        story="12 % of the users buy in place of 9 %; each of them has three rows.",
        metrics=CONVERSION,
        experiment='decision = ["conversion"]\nmde = 0.02\n',
        days=4,
        day=combine(
            lambda random, day: visits("old", 1_500, day=day, rows=3, buy=rate(0.031))(random),
            lambda random, day: visits("new", 1_500, day=day, rows=3, buy=rate(0.042))(random),
        ),
    ),
    "a win on the first of fourteen days": Scenario(
        story="Fourteen days were planned, and on the first one the effect is clear.",
        metrics=CLICKS,
        experiment=f"{CTR}days = 14\n",
        days=1,
        day=arms(rate(0.20), rate(0.28), name="click", users=(3_000, 3_000)),
    ),
    "a win after all planned days": Scenario(
        story="Four days were planned, and after them the effect is clear.",
        metrics=CLICKS,
        experiment=f"{CTR}days = 4\n",
        days=5,
        day=arms(rate(0.20), rate(0.26), name="click"),
    ),
    "an effect that ends": Scenario(
        story="The new arm clicks more for five days of twenty, then like the old one.",
        metrics=CLICKS,
        experiment=CTR,
        days=20,
        day=changing(0.32, 0.20, 5),
    ),
    "an effect that turns around": Scenario(
        story="The new arm clicks more for five days of twenty, then less than the old one.",
        metrics=CLICKS,
        experiment=CTR,
        days=20,
        day=changing(0.32, 0.14, 5),
    ),
    "a constant effect over many looks": Scenario(
        story="The new arm clicks in 22.5 % in place of 20 % on each of twenty days.",
        metrics=CLICKS,
        experiment=CTR,
        days=20,
        day=changing(0.225, 0.225, 5),
    ),
    "an effect beyond belief": Scenario(
        story="The planned size was half a point, and the click rate rises by nine points.",
        metrics=CLICKS,
        experiment='decision = ["ctr"]\nmde = 0.005\n',
        days=3,
        day=arms(rate(0.20), rate(0.29), name="click", users=(3_000, 3_000)),
    ),
    "one metric both decides and guards": Scenario(
        story="Clicks decide, and must not fall by more than one point either.",
        metrics=CLICKS,
        experiment=f'{CTR}guardrails = [{{ metric = "ctr", margin = 0.01 }}]\n',
        days=4,
        day=arms(rate(0.20), rate(0.26), name="click"),
    ),
    "one metric better, another worse": Scenario(
        story="Clicks rise and purchases fall; both decide.",
        metrics=f"{CLICKS}\n{BUYS}",
        experiment='decision = ["ctr", "buys"]\nmde = 0.02\n',
        days=4,
        day=combine(
            arm("old", 1_500, click=rate(0.20), buy=rate(0.20)),
            arm("new", 1_500, click=rate(0.26), buy=rate(0.14)),
        ),
    ),
}
