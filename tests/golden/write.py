"""Golden state files: what they hold, how they are computed, and the script that writes them.

    python -m tests.golden.write            write what is missing
    python -m tests.golden.write --digests  print what today's code computes, as JSON

A file whose bytes would change is left alone and named: bytes change only with the schema
version of their metric, and then the file of the old version stays as long as it is read.
"""

from __future__ import annotations

import json
import math
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

from streammetrics import (
    ERRIA,
    HR,
    MRR,
    NDCG,
    Accumulator,
    AlphaNDCG,
    BinaryConfusion,
    Bounded,
    Bpref,
    Calibration,
    CatalogMetrics,
    ExactAUC,
    ExactQuantiles,
    ExactUplift,
    GroupedAUC,
    GroupedInterleaving,
    GroupedScores,
    HistogramAUC,
    Interleaving,
    IntraListSimilarity,
    ItemExposure,
    Moments,
    OffPolicy,
    P,
    Paired,
    Panel,
    PerKey,
    Quantiles,
    RankingMetrics,
    Ratio,
    Regression,
    StRecall,
    UnitMean,
    UnitRate,
    Units,
    UnitSums,
    Uplift,
    UserGroups,
    Windows,
)
from streammetrics.registry import metric_types, setting_text
from streammetrics.results import counts_of, views_of
from streammetrics.testing import Case
from tests.cases import CASES
from tests.golden.joins import JOINS
from tests.golden.list_rows import (
    ITEMS,
    item_features,
    item_lists,
    item_vectors,
    lists,
    lists_with_positions,
    lists_with_subtopics,
    shown_items,
    shown_items_with_subtopics,
)
from tests.golden.many_classes import MANY_CLASSES

FOLDER: Final = Path(__file__).parent
RESULTS: Final = FOLDER / "results.json"
SMALL: Final = 200  # rows in a state file
LARGE: Final = 20_000  # rows behind a digest: they take the paths of large batches
ODD_SCORES: Final = (0.0, -0.0, 1.0, 0.5, 5e-324, 2.0**-24, 2.0**-25, 1 - 2.0**-53, 0.1)


@cache
def columns(n: int, *, real: bool = False) -> Mapping[str, Any]:
    """The columns of `n` rows: the same on every machine, and made once, for they are only read.

    Python promises the same random numbers for ever, numpy does not; and powers or logarithms
    would differ from machine to machine.
    """
    random = Random(20191124)
    users = [int(1 / (random.random() + 1e-3)) - 3 for _ in range(n)]
    scores = [random.random() * random.random() * random.random() for _ in range(n)]
    scores[: len(ODD_SCORES)] = ODD_SCORES
    if real:
        scores = [random.choice((-1, 1)) * s / (1 - s) if s < 1 else math.inf for s in scores]
    return {
        "labels": np.array([int(random.random() < 0.1 + 0.6 * min(1, abs(s))) for s in scores]),
        "scores": np.array(scores),
        "others": np.array(scores[::-1]),
        "groups": np.array(users),
        "names": np.array([f"user {user}" for user in users]),
        "revenues": np.array(
            [math.ldexp(random.random(), random.randrange(-60, 60)) for _ in range(n)]
        ),
        "times_ms": np.array([random.randrange(-5, 30) * 1_800_000 + i for i in range(n)]),
        "keys": [("bts", "random")[user % 2] for user in users],
        "phases": [(f"phase {user % 5}", user % 3) for user in users],
    }


def _taken(*names: str, real: bool = False, **renamed: str) -> Callable[[int], dict[str, Any]]:
    def make_rows(n: int) -> dict[str, Any]:
        every = columns(n, real=real)
        return {name: every[renamed.get(name, name)] for name in (*names, *renamed)}

    return make_rows


def _clicks() -> Panel:
    return Panel(
        {"auc": HistogramAUC(), "gauc": GroupedAUC(score_type="float32"), "ctr": Ratio()},
        inputs={"ctr": {"numerators": "labels"}},
    )


_SCORED: Final = _taken("labels", "scores")
_REAL: Final = _taken("labels", "scores", real=True)
_VALUES: Final = _taken(real=True, values="scores")
_PANEL: Final = ("labels", "scores", "groups")


