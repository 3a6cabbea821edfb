"""What each field of an expression must be: a number, true or false, or a text."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from streammetrics.core.errors import InputError, shown
from streammetrics.core.expressions.syntax import (
    Arithmetic,
    Call,
    ExpressionText,
    Logic,
    Name,
    Negation,
    Not,
    Number,
    Relation,
    TextLiteral,
    Tree,
)

FieldKind: TypeAlias = Literal["number", "bool", "text"]
KIND_WORDS: Final[dict[FieldKind, str]] = {
    "number": "a number",
    "bool": "a condition, or a field of true and false",
    "text": "a text",
}
_EQUALITY: Final = ("==", "!=")


class FieldKinds:
    """The kinds of the fields of an expression, from how they are used.

    fields: None is a field of any kind: one that is the whole expression, or that is only compared
    for equality with such a field. pairs: the fields that are compared with each other.
    """

    def __init__(
        self, source: ExpressionText, tree: Tree, required_kind: FieldKind | None = None
    ) -> None:
        """required_kind: the kind of the whole expression, if it must be of one."""
        self.source = source
        self.fields: dict[str, FieldKind | None] = {}
        self._places: dict[str, int] = {}  # where each was first read as its kind
        self._checked: dict[int, FieldKind] = {}  # the kinds of parts that are no fields
        self.pairs: list[tuple[Name, Name]] = []
        self.kind = self._kind(tree)
        if required_kind is not None:
            self.kind = self._require(tree, required_kind)
        while self._unite():
            pass
        if self.kind is None and isinstance(tree, Name):
            self.kind = self.fields[tree.name]

    def _unite(self) -> bool:
        """Give both fields of a pair the kind of either; whether any was new."""
        is_new = False
        for left, right in self.pairs:
            a, b = self.fields[left.name], self.fields[right.name]
            if a is None and b is not None:
                self._require(left, b)
            elif b is None and a is not None:
                self._require(right, a)
            elif a != b:
                raise self._mismatch(right, a or "number")
            is_new |= (a is None) != (b is None)
        return is_new

    def _require(self, tree: Tree, kind: FieldKind) -> FieldKind:
        """Require that a part is of this kind."""
        tree_kind = self._kind(tree)
        if tree_kind is None and isinstance(tree, Name):
            self.fields[tree.name] = kind
            self._places[tree.name] = tree.start
        elif tree_kind != kind:
            raise self._mismatch(tree, kind)
        return kind

    def _mismatch(self, tree: Tree, kind: FieldKind) -> InputError:
        tree_kind = self._kind(tree)
        words = {"number": "a number", "bool": "a condition", "text": "a text"}
        got, hint = words[tree_kind or "text"], "compare it with ==, or leave it out"
        if isinstance(tree, TextLiteral):
            got, hint = f"the text {shown(tree.value)}", "compare texts with a field, by == or !="
        elif isinstance(tree, Number):
            got = f"the number {tree.value!r}"
            hint = "compare a field with it, as in clicks == 1"
        elif isinstance(tree, Name):
            place = self._places[tree.name] + 1
            got = f"the field {shown(tree.name)}, which is {got} at column {place}"
            hint = "use each field as one kind"
        elif tree_kind == "bool":
            hint = "make it a column of its own: it has no value as a number"
        elif kind == "bool":
            hint = "compare it with a number, as in clicks - views > 0"
        return self.source.refused(tree.start, KIND_WORDS[kind], got, hint)

    def _kind(self, tree: Tree) -> FieldKind | None:
        """The kind of a part, once its own parts are checked; None for a field of any kind."""
        if isinstance(tree, Name):
            return self.fields.setdefault(tree.name, None)
        kind = self._checked.get(id(tree))
        if kind is None:
            kind = self._checked[id(tree)] = self._operation(tree)
        return kind

    def _operation(self, tree: Tree) -> FieldKind:
        """The kind of a part that is no field, whose own parts must be of the right kinds."""
        match tree:
            case Number():
                return "number"
            case TextLiteral():
                return "text"
            case Negation():
                return self._require(tree.operand, "number")
            case Arithmetic():
                self._require(tree.left, "number")
                return self._require(tree.right, "number")
            case Call():
                for argument in tree.arguments:
                    self._require(argument, "number")
                return "number"
            case Not():
                return self._require(tree.operand, "bool")
            case Logic():
                for operand in tree.operands:
                    self._require(operand, "bool")
                return "bool"
            case Relation():
                self._compare(tree)
        return "bool"

    def _compare(self, tree: Relation) -> None:
        for sign, left, right in zip(tree.signs, tree.operands, tree.operands[1:], strict=False):
            if sign not in _EQUALITY:
                self._require(left, "number")
                self._require(right, "number")
                continue
            if isinstance(left, TextLiteral | Number) and isinstance(right, TextLiteral | Number):
                got, hint = "two constants", "compare a field with one of them"
                raise self.source.refused(left.start, "a field on one side", got, hint)
            a, b = self._kind(left), self._kind(right)
            if isinstance(left, Name) and isinstance(right, Name) and a is None and b is None:
                self.pairs.append((left, right))
            elif a is None:
                self._require(left, b or "number")
            else:
                self._require(right, a)
