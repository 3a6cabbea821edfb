"""What was sent from a store, remembered outside of it: a restored store must send nothing twice.

A store that is restored from a backup has forgotten what it sent after the backup. Looks that are
taken again see other events and have other contents, so nothing in the store tells what a receiver
already knows. Each store has a home, which it notes and which is not restored with it:

- SQLite: a file beside the store, `hooks-of-NAME.jsonl`. Before an event is sent for the first
  time, all of it is written there, and after its last attempt how that ended. A store that went
  back gets its events from there again, with their contents and keys.
- PostgreSQL: the cluster, the numbers of the database and of the table, and the timeline.
  `pg_restore` makes other tables, and a restored or promoted server begins another timeline.

If the home is another one, or the file is gone, events that are not sent are held until somebody
releases or drops them; in PostgreSQL also while logs are incomplete. A copy of a store sends
nothing.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, cast

from sqlalchemy import Connection, insert, select, text, update

from streammetrics_consumers.ledger.failures import LedgerError, StoreUnavailable
from streammetrics_consumers.ledger.outbox import HookMessage, HookRow, change_state, restore
from streammetrics_consumers.ledger.schema import head, meta, take_turn
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.ledger.store_file import PATH
from streammetrics_consumers.model.hook_events import EVENTS, STATES, HookState, HookSubject

HOME: Final = "hook_home"  # its key in `meta`
MAX_LINE: Final = 1 << 20  # bytes; a longer one is not ours
_IDENTITY: Final = """\
SELECT (SELECT system_identifier FROM pg_control_system()) || '/'
|| (SELECT oid FROM pg_database WHERE datname = current_database()) || '/'
|| 'hook'::regclass::oid || '/'
|| substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"""


class SentHooks:
    """The memory of what a store has sent. Thread-safe as far as different rows go."""

    def __init__(self, store: Store) -> None:
        path = store.engine.get_execution_options().get(PATH)
        self._store = store
        self._path = None if path is None else _file_of(Path(str(path)))

    def begin(self, now_ms: int) -> str | None:
        """Have the store and its home agree, before anything is sent: the events that the store
        forgot are restored. Returns why the rest is held; None where it may be sent."""
        identity = self._identity() if self._path is None else None

        def work(connection: Connection, _: bool) -> str | None:
            take_turn(connection)
            known_home = connection.scalar(select(meta.c.value).where(meta.c.key == HOME))
            # Only now: who adopts the store writes another home to the file before it waits.
            homes = self._file_homes() if identity is None else [identity]
            why = self._why_held(connection, known_home, homes)
            if why is not None:
                change_state(connection, ["waiting"], "held", now_ms)
                return why
            if known_home is None:
                _set_home(connection, homes[-1] if homes else self._new_home())
            for message, state, answer in self._sent():
                restore(connection, message, state, answer)
            return None

        return self._store.write(work)

    def adopt(self, now_ms: int, after: Literal["waiting", "dropped"]) -> int:
        """Make this the home of the store, and have the events that are held or have failed wait
        again, or drop them and those that wait; returns how many."""
        home = self._identity() if self._path is None else self._new_home()

        def work(connection: Connection, _: bool) -> int:
            take_turn(connection)
            _set_home(connection, home)
            before: list[HookState] = ["held", "failed"]
            before += ["waiting"] if after == "dropped" else []
            return change_state(connection, before, after, now_ms)

        return self._store.write(work)

    def attempts(self, row: HookRow) -> None:
        """Remember an event before its first attempt. Raises OSError."""
        message, subject = row.message, row.message.subject
        if row.attempts > 1 and any(
            entry.key == message.key and entry.hook == message.hook for entry, _, _ in self._sent()
        ):
            return
        values = {
            "hook": message.hook,
            "key": message.key,
            "generation": subject.generation,
            "experiment": subject.experiment,
            "event": subject.event,
            "metric": subject.metric,
            "arm": subject.arm,
            "episode": subject.episode,
            "name": message.name,
            "created_ms": message.created_ms,
            "body": base64.b64encode(message.body).decode(),
        }
        self._append(values)

    def ended(self, row: HookRow, state: HookState, answer: str) -> None:
        """Remember how the last attempt at an event ended. Raises OSError."""
        message = row.message
        self._append({"hook": message.hook, "key": message.key, "state": state, "answer": answer})

    # -- the file beside a SQLite store -------------------------------------------------------
    def _append(self, values: dict[str, object]) -> None:
        if self._path is None:
            return
        line = json.dumps({"store": self._store.id, **values}, ensure_ascii=True) + "\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            # A line that was cut by a crash must not take the next one with it.
            os.write(descriptor, b"\n" * (not _ends_a_line(self._path)) + line.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _lines(self) -> Iterator[dict[str, object]]:
        if self._path is None or not self._path.exists():
            return
        with self._path.open("rb") as file:
            for line in iter(lambda: file.readline(MAX_LINE), b""):
                try:
                    values = json.loads(line)
                except ValueError:
                    continue  # it was cut
                if isinstance(values, dict) and values.get("store") == self._store.id:
                    yield values

    def _file_homes(self) -> list[str]:
        """The homes of the store that its file has, the newest last."""
        return [str(values["home"]) for values in self._lines() if "home" in values]

    def _sent(self) -> list[tuple[HookMessage, HookState, str]]:
        """What was sent, or tried, as the file has it."""
        messages: dict[tuple[str, str], HookMessage] = {}
        ends: dict[tuple[str, str], tuple[HookState, str]] = {}
        for values in self._lines():
            where = str(values.get("hook")), str(values.get("key"))
            if "body" in values:
                message = _message(values)
                if message is not None:
                    messages[where] = message
            elif values.get("state") in STATES:
                ends[where] = cast("HookState", values["state"]), str(values.get("answer", ""))
        return [(message, *ends.get(where, ("waiting", ""))) for where, message in messages.items()]

    def _new_home(self) -> str:
        home = secrets.token_hex(16)
        self._append({"home": home})
        return home

    # -- PostgreSQL ---------------------------------------------------------------------------
    def _identity(self) -> str:
        try:
            return str(self._store.read(lambda connection: connection.scalar(text(_IDENTITY))))
        except StoreUnavailable:
            raise
        except LedgerError:
            return "unknown"  # to this user

    def _why_held(
        self, connection: Connection, known_home: str | None, homes: Sequence[str]
    ) -> str | None:
        if known_home is not None and known_home not in homes:
            if self._path is not None and not homes:
                return f"the file of what was sent, {self._path.name}, is gone"
            return "the store is not where it was when it last sent something"
        went_back = select(head.c.id).where(
            head.c.known_offset > head.c.next_offset, ~head.c.closed
        )
        if self._path is None and connection.scalar(went_back) is not None:
            return "the store went back, and has not counted again what it lost"
        return None


def _set_home(connection: Connection, home: str) -> None:
    changed = connection.execute(update(meta).where(meta.c.key == HOME).values(value=home))
    if not changed.rowcount:
        connection.execute(insert(meta).values(key=HOME, value=home))


def _file_of(store: Path) -> Path:
    """The file of a store. Its name does not begin with that of the store, so that who moves or
    copies the store's files leaves it where it is."""
    return store.with_name(f"hooks-of-{store.name}.jsonl")


def _message(values: dict[str, object]) -> HookMessage | None:
    """The message of a line; None if it is damaged."""
    texts = {
        name: values.get(name)
        for name in ("hook", "key", "experiment", "event", "metric", "arm", "episode", "name",
                     "body")
    }  # fmt: skip
    numbers = values.get("generation"), values.get("created_ms")
    is_good = all(isinstance(value, str) for value in texts.values()) and all(
        isinstance(number, int) for number in numbers
    )
    if not is_good or texts["event"] not in EVENTS:
        return None
    generation, created_ms = cast("tuple[int, int]", numbers)
    plain = cast("dict[str, str]", texts)
    subject = HookSubject(
        generation,
        plain["experiment"],
        plain["event"],  # type: ignore[arg-type]
        plain["metric"],
        plain["arm"],
        plain["episode"],
    )
    try:
        body = base64.b64decode(plain["body"], validate=True)
    except ValueError:
        return None
    return HookMessage(plain["hook"], subject, plain["name"], plain["key"], body, created_ms)


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
