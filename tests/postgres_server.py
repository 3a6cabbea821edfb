"""A real PostgreSQL server for the tests, and stores in it.

Measured on 2 cores: 1.5 s from nothing to the first answer. What we met
on the way:

* PostgreSQL refuses to run as root, so root starts it as `postgres` or `nobody`.
* It listens on a unix socket in its folder alone: no port can be taken by somebody else, and the
  same address is there again after a restart. A socket's path has at most 107 bytes, so the folder
  lies in the temporary folder and not in pytest's.
* A server that outlives a killed test run would keep its memory, and its folder. It is tied to a
  pipe that this process holds: when it closes, for whatever reason, a watcher ends the server.
* The server's processes leave its process group, but they end when the first of them does.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
from sqlalchemy.engine import URL, make_url

from tests.patience import LIMIT_S

# No fsync: a test kills processes, never the machine.
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "max_wal_senders": "0",
    "wal_level": "minimal",
}

# Everybody is let in but `guarded`, who needs a password.
ACCESS = "local all guarded scram-sha-256\nlocal all all trust\n"

# The shell becomes the server (exec), so its pid and its exit code are the server's own.
TIED = 'exec 3<&0; (cat <&3 >/dev/null; kill -QUIT $$) & exec "$@" 3<&- </dev/null'


class Unavailable(Exception):
    """PostgreSQL cannot run here; the text says what is missing and how to get it."""


def program(name: str) -> str:
    """Where a program of the server is. Debian keeps them off the PATH."""
    executable = shutil.which(name)
    if executable is None:
        installed = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
        by_version = sorted(installed, key=lambda path: int(path.parts[-3]))
        executable = str(by_version[-1]) if by_version else None
    if executable is None:
        raise Unavailable(
            f"`{name}` is neither on the PATH nor below /usr/lib/postgresql; install PostgreSQL, "
            "or set STREAMMETRICS_POSTGRES=postgresql://... to use a running one"
        )
    return executable


def account() -> pwd.struct_passwd | None:
    """Whom the server runs as, where this process is root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise Unavailable("PostgreSQL does not run as root, and there is no user postgres or nobody")


class Postgres:
    """A running server: stores can be made in it, each in a schema of its own.

    A database for each would cost 0.5 s on a busy machine; a schema costs 20 ms.
    """

    def __init__(self, url: URL) -> None:
        self.url = url

    def execute(self, statement: str, store: str | None = None) -> None:
        """Run statements outside of a transaction; in a store, if its URL is given."""
        text = store or self.url.render_as_string(hide_password=False)
        with psycopg.connect(text, autocommit=True) as connection:
            connection.execute(statement.encode())

    def new_store(self) -> str:
        """The URL of a store that nobody has used."""
        name = f"streammetrics_{uuid.uuid4().hex[:16]}"
        self.execute(f"CREATE SCHEMA {name}")
        url = self.url.update_query_dict({"options": f"-csearch_path={name}"})
        return url.render_as_string(hide_password=False)

    def drop(self, url: str) -> None:
        """Drop a store."""
        option = str(make_url(url).query["options"])
        self.execute(f"DROP SCHEMA {option.removeprefix('-csearch_path=')} CASCADE")


class Server(Postgres):
    """A server of our own: its folder and its process. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            URL.create(
                "postgresql",
                username="postgres",
                database="postgres",
                query={"host": str(folder)},
            )
        )
        self.folder, self.log = folder, folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._account = account()
        if self._account is not None:
            os.chown(folder, self._account.pw_uid, self._account.pw_gid)
        command = [program("initdb"), "-D", str(folder / "data"), "-U", "postgres"]
        command += ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        process = self._popen(command, stdin=subprocess.DEVNULL)
        if process.wait() != 0:
            raise Unavailable(f"initdb failed:\n{self._log_tail()}")
        (folder / "data" / "pg_hba.conf").write_text(ACCESS, encoding="utf-8")

    def _popen(self, command: list[str], stdin: int) -> subprocess.Popen[bytes]:
        whose = self._account
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=stdin,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=None if whose is None else whose.pw_uid,
                group=None if whose is None else whose.pw_gid,
                extra_groups=None if whose is None else [],
            )

    def _log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def start(self) -> Server:
        """Start the server, on the same folder each time, and wait until it answers."""
        command = [program("postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder)]
        for name, value in SETTINGS.items():
            command += ["-c", f"{name}={value}"]
        self._process = self._popen(["sh", "-c", TIED, "sh", *command], stdin=subprocess.PIPE)
        limit = time.monotonic() + LIMIT_S
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                self.execute("SELECT 1")
                return self
            if self._process.poll() is not None or time.monotonic() > limit:
                self.kill()
                raise Unavailable(
                    f"PostgreSQL did not start; the end of its log:\n{self._log_tail()}"
                )
            time.sleep(0.02)

    def stop(self) -> None:
        """End it in good order: everybody is thrown out, and what is under way is undone."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End it as a crash would: no transaction is finished, nothing is written down."""
        self._end(signal.SIGQUIT)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            try:
                process.wait(LIMIT_S)  # by force, its children would stay for a moment
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdin is not None
            process.stdin.close()

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()


@contextlib.contextmanager
def running_postgres() -> Iterator[Postgres]:
    """The server of STREAMMETRICS_POSTGRES, or one that lives as long as the block.

    Raises `Unavailable` when neither is to be had.
    """
    address = os.environ.get("STREAMMETRICS_POSTGRES")
    if address:
        database = Postgres(make_url(address).set(drivername="postgresql"))
        try:
            database.execute("SELECT 1")
        except psycopg.Error as error:
            raise Unavailable(f"STREAMMETRICS_POSTGRES: {error}") from None
        yield database
        return
    with (
        tempfile.TemporaryDirectory(prefix="streammetrics-postgres-") as folder,
        Server(Path(folder)) as server,
    ):
        yield server
