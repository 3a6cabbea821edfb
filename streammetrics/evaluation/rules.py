"""The rules of an evaluation, here and in other tools: ties, and what one side lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, cast

from streammetrics.core.checks import MAX_GRADE, check_choice, check_number
from streammetrics.core.conversion import flag
from streammetrics.core.errors import SettingsError, shown
from streammetrics.present.measure_names import our_parameters, text_of_ir_measures
from streammetrics.ranking.list_values import require_order
from streammetrics.ranking.measure import Measure, Parameter, graded_measure
from streammetrics.ranking.measures import measures_of

TIES: Final = ("expected", "worst", "best", "trec_eval")
TREC_EVAL: Final = "trec_eval"


class Tool(NamedTuple):
    """The rules of another tool, and the defaults of its parameters."""

    ties: str
    empty: str
    missing: str
    defaults: Mapping[str, Parameter]


_HERE: Final = Tool("expected", "skip", "zero", {})
_TOOLS: Final[Mapping[str, Tool]] = {
    TREC_EVAL: Tool("trec_eval", "zero", "skip", {"gain": "linear", "p": 0.9}),
    "ir_measures": Tool("trec_eval", "zero", "zero", {"gain": "linear"}),
}
# The names that trec_eval and pytrec_eval print.
_NAMES: Final = re.compile(
    r"map|ndcg|rbp|infAP|Rprec|bpref|recip_rank|set_(P|recall|F|map)"
    r"|(P|recall|success|ndcg_cut|map_cut)[_.][0-9]{1,9}|iprec_at_recall_[01]?\.[0-9]{1,4}"
)
_NUMBERS: Final = ("NumRet", "NumRel", "NumRelRet")
_JUDGED_ONLY: Final = re.compile(r",?\s*judged_only\s*=\s*(True|False)")


def trec_names(measures: Iterable[Measure | str]) -> list[str]:
    """The texts among measures that are trec_eval's names.

    >>> trec_names(["map", "ndcg@10", "P_5"])
    ['map', 'P_5']
    """
    return [text for text in measures if isinstance(text, str) and _NAMES.fullmatch(text)]


def listed_measures(measures: object) -> tuple[list[Measure | str], bool]:
    """Measures and names, those of ir_measures as texts, and whether they are over judged documents
    only; SettingsError if some are and others are not.

    >>> listed_measures(["map", "P(judged_only=True)@5"])
    Traceback (most recent call last):
    ...
    streammetrics.core.errors.SettingsError: measures: expected judged_only of all measures or of \
none, got 'P@5' among others; evaluate the others in a call of their own
    """
    is_one = isinstance(measures, (Measure, str)) or text_of_ir_measures(measures) is not None
    try:
        several = list(cast("Iterable[Measure | str]", [measures] if is_one else measures))
    except TypeError:  # also of an array without dimensions
        return list(measures_of(cast("str", measures))), False  # raises
    entries: list[Measure | str] = []
    judged_only = []
    for entry in several:
        text = entry if isinstance(entry, str) else text_of_ir_measures(entry)
        judged = None if text is None else _JUDGED_ONLY.search(text)
        judged_only.append(judged is not None and judged[1] == "True")
        if text is None or judged is None:
            entries.append(entry if text is None else text)
        else:
            measure_text = _JUDGED_ONLY.sub("", text).replace("(,", "(").replace("()", "")
            entries.append(measure_text)
    if any(judged_only) and not all(judged_only):
        first = entries[judged_only.index(True)]
        raise SettingsError(
            expected="judged_only of all measures or of none",
            got=f"{shown(str(first))} among others",
            where="measures",
            hint="evaluate the others in a call of their own",
        )
    return entries, any(judged_only)


class Rules(NamedTuple):
    """Checked settings of an evaluation, but for the measures."""

    ties: str
    empty: str
    missing: str
    rel: int = 1
    judged_only: bool = False
    like: str = ""

    @classmethod
    def checked(
        cls,
        ties: str | None,
        empty: str | None,
        missing: str | None,
        rel: int,
        judged_only: bool,
        like: str | None,
        only: bool = False,
    ) -> Rules:
        """The rules; None is that of the tool that `like` names. only: whether the measures ask for
        judged documents. SettingsError for unknown rules."""
        if like is not None:
            check_choice(like, tuple(_TOOLS), "like")
        tool = _HERE if like is None else _TOOLS[like]
        ties = tool.ties if ties is None else ties
        empty = tool.empty if empty is None else empty
        missing = tool.missing if missing is None else missing
        check_choice(ties, TIES, "ties")
        check_choice(empty, ("skip", "zero"), "empty")
        check_choice(missing, ("zero", "skip"), "missing")
        rel = check_number(rel, 1, MAX_GRADE, "rel", "pass the least grade that is relevant")
        only |= flag(judged_only, "judged_only", SettingsError)
        return cls(ties, empty, missing, rel, only, like or "")

    def measures(self, requested_measures: Iterable[Measure | str]) -> tuple[Measure, ...]:
        """The measures by these rules; SettingsError for unknown ones."""
        entries = tuple(requested_measures)
        defaults = _TOOLS[self.like].defaults if self.like else {}
        measures = []
        for measure, entry in zip(measures_of(entries), entries, strict=True):
            measure_defaults = measure._defaults()
            text = "".join(our_parameters(entry).split()) if isinstance(entry, str) else ""
            text = text.replace("burges", "gain=")  # ranx's name of exponential gains
            parameters = {
                name: value
                for name, value in defaults.items()
                if name in measure_defaults and getattr(measure, name) == measure_defaults[name]
                if f"{name}=" not in text
            }
            measures.append(graded_measure(measure(**parameters), self.rel))
        checked = measures_of(measures)
        require_order(checked, self.ties)
        return checked

    def notes(self, measures: Iterable[Measure]) -> Iterator[str]:
        """What a reader of the result may want to know of them."""
        numbers = [str(measure) for measure in measures if measure.name in _NUMBERS]
        if numbers:
            yield f"{', '.join(numbers)}: means over queries, of which trec_eval has the sums"
        if self.like:
            names, tool = ("ties", "empty", "missing"), _TOOLS[self.like]
            rules = (f'{name}="{getattr(self, name)}"' for name in names)
            changed_names = [name for name in names if getattr(self, name) != getattr(tool, name)]
            but = f", but for {', '.join(changed_names)}" if changed_names else ""
            yield f"as {self.like}{but}: {', '.join(rules)}"
        if self.judged_only:
            yield "documents that are not judged are left out of runs"
