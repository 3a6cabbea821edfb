"""Expressions drawn at random, and their values row by row in plain Python."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from random import Random
from typing import TypeAlias

Value: TypeAlias = "int | float | bool | str | None"

INTEGERS = (0, 1, -1, 2, 7, 30, 2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63))
FLOATS = (
    *(0.0, -0.0, 0.1, -1.5, 30.0, 1e16, 2.0**53, 2.0**63, -(2.0**63), 1e308, -1e308),
    *(5e-324, -5e-324, 2.2250738585072014e-308, math.inf, -math.inf, math.nan),
)
TEXTS = ("search", "home", "", "Ünï", "Ünï", "搜索", "🦉", "a'b", 'a"b', "\x00", "a\\n")
NUMBERS = ("clicks", "views", "reward", "user.age")
FLAGS = ("is_bot", "paid")
NAMED_TEXTS = ("surface", "country")


def number(random: Random, depth: int) -> str:
    """An expression of a number."""
    if depth == 0 or random.random() < 0.25:
        if random.random() < 0.7:
            return random.choice(NUMBERS)
        value = random.choice([*INTEGERS, 0.1, 1e16, 2.5, 5e-324])
        return f"({value!r})" if random.random() < 0.5 else repr(value)
    match random.randrange(7):
        case 0:
            return f"-({number(random, depth - 1)})"
        case 1:
            function = random.choice(("min", "max"))
            arguments = [number(random, depth - 1) for _ in range(random.choice((2, 2, 3)))]
            return f"{function}({', '.join(arguments)})"
        case 2:
            return f"abs({number(random, depth - 1)})"
    sign = random.choice("+-*/")
    return f"({number(random, depth - 1)}) {sign} ({number(random, depth - 1)})"


def condition(random: Random, depth: int) -> str:
    """An expression of a condition."""
    if depth == 0:
        return random.choice(FLAGS)
    match random.randrange(8):
        case 0 | 1:
            word = random.choice((" and ", " or "))
            several = [condition(random, depth - 1) for _ in range(random.choice((2, 3)))]
            return word.join(f"({clause})" for clause in several)
        case 2:
            return f"not ({condition(random, depth - 1)})"
        case 3:
            text = random.choice([repr(random.choice(TEXTS)), *NAMED_TEXTS])
            return f"{random.choice(NAMED_TEXTS)} {random.choice(('==', '!='))} {text}"
        case 4:
            sign = random.choice(("==", "!="))
            return f"({condition(random, depth - 1)}) {sign} ({random.choice(FLAGS)})"
    signs = random.choices(("<", "<=", ">", ">=", "==", "!="), k=random.choice((1, 1, 2)))
    parts = [number(random, depth - 1) for _ in range(len(signs) + 1)]
    parts[0] = random.choice(NUMBERS)  # not two constants
    parts[-1] = f"({number(random, 0)})" if len(signs) == 1 else random.choice(NUMBERS)
    between = zip((*signs, ""), parts, strict=True)
    return " ".join(f"({part}) {sign}" for sign, part in between).strip()


def row_value(text: str, row: Mapping[str, Value]) -> Value:
    """The value of an expression in one row, None if it is unknown."""
    return _value(ast.parse(text.strip(), mode="eval").body, row)


def _value(node: ast.expr, row: Mapping[str, Value]) -> Value:
    match node:
        case ast.Constant():
            return node.value  # type: ignore[return-value]
        case ast.Name() | ast.Attribute():
            return row[ast.unparse(node)]
        case ast.UnaryOp(op=ast.USub()):
            value = _value(node.operand, row)
            return None if value is None else _in_range(-value)  # type: ignore[operator]
        case ast.UnaryOp():
            value = _value(node.operand, row)
            return None if value is None else not value
        case ast.BinOp():
            return _arithmetic(node.op, _value(node.left, row), _value(node.right, row))
        case ast.BoolOp():
            values = [_value(operand, row) for operand in node.values]
            decisive = isinstance(node.op, ast.Or)
            if decisive in values:
                return decisive
            return None if None in values else not decisive
        case ast.Call(func=ast.Name(id="abs")):
            value = _value(node.args[0], row)
            return None if value is None else _in_range(abs(value))  # type: ignore[arg-type]
        case ast.Call(func=ast.Name(id=name)):
            values = [_value(operand, row) for operand in node.args]
            if None in values:
                return None
            best = values[0]
            for value in values[1:]:
                best = _better(name, best, value)
            return best
        case ast.Compare():
            values = [_value(operand, row) for operand in (node.left, *node.comparators)]
            pairs = zip(node.ops, values, values[1:], strict=False)
            outcomes = [_compared(sign, a, b) for sign, a, b in pairs]
            return False if False in outcomes else None if None in outcomes else True
    raise AssertionError(ast.dump(node))


def _in_range(value: int | float) -> int | float | None:
    return value if isinstance(value, float) or -(2**63) <= value < 2**63 else None


def _arithmetic(sign: ast.operator, a: Value, b: Value) -> Value:
    if a is None or b is None:
        return None
    assert isinstance(a, int | float) and isinstance(b, int | float)
    if isinstance(sign, ast.Div):
        if b:
            return a / b
        negative = math.copysign(1, a) * math.copysign(1, b) < 0
        return math.nan if a == 0 or a != a else -math.inf if negative else math.inf
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
    match sign:
        case ast.Add():
            return _in_range(a + b)
        case ast.Sub():
            return _in_range(a - b)
    return _in_range(a * b)


def _better(name: str, a: Value, b: Value) -> Value:
    assert isinstance(a, int | float) and isinstance(b, int | float)
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b) if name == "min" else max(a, b)
    x, y = float(a), float(b)
    if x != x or y != y:
        return math.nan
    in_order = sorted((x, y), key=lambda value: (value, math.copysign(1, value)))
    return in_order[0] if name == "min" else in_order[-1]


def _compared(sign: ast.cmpop, a: Value, b: Value) -> bool | None:
    if a is None or b is None:
        return None
    match sign:
        case ast.Lt():
            return a < b  # type: ignore[operator]
        case ast.LtE():
            return a <= b  # type: ignore[operator]
        case ast.Gt():
            return a > b  # type: ignore[operator]
        case ast.GtE():
            return a >= b  # type: ignore[operator]
        case ast.Eq():
            return a == b
    return a != b