def _weighted(n: int) -> dict[str, Any]:
    return {**_SCORED(n), "weights": np.arange(n) % 31 / 10}


def _clicked_lists(n: int) -> dict[str, Any]:
    random = Random(20191124)
    clicks = [[random.choice((0, 0, 0, 1, 1, 2.5)) for _ in range(n)] for _ in range(2)]
    return dict(zip(("clicks_a", "clicks_b"), map(np.array, clicks), strict=True))


def _clicked_items(n: int) -> dict[str, Any]:
    rows = _taken("labels", "groups")(n)
    return {**rows, "teams": np.arange(n) * np.arange(n) % 3 % 2}


def _finite_values(n: int) -> dict[str, Any]:
    values = columns(n)["revenues"] - 0.25
    values[:4] = 1e-200, -1e200, 5e-324, -0.0  # cubes beyond both ends of the floats
    return {"values": values}


def _weighted_values(n: int) -> dict[str, Any]:
    return {**_VALUES(n), "weights": np.arange(n) % 31 / 10}


def _logged(n: int) -> dict[str, Any]:
    """Weights from 0 to 32; rewards of which a part is 0."""
    every = columns(n)
    logged = np.maximum(every["scores"], 1 / 32)
    rewards = every["labels"] * every["revenues"]
    return {"logged": logged, "target": every["others"], "rewards": rewards}


def _predicted(n: int) -> dict[str, Any]:
    every, rows = columns(n), _logged(n)
    rows["rewards"] = every["labels"]
    return {**rows, "predicted_logged": every["scores"], "predicted_target": every["others"]}


def _treated(n: int) -> dict[str, Any]:
    return {**_REAL(n), "treated": columns(n)["groups"] % 3 == 0}


def _weighted_treated(n: int) -> dict[str, Any]:
    return {**_treated(n), "weights": np.arange(n) % 31 / 10}


