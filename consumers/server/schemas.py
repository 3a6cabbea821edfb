"""JSON Schemas of the answers. Every object is closed, so that a key nobody described fails."""

from __future__ import annotations

from typing import Final, TypeAlias

from consumers.results.json_text import Json
from streammetrics.experiments import ACTIONS, VERDICTS

Schema: TypeAlias = dict[str, Json]

TEXT: Final[Schema] = {"type": "string"}
FLAG: Final[Schema] = {"type": "boolean"}
WHOLE: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {
    "description": "a double; null where undefined",
    "anyOf": [{"type": "number"}, {"type": "null"}, {"enum": ["inf", "-inf"]}],
}
COUNTS: Final[Schema] = {"type": "object", "additionalProperties": WHOLE}
ANY: Final[Schema] = {"type": "object"}


def ref(name: str) -> Schema:
    """A schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def many(of: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": of}


def maybe(of: Schema) -> Schema:
    """Or null.

    >>> maybe(TEXT)
    {'anyOf': [{'type': 'string'}, {'type': 'null'}]}
    """
    return {"anyOf": [of, {"type": "null"}]}


def words(*known: str) -> Schema:
    """One of these."""
    return {"enum": list(known)}


def shape(**fields: Schema) -> Schema:
    """An object with exactly these keys."""
    return {
        "type": "object",
        "properties": fields,
        "required": sorted(fields),
        "additionalProperties": False,
    }


def answer(name_: str, /, **fields: Schema) -> Schema:
    """An answer that names its format."""
    return shape(format={"const": f"streammetrics-{name_}/1"}, **fields)


_MS: Final = maybe(WHOLE)
_READ: Final = dict.fromkeys(
    ("rows_read", "late", "future", "expired", "quarantined", "repeated", "skipped"), WHOLE
)
_STATES: Final = ("open", "closing", "closed", "total")
_COMPARED: Final = (
    *("control", "treatment", "effect_size", "effect_size_ci_lower", "effect_size_ci_upper"),
    *("rel_effect_size", "rel_effect_size_ci_lower", "rel_effect_size_ci_upper", "pvalue"),
    *("statistic", "std_error", "df", "level", "n", "n_eff", "deff"),
    *("anytime_lower", "anytime_upper", "anytime_pvalue", "holm_pvalue", "e_value", "margin"),
)
_PAIR: Final = {
    "metric": TEXT,
    "view": TEXT,
    "control_variant": TEXT,
    "treatment_variant": TEXT,
    "guardrail": FLAG,
}

SCHEMAS: Final[dict[str, Schema]] = {
    "Error": shape(
        error={
            "type": "object",
            "properties": dict.fromkeys(("expected", "came", "where", "todo"), TEXT),
            "required": ["came"],
            "additionalProperties": False,
        }
    ),
    "Slice": {
        "description": "names to values; (other) has the names that were summed over",
        "type": "object",
        "additionalProperties": {
            "anyOf": [TEXT, WHOLE, {"type": "null"}, many(TEXT)],
        },
    },
    "Window": shape(start_ms=_MS, end_ms=_MS, state=words(*_STATES)),
    "Interval": shape(
        **dict.fromkeys(("lower", "upper", "n_eff", "deff"), NUMBER),
        level=NUMBER, n=WHOLE, method=TEXT, reason=TEXT,
    ),
    "Result": shape(
        window=ref("Window"), slice=ref("Slice"), metric=TEXT, type=TEXT, view=TEXT,
        value=NUMBER, low=NUMBER, high=NUMBER, counts=COUNTS, digest=TEXT,
        interval=maybe(ref("Interval")),
    ),
    "Comparison": shape(
        window=ref("Window"), **_PAIR, **dict.fromkeys(_COMPARED, NUMBER),
        **dict.fromkeys(("method", "reason", "anytime_reason", "sentence"), TEXT),
        gated=FLAG, distrusted=FLAG, faded=FLAG, looks=WHOLE, verdict=words(*VERDICTS),
        direction=shape(better=words("higher", "lower", "target", "none"), target=NUMBER),
    ),
    "Recommendation": shape(
        action=words(*ACTIONS), sentence=TEXT, rests_on=many(TEXT), treatments=many(TEXT)
    ),
    "Contamination": shape(
        units=NUMBER, share=NUMBER, dropped=FLAG, warning=FLAG, sentence=TEXT
    ),
    "SampleRatio": shape(pvalue=NUMBER, e_value=NUMBER, counts=COUNTS, reason=TEXT),
    "Results": answer(
        "results", generation=WHOLE, offsets=COUNTS, incomplete=COUNTS, **_READ, watermark_ms=_MS,
        results=many(ref("Result")), comparisons=many(ref("Comparison")),
        recommendation=maybe(ref("Recommendation")), contamination=maybe(ref("Contamination")),
        srm=maybe(ref("SampleRatio")), notes=many(TEXT), join=maybe(ref("Join")),
    ),
    "Join": shape(
        closed_ms=_MS, label_window_s=NUMBER, share_pending=NUMBER, share_repeated=NUMBER,
        **dict.fromkeys(("events", "closed", "pending", "conflicts", "late_impressions",
                         "late_outcomes", "repeated"), WHOLE),
        outcomes={
            "type": "object",
            "additionalProperties": shape(
                **dict.fromkeys(("waiting", "attributed", "unattributed", "unknown"), WHOLE),
                **dict.fromkeys(
                    ("share_unattributed", "share_after_window", "share_last_tenth"), NUMBER
                ),
                **dict.fromkeys(("delays_s", "unattributed_delays_s"), many(many(WHOLE))),
            ),
        },
        warnings=many(TEXT),
    ),
    "Store": answer(
        "store", name=TEXT, outline=TEXT, generation=WHOLE, generations=many(WHOLE),
        variants=many(TEXT), control=maybe(TEXT), groupings=many(many(TEXT)), experiment=FLAG,
        metrics=many(
            shape(name=TEXT, type=TEXT, views=many(TEXT), headlines=many(TEXT), figures=many(TEXT))
        ),
        windows=shape(size_ms=WHOLE, slide_ms=WHOLE, spans=many(ref("Window")), more=WHOLE),
    ),
    "History": answer(
        "history", generation=WHOLE, offsets=COUNTS, metric=TEXT, view=TEXT,
        windows=many(ref("Window")), more=WHOLE, more_series=WHOLE,
        series=many(
            shape(
                slice=ref("Slice"), rows=many(_MS),
                **dict.fromkeys(("value", "low", "high", "lower", "upper"), many(NUMBER)),
            )
        ),
        effects=many(
            shape(
                **_PAIR,
                looks=shape(
                    watermark_ms=many(_MS), gated=many(FLAG),
                    **dict.fromkeys(("effect", "lower", "upper"), many(NUMBER)),
                ),
                windows=shape(**dict.fromkeys(("effect", "lower", "upper"), many(NUMBER))),
            )
        ),
    ),
    "Experiment": answer(
        "experiment", generation=WHOLE, offsets=COUNTS, incomplete=COUNTS, looks=WHOLE,
        sentence=TEXT,
        state=words("none", "waiting", "distrusted", "early", "undecided", "decided"),
        plan=maybe(
            shape(control=TEXT, variants=many(TEXT), decision=many(TEXT), guardrails=many(TEXT),
                  level=NUMBER, cluster=words("groups", "none"))
        ),
        recommendation=maybe(ref("Recommendation")), comparisons=many(ref("Comparison")),
        srm=maybe(ref("SampleRatio")), contamination=maybe(ref("Contamination")), notes=many(TEXT),
    ),
    "Health": answer(
        "health", state=words("live", "idle", "stale", "broken"), sentence=TEXT, watermark_ms=_MS,
        newest_event_ms=_MS, **_READ, lag_messages=_MS, lag_seconds=NUMBER, committed_s=NUMBER,
        since_s=NUMBER,
        workers=many(
            shape(name=TEXT, problem=maybe(TEXT), lag_messages=_MS, partitions=WHOLE)
        ),
    ),
    "Status": answer(
        "status", generation=WHOLE, revision=WHOLE, floor_ms=_MS, watermark_ms=_MS,
        logs=many(
            shape(
                **dict.fromkeys(("cluster", "topic", "topic_id"), TEXT), closed=FLAG, idle=FLAG,
                **dict.fromkeys(("partition", "start_offset", "next_offset", "rows", "late",
                                 "future", "expired", "quarantined", "tombstones", "repeated",
                                 "skipped", "lost"), WHOLE),
                greatest_event_ms=_MS,
            )
        ),
        metrics=many(
            shape(name=TEXT, type=TEXT, fingerprint=TEXT, ended=FLAG,
                  holes=many(shape(log=TEXT, start_offset=WHOLE, end_offset=WHOLE)),
                  settings={"type": "object", "additionalProperties": TEXT})
        ),
        quarantine=shape(open=WHOLE, done=WHOLE),
        deltas=shape(rows=WHOLE, panes=WHOLE, nbytes=WHOLE), join=maybe(ref("Join")),
    ),
    "Figure": {"description": "a Vega-Lite specification with its data", "type": "object",
               "required": ["$schema", "data", "description"]},
}  # fmt: skip
