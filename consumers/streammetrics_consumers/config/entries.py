"""The declarations of keys in tables whose names the user chooses, and of tables in lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streammetrics_consumers.config.declarations import (
    Choice,
    FieldPath,
    Key,
    Other,
    Real,
    Switch,
    Text,
    Whole,
)

_MARK: Final = {
    "field": Key(FieldPath(), "the field that identifies these events; used with `equals`"),
    "equals": Key(Other("text, whole number, true or false"), "the value of the field"),
    "topic": Key(Other("one of `source.topic`"), "the topic of these events"),
}
ENTRIES: Final[Mapping[str, Mapping[str, Key]]] = {
    "metrics.NAME": {
        "type": Key(
            Other("name of a metric"),
            "the metric; its settings are further keys of this table",
            True,
        ),
        "inputs": Key(
            Other("table", "`{}`"),
            "the fields of arguments that have no role, or another field than their role",
        ),
        "models": Key(Other("two fields"), "scores (or predictions) of two models, as in `Paired`"),
        "cluster": Key(
            Choice(("groups", "none")),
            "`groups`: rows of one user are correlated, so they are hashed by the role `user` into "
            "64 groups, and intervals and drifts are those of users; `none`: rows are independent. "
            "With `models` by default `groups` if `event.user` is named, else `none`",
        ),
        "better": Key(
            Other('`"higher"`, `"lower"`, `"none"` or a number'),
            "the better direction, or a target; by default that of its view",
        ),
        "views": Key(
            Other('list of views, such as `["quantile(0.999)"]`', "`[]`"),
            "views that tables, the page and Prometheus show beside the main ones of the metric",
        ),
    },
    "drift.NAME": {
        "metric": Key(
            Text(limit=64),
            "a metric of `Quantiles`, `ExactQuantiles`, `HistogramAUC` or `ExactAUC`",
            required=("the name of a metric of [metrics]", 'name it, such as metric = "scores"'),
        ),
        "reference": Key(
            Text("previous"),
            "what a window is compared with: `previous`, the window before it; `START/END` in ISO "
            "UTC, whole windows; or the path of a state file (`export`, or `save` of the library) "
            "of at most 64 MiB, relative to the config",
        ),
        "label": Key(
            Whole(0, 1),
            "of `HistogramAUC` and `ExactAUC`: compare the scores of this class alone",
        ),
        "bins": Key(Whole(2, 1000, 10), "bins of PSI, cut at the quantiles of the reference"),
    },
    "experiment.guardrails[]": {
        "metric": Key(Other("metric, or metric.view"), "the metric", True),
        "margin": Key(
            Real(0.0, 1e300),
            "how much worse it may become",
            required=("a number of 0 or more", "say how much worse it may become"),
        ),
        "higher_is_better": Key(Switch(), "by default as the metric declares, else `true`"),
        "required": Key(
            Switch(True),
            "whether it must be shown to be kept before anything is shipped; `false`: it only "
            "stops what is shown to be worse than the margin, and counts in `level`",
        ),
    },
    "experiment.covariates.NAME": {
        "metric": Key(
            Other("metric, or metric.view"),
            "another metric of the config, over the same events, that variants cannot affect",
            True,
        ),
        "theta": Key(
            Other("number"),
            "its slope, fixed before the experiment (`user_slope` of an earlier period)",
            True,
        ),
    },
    "join.impression": _MARK,
    "join.outcomes.NAME": {
        **_MARK,
        "counts": Key(
            Choice(("once", "count", "sum"), "once"),
            "`once`: whether an impression had it (0 or 1); `count`: how often; `sum`: the sum "
            "of `value`",
        ),
        "value": Key(FieldPath(), "the field to sum; used with `sum`"),
    },
}
