"""The one text of all texts that mean the same tree, which descriptions of states hold."""

from __future__ import annotations

from typing import Final

from streammetrics.core.expressions.syntax import (
    Arithmetic,
    Call,
    Logic,
    Name,
    Negation,
    Not,
    Number,
    Relation,
    TextLiteral,
    Tree,
)

# How strongly an operation holds its operands together, the weakest first.
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _WHOLE = range(8)
_STRENGTHS: Final = {"or": _OR, "and": _AND, "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT}


def canonical_text(tree: Tree) -> str:
    """The text of a tree, with single spaces and no parentheses but those that it needs.

    It is not that of `ast.unparse`, which another version of Python may write otherwise.
    """
    return _text(tree, _OR)


def _text(tree: Tree, least: int) -> str:
    """The text, in parentheses if it holds together less strongly than this."""
    match tree:
        case Name():
            return tree.name
        case Number():
            is_negative = repr(tree.value).startswith("-")
            return _parenthesized(repr(tree.value), _SIGN if is_negative else _WHOLE, least)
        case TextLiteral():
            return repr(tree.value)
        case Call():
            return (
                f"{tree.function}({', '.join(_text(argument, _OR) for argument in tree.arguments)})"
            )
        case Negation():
            return _parenthesized(f"-{_text(tree.operand, _SIGN)}", _SIGN, least)
        case Not():
            return _parenthesized(f"not {_text(tree.operand, _NOT)}", _NOT, least)
        case Arithmetic():
            strength = _STRENGTHS[tree.sign]
            left, right = _text(tree.left, strength), _text(tree.right, strength + 1)
            return _parenthesized(f"{left} {tree.sign} {right}", strength, least)
        case Logic():
            strength = _STRENGTHS[tree.word]
            operands = (_text(operand, strength + 1) for operand in tree.operands)
            return _parenthesized(f" {tree.word} ".join(operands), strength, least)
        case Relation():
            operands = (_text(operand, _SUM) for operand in tree.operands)
            pairs = zip(("", *tree.signs), operands, strict=True)
            text = " ".join(f"{sign} {operand}".strip() for sign, operand in pairs)
            return _parenthesized(text, _COMPARISON, least)


def _parenthesized(text: str, strength: int, least: int) -> str:
    return f"({text})" if strength < least else text
