"""Names that say nothing of what they hold: the closed list, and gauges that count it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tests.house.figure import Figure
from tests.house.tree import Sources, both_halves, classes, last_name
from tests.python_source import sources_of

# The closed list of local names: words without a noun. A name is the noun of what it holds.
NO_NOUNS = frozenset(
    (  # noqa: SIM905
        # participles of whatever was done
        "asked done found given held kept known made met named put said seen told wanted was "
        # pronouns
        "both each mine one other others ours own some such that theirs these this those what "
        "which "
        # adverbs and prepositions
        "again alone at beside by here more of on then there upto"
    ).split()
)
# Prepositions with which a name of a function begins. Not those of usual names of conversions and
# copies: to, from, as, with, without (`to_bytes`, `from_bytes`, `as_float`, `with_level`).
PREPOSITIONS = frozenset(
    [
        "about",
        "above",
        "across",
        "after",
        "against",
        "along",
        "among",
        "around",
        "at",
        "before",
        "behind",
        "below",
        "beneath",
        "beside",
        "besides",
        "between",
        "beyond",
        "by",
        "despite",
        "down",
        "during",
        "for",
        "in",
        "inside",
        "into",
        "near",
        "of",
        "off",
        "on",
        "onto",
        "out",
        "outside",
        "over",
        "past",
        "per",
        "since",
        "through",
        "throughout",
        "till",
        "toward",
        "towards",
        "under",
        "until",
        "up",
        "upon",
        "upto",
        "via",
        "within",
    ]
)


def assigned_names(sources: Sources) -> Counter[str]:
    """How often each name is assigned within functions, a leading underscore left out.

    An assignment is a binding by `=`, `:=`, `for`, `with`, an annotation with a value, or a
    comprehension; parameters and attributes are none.
    """
    names: Counter[str] = Counter()
    for source in sources:
        counted: set[ast.AST] = set()
        for function in source.nodes:
            is_function = isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            if not is_function or function in counted:
                continue
            for node in ast.walk(function):  # functions within it too
                counted.add(node)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    names[node.id.lstrip("_") or "_"] += 1
    return names


def share_without_nouns(sources: Sources) -> tuple[float, list[str]]:
    """The share, in percent, of the assignments of local names that are to a name of the closed
    list, and these names by their number."""
    names = assigned_names(sources)
    vague = Counter({name: n for name, n in names.items() if name in NO_NOUNS})
    total = sum(names.values())
    return 100 * sum(vague.values()) / max(1, total), [
        f"{n} {name}" for name, n in vague.most_common()
    ]


def prepositional_functions(sources: Sources) -> list[str]:
    """The functions and methods whose names begin with a preposition, an underscore left out.

    A method that overrides one of a base of the sources does not count: the base has named it.
    """
    overriding = set(_overriding(sources))
    return [
        source.finding(node.lineno, node.name)
        for source in sources
        for node in source.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("__")
        and node.name.lstrip("_").partition("_")[0] in PREPOSITIONS
        and node not in overriding
    ]


def _overriding(sources: Sources) -> Iterator[ast.AST]:
    """The methods whose name a base has too; bases are found by name, in any file."""
    methods: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for _, node in classes(sources):
        names = {method.name for method in node.body if isinstance(method, ast.FunctionDef)}
        methods.setdefault(node.name, set()).update(names)
        bases.setdefault(node.name, set()).update(map(last_name, node.bases))
    for _, node in classes(sources):
        above = set(map(last_name, node.bases))
        while ancestors := set().union(*(bases.get(name, set()) for name in above)) - above:
            above |= ancestors
        inherited = set().union(*(methods.get(name, set()) for name in above - {node.name}))
        yield from (
            method
            for method in node.body
            if isinstance(method, ast.FunctionDef) and method.name in inherited
        )


REST = ("tests", "benchmarks", "docs", "examples")  # beside both halves
NAME = "assigned local names that are no nouns (closed list)"


def figures() -> Iterator[Figure]:
    """The lines of this file."""
    sources = both_halves()
    share, names = share_without_nouns(sources)
    yield Figure(NAME, share, 2.0, "%", names)
    functions = prepositional_functions(sources)
    yield Figure("functions that begin with a preposition", len(functions), 60, details=functions)


def slow_figures() -> Iterator[Figure]:
    """The line that takes seconds, because it reads the tests."""
    sources = [source for folder in REST for source in sources_of(folder)]
    share, names = share_without_nouns(sources)
    yield Figure(f"{NAME} of tests, benchmarks, docs", share, 2.0, "%", names)
