"""Diversity beside ndeval, the TREC tool (pyndeval), and the G-mean beside imbalanced-learn.

Both are in an environment of their own, `.cache/list-peers`, which `make peers` makes. This file
runs there too, as a script that answers one question in JSON.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

ENVIRONMENT = Path(__file__).resolve().parents[2] / ".cache" / "list-peers"
CUTS = (5, 10, 20)
THEIRS = [f"{name}@{k}" for name in ("alpha-nDCG", "ERR-IA", "strec") for k in CUTS]
ALPHA = 0.3


def _answer(question: Any) -> Any:
    """Runs in the environment of the peers."""
    import pyndeval  # type: ignore[import-not-found]
    from imblearn.metrics import geometric_mean_score  # type: ignore[import-not-found]

    rows = [tuple(row) for row in question["qrels"]], [tuple(row) for row in question["run"]]
    return {
        "half": pyndeval.ndeval(*rows, THEIRS),
        "other": pyndeval.ndeval(*rows, THEIRS, alpha=ALPHA),
        "g_mean": [float(geometric_mean_score(*pair)) for pair in question["classes"]],
    }


if __name__ == "__main__":
    json.dump(_answer(json.load(sys.stdin)), sys.stdout)
    sys.exit()

import math  # noqa: E402

import pytest  # noqa: E402

from streammetrics import MulticlassConfusion, evaluate, parse_measure  # noqa: E402
from tests.requirements import absent  # noqa: E402

pytestmark = pytest.mark.xdist_group("list-peers")


@cache
def question() -> Any:
    """Queries of 1 to 6 subtopics; runs without equal scores, whose order each tool chooses."""
    rng = random.Random(7)
    qrels, run = [], []
    for query in range(1, 61):
        subtopics = rng.randint(1, 6)
        documents = [f"d{number:04d}" for number in rng.sample(range(10_000), 50)]
        qrels += [
            (str(query), str(subtopic), document, int(rng.random() < 0.3))
            for document in documents[:35]
            for subtopic in range(subtopics)
            if rng.random() < 0.8
        ]
        shown = rng.sample(documents, rng.randint(1, 40))
        run += [(str(query), document, 100.0 - rank) for rank, document in enumerate(shown)]
    classes = []
    for n in (4, 30, 400):
        truth = [rng.randrange(3) for _ in range(n)]
        classes.append((truth, [t if rng.random() < 0.6 else rng.choice(truth) for t in truth]))
    return {"qrels": qrels, "run": run, "classes": classes}


@cache
def answers() -> Any:
    if not (ENVIRONMENT / ".made").is_file():
        absent("list-peers", f"no {ENVIRONMENT}")
    python = ENVIRONMENT / "bin" / "python"
    request = json.dumps(question())
    process = subprocess.run([python, __file__], input=request, capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(process.stderr)
    return json.loads(process.stdout)


@pytest.mark.parametrize(("alpha", "name"), [(0.5, "half"), (ALPHA, "other")])
def test_every_value_is_that_of_ndeval_but_for_the_rounding_of_its_sums(
    alpha: float, name: str
) -> None:
    qrels: dict[str, dict[str, dict[str, int]]] = {}
    for query, subtopic, document, grade in question()["qrels"]:
        qrels.setdefault(query, {}).setdefault(document, {})[subtopic] = grade
    run: dict[str, dict[str, float]] = {}
    for query, document, score in question()["run"]:
        run.setdefault(query, {})[document] = score
    names = [*THEIRS]
    measures = [parse_measure(text) for text in names]
    measures = [m(alpha=alpha) if m.name != "StRecall" else m for m in measures]
    result = evaluate(qrels, run, measures, empty="zero", missing="skip")
    for query, values in result.per_query.items():
        for peer_name, value in zip(names, values.values(), strict=True):
            assert math.isclose(value, answers()[name][query][peer_name], rel_tol=1e-13), (
                query,
                peer_name,
            )


def test_the_g_mean_is_theirs_where_every_predicted_class_occurs() -> None:
    for (truth, predicted), peer_value in zip(
        question()["classes"], answers()["g_mean"], strict=True
    ):
        metric = MulticlassConfusion(5)  # two classes never occur
        metric.update(truth, predicted)
        assert math.isclose(metric.compute().g_mean, peer_value, rel_tol=1e-13)
