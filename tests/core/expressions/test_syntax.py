"""Texts that are no expression are refused with the place, quickly; nothing in them is run."""

from __future__ import annotations

import ast
import re
from random import Random
from time import process_time

import pytest

from streammetrics import Expression, InputError
from streammetrics.core.expressions.syntax import MAX_CHARACTERS, MAX_DEPTH, MAX_PARTS
from tests.core.expressions.drawn import condition, number
from tests.core.expressions.hostile import HOSTILE


def test_there_are_many_hostile_texts() -> None:
    assert len(HOSTILE) > 230 and len(dict(HOSTILE)) == len(HOSTILE)


@pytest.mark.parametrize(("text", "column"), HOSTILE, ids=lambda value: repr(value)[:40])
def test_a_text_that_is_no_condition_is_refused_at_its_place(text: str, column: int | None) -> None:
    started = process_time()
    with pytest.raises(InputError) as refused:
        Expression(text, where="columns['gain']", kind="bool" if text == "min" else None).evaluate(
            {"min": [1]}
        )
    assert process_time() - started < 0.5
    error = refused.value
    assert all((error.expected, error.got, error.where, error.hint))
    place = re.search(r"columns\['gain'\], column ([0-9]+)", error.where)
    assert place is not None
    shown = int(place[1])
    assert 1 <= shown <= min(len(text), MAX_CHARACTERS) + 1
    assert column in (None, shown), str(error)
    message, line, caret = str(error).split("\n")
    assert caret.strip() == "^" and len(str(error)) < 800
    assert all(character.isprintable() for character in message + line)


def test_the_caret_stands_below_the_mistake() -> None:
    with pytest.raises(InputError) as refused:
        Expression("  reward * 'search'", where="[columns] gain")
    assert str(refused.value) == (
        "[columns] gain, column 12: expected a number, got the text 'search'; "
        "compare texts with a field, by == or !=\n"
        "      reward * 'search'\n"
        "               ^"
    )
    with pytest.raises(InputError) as refused:
        Expression("国家 == '德国' and e\u0301 ** 2", where="x")
    line, caret = str(refused.value).split("\n")[1:]
    assert line.replace("e\u0301", "é") == "    国家 == '德国' and é ** 2"
    assert caret == "    " + " " * 21 + "^"
    with pytest.raises(InputError) as refused:
        Expression("a + " * 30 + "b ** 2")
    line, caret = str(refused.value).split("\n")[1:]
    assert line.startswith("    …") and line[caret.index("^") :] == "** 2"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a = 3", "write == to compare"),
        ("mni(a, b)", "did you mean 'min'?"),
        ("a in ('x', 'y')", "write field == 'a' or field == 'b'"),
        ("a == True", "write the field alone, or not field"),
        ("a & b", "write and"),
        ("clicks and a > 1", "compare"),
        ("\ufb01eld > 1", "rename the field, for example to 'field'"),
    ],
)
def test_the_hint_says_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(InputError) as refused:
        Expression(text, kind="bool").evaluate({"clicks": [1], "a": [2]})
    assert hint in refused.value.hint


def test_the_limits_are_those_that_are_documented() -> None:
    Expression("a" * MAX_CHARACTERS)
    Expression("a" + " + a" * (MAX_DEPTH - 2))
    Expression("a > 1" + " or a > 1" * ((MAX_PARTS - 1) // 3 - 1))
    with pytest.raises(InputError, match=f"nested at most {MAX_DEPTH} deep"):
        Expression("a" + " + a" * MAX_DEPTH)


def test_the_text_has_one_form_that_is_read_as_the_same_tree() -> None:
    assert Expression("  ( reward*weight )").text == "reward * weight"
    assert Expression('surface=="search"and(dwell_s>=30)').text == (
        "surface == 'search' and dwell_s >= 30"
    )
    assert Expression("a>1_000 or not(b<1e3)").text == "a > 1000 or not b < 1000.0"
    assert Expression("not(a==b)and-(c+1)*2<d<=(e-(f-g))").text == (
        "not a == b and -(c + 1) * 2 < d <= e - (f - g)"
    )
    assert Expression("(a/b)*c > a/(b*c) or (d or e) and (d and e)").text == (
        "a / b * c > a / (b * c) or (d or e) and (d and e)"
    )
    random = Random(7)
    for i in range(400):
        text = (number if i % 2 else condition)(random, 3) + (" + clicks" if i % 2 else "")
        canonical = Expression(text).text
        assert Expression(canonical).text == canonical
        trees = [
            ast.dump(_folded(ast.parse(form.strip(), mode="eval"))) for form in (text, canonical)
        ]
        assert trees[0] == trees[1], text


def _folded(tree: ast.AST) -> ast.AST:
    """The tree with each negative number as one constant."""

    class Fold(ast.NodeTransformer):
        def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
            self.generic_visit(node)
            if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
                return ast.Constant(-node.operand.value)  # type: ignore[operator]
            return node

    return Fold().visit(tree)


def test_the_kinds_of_fields_follow_from_their_use() -> None:
    kinds = Expression("a == b and b == c and c == 'x' and not d and e.f > 1 and g == h").fields
    assert kinds == {
        **dict.fromkeys("abc", "text"),
        "d": "bool",
        "e.f": "number",
        **dict.fromkeys("gh", None),
    }


def test_many_texts_that_are_nearly_expressions_never_crash() -> None:
    random, alphabet = Random(3), "ab1. '+-*/<>=!()andortminx,[]{}:\\#\"é"
    for _ in range(3_000):
        text = list((number if random.random() < 0.5 else condition)(random, 2))
        for _ in range(random.randrange(1, 4)):
            text[random.randrange(len(text))] = random.choice(alphabet)
        try:
            Expression("".join(text)[:MAX_CHARACTERS])
        except InputError as error:
            assert str(error).endswith("^")