GOLDEN: Final[dict[str, tuple[Accumulator, Callable[[int], dict[str, Any]]]]] = {
    "binary-confusion": (BinaryConfusion(threshold=0.25), _SCORED),
    "binary-confusion-rounded": (BinaryConfusion(weight_unit=2, round_weights=True), _weighted),
    "binary-confusion-weighted": (BinaryConfusion(weight_unit="1/10"), _weighted),
    "calibration": (Calibration(), _SCORED),
    "calibration-by-mass": (Calibration(grid="relative", resolution=4), _SCORED),
    "calibration-weighted": (
        Calibration(clip=2.0**-40, bins=7, weight_unit=Fraction(1, 10)),
        _weighted,
    ),
    "calibration-rounded": (Calibration(bins=4, round_weights=True), _weighted),
    "catalog-metrics": (CatalogMetrics(n_items=ITEMS, k=10), item_lists),
    "exact-auc": (ExactAUC(score_type="float64"), _REAL),
    "exact-auc-auto": (ExactAUC(), _REAL),
    "exact-auc-narrow": (
        ExactAUC(weight_unit="1/10"),
        lambda n: {**_weighted(n), "scores": _weighted(n)["scores"].astype(np.float32)},
    ),
    "exact-auc-rounded": (ExactAUC(score_type="float64", round_weights=True), _weighted),
    "exact-auc-weighted": (ExactAUC(score_type="float64", weight_unit="1/10"), _weighted),
    "exact-auc-float32": (ExactAUC(score_type="float32"), _SCORED),
    "exact-quantiles": (ExactQuantiles(), _VALUES),
    "exact-quantiles-weighted": (ExactQuantiles(weight_unit="1/10"), _weighted_values),
    "exact-uplift": (ExactUplift(), _treated),
    "exact-uplift-weighted": (ExactUplift(weight_unit="1/10"), _weighted_treated),
    "grouped-auc": (GroupedAUC(score_type="float32"), _taken("labels", "scores", "groups")),
    "grouped-auc-auto": (GroupedAUC(), _taken("labels", "scores", "groups")),
    "grouped-auc-exact": (
        GroupedAUC(weight="positives", score_type="float64", ids="exact"),
        _taken("labels", "scores", groups="names"),
    ),
    "grouped-auc-grid": (
        GroupedAUC(weight="positives", grid="relative", resolution=3),
        _taken("labels", "scores", "groups"),
    ),
    "grouped-auc-hashed": (
        GroupedAUC(weight="uniform", score_type="float32", ids="hashed"),
        _taken("labels", "scores", groups="names"),
    ),
    "grouped-auc-rounded": (
        GroupedAUC(score_type="float32", ids="exact", round_weights=True),
        lambda n: {**_weighted(n), "groups": columns(n)["names"]},
    ),
    "grouped-auc-weighted": (
        GroupedAUC(score_type="float32", weight_unit="1/10"),
        lambda n: {**_weighted(n), "groups": columns(n)["groups"]},
    ),
    "grouped-interleaving": (GroupedInterleaving(), _clicked_items),
    "grouped-interleaving-names": (
        GroupedInterleaving(ids="exact", max_rows=1_000_000),
        lambda n: {**_clicked_items(n), "groups": columns(n)["names"]},
    ),
    "grouped-scores": (
        GroupedScores([NDCG @ 5, MRR, HR(rel=2) @ 3], score_type="float32"),
        shown_items,
    ),
    "grouped-scores-auto": (GroupedScores([NDCG @ 5, MRR, HR(rel=2) @ 3]), shown_items),
    "grouped-scores-items": (
        GroupedScores(
            [MRR, Bpref, P @ 5],
            empty="zero",
            score_type="float64",
            ids="hashed",
            item_ids="hashed",
            duplicates="conflict",
        ),
        partial(shown_items, with_items=True),
    ),
    "grouped-scores-subtopics": (
        GroupedScores([AlphaNDCG @ 5, StRecall @ 2], ids="exact"),
        shown_items_with_subtopics,
    ),
    "histogram-auc": (HistogramAUC(), _SCORED),
    "histogram-auc-rounded": (HistogramAUC(weight_unit="1/3", round_weights=True), _weighted),
    "histogram-auc-weighted": (HistogramAUC(weight_unit="1/10"), _weighted),
    "histogram-auc-equal": (HistogramAUC(grid="equal", resolution=5), _SCORED),
    "histogram-auc-real": (HistogramAUC(range="real", resolution=4), _REAL),
    "item-exposure": (ItemExposure(n_items=ITEMS, k=10), item_lists),
    "interleaving": (Interleaving(), _clicked_lists),
    "interleaving-balanced": (Interleaving(method="balanced"), _clicked_lists),
    "intra-list-similarity": (IntraListSimilarity(item_vectors(), k=8), item_lists),
    "intra-list-similarity-features": (
        IntraListSimilarity(item_features(), similarity="share_equal"),
        item_lists,
    ),
    **JOINS,
    **MANY_CLASSES,
    "moments": (Moments(), _finite_values),
    "moments-rounded": (
        Moments(round_weights=True),
        lambda n: {**_finite_values(n), "weights": np.arange(n) % 31 / 10},
    ),
    "moments-weighted": (
        Moments(weight_unit="1/10"),
        lambda n: {**_finite_values(n), "weights": np.arange(n) % 31 / 10},
    ),
    "off-policy": (OffPolicy(clip=4.0), _logged),
    "off-policy-predicted": (OffPolicy(reward_limit=1.0), _predicted),
    "paired": (Paired(HistogramAUC()), _taken("labels", scores_a="scores", scores_b="others")),
    "paired-exact": (
        Paired(ExactAUC(score_type="float64")),
        _taken("labels", real=True, scores_a="scores", scores_b="others"),
    ),
    "paired-means": (
        Paired(Ratio()),
        _taken(numerators_a="scores", numerators_b="others", denominators="revenues"),
    ),
    "paired-users": (
        Paired(UserGroups(HistogramAUC(), buckets=16)),
        _taken("labels", groups="names", scores_a="scores", scores_b="others"),
    ),
    "panel": (_clicks(), _taken(*_PANEL)),
    "per-key": (PerKey(_clicks(), max_keys=4), _taken(*_PANEL, keys="phases")),
    "ranking-metrics": (RankingMetrics([NDCG @ 10, MRR, HR(rel=2) @ 3]), lists),
    "ranking-metrics-positions": (
        RankingMetrics([NDCG @ 10, MRR], examination=(1, 0.6, 0.3)),
        lists_with_positions,
    ),
    "ranking-metrics-subtopics": (
        RankingMetrics([AlphaNDCG @ 10, ERRIA(alpha=0.3) @ 5, StRecall]),
        lists_with_subtopics,
    ),
    "quantiles": (Quantiles(), _VALUES),
    "quantiles-weighted": (Quantiles(weight_unit="1/10"), _weighted_values),
    "ratio": (Ratio(), _taken(numerators="labels", denominators="revenues")),
    "regression": (Regression(), _taken("scores", labels="revenues")),
    "regression-rounded": (
        Regression(weight_unit="1/4", round_weights=True),
        lambda n: {**_taken("scores", labels="revenues")(n), "weights": np.arange(n) % 31 / 10},
    ),
    "units": (Units(), _taken(units="groups")),
    "units-sampled": (Units(share=0.75, max_units=10_000), _taken(units="names")),
    "unit-mean": (UnitMean(), _taken(units="groups", values="revenues")),
    "unit-mean-sampled": (
        UnitMean(share=0.75, max_units=10_000, salt="a"),
        _taken(units="names", values="revenues"),
    ),
    "unit-sums": (
        UnitSums(max_units=500),
        _taken(units="groups", values="revenues", denominators="labels"),
    ),
    "unit-rate": (UnitRate(), _taken(units="groups", values="labels")),
    "uplift": (Uplift(treated_share=0.3), _treated),
    "uplift-weighted": (Uplift(weight_unit="1/10"), _weighted_treated),
    "user-groups": (UserGroups(HistogramAUC()), _taken("labels", "scores", groups="names")),
    "user-groups-exact": (
        UserGroups(ExactAUC(score_type="float64"), buckets=16),
        _taken("labels", "scores", "groups"),
    ),
    "user-groups-ratio": (
        UserGroups(Ratio(), buckets=8, salt="b"),
        _taken(numerators="labels", denominators="revenues", groups="groups"),
    ),
    "windows": (
        Windows(PerKey(_clicks(), max_keys=4), size_s=7200, slide_s=3600),
        _taken("times_ms", *_PANEL, "keys"),
    ),
}


