"""How many connections stay open: whoever sends nothing closes their own, and nobody's answer."""

from __future__ import annotations

import random
import resource
from collections import Counter
from dataclasses import dataclass

import pytest
from streammetrics_consumers.server.connections import RESERVED, Limits, OpenConnections


@dataclass(eq=False)
class Connection:
    peer: str
    dropped: bool = False

    def drop(self) -> None:
        self.dropped = True


def opened(connections: OpenConnections, peer: str, count: int) -> list[Connection]:
    new_connections = [Connection(peer) for _ in range(count)]
    for connection in new_connections:
        connections.opened(connection)
    return new_connections


def test_one_more_of_a_peer_closes_the_one_of_it_that_has_waited_longest() -> None:
    connections = OpenConnections(Limits(per_peer=10, in_all=100), lambda: 0.0)
    bystander = opened(connections, "b", 1)[0]
    a_connections = opened(connections, "a", 10)
    answered = a_connections[0]
    assert connections.begins(answered)
    connections.ends(answered)  # it waits again, since now
    opened(connections, "a", 1)
    assert [connection.dropped for connection in a_connections] == [False, True, *[False] * 8]
    assert not bystander.dropped


def test_past_the_limit_in_all_the_one_that_has_waited_longest_is_closed() -> None:
    connections = OpenConnections(Limits(per_peer=10, in_all=40), lambda: 0.0)
    all_connections = [opened(connections, f"peer {i}", 1)[0] for i in range(41)]
    assert [connection.dropped for connection in all_connections] == [True, *[False] * 40]


def test_an_answer_is_never_cut_off_and_requests_past_the_limit_are_refused() -> None:
    connections = OpenConnections(Limits(per_peer=10, in_all=15), lambda: 0.0)
    busy = opened(connections, "a", 10)
    assert all(connections.begins(connection) for connection in busy)
    late = opened(connections, "a", RESERVED[0] + 1)
    assert [connection.dropped for connection in late] == [True, *[False] * RESERVED[0]]
    assert not connections.begins(late[-1])
    assert not any(connection.dropped for connection in busy)
    b_connections = opened(connections, "b", 6)
    assert [connections.begins(connection) for connection in b_connections] == [True] * 5 + [False]
    connections.lost(busy[0], busy=True)
    assert connections.begins(late[-1])


def test_a_probe_that_is_being_answered_is_not_closed_however_many_others_wait() -> None:
    connections = OpenConnections(Limits(per_peer=10, in_all=100), lambda: 0.0)
    probes = opened(connections, "a", RESERVED[0] + 1)
    for probe in probes:
        connections.begins_probe(probe)
    idle = opened(connections, "a", 30)
    # Those past the reserved ones wait like the others: probes are no way around the limit.
    assert [connection.dropped for connection in probes] == [False] * RESERVED[0] + [True]
    assert sum(not connection.dropped for connection in idle) == 10
    connections.ends_probe(probes[0])
    opened(connections, "a", 10)
    assert [connection.dropped for connection in probes[:2]] == [True, False]
    for probe in probes[1:]:
        connections.lost(probe, busy=False)
    newcomer = opened(connections, "a", 1)[0]
    connections.begins_probe(newcomer)
    opened(connections, "a", 10)
    assert not newcomer.dropped


def test_whatever_peers_do_no_limit_is_passed() -> None:
    draw = random.Random(7)
    limits = Limits(per_peer=9, in_all=40)
    connections = OpenConnections(limits, lambda: 0.0)
    waiting: list[Connection] = []
    busy: list[Connection] = []
    for _ in range(4000):
        act = draw.choice(["open", "open", "begin", "end", "lose"])
        if act == "open":
            waiting += opened(connections, draw.choice("abcdefgh"), 1)
        elif act == "begin" and waiting:
            connection = draw.choice(waiting)
            if connections.begins(connection):
                waiting.remove(connection)
                busy.append(connection)
        elif act == "end" and busy:
            connection = busy.pop(draw.randrange(len(busy)))
            connections.ends(connection)
            waiting.append(connection)
        elif act == "lose" and busy + waiting:
            connection = draw.choice(busy + waiting)
            connections.lost(connection, busy=connection in busy)
            (busy if connection in busy else waiting).remove(connection)
        waiting = [member for member in waiting if not member.dropped]
        assert not any(member.dropped for member in busy)
        assert len(busy) <= limits.in_all
        assert len(waiting) <= max(limits.in_all - len(busy), RESERVED[1])
        busy_by_peer = Counter(member.peer for member in busy)
        assert max(busy_by_peer.values(), default=0) <= limits.per_peer
        for peer, count in Counter(member.peer for member in waiting).items():
            assert count <= max(limits.per_peer - busy_by_peer[peer], RESERVED[0])


def test_it_is_said_once_a_minute_with_the_setting(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    connections = OpenConnections(Limits(per_peer=8), lambda: now[0])
    opened(connections, "10.0.0.7", 20)
    now[0] = 61.0
    opened(connections, "10.0.0.7", 20)
    assert len(caplog.messages) == 2
    assert caplog.messages[0].startswith("10.0.0.7 has too many connections (at most 8 from one")
    assert caplog.messages[0].endswith("raise server.connections_per_peer")


def test_connections_leave_half_of_the_files_to_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (200, 4096))
    assert Limits.from_peers(64) == Limits(64, 100)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY,) * 2)
    assert (Limits.from_peers(64).in_all, Limits.from_peers(500).in_all) == (256, 1000)
