"""Drafted lists: a team draft of two rankings, and the credit of clicks in a balanced list."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence, Set
from typing import Generic, NamedTuple, TypeVar

from streammetrics.core.conversion import whole
from streammetrics.core.errors import InputError, shown
from streammetrics.core.ids.id_hashes import hash_ids

T = TypeVar("T", bound=Hashable)
_BITS = 64


class Draft(NamedTuple, Generic[T]):
    """A drafted list: its items, best first, and the team of each: 0 of A, 1 of B."""

    items: tuple[T, ...]
    teams: tuple[int, ...]


def team_draft(
    a: Sequence[T], b: Sequence[T], list_id: str, *, k: int | None = None, salt: str = ""
) -> Draft[T]:
    """A list of at most k items that the rankings a and b draft in turns (Radlinski et al. 2008).

    In each round a coin decides who is first, and each side adds its best item that is not in the
    list yet, to its team. The draft ends when a side has no such item. The coins are bits of a hash
    of `list_id` and `salt`: the same on every machine, so a list can be drafted again from its id.
    Each shown list needs an id of its own. InputError for an item that a ranking has twice.

    >>> team_draft(["d1", "d2", "d3"], ["d2", "d4", "d1"], "request 7")
    Draft(items=('d2', 'd1', 'd4'), teams=(1, 0, 1))
    """
    most = None if k is None else _size(k)
    salted = "\0".join(("team draft", _text(salt, "salt"), _text(list_id, "list_id")))
    ranks = _ranks(a, "a"), _ranks(b, "b")
    candidates = [iter(ranks[0]), iter(ranks[1])]
    coins = _coins(salted)
    drafted: dict[T, int] = {}
    sizes = [0, 0]
    while most is None or len(drafted) < most:
        if any(all(item in drafted for item in ranking) for ranking in ranks):
            break
        turn = next(coins) if sizes[0] == sizes[1] else int(sizes[1] < sizes[0])
        item = next(candidate for candidate in candidates[turn] if candidate not in drafted)
        drafted[item] = turn
        sizes[turn] += 1
    return Draft(tuple(drafted), tuple(drafted.values()))


class BalancedClicks(NamedTuple):
    """The clicks on items in the first k of the ranking of A, and of B."""

    clicks_a: int
    clicks_b: int
    k: int


def balanced_clicks(
    a: Sequence[T], b: Sequence[T], shown: Sequence[T], clicked: Collection[T]
) -> BalancedClicks:
    """The credit of both rankings for the clicks in a balanced list of them (Joachims 2003).

    k is the least depth at which a or b has the lowest clicked item of the list; 0 without a click.
    a, b: the rankings, best first. shown: the list. clicked: items of it, in any order; an item
    that was clicked twice counts once. InputError for an item that a ranking or the list has twice,
    and for a clicked item that is not in the list, or in neither ranking.

    >>> balanced_clicks(["d1", "d2", "d3"], ["d2", "d3", "d1"], ["d1", "d2", "d3"], ["d2"])
    BalancedClicks(clicks_a=0, clicks_b=1, k=1)
    """
    rank_a, rank_b, position = _ranks(a, "a"), _ranks(b, "b"), _ranks(shown, "shown")
    distinct = _ranks(clicked, "clicked", repeats=True)
    for item in distinct:
        if item not in position:
            raise _stranger(item, "an item of the shown list", "pass the list as it was shown")
        if item not in rank_a and item not in rank_b:
            raise _stranger(item, "an item of one of the rankings", "pass both rankings in full")
    if not distinct:
        return BalancedClicks(0, 0, 0)
    lowest = max(distinct, key=position.__getitem__)
    k = min(ranks[lowest] for ranks in (rank_a, rank_b) if lowest in ranks)
    of_a, of_b = (
        sum(item in ranks and ranks[item] <= k for item in distinct) for ranks in (rank_a, rank_b)
    )
    return BalancedClicks(of_a, of_b, k)


def _size(k: object) -> int:
    number = whole(k)
    if number is None or number < 1:
        hint = "pass the number of items to show"
        raise InputError(expected="an integer of at least 1", got=shown(k), where="k", hint=hint)
    return number


def _text(text: object, name: str) -> str:
    if not isinstance(text, str):
        hint = "pass the id of the request" if name == "list_id" else "pass any text"
        raise InputError(expected="a string", got=shown(text), where=name, hint=hint)
    return text


def _ranks(items: Collection[T], name: str, *, repeats: bool = False) -> dict[T, int]:
    """The rank of each item, from 1. repeats: an item may be there again."""
    ranks: dict[T, int] = {}
    if isinstance(items, Set) and not repeats:
        expected, hint = "a sequence of items, in their order", "pass a list: a set has no order"
        raise InputError(expected=expected, got=shown(items), where=name, hint=hint)
    for i, item in enumerate(_each(items, name)):
        where = f"{name}[{i}]"
        try:
            rank = ranks.setdefault(item, i + 1)
        except TypeError:
            hint = "pass the items of one list, such as their ids"
            expected = "an item that can be hashed"
            raise InputError(expected=expected, got=shown(item), where=where, hint=hint) from None
        if rank != i + 1 and not repeats:
            got, hint = f"{shown(item)} again", "drop the repeated item"
            raise InputError(expected="each item once", got=got, where=where, hint=hint)
    return ranks


def _each(items: Collection[T], name: str) -> Iterator[T]:
    try:
        return iter(items)
    except TypeError:  # also of an array without dimensions
        expected, hint = "a sequence of items", "pass a list, an empty one if there is none"
        raise InputError(expected=expected, got=shown(items), where=name, hint=hint) from None


def _stranger(item: object, expected: str, hint: str) -> InputError:
    return InputError(expected=expected, got=shown(item), where="clicked", hint=hint)


def _coins(text: str) -> Iterator[int]:
    """Fair coins, 0 or 1, from hashes of a text."""
    number = 0
    while True:
        (word,) = hash_ids([f"{text}\0{number}"]).tolist()
        for bit in range(_BITS):
            yield word >> bit & 1
        number += 1