def _of_case(case: Case[Any]) -> Callable[[int], dict[str, Any]]:
    """Rows of a case, the same on every machine: its small ones in a fixed order."""
    few = case.small
    return lambda n: dict(case.columns([few[i * i % len(few)] for i in range(n)]))


_WRITTEN: Final = {type(empty) for empty, _ in GOLDEN.values()}
# A metric that is not above has a golden state of its first case with small rows. It is short, and
# stands in `results.json`, beside its result.
SHORT: Final[dict[str, tuple[Accumulator, Callable[[int], dict[str, Any]]]]] = {
    case.empty.schema.partition("/")[0]: (case.empty, _of_case(case))
    for case in reversed(CASES)
    if case.small and type(case.empty) not in _WRITTEN
}
GOLDEN |= SHORT


def golden_results() -> dict[str, Any]:
    """What `results.json` says of each state."""
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return results


def state_bytes(name: str, described: Mapping[str, Any]) -> bytes | None:
    """The bytes that are kept of a golden state, None without any."""
    if "state" in described:
        return b64decode(described["state"])
    path = FOLDER / f"{name}.state"
    return path.read_bytes() if path.exists() else None


def computed(name: str, n: int = SMALL) -> Accumulator:
    """The golden state of this name from `n` rows, with the provenance that its file holds."""
    empty, make_rows = GOLDEN[name]
    state = empty.empty()
    state.update(**make_rows(n))
    for piece in ("", "2019-11-24"):
        state.provenance.add("golden/0", 0, n, piece)
    return state


