"""*Metrics by example* prints the numbers that others computed, and the mistakes beside them.

That its blocks run is tested with those of all pages (tests/test_site.py). Here the lines that they
print, each known by its heading and its text, are compared with the worked examples of the shared
data, within two units in the last place.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from docs import by_example_pictures
from tests import site_blocks
from tests.requirements import ROOT

FOLDER = ROOT / "docs" / "tutorials"
PAGES = [FOLDER / "classification_by_example.md", FOLDER / "ranking_by_example.md"]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
SECTIONS = dict(re.findall(r"^#{1,3} (.*)\n((?:(?!#{1,3} ).*\n?)*)", TEXT, re.MULTILINE))
ROC = "ROC by hand"
BEST = "The best operating point"
LINES = "Iso-accuracy lines"
SIMPSON = "Two models, one GAUC"
FILMS = "Exponential gain"
GRADES = "Linear gain"
POINTS = "001/roc_20_points"  # a line for each point, which a test of its own reads

# Where each worked example is printed: the heading, and the text of the line before its number.
EXAMPLES = {
    "000/auc_example1": ("AUC by pairs", "AUC"),
    "000/auc_example2_tie": ("A tied pair", "AUC"),
    "000/auc_rank_formula": ("AUC by ranks", "AUC"),
    "000/auc_rank_formula_ties": ("Ranks of ties", "AUC"),
    "001/roc_20_auc": (ROC, "AUC"),
    "001/roc_20_gini": (ROC, "Gini"),
    "001/roc_20_best_youden": (BEST, "youden"),
    "001/roc_20_best_product": (BEST, "product"),
    "001/roc_20_best_distance_squared": (BEST, "squared distance"),
    "001/roc_20_best_iso_accuracy_pos_1_2": (LINES, "q = 1/2"),
    "001/roc_20_best_iso_accuracy_pos_2_3": (LINES, "q = 2/3"),
    "001/roc_20_best_iso_accuracy_pos_1_5": (LINES, "q = 1/5"),
    "001/iso_accuracy_slope": (LINES, "slope for q = 2/3"),
    "001/simpson_auc_model_A": (SIMPSON, "AUC of A"),
    "001/simpson_gauc_model_A": (SIMPSON, "GAUC of A"),
    "001/simpson_auc_model_B": (SIMPSON, "AUC of B"),
    "001/simpson_gauc_model_B": (SIMPSON, "GAUC of B"),
    "001/relaimpr_simpson": ("RelaImpr", "RelaImpr of A over B, in percent"),
    "001/cg5": (FILMS, "CG@5"),
    "001/dcg5_exp": (FILMS, "DCG@5"),
    "001/idcg5_exp": (FILMS, "IDCG@5"),
    "001/ndcg5_exp": (FILMS, "NDCG@5"),
    "001/ndcg5_linear": (FILMS, "NDCG@5, linear"),
    "001/err_movies": ("ERR", "ERR of films"),
    "001/err_gmax4": ("ERR", "ERR of five documents"),
    "002/ap": ("AP and MAP", "AP of ranks 1, 3, 6, 9, 10"),
    "002/mrr": ("MRR", "MRR"),
    "002/recall_carp": ("Confusion and its rates", "recall of the carp"),
    "002/f_alpha_with_parentheses": ("F, in both forms", "F1, right"),
    "003/hr_pooled": ("Hit rate", "pooled"),
    "003/hr_per_user_mean": ("Hit rate", "mean recall"),
    "003/ap": ("AP and MAP", "AP of ranks 1, 3, 6"),
    "003/ap_5_first": ("AP and MAP", "AP of ranks 1 to 5"),
    "003/ap_5_last": ("AP and MAP", "AP of ranks 6 to 10"),
    "003/cg": (GRADES, "CG@5"),
    "003/dcg_linear": (GRADES, "DCG@5, linear"),
    "003/idcg_linear": (GRADES, "IDCG@5, linear"),
    "003/ndcg_linear": (GRADES, "NDCG@5, linear"),
    "003/dcg_exp": (GRADES, "DCG@5, exponential"),
    "003/idcg_exp": (GRADES, "IDCG@5, exponential"),
    "003/ndcg_exp": (GRADES, "NDCG@5, exponential"),
    "003/mrr": ("MRR", "MRR"),
    "004/imbalanced_accuracy": ("Rare positives", "accuracy"),
    "004/imbalanced_recall": ("Rare positives", "recall"),
    "004/threshold_precision": ("Confusion and its rates", "precision"),
    "004/threshold_recall": ("Confusion and its rates", "recall"),
    "004/ap_same_three": ("Average precision of rows", "AP of three"),
    "004/f_beta_equals_f_alpha": ("F, in both forms", "F of β = 2"),
    "004/map_two_classes": ("AP and MAP", "MAP of the first two"),
}

# The mistakes of which the shared data has numbers: the heading, the text of the line, and which.
DENOMINATORS = "Rates by a wrong denominator"
MISTAKES = [
    ("000-1", "seed_formula", DENOMINATORS, "accuracy, wrong"),
    ("000-1", "correct", DENOMINATORS, "accuracy, right"),
    ("000-4", "seed_code", "Ranks of ties", "wrong"),
    ("000-4", "correct", "Ranks of ties", "right"),
    ("000-9", "with_uncut_idcg", FILMS, "ideal not cut"),
    ("000-9", "correct", FILMS, "right"),
    ("000-11", "seed_code", "AP and MAP", "AP of a, a by hand"),
    ("000-11", "correct", "AP and MAP", "AP of a, counted once"),
    ("001-1", "seed_code_area", ROC, "AUC, wrong"),
    ("001-1", "correct", ROC, "AUC, right"),
    ("001-2", "seed_code", "A tied pair", "ties as 1"),
    ("001-2", "correct", "A tied pair", "AUC"),
    ("001-3", "seed_formula", "A tied pair", "ties as 0"),
    ("001-4", "correct", FILMS, "IDCG@5"),
    ("001-5", "38.5/46.5", FILMS, "NDCG@5 of rounded terms"),
    ("001-9", "raw_grades_in_formula", "ERR", "of grades"),
    ("001-9", "correct_gmax_3", "ERR", "right"),
    ("002-1", "seed_formula", "F, in both forms", "F1, wrong"),
    ("002-4", "dcg_2^rel", FILMS, "gain 2^grade"),
    ("002-4", "dcg_correct", FILMS, "gain 2^grade - 1"),
    ("003-1", "seed_formula", DENOMINATORS, "TPR, wrong"),
    ("003-1", "correct", DENOMINATORS, "TPR, right"),
    ("003-2", "ndcg_exp", GRADES, "NDCG@5, exponential"),
    ("003-3", "correct", GRADES, "DCG@5, linear"),
    ("004-2", "precision_at_0.9", "Average precision of rows", "precision at 0.9"),
]


def lines_of(title: str) -> list[str]:
    """What the blocks below a heading print."""
    blocks = site_blocks.blocks(SECTIONS[title])
    return [line for block in blocks if block.kind == "text" for line in block.text.splitlines()]


def numbers_of(title: str) -> dict[str, float]:
    """The last number of each line that the blocks below a heading print, by the text before it."""
    pairs = [
        re.fullmatch(r"(.*?)(?: at \[.*\])?:? (-?[\d.]+|nan)", line) for line in lines_of(title)
    ]
    return {pair[1]: float(pair[2]) for pair in pairs if pair}


def agrees(number: float, value: float) -> bool:
    """Whether two numbers are equal, or two units in the last place apart at most."""
    return abs(number - value) <= 2 * math.ulp(value)


@pytest.fixture(scope="module")
def shared(data: Path) -> Mapping[str, Any]:
    document: dict[str, Any] = json.loads(
        (data / "worked_examples.json").read_text(encoding="utf-8")
    )
    return document


def test_every_worked_example_is_printed_with_the_value_that_others_computed(
    shared: Mapping[str, Any],
) -> None:
    values = {example["id"]: example["value"] for example in shared["examples"]}
    assert values.keys() == EXAMPLES.keys() | {POINTS}
    assert len(values) == 50
    printed = {name: numbers_of(title).get(text) for name, (title, text) in EXAMPLES.items()}
    wrong = {
        name: (number, values[name])
        for name, number in printed.items()
        if number is None or not agrees(number, values[name])
    }
    assert wrong == {}


def test_the_points_of_the_curve_and_the_best_of_them_are_those_of_the_examples(
    shared: Mapping[str, Any],
) -> None:
    examples = {example["id"]: example for example in shared["examples"]}
    points = [re.findall(r"[\d.]+|inf", line) for line in lines_of(ROC) if "threshold" in line]
    assert [[*map(float, point)] for point in points[1:]] == examples[POINTS]["value"]
    best = {name: example for name, example in examples.items() if "all_optimal_points" in example}
    assert len(best) == 6
    for name, optimum in best.items():
        title, text = EXAMPLES[name]
        (line,) = [line for line in lines_of(title) if line.startswith(f"{text} at ")]
        expected = [tuple(point.values()) for point in optimum["all_optimal_points"]]
        assert ast.literal_eval(line[line.index("[") : line.index("]") + 1]) == expected


def test_the_rows_of_an_example_stand_in_its_section(shared: Mapping[str, Any]) -> None:
    rows = {
        example["id"]: example["inputs"]
        for example in shared["examples"]
        if example["id"] != POINTS
    }
    for name, inputs in rows.items():
        title = EXAMPLES[name][0]
        title = ROC if title in (BEST, LINES) else title  # of the same rows
        code = re.sub(r"\s+", " ", SECTIONS[title])
        for key in ("y", "score", "user", "rels", "all_rels"):
            if key in inputs:
                assert json.dumps(inputs[key]) in code, (name, key)


@pytest.mark.parametrize(("name", "key", "title", "text"), MISTAKES)
def test_a_mistake_is_printed_with_the_number_that_it_gives(
    shared: Mapping[str, Any], name: str, key: str, title: str, text: str
) -> None:
    demos = {
        mistake["id"]: mistake["demo"] for mistake in shared["seed_mistakes"] if "demo" in mistake
    }
    assert {mistake for mistake, *_ in MISTAKES} == demos.keys()
    assert agrees(numbers_of(title)[text], demos[name][key])


def test_the_pictures_have_the_rows_of_the_pages() -> None:
    code = re.sub(r"\s+", " ", TEXT)
    for rows in (by_example_pictures.LABELS, by_example_pictures.SCORES, by_example_pictures.FILMS):
        assert str(rows) in code
    assert by_example_pictures.curve().auc == numbers_of(ROC)["AUC"]
