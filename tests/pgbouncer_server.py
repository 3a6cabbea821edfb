"""A real PgBouncer in transaction mode, in front of the PostgreSQL server of the tests.

It has fewer connections to the server than the tests have clients, so each transaction may come to
another connection, and what one leaves behind there meets the next. Like PostgreSQL it refuses to
run as root, listens on a unix socket in its folder alone, and ends with this process: see
`postgres_server`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
from sqlalchemy.engine import URL

from tests.patience import LIMIT_S
from tests.postgres_server import TIED, Postgres, Unavailable, account

CONNECTIONS = 2  # to the server, for each database
CONFIG = """\
[databases]
* = {server}
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
logfile = {folder}/pgbouncer.log
"""


def program() -> str:
    """Where it is. Debian keeps it off the PATH of users."""
    path = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if path is None:
        raise Unavailable("`pgbouncer` is not on the PATH")
    return path


class PgBouncer:
    """A running pooler. A database of its own for each store: a schema is chosen by a setting of
    the connection, which a pooler in transaction mode refuses."""

    def __init__(self, server: Postgres, folder: Path) -> None:
        self.server, self.folder = server, folder

    def url(self, database: str) -> str:
        """The URL of a database behind it."""
        address = URL.create(
            "postgresql",
            username=self.server.url.username,
            database=database,
            query={"host": str(self.folder), "port": "6432"},
        )
        return address.render_as_string(hide_password=False)

    @contextlib.contextmanager
    def new_store(self) -> Iterator[str]:
        """The URL of a store that nobody has used, for the time of the block."""
        name = f"pooled_{uuid.uuid4().hex[:16]}"
        self.server.execute(f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            self.server.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def ask(self, url: str, question: str) -> list[object]:
        """What each of its connections to the server answers, by clients that hold all at once."""
        with contextlib.ExitStack() as stack:
            answers = []
            for _ in range(CONNECTIONS):
                client = stack.enter_context(psycopg.connect(url, prepare_threshold=None))
                row = client.execute(question.encode()).fetchone()
                answers.append(row[0] if row else None)
            return answers


@contextlib.contextmanager
def running_pgbouncer(server: Postgres) -> Iterator[PgBouncer]:
    """A pooler before this server. Raises `Unavailable` where there is none."""
    path, whose, server_url = program(), account(), server.url
    host = server_url.query.get("host", server_url.host or "127.0.0.1")
    conninfo = f"host={host} user={server_url.username}"
    conninfo += f" port={server_url.port}" if server_url.port else ""
    conninfo += f" password={server_url.password}" if server_url.password else ""
    with tempfile.TemporaryDirectory(prefix="streammetrics-pgbouncer-") as text:
        folder = Path(text)
        config = folder / "pgbouncer.ini"
        config.write_text(CONFIG.format(server=conninfo, folder=folder, connections=CONNECTIONS))
        if whose is not None:
            os.chown(folder, whose.pw_uid, whose.pw_gid)
        process = subprocess.Popen(
            ["sh", "-c", TIED, "sh", path, str(config)],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            user=None if whose is None else whose.pw_uid,
            group=None if whose is None else whose.pw_gid,
            extra_groups=None if whose is None else [],
        )
        pooler = PgBouncer(server, folder)
        try:
            limit = time.monotonic() + LIMIT_S
            while True:
                with contextlib.suppress(psycopg.OperationalError):
                    pooler.ask(pooler.url(str(server_url.database)), "SELECT 1")
                    break
                if process.poll() is not None or time.monotonic() > limit:
                    log = folder / "pgbouncer.log"
                    why = log.read_text(errors="replace")[-2000:] if log.exists() else "no log"
                    raise Unavailable(f"PgBouncer did not start: {why}")
                time.sleep(0.02)
            yield pooler
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdin is not None
            process.stdin.close()
