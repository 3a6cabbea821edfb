"""Definitions of the atlas for numbers, and for intervals and tests."""

from __future__ import annotations

from typing import Final

from docs.atlas.definition import Definition

PREDICTED: Final = {"truth": [1.0, 2.0, 4.0, 8.0], "predicted": [1.5, 2.0, 3.0, 9.0]}
CONSTANT: Final = {"truth": [2.0, 2.0, 2.0], "predicted": [2.0, 2.0, 1.0]}
NUMBERS: Final = {"numbers": [1.0, 2.0, 3.0, 4.0, 10.0, 20.0]}
SAMPLES: Final = {
    "reference": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "current": [2.0, 3.0, 4.0, 5.0, 6.0, 9.0],
}
SUCCESSES: Final = {"successes": 8, "trials": 10}
PAIRS: Final = {
    "labels": [1, 1, 1, 1, 1, 1, 0, 0, 0, 0],
    "first": [0.75, 0.75, 0.75, 0.75, 0.75, 0.25, 0.25, 0.25, 0.25, 0.75],
    "second": [0.75, 0.25, 0.25, 0.25, 0.25, 0.75, 0.25, 0.75, 0.25, 0.75],
}

ZERO: Final = "0 in place of undefined"

DEFINITIONS: Final = (
    Definition(
        "rmse",
        "RMSE",
        "The square root of the mean squared error.",
        PREDICTED,
        "result(sm.Regression(), truth, predicted).rmse",
    ),
    Definition(
        "mae",
        "MAE",
        "The mean absolute error.",
        PREDICTED,
        "result(sm.Regression(), truth, predicted).mae",
    ),
    Definition(
        "r2",
        "R²",
        "1 − squared errors over squared deviations from the mean.",
        PREDICTED,
        "result(sm.Regression(), truth, predicted).r2",
    ),
    Definition(
        "r2_constant",
        "R² of a constant",
        "The truth does not vary: 1 − 1/0, which is undefined.",
        CONSTANT,
        "result(sm.Regression(), truth, predicted).r2",
        {
            "scikit-learn": "0 (`force_finite`)",
            "river": ZERO,
            "torchmetrics": ZERO,
            "torcheval": "minus infinity in place of undefined",
        },
    ),
    Definition(
        "median",
        "Median of six numbers",
        "The least number with half of the rows at or below it.",
        NUMBERS,
        "result(sm.ExactQuantiles(), numbers).median",
        {
            "pandas": "between the two in the middle",
        },
    ),
    Definition(
        "variance", "Variance", "Over n − 1.", NUMBERS, "result(sm.Moments(), numbers).variance"
    ),
    Definition(
        "skewness",
        "Skewness",
        "The third central moment over the 3/2 power of the variance, both over n.",
        NUMBERS,
        "result(sm.Moments(), numbers).skewness",
        {
            "pandas": "corrected for bias",
            "river": "corrected for bias (`bias=False`)",
        },
    ),
    Definition(
        "ks_drift",
        "Kolmogorov-Smirnov distance",
        "The largest distance of two distribution functions.",
        SAMPLES,
        "drift(reference, current).ks",
    ),
    Definition(
        "wasserstein",
        "Wasserstein distance",
        "The area between two distribution functions.",
        SAMPLES,
        "drift(reference, current).wasserstein",
    ),
    Definition(
        "jensen_shannon",
        "Jensen-Shannon distance",
        "The square root of the divergence, in bits.",
        SAMPLES,
        "drift(reference, current).js_distance",
        {
            "scipy": "in nats; `base=2` gives ours",
        },
    ),
    Definition(
        "wilson",
        "Lower bound of a share, 8 of 10",
        "Wilson's score interval of 95 %.",
        SUCCESSES,
        "share(successes, trials).lower",
        {
            "statsmodels": 'the normal interval by default; `method="wilson"` gives ours',
        },
    ),
    Definition(
        "mcnemar",
        "McNemar's test",
        "The p-value of two models on the same rows, exact.",
        PAIRS,
        "paired(labels, first, second)",
    ),
)
