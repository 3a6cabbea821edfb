"""What the scripts of newcomers read: the files of one day of a shop, and of one evaluation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

SCRIPTS: Final = Path(__file__).parent / "scripts"
EXACTLY: Final = 1e-14  # other libraries add floats, and round more than once
Names = Mapping[str, Any]
Ran = Callable[[str], Names]
ARMS: Final = ("control", "new")


def day_of_clicks(rng: np.random.Generator, n: int = 6_000) -> pl.DataFrame:
    """Impressions of 600 users of two variants; some users click much more than others."""
    user = rng.integers(0, 600, n)
    new = user % 2 == 1
    interest = rng.normal(-1.5, 1.0, n) + rng.normal(0.0, 1.0, 600)[user] + 0.6 * new
    price = rng.lognormal(3.0, 0.5, n)
    times = np.sort(rng.integers(0, 86_400_000_000, n)).astype("timedelta64[us]")
    columns = {
        "at": np.datetime64("2026-03-02", "us") + times,
        "variant": np.where(new, "new", "control"),
        "user": user,
        "click": (rng.random(n) < 1 / (1 + np.exp(-interest))).astype(np.int8),
        "score": 1 / (1 + np.exp(-interest - rng.normal(0.0, 0.6, n))),
        "old_score": 1 / (1 + np.exp(-interest - rng.normal(0.0, 1.0, n))),
        "price": price,
        "predicted_price": price * rng.lognormal(0.0, 0.2, n),
        "latency_ms": 40 * rng.lognormal(0.0, 0.7, n),
        "category": (category := rng.choice(4, n, p=[0.6, 0.2, 0.15, 0.05])),
        "predicted_category": np.where(rng.random(n) < 0.7, category, rng.integers(0, 4, n)),
    }
    return pl.DataFrame(columns).with_columns(pl.col("at").dt.replace_time_zone("UTC"))


def judged_runs(rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Judgments and two runs with tied scores, of 40 queries."""
    qrels, run, tuned = {}, {}, {}
    for query in range(40):
        documents = [f"d{number}" for number in rng.choice(200, 60, replace=False)]
        grades = qrels[f"q{query}"] = {
            document: int(rng.integers(0, 4)) for document in documents[:25]
        }
        scores = run[f"q{query}"] = {
            document: int(rng.integers(0, 30)) / 4 for document in documents[10:]
        }
        tuned[f"q{query}"] = {
            document: score + grades.get(document, 0) + int(rng.integers(0, 4)) / 4
            for document, score in scores.items()
        }
    return qrels, run, tuned


def recommendations(rng: np.random.Generator) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What 80 users clicked, and twenty items with different scores for each of them."""
    users = np.repeat(np.arange(80), 20)
    items = np.concatenate([rng.permutation(100)[:20] for _ in range(80)])
    scores = rng.permutation(len(users)) / len(users)
    shown = pl.DataFrame({"user": users, "item": items, "score": scores})
    clicked = shown.filter(pl.Series(rng.random(len(users)) < 0.05 + 0.2 * scores))
    unseen = pl.DataFrame({"user": np.arange(80), "item": np.full(80, 200)})  # in no list
    return pl.concat([clicked.select("user", "item"), unseen]), shown


def people(rng: np.random.Generator, n: int = 4_000) -> pl.DataFrame:
    """What each user of an A/B test spent in the week before and during it."""
    variant = np.where(rng.random(n) < 0.51, "new", "control")
    before = rng.lognormal(1.0, 0.6, n)
    during = 0.8 * before + rng.lognormal(0.5, 0.5, n) + 0.2 * (variant == "new")
    columns = {"user": np.arange(n), "variant": variant, "before": before, "during": during}
    return pl.DataFrame(columns)


def answers(rng: np.random.Generator, skill: float, hard: Any) -> list[bool]:
    """Whether a model answers each question; three of them are about one passage."""
    return [bool(answer) for answer in rng.normal(size=len(hard)) + skill > hard]


def write_log(path: Path, right: list[bool]) -> None:
    """A log of inspect_ai."""
    samples = [
        {
            "id": number,
            "epoch": 1,
            "metadata": {"passage": f"p{number // 3}"},
            "scores": {"match": {"value": "C" if answer else "I"}},
        }
        for number, answer in enumerate(right)
    ]
    eval = {"model": path.stem}
    log = {"version": 2, "status": "success", "eval": eval, "samples": samples}
    path.write_text(json.dumps(log), encoding="utf-8")


QRELS, RUN, TUNED = judged_runs(np.random.default_rng(21))
LANGUAGE = {query: ("de", "en", "fr")[int(query[1:]) % 3] for query in QRELS}
HARD = np.repeat(np.random.default_rng(24).normal(size=40), 3)
ANSWERS = {
    model: answers(np.random.default_rng(seed), skill, HARD)
    for model, seed, skill in (("base", 25, 0.3), ("tuned", 26, 0.8))
}


class Frames(NamedTuple):
    """The tables, and two arrays of their columns."""

    day: pl.DataFrame
    clicked: pl.DataFrame
    shown: pl.DataFrame
    people: pl.DataFrame
    orders: pl.DataFrame
    labels: NDArray[np.int8]
    epochs: NDArray[np.float64]


@cache
def frames() -> Frames:
    """They are made when they are first used: in threads, which no module starts on import."""
    day = day_of_clicks(np.random.default_rng(20))
    clicked, shown = recommendations(np.random.default_rng(22))
    spent = people(np.random.default_rng(23))
    orders = spent.select("variant", "user", amount=pl.col("during") / (1 + pl.col("user") % 3))
    orders = orders.select(pl.all().repeat_by(1 + pl.col("user") % 3)).explode(
        "variant", "user", "amount"
    )
    epochs = np.stack([day["old_score"], day["score"], day["price"]])
    return Frames(day, clicked, shown, spent, orders, day["click"].to_numpy(), epochs)


def write_files(folder: Path) -> None:
    """All files that a script reads."""
    frames().day.write_parquet(folder / "day.parquet")
    for shard in range(8):
        frames().day[shard::8].write_parquet(folder / f"shard-{shard}.parquet")
    np.save(folder / "labels.npy", frames().labels)
    np.save(folder / "scores.npy", frames().epochs)
    judged = [(query, doc, grade) for query, all in QRELS.items() for doc, grade in all.items()]
    (folder / "qrels.txt").write_text("\n".join(f"{q} 0 {d} {grade}" for q, d, grade in judged))
    judgments = pl.DataFrame(judged, ["query", "doc", "grade"], orient="row")
    judgments = judgments.with_columns(language=pl.col("query").replace_strict(LANGUAGE))
    judgments.write_parquet(folder / "judgments.parquet")
    for name, run in (("bm25", RUN), ("tuned", TUNED)):
        lines = [
            f"{q} Q0 {d} 1 {score} {name}" for q, all in run.items() for d, score in all.items()
        ]
        (folder / f"{name}.run").write_text("\n".join(lines))
    frames().clicked.write_csv(folder / "clicked.csv")
    frames().shown.write_csv(folder / "recommended.csv")
    frames().people.write_csv(folder / "users.csv")
    frames().orders.write_csv(folder / "orders.csv")
    for model, right in ANSWERS.items():
        write_log(folder / f"{model}.json", right)
