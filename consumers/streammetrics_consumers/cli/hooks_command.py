"""The command `hooks`: what hooks have sent, what they would send, and what to do with events that
are held."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from typing import Final

from streammetrics_consumers.cli import logs
from streammetrics_consumers.cli.arguments import Arguments, UsageError
from streammetrics_consumers.cli.exit_codes import DONE
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.outbox import HookMessage
from streammetrics_consumers.ledger.sent_hooks import SentHooks
from streammetrics_consumers.ledger.store_view import view
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.hook_answers import hooks_answer
from streammetrics_consumers.render.store_text import hooks_text
from streammetrics_consumers.render.style import Style

ACTIONS: Final = ("list", "release", "drop")


def hooks_command(arguments: Arguments, now_ms: Callable[[], int]) -> int:
    """`hooks [list|release|drop] STORE`, and `hooks STORE --config CONFIG --dry-run`."""
    words = arguments.words
    action, store = ("list", words[0]) if len(words) == 1 else words[:2]
    if action not in ACTIONS or len(words) > 2:
        raise UsageError(
            f"hooks: expected [{'|'.join(ACTIONS)}] STORE, got {' '.join(words)!r}; name one store"
        )
    path = arguments.text("config")
    if arguments.is_on("dry-run") != (path is not None) or (path and action != "list"):
        raise UsageError(
            "hooks: expected --dry-run and --config CONFIG together, to list what would be sent, "
            "got one of them or another action; add the other, or leave both out"
        )
    logs.to_stderr("text")
    with closing(Ledger.open(store)) as ledger:
        if path is not None:
            _preview(ledger, path, now_ms())
        elif action != "list":
            _end_hold(ledger, action, now_ms())
        else:
            answer = view(ledger, hooks_answer)
            if arguments.is_on("json"):
                sys.stdout.flush()
                sys.stdout.buffer.write(dumps(answer))
            else:
                title = ledger.store.name
                sys.stdout.write(
                    hooks_text(answer.hooks, Style.from_stream(sys.stdout), title=title)
                )
    return DONE


def _preview(ledger: Ledger, path: str, now_ms: int) -> None:
    """Print each request that a look now would lead to, without its signature."""
    from streammetrics_consumers.process.experiment_looks import hook_preview

    hooks = load_config(path).hooks
    hosts = {hook.name: hook.host for hook in hooks}
    messages = hook_preview(ledger, hooks, now_ms)
    for message in messages:
        sys.stdout.write(_request(message, hosts[message.hook]))
    if not messages:
        sys.stdout.write("nothing would be sent\n")


def _request(message: HookMessage, host: str) -> str:
    body = message.body.decode("utf-8", "backslashreplace")
    return f"hook {message.hook} to {formatting.name(host, 100)}: {message.subject.event}\n{body}\n"


def _end_hold(ledger: Ledger, action: str, now_ms: int) -> None:
    ledger.store.require_current()
    is_released = action == "release"
    count = SentHooks(ledger.store).adopt(now_ms, "waiting" if is_released else "dropped")
    verb = "will be sent" if is_released else "will not be sent"
    events = "1 event" if count == 1 else f"{formatting.count(count)} events"
    sys.stdout.write(f"{events} {verb}; from now on this store sends its hooks\n")