def readable(result: object) -> Any:
    """A result as JSON: its figures by name, nan as null."""
    if isinstance(result, Bounded):
        return {"low": result.low, "value": result.value, "high": result.high}
    if isinstance(result, float):
        return None if math.isnan(result) else result
    if isinstance(result, int | str | None):
        return result
    fields: dict[str, Any] = {}
    if isinstance(result, Mapping):
        fields |= {str(key): readable(value) for key, value in result.items()}
    for name in (
        *("auc", "gini", "gauc", "ratio", "numerator", "denominator", "tp", "fp", "fn", "tn"),
        *("accuracy", "precision", "recall", "f1", "mcc", "kappa", "rows", "positives", "groups"),
        *(
            "groups_kept",
            "groups_one_class",
            "rows_kept",
            "rows_one_class",
            "lists_kept",
            "lists_empty",
            "conflicting",
            "overflow",
            "total",
        ),
        *("ils", "lists_short", "coverage", "novelty", "personalization", "popularity"),
        *("log_loss", "normalized_entropy", "brier", "copc", "ece", "mce", "mean_score"),
        *("base_rate", "weight_units", "weight_units_kept", "rows_rounded"),
        *("mae", "mse", "rmse", "r2"),
        *("lists_under_k", "shown", "items_shown"),
        *("pr_auc_trapezoid", "ks"),
        *("estimate", "variance", "units", "sampled"),
        *("impressions", "outcomes", "remembered", "first_ms", "last_ms", "result", "delays"),
        *("closed", "pending", "conflicts", "late_impressions", "closed_before_ms"),
        *("attributed", "unattributed", "unknown", "cut", "unattributed_delays"),
        *("exposed", "in_several", "late_exposures", "late_events", "newest_ms"),
        *("events", "exposures", "known"),
        *("macro_f1", "macro_auc", "map", "subset_accuracy", "hamming_loss"),
    ):
        if name in dir(result):  # and is not an attribute of another result that it wraps
            fields[name] = readable(getattr(result, name))
    if fields.keys() <= {"rows"} and not isinstance(result, Mapping):
        figures = counts_of(result) | views_of(result)
        fields |= {name: readable(value) for name, value in figures.items()}
    return fields


def described(name: str) -> dict[str, Any]:
    """What `results.json` says of a state, beside its file."""
    state = computed(name)
    return {
        "metric": setting_text(state),
        "schema": state.schema,
        "digest": state.digest(),
        f"digest of {LARGE} rows": computed(name, LARGE).digest(),
        "provenance": [list(row) for row in state.provenance],
        "result": readable(state.compute()),
        **({"state": b64encode(state.to_file_bytes()).decode()} if name in SHORT else {}),
    }


def without_golden_file() -> list[str]:
    """The metrics of which nothing says the rows of a golden file."""
    kinds = {type(empty) for empty, _ in GOLDEN.values()}
    return sorted(name for name, kind in metric_types().items() if kind not in kinds)


def main() -> int:
    """Write what is missing; 1 if something would have to change, or has no rows to write."""
    every, changed = golden_results(), []
    for name in GOLDEN:
        description, data = described(name), computed(name).to_file_bytes()
        former = every.get(name, {})
        before = state_bytes(name, former)
        if before is not None and description["schema"] == former.get("schema"):
            if before != data or json.loads(json.dumps(description)) != former:
                changed.append(f"{name} ({description['schema']})")
            continue
        if name not in SHORT:
            (FOLDER / f"{name}.state").write_bytes(data)
        every[name] = description
    RESULTS.write_text(json.dumps(every, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    if changed:
        sys.stderr.write(
            f"changed under the same schema, and so not written: {', '.join(changed)}\n"
            "raise the schema version, say so in the CHANGELOG, or delete the file by hand\n"
        )
    if without := without_golden_file():
        sys.stderr.write(
            f"no golden file of {', '.join(without)}: its Case needs small=[...], a few different "
            "rows, the same on every machine (tests/cases.py lists the files of cases)\n"
        )
    return 1 if changed or without else 0


def print_digests() -> None:
    """What today's code computes, and which SIMD features of numpy it used."""
    digests = {name: [computed(name, n).digest() for n in (SMALL, LARGE)] for name in GOLDEN}
    results = {name: readable(computed(name).compute()) for name in GOLDEN}
    features = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])  # type: ignore[call-overload, index]
    sys.stdout.write(json.dumps({"digests": digests, "results": results, "features": features}))


if __name__ == "__main__":
    if "--digests" in sys.argv:
        print_digests()
    else:
        sys.exit(main())
