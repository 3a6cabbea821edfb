"""Write the part of `docs/metrics.md` that the docstrings say; `make docs` runs it.

The page between its two marks is made of the docstrings of every metric, measure and result, found
by introspection, so that nothing stands there that the code does not say. The rest is written by
hand. With `--check` nothing is written, and the exit code says whether the page is stale.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import get_args, get_origin, get_type_hints

from docs.marked_part import MarkedPart
from streammetrics import classification, combine, distributions, join, policies, ranking
from streammetrics.present.notebook import Shown
from streammetrics.present.view import declared_views
from streammetrics.ranking.measures import MEASURES
from streammetrics.results.has_intervals import HasIntervals

START = "<!-- `make docs` writes what follows from the docstrings, down to the next mark -->\n"
HEADINGS = ["Settings", "Rows", "State", "Result", "Undefined", "Exactness", "Cost", "Source"]


def metrics() -> dict[str, type]:
    """Every public metric by its name: what has `update` and `compute`."""
    members = {
        name: getattr(p, name)
        for p in (classification, distributions, policies, ranking, combine, join)
        for name in p.__all__
    }
    return {
        name: kind
        for name, kind in sorted(members.items())
        if inspect.isclass(kind) and hasattr(kind, "update") and hasattr(kind, "compute")
    }


def results_of(metric: type) -> tuple[type, ...]:
    """What `compute` gives: a result, or one of several, the usual one first."""
    hint = get_type_hints(metric.compute)["return"]  # type: ignore[attr-defined]
    origin = get_origin(hint)  # of a result with a type parameter; None or a union otherwise
    return (
        (origin,)
        if inspect.isclass(origin) and origin is not UnionType
        else get_args(hint) or (hint,)
    )


def plain(text: str) -> str:
    """Lines in one, safe in Markdown outside of backticks; a block of code as it is."""
    if text.startswith("```"):
        return text
    pieces = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(p if p.startswith("`") else re.sub(r"([*<])", r"\\\1", p) for p in pieces)


def paragraphs(symbol: object) -> list[str]:
    """A docstring up to its example, by paragraphs."""
    text = (inspect.getdoc(symbol) or "").partition("\n>>>")[0]
    return [part for part in text.split("\n\n") if part.strip()]


def sections(metric: type) -> tuple[list[str], dict[str, str]]:
    """The paragraphs of a docstring before its headings, and what stands under each of these."""
    intro: list[str] = []
    texts: dict[str, str] = {}
    for part in paragraphs(metric):
        lines = part.splitlines()
        if lines[0] not in HEADINGS:
            intro.append(plain(part))
            continue
        heading = ""
        for line in lines:
            if line in HEADINGS:
                heading = line
                texts[heading] = ""
            else:
                texts[heading] += line + "\n"
    return intro, {heading: plain(text) for heading, text in texts.items()}


def arguments(symbol: Callable[..., object], *, method: bool = False) -> str:
    """The parameters of a class or method, without their types."""
    parameters = list(inspect.signature(symbol).parameters.values())[int(method) :]
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return shorten_powers(str(inspect.Signature(bare))[1:-1].replace("'", '"'))


def shorten_powers(text: str) -> str:
    """A text with powers of two that nobody recognizes by their digits as `2**-24`.

    >>> shorten_powers("floor=5.960464477539063e-08, share=0.5")
    'floor=2**-24, share=0.5'
    """

    def shortened(digits: re.Match[str]) -> str:
        number = float(digits[0])
        mantissa, exponent = math.frexp(number)
        return digits[0] if mantissa != 0.5 or 1e-3 < number < 1e3 else f"2**{exponent - 1}"

    return re.sub(r"[0-9]+\.[0-9]+(e-[0-9]+)?", shortened, text)


def attributes(kind: type) -> str:
    """The public attributes of a result and its methods with their arguments; not those of every
    result, or of every mapping."""
    shared = {*dir(HasIntervals), *dir(Mapping)}
    names = [*getattr(kind, "__dataclass_fields__", ())]
    names += [name for base in kind.__mro__ for name in vars(base)]
    public_names = [n for n in dict.fromkeys(names) if not n.startswith("_") and n not in shared]
    calls = [n for n in public_names if inspect.isfunction(getattr(kind, n, None))]
    fields = " ".join(f"`{name}`" for name in public_names if name not in calls)
    of_calls = (f"`{name}({arguments(getattr(kind, name), method=True)})`" for name in calls)
    return " ".join([fields, *of_calls]).strip()


def of_metric(name: str, metric: type) -> Iterator[str]:
    """A metric: what it is, how it is called, and what each heading of its docstring says."""
    intro, texts = sections(metric)
    yield f"### {name}\n\n" + "\n\n".join(intro) + "\n"
    update = arguments(metric.update, method=True)  # type: ignore[attr-defined]
    bullets = [f"- **Call**: `{name}({arguments(metric)})` `update({update})`"]
    bullets += [f"- **{heading}**: {texts[heading]}" for heading in HEADINGS if heading in texts]
    yield "\n".join(bullets) + "\n"


def of_measure(name: str) -> str:
    """A measure: what it is, its parameters, and whether it is cut."""
    measure = MEASURES[name]
    text = plain(" ".join(paragraphs(measure)))
    parameters = " ".join(f"`{n}={json.dumps(v)}`" for n, v in measure._defaults().items())
    settings = f" Parameters: {parameters}." if parameters else ""
    return f"- `{name}`: {text}{settings} It {measure.cuts} be cut."


def of_result(kind: type, givers: list[str]) -> Iterator[str]:
    """A result: what it is, what gives it, and what each of its values is."""
    yield f"### {kind.__name__}\n\nOf {', '.join(f'`{name}`' for name in givers)}.\n"
    yield "\n\n".join(map(plain, paragraphs(kind))) + "\n"
    if listing := attributes(kind):
        yield f"Attributes: {listing}.\n"
    lines, views = [], declared_views(kind)
    for base in reversed(kind.__mro__):
        for name, value in vars(base).items():
            is_view = isinstance(value, property | cached_property)
            if name.startswith("_") or not (is_view or inspect.isfunction(value)):
                continue
            if base is Shown:
                continue  # said once, of every result
            # Nothing of a field, which the class describes.
            definition = views[name].signature.definition if name in views else ""
            texts = [definition] if definition else paragraphs(value)
            if texts and inspect.getmodule(base) and base.__module__.startswith("streammetrics"):
                arguments = (
                    "" if is_view else f"({', '.join([*inspect.signature(value).parameters][1:])})"
                )
                lines.append(f"- `{name}{arguments}`: {plain(texts[0])}")
    yield "\n".join(dict.fromkeys(lines)) + "\n" * bool(lines)


def _shared_methods() -> Iterator[str]:
    for name, value in vars(Shown).items():
        if inspect.isfunction(value) and not name.startswith("_"):
            yield f"- `{name}({arguments(value, method=True)})`: {plain(paragraphs(value)[0])}"


def written() -> str:
    """The part of the page that the docstrings say."""
    pieces = ["## Every metric\n"]
    givers: dict[type, list[str]] = {}
    for name, metric in metrics().items():
        pieces += of_metric(name, metric)
        for result in results_of(metric):
            givers.setdefault(result, []).append(name)
    pieces.append("## Every measure of ranked lists\n")
    pieces.append("\n".join(map(of_measure, MEASURES)) + "\n")
    pieces.append("## Every result\n")
    pieces.append("Every result, of one metric or of many keys, has these methods:\n")
    pieces.append("\n".join(_shared_methods()) + "\n")
    for kind, names in sorted(givers.items(), key=lambda pair: pair[0].__name__):
        pieces += of_result(kind, names)
    return "\n".join(piece for piece in pieces if piece.strip()) + "\n"


PART = MarkedPart(Path(__file__).with_name("metrics.md"), START, written)

if __name__ == "__main__":
    sys.exit(PART.main())
