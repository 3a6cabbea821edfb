"""Definitions of the atlas for policies and treatments."""

from __future__ import annotations

from typing import Final

from docs.atlas.definition import Definition

LOG: Final = {
    "logged": [0.5, 0.25, 0.1, 0.2, 0.8, 0.05, 0.4, 0.5],
    "target": [0.25, 0.5, 0.3, 0.5, 0.1, 0.2, 0.4, 0.5],
    "rewards": [1, 0, 1, 1, 0, 0, 1, 0],
}
TREATED: Final = {
    "labels": [1, 0, 1, 1, 0, 0, 0, 1],
    "scores": [0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125, 0.0625],
    "treated": [1, 0, 1, 0, 1, 0, 1, 0],
}

DEFINITIONS: Final = (
    Definition(
        "ips",
        "IPS",
        "The mean of reward times target over logged propensity.",
        LOG,
        "policy(logged, target, rewards).ips",
    ),
    Definition(
        "snips",
        "SNIPS",
        "The same sum over that of the weights.",
        LOG,
        "policy(logged, target, rewards).snips",
    ),
    Definition(
        "qini",
        "Qini coefficient",
        "The area between Radcliffe's curve and its chord, over that of a perfect order.",
        TREATED,
        "uplift(labels, scores, treated).qini_radcliffe_relative",
    ),
    Definition(
        "auuc",
        "AUUC",
        "The area between the curve of gains and its chord, over that of a perfect order.",
        TREATED,
        "uplift(labels, scores, treated).gain_relative",
    ),
)
