"""The text of an expression as a tree of few operations, each with its place in the text.

Python's `ast` parses the text and nothing runs it: what is not listed here is refused.
"""

from __future__ import annotations

import ast
import unicodedata
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from math import isfinite
from tokenize import COMMENT, generate_tokens
from typing import Final, TypeAlias

from streammetrics.core.errors import InputError, nearest, shown

MAX_CHARACTERS: Final = 1_000  # of an expression,
MAX_PARTS: Final = 250  # of its tree,
MAX_DEPTH: Final = 40  # and levels of it
_BESIDE: Final = 60  # characters that an error shows on each side of the place
_INT64: Final = 1 << 63
_ARITHMETIC: Final[dict[type[ast.operator], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}
_COMPARISONS: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_FUNCTIONS: Final = ("min", "max", "abs")
_EXPECTED: Final = "one of + - * / < <= > >= == != and or not min max abs"
_INSTEAD: Final[dict[type[ast.AST], tuple[str, str]]] = {
    ast.Pow: ("**", "multiply a field by itself"),
    ast.Mod: ("%", "add a field with the remainder to the rows"),
    ast.FloorDiv: ("//", "divide with /, which rounds to the nearest float"),
    ast.BitAnd: ("&", "write and"),
    ast.BitOr: ("|", "write or"),
    ast.Invert: ("~", "write not"),
    ast.UAdd: ("a sign +", "leave it out"),
    ast.In: ("in", "write field == 'a' or field == 'b'"),
    ast.NotIn: ("not in", "write field != 'a' and field != 'b'"),
    ast.Is: ("is", "write =="),
    ast.IsNot: ("is not", "write !="),
    ast.IfExp: ("if and else", "add a field with the value to the rows"),
    ast.NamedExpr: (":=", "compare with =="),
    ast.Tuple: ("several values", "write one expression"),
    ast.List: ("a list", "compare with each value, and join with or"),
    ast.Set: ("a set", "compare with each value, and join with or"),
    ast.Subscript: ("an index", "name a field; of an object, as in user.country"),
    ast.JoinedStr: ("a formatted text", "write the text itself"),
}


@dataclass(frozen=True, slots=True)
class Name:
    """A field; dots belong to its name."""

    start: int
    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number of 64 bits, or a finite float."""

    start: int
    value: int | float


@dataclass(frozen=True, slots=True)
class TextLiteral:
    """A text that a field is compared with."""

    start: int
    value: str


@dataclass(frozen=True, slots=True)
class Negation:
    """The number with the other sign."""

    start: int
    operand: Tree


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two numbers, and + - * or /."""

    start: int
    sign: str
    left: Tree
    right: Tree


@dataclass(frozen=True, slots=True)
class Relation:
    """Each operand compared with the next; all must hold."""

    start: int
    signs: tuple[str, ...]
    operands: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition."""

    start: int
    operand: Tree


@dataclass(frozen=True, slots=True)
class Logic:
    """Conditions joined by `and`, or by `or`."""

    start: int
    word: str
    operands: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """min or max of several numbers, or abs of one."""

    start: int
    function: str
    arguments: tuple[Tree, ...]


Tree: TypeAlias = (
    "Name | Number | TextLiteral | Negation | Arithmetic | Relation | Not | Logic | Call"
)


@dataclass(frozen=True, slots=True)
class ExpressionText:
    """The text of an expression, and where it was given, for errors."""

    text: str
    where: str

    def refused(self, start: int, expected: str, got: str, hint: str) -> InputError:
        """The error about the part of the text that begins at this character."""
        return InputError(
            expected=expected,
            got=got,
            where=f"{self.where}, column {start + 1}",
            hint=f"{hint}\n{self.marked(start)}",
        )

    def marked(self, start: int) -> str:
        """The text around a place, and a caret below it."""
        first = max(0, start - _BESIDE)
        before = ("…" if first else "") + self.text[first:start]
        following_text = self.text[start : start + _BESIDE]
        after = "…" if start + _BESIDE < len(self.text) else ""
        line = "".join(
            c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in before + following_text
        )
        return f"    {line}{after}\n    {' ' * _width(line[: len(before)])}^"


def parsed(source: ExpressionText) -> Tree:
    """The tree of an expression; InputError for any text that is none."""
    text = source.text
    if len(text) > MAX_CHARACTERS:
        hint = "add a field with the value to the rows"
        got = f"{len(text):,} characters"
        raise source.refused(MAX_CHARACTERS, f"at most {MAX_CHARACTERS:,} characters", got, hint)
    for start, character in enumerate(text):
        if not character.isprintable():
            got = f"the character {character!a}"
            raise source.refused(start, "one line of printable characters", got, "leave it out")
    lead = len(text) - len(text.lstrip(" "))
    body = _body(source, text[lead:], lead)
    if "#" in text:
        _refuse_comment(source)
    _require_small(source, body)
    reading = _TreeReader(source, text[lead:].encode(), lead)
    tree = reading.tree(body)
    if not any(isinstance(part, Name) for part in parts_of(tree)):
        raise source.refused(lead, "an expression of at least one field", text, "name a field")
    return tree


def parts_of(tree: Tree) -> Iterator[Tree]:
    """The tree and all trees in it, from left to right."""
    yield tree
    for operand in operands_of(tree):
        yield from parts_of(operand)


def operands_of(tree: Tree) -> tuple[Tree, ...]:
    """The trees that a tree is made of."""
    match tree:
        case Negation() | Not():
            return (tree.operand,)
        case Arithmetic():
            return (tree.left, tree.right)
        case Relation() | Logic():
            return tree.operands
        case Call():
            return tree.arguments
    return ()


def _width(text: str) -> int:
    """The columns of a terminal that a text takes."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def _body(source: ExpressionText, text: str, lead: int) -> ast.expr:
    if not text:
        raise source.refused(0, "an expression", "an empty text", "write, for example, a * b")
    hint = "write, for example, reward * weight or dwell_s >= 30"
    try:
        with warnings.catch_warnings():  # about escapes, and calls of what is no function
            warnings.simplefilter("ignore")
            return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        place = min(error.offset - 1, len(text)) if error.offset else len(text)
        if text[place : place + 1] == "=":
            hint = "write == to compare"
        raise source.refused(place + lead, "an expression", f"{error.msg}", hint) from None
    except (RecursionError, MemoryError, ValueError, OverflowError):
        raise source.refused(lead, "an expression", "one that is nested too deeply", hint) from None


def _refuse_comment(source: ExpressionText) -> None:
    """Refuse a comment, which Python leaves out of the tree."""
    for token in generate_tokens(StringIO(source.text.lstrip(" ")).readline):
        if token.type == COMMENT:
            start = token.start[1] + len(source.text) - len(source.text.lstrip(" "))
            raise source.refused(start, "no comment", shown(token.string), "leave it out")


def _require_small(source: ExpressionText, body: ast.expr) -> None:
    """Refuse a tree that is too large to walk by recursion."""
    pending: list[tuple[ast.AST, int]] = [(body, 1)]
    count = 0
    while pending:
        node, depth = pending.pop()
        if isinstance(node, ast.expr):
            count += 1
            if count > MAX_PARTS or depth > MAX_DEPTH:
                expected = f"at most {MAX_PARTS} parts, nested at most {MAX_DEPTH} deep"
                hint = "make another column of a part, and name it here"
                raise source.refused(len(source.text), expected, "more", hint)
        pending += [(child, depth + 1) for child in ast.iter_child_nodes(node)]


class _TreeReader:
    """Makes the tree of an expression from that of Python."""

    def __init__(self, source: ExpressionText, data: bytes, lead: int) -> None:
        self.source, self.data, self.lead = source, data, lead

    def start(self, node: ast.expr) -> int:
        """The character at which a node begins; Python counts bytes."""
        return len(self.data[: node.col_offset].decode()) + self.lead

    def sign(self, left: ast.expr, right: ast.expr) -> int:
        """The character at which the operation between two operands begins."""
        between = self.data[left.end_col_offset : right.col_offset].decode()
        spaces = len(between) - len(between.lstrip(" )"))
        return len(self.data[: left.end_col_offset].decode()) + spaces + self.lead

    def tree(self, node: ast.expr) -> Tree:
        start = self.start(node)
        match node:
            case ast.Constant():
                return self.constant(node.value, start)
            case ast.Name() | ast.Attribute():
                return Name(start, self.name(node))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))) if (
                type(value) is int
            ):
                return self.constant(-value, start)
            case ast.UnaryOp(op=ast.USub()):
                operand = self.tree(node.operand)
                if isinstance(operand, Number) and isinstance(operand.value, int):
                    return self.constant(-operand.value, start)
                return Negation(start, operand)
            case ast.UnaryOp(op=ast.Not()):
                return Not(start, self.tree(node.operand))
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                sign, place = _ARITHMETIC[type(node.op)], self.sign(node.left, node.right)
                return Arithmetic(place, sign, self.tree(node.left), self.tree(node.right))
            case ast.BoolOp():
                word = "and" if isinstance(node.op, ast.And) else "or"
                return Logic(start, word, tuple(map(self.tree, node.values)))
            case ast.Compare() if all(type(sign) in _COMPARISONS for sign in node.ops):
                operands = tuple(map(self.tree, (node.left, *node.comparators)))
                signs = tuple(_COMPARISONS[type(sign)] for sign in node.ops)
                return Relation(start, signs, operands)
            case ast.Call():
                return self.call(node, start)
        raise self.unknown(node, start)

    def constant(self, value: object, start: int) -> Tree:
        if isinstance(value, str):
            return TextLiteral(start, value)
        if type(value) is int:
            if -_INT64 <= value < _INT64:
                return Number(start, value)
            expected, hint = "a whole number of 64 bits", "write it as a float, such as 1e20"
            raise self.source.refused(start, expected, shown(value), hint)
        if isinstance(value, float):
            if isfinite(value):
                return Number(start, value)
            raise self.source.refused(
                start, "a finite number", "one too large for a float", "correct it"
            )
        hint = "write a number, or a text in quotes"
        if isinstance(value, bool):
            hint = "write the field alone, or not field"
        elif value is None:
            hint = "leave it out: a row without a value that is needed is refused"
        raise self.source.refused(start, "a number or a text", shown(value), hint)

    def name(self, node: ast.Name | ast.Attribute) -> str:
        """The name of a field as it is written; Python would change some characters of it."""
        names: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        start = self.start(node)
        if not isinstance(inner, ast.Name):
            raise self.unknown(node, start)
        name = ".".join([inner.id, *reversed(names)])
        written = self.data[node.col_offset : node.end_col_offset].decode()
        if written.replace(" ", "") != name:
            hint = f"rename the field, for example to {shown(name)}"
            raise self.source.refused(start, "a plain name of a field", shown(written), hint)
        return name

    def call(self, node: ast.Call, start: int) -> Tree:
        function = node.func.id if isinstance(node.func, ast.Name) else None
        if function not in _FUNCTIONS:
            got = "a call"
            hint = "add a field with the value to the rows"
            if function is not None:
                got, hint = f"the function {shown(function)}", nearest(function, _FUNCTIONS, hint)
            raise self.source.refused(start, "one of the functions min, max and abs", got, hint)
        is_abs = function == "abs"
        expected = "abs of one number" if is_abs else f"{function} of at least two numbers"
        is_plain = not node.keywords and not any(isinstance(a, ast.Starred) for a in node.args)
        if not is_plain or (len(node.args) != 1 if is_abs else len(node.args) < 2):
            got = f"{len(node.args)} arguments" if is_plain else "a named or starred argument"
            hint = "write abs(a)" if is_abs else f"write {function}(a, b)"
            raise self.source.refused(start, expected, got, hint)
        return Call(start, function, tuple(map(self.tree, node.args)))

    def unknown(self, node: ast.expr, start: int) -> InputError:
        """The error for an operation that is not one of these."""
        operation: ast.AST = node
        if isinstance(node, ast.UnaryOp):
            operation = node.op
        elif isinstance(node, ast.BinOp):
            operation, start = node.op, self.sign(node.left, node.right)
        elif isinstance(node, ast.Compare):
            i = next(i for i, sign in enumerate(node.ops) if type(sign) not in _COMPARISONS)
            left = node.comparators[i - 1] if i else node.left
            operation, start = node.ops[i], self.sign(left, node.comparators[i])
        words, hint = _INSTEAD.get(
            ast.Subscript if isinstance(node, ast.Attribute) else type(operation),
            (f"the operation {type(operation).__name__}", "add a field with the value to the rows"),
        )
        return self.source.refused(start, _EXPECTED, words, hint)
