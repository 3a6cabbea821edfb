"""What hooks would send of the events counted so far, if an experiment was looked at now."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from streammetrics_consumers.config.hooks import HookConfig
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.looks import heads_sha256
from streammetrics_consumers.ledger.outbox import HookMessage
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.process.experiment_looks import look_base
from streammetrics_consumers.query.experiment_plan import experiments_of
from streammetrics_consumers.query.hook_content import LookPlace, messages_of


def hook_preview(ledger: Ledger, hooks: Sequence[HookConfig], now_ms: int) -> list[HookMessage]:
    """The messages that the store does not have yet, by experiment. Reads, and changes nothing.

    Raises LedgerError, and StreamMetricsError for states that a plan does not fit.
    """

    def read(now: StoreView) -> list[HookMessage]:
        names = experiments_of(now.version.generation)
        return [
            message for name in names for message in _messages(ledger, now, hooks, name, now_ms)
        ]

    return view(ledger, read)


def _messages(
    ledger: Ledger, now: StoreView, hooks: Sequence[HookConfig], name: str, now_ms: int
) -> list[HookMessage]:
    basis = look_base(now, name)
    if basis is None:
        return []
    outcome, look = basis.experiment.outcome(), basis.look
    watched = now.watched(look.experiment, outcome.alphas, look.place[0])
    place = LookPlace(
        ledger.store.id,
        look.generation,
        now.looks(look.experiment) + 1,
        look.place[0],
        heads_sha256(look),
        basis.watermark_ms,
        now_ms,
    )
    report = outcome.report(watched, days=basis.days)
    messages = messages_of(
        partial(now.last_hook, look.experiment), hooks, basis.design, report, place
    )
    return [message for message in messages if not now.has_hook(message)]
