"""The names of measures of ranked lists as people type them, and the texts that they mean.

Capitals, hyphens and underscores do not matter: `ndcg@10` is `NDCG@10`, `hit_rate@5` is `HR@5`.
Names of trec_eval keep trec_eval's meaning: its `ndcg_cut_10` has linear gains. Names that would
mean something else here (`rbp.95` and `hits@5` of ranx) are not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

_OTHERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "NDCG": "ndcg ndcg_burges normalized_dcg",
        "DCG": "dcg dcg_burges",
        "CG": "cg cumulative_gain",
        "MRR": "mrr rr recip_rank reciprocal_rank mean_reciprocal_rank",
        "HR": "hr hit hit_rate hit_ratio success",
        "PooledHR": "pooled_hr",
        "P": "p prec precision",
        "R": "r recall set_r set_recall",
        "F1": "f1 f1_score",
        "RPrec": "rprec r_prec r_precision",
        "AP": "ap map average_precision mean_average_precision",
        "ERR": "err expected_reciprocal_rank",
        "RBP": "rbp rank_biased_precision",
        "Bpref": "bpref",
        "SetP": "set_p",
        "SetF": "set_f",
        "SetAP": "set_ap set_map",
        "NumRet": "num_ret",
        "NumRel": "num_rel",
        "NumRelRet": "num_rel_ret",
        "Judged": "judged",
        "IPrec": "iprec",
        "InfAP": "inf_ap",
        "AlphaNDCG": "alpha_ndcg andcg",
        "ERRIA": "err_ia",
        "StRecall": "strec st_recall subtopic_recall s_recall",
    }
)
# trec_eval joins the cut by an underscore, and pytrec_eval also by a dot.
_TREC_EVAL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "p": "P",
        "recall": "R",
        "success": "HR",
        "mapcut": "AP",
        "ndcgcut": 'NDCG(gain="linear")',
    }
)
_LONGEST: Final = 200  # characters
_FORM: Final = re.compile(
    r"\s*([A-Za-z][A-Za-z_-]{0,39}|[Ff]1(?:[_-]score)?)\s*(\([^()]*\)\s*)?"
    r"(?:@\s*([0-9]{1,9})\s*)?",
    re.ASCII,
)
_JOINED: Final = re.compile(r"\s*([A-Za-z][A-Za-z_-]{0,39}?)[_.]([0-9]{1,9})\s*", re.ASCII)
_ENDS_IN_CUT: Final = re.compile(
    r"([a-z][a-z_-]*?)(?:_?at)?[_@-]?([0-9]{1,9})", re.ASCII | re.IGNORECASE
)


_INSIDE: Final = re.compile(r"\([^()]*\)")
_WORD: Final = re.compile(r"=\s*([a-z]{1,20})\s*(?=[,)])", re.ASCII)
_DCG: Final = re.compile(r"""\bdcg\s*=\s*(["']?)(log2|exp-log2)\1\s*(?=[,)])""", re.ASCII)
_IPREC: Final = re.compile(
    r"(?:iprec_at_recall_|iprec\s*(?:\(([^()]*)\)\s*)?@\s*)([01]?\.[0-9]{1,4}|[01])\s*",
    re.ASCII | re.IGNORECASE,
)
_RBP: Final = re.compile(r"rbp\.([0-9]{1,6})", re.ASCII | re.IGNORECASE)


def our_parameters(text: str) -> str:
    """The text with parameters as measures print them: words are quoted, `dcg` of ir_measures is
    `gain`, and the share in `IPrec@0.1` is `recall`; the text itself if it is too long.

    >>> our_parameters("NDCG(gain=linear)@10"), our_parameters("nDCG(dcg='exp-log2')@5")
    ('NDCG(gain="linear")@10', 'nDCG(gain="exponential")@5')
    >>> our_parameters("IPrec@.1"), our_parameters("NumRet(rel=2)")
    ('IPrec(recall=0.1)', 'NumRelRet(rel=2)')
    """
    if text.startswith("NumRet("):  # of ir_measures, which has no measure of its own
        return text.replace("NumRet", "NumRelRet")
    if iprec := _IPREC.fullmatch(text):  # whose cut is a share
        inside = f"{iprec[1]}," if iprec[1] else ""
        return f"IPrec({inside}recall={float(iprec[2])})"
    if len(text) > _LONGEST or "(" not in text:
        return text
    gain = {"log2": 'gain="linear"', "exp-log2": 'gain="exponential"'}
    return _WORD.sub(r'="\1"', _DCG.sub(lambda match: gain[match[2]], text))


def text_of_ir_measures(measure: object) -> str | None:
    """The text of a measure of ir_measures, whose nDCG has linear gains by default; None for
    anything else."""
    name, parameters = getattr(measure, "NAME", None), getattr(measure, "params", None)
    if not isinstance(name, str) or not isinstance(parameters, Mapping):
        return None
    settings = {key: value for key, value in parameters.items() if key != "cutoff"}
    if name == "nDCG":
        settings.setdefault("dcg", "log2")
    inside = ",".join(f"{key}={value!r}" for key, value in settings.items())
    cut = f"@{parameters['cutoff']}" if "cutoff" in parameters else ""
    return f"{name}({inside}){cut}" if inside else f"{name}{cut}"


def _bare(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


_KNOWN: Final[Mapping[str, str]] = MappingProxyType(
    {_bare(other): name for name, others in _OTHERS.items() for other in others.split()}
)


def printed_text(text: str) -> str | None:
    """The text that a measure prints, from a name that people type; None if it is not known.

    >>> printed_text("map"), printed_text("hit_rate @ 5"), printed_text("RR(rel=2)@10")
    ('AP', 'HR@5', 'MRR(rel=2)@10')
    >>> printed_text("ndcg@10"), printed_text("ndcg_cut_10"), printed_text("P_5")
    ('NDCG@10', 'NDCG(gain="linear")@10', 'P@5')
    """
    if len(text) > _LONGEST:
        return None
    form = _FORM.fullmatch(text)
    if form is not None:
        name = _KNOWN.get(_bare(form[1]))
        cut = f"@{form[3]}" if form[3] else ""
        return name and f"{name}{(form[2] or '').strip()}{cut}"
    joined = _JOINED.fullmatch(text)
    name = None if joined is None else _TREC_EVAL.get(_bare(joined[1]))
    return None if joined is None or name is None else f"{name}@{joined[2]}"


def entry_text(text: str, entries: Iterable[str]) -> str:
    """The one of these printed texts that a text means; the text without spaces if none is.

    A text without parameters means the only entry of its name and cut, whatever its parameters.

    >>> entry_text("ndcg @ 10", ["AP", "NDCG@10"]), entry_text("P@5", ["AP"])
    ('NDCG@10', 'P@5')
    >>> entry_text("ndcg@10", ["AP", 'NDCG(gain="linear")@10'])
    'NDCG(gain="linear")@10'
    """
    texts, bare = list(entries), our_parameters("".join(text.split()).replace("'", '"'))
    if bare in texts:
        return bare
    printed = printed_text(bare)
    if printed in texts:
        return printed
    plain = [entry for entry in texts if _INSIDE.sub("", entry) == (printed or bare)]
    return plain[0] if len(plain) == 1 else bare


def similar_entry(text: str, entries: Iterable[str], otherwise: str) -> str:
    """The most similar one of these printed texts, as a question. otherwise: where none is similar.

    >>> similar_entry("MRR@5", ["NDCG@10", "MRR"], ""), similar_entry("P(rel=2)@3", ["MRR"], "")
    ("did you mean 'MRR'?", '')
    """
    import difflib

    names = {_bare(entry): entry for entry in entries}
    close = difflib.get_close_matches(_bare(text[:_LONGEST]), names, n=1, cutoff=0.6)
    return f"did you mean '{names[close[0]]}'?" if close else otherwise


def did_you_mean(text: str, further_names: Iterable[str], otherwise: str) -> str:
    """The most similar name of a measure, with the cut of the text, as a question.

    further_names: others that are known. otherwise: where nothing is similar.

    >>> did_you_mean("ndgc@10", [], ""), did_you_mean("ndcg_at_10", [], "")
    ("did you mean 'NDCG@10'?", "did you mean 'NDCG@10'?")
    """
    text = text.strip()[:_LONGEST]
    if rbp := _RBP.fullmatch(text):  # of ranx
        return f"did you mean 'RBP(p=0.{rbp[1]})'?"
    if _bare(text) == "gmmap":
        return 'evaluate "map": result.geometric_mean("map") is gm_map'
    if _bare(text) in ("ndcgcut", "mapcut"):  # of pytrec_eval, which has nine cuts
        return f"name one cut: {text.lower()}_10"
    ends = _ENDS_IN_CUT.fullmatch(text)
    name, cut = (ends[1], f"@{ends[2]}") if ends else (text, "")
    names = {**_KNOWN, **{_bare(measure): measure for measure in further_names}}
    import difflib

    close = difflib.get_close_matches(_bare(name.partition("(")[0]), names, n=1, cutoff=0.6)
    return f"did you mean '{names[close[0]]}{cut}'?" if close else otherwise
