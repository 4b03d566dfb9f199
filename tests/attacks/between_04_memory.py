"""What requests hold in the gateway is counted once, shared, and bounded in bytes and in time."""

import contextlib
import pathlib
import socket
import sys
import threading

from node import prove, until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "gateway"))
import harness  # noqa: E402

MIB = 1 << 20
BUDGET = 64 * MIB
REPLY = 8 * MIB  # more than what the system takes of a reply for a client that does not read
READERS = 40
ROUTES = """
[[route]]
name = "pay"
path = "/pay/**"
guard = "idempotency-key"
wait = "15s"
body-bytes = "4mb"
record-bytes = "16mb"
"""
SETTINGS = f"threads = 2\nbody-memory = {BUDGET}\n"
HELD = "semel_gateway_memory_held_bytes"
BIG = f"/pay?do=big&bytes={REPLY}"


@contextlib.contextmanager
def served(program, settings=SETTINGS):
    upstream = harness.Upstream()
    with harness.new_directory() as directory:
        gateway = harness.Gateway(program, upstream.port, ROUTES, directory, settings=settings)
        try:
            yield gateway, upstream
        finally:
            gateway.end()
            upstream.stop()


@contextlib.contextmanager
def readers(gateway, requests):
    """Clients with small buffers that send and do not read."""
    plugs = []
    try:
        for request in requests:
            plugs.append(socket.socket())
            plugs[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            plugs[-1].connect(("127.0.0.1", gateway.port))
            plugs[-1].sendall(request)
        yield plugs
    finally:
        for plug in plugs:
            plug.close()


def status_of(plug):
    plug.settimeout(harness.WITHIN)
    return int(plug.recv(12).split(b" ")[1])


def wait_for_nothing_held(gateway):
    until(lambda: gateway.metric(HELD) == 0, "all memory given back")


def grown(gateway, base):
    return (gateway.rss() - base) / MIB


def replays_of_one_key_are_held_once(program):
    with served(program) as (gateway, _):
        for _ in range(3):
            assert len(gateway.request(target=BIG, key="one").body) == REPLY
        base = gateway.rss()
        with readers(gateway, [harness.message(target=BIG, key="one")] * READERS) as plugs:
            assert {status_of(plug) for plug in plugs} == {201}
            assert grown(gateway, base) < 100, grown(gateway, base)
            held = gateway.metric(HELD)
            assert REPLY <= held < 2 * REPLY, held
        wait_for_nothing_held(gateway)


def replays_of_many_keys_have_a_budget(program):
    keys = [f"k{i}" for i in range(20)]
    with served(program) as (gateway, _):
        for key in keys:
            gateway.request(target=BIG, key=key)
        assert gateway.request(target=BIG, key=keys[0]).is_replay
        base = gateway.rss()
        with readers(gateway, [harness.message(target=BIG, key=key) for key in keys]) as plugs:
            found = [status_of(plug) for plug in plugs]
            assert 4 <= found.count(201) <= BUDGET // REPLY, found
            assert found.count(503) == len(keys) - found.count(201), found
            refused = plugs[found.index(503)].recv(4096)
            assert b"Retry-After: 1\r\n" in refused and b"gateway-busy" in refused, refused
            assert gateway.metric(HELD) <= BUDGET
            assert grown(gateway, base) < 100, grown(gateway, base)
        wait_for_nothing_held(gateway)
        assert gateway.request(target=BIG, key=keys[-1]).is_replay


def who_waits_shares_the_reply(program):
    with served(program) as (gateway, upstream):
        target = f"/pay?do=hold&name=h&bytes={REPLY}"
        with harness.Client(gateway.port) as first:
            first.send(harness.message(target=target, key="w"))
            assert upstream.arrived["h"].wait(harness.WITHIN)
            again = harness.message(target=target, key="w")
            with readers(gateway, [again] * 20) as plugs:
                until(lambda: gateway.metric("semel_gateway_requests_open") > 20, "waiters")
                base = gateway.rss()
                upstream.release("h")
                assert first.receive().status == 201
                assert {status_of(plug) for plug in plugs} == {201}
                assert gateway.metric(HELD) < 3 * REPLY
                assert grown(gateway, base) < 100, grown(gateway, base)
        assert sum(upstream.effects.values()) == 1
        wait_for_nothing_held(gateway)


def bodies_are_held_once(program):
    with served(program) as (gateway, upstream):
        gateway.request(target="/pay", body=b"x", key="warm")
        base = gateway.rss()
        statuses = []

        def send(number):
            with harness.Client(gateway.port) as client:
                with contextlib.suppress(OSError):  # a refusal may come before the end of the body
                    client.send(harness.message(target="/pay?do=hold&name=b&code=204",
                                                body=b"y" * (4 * MIB), key=f"b{number}"))
                statuses.append(client.receive().status)

        threads = [threading.Thread(target=send, args=(i,)) for i in range(24)]
        for thread in threads:
            thread.start()
        try:
            until(lambda: len(upstream.requests) + statuses.count(503) > 24, "requests under way")
            assert gateway.metric(HELD) <= BUDGET
            assert grown(gateway, base) < 100, grown(gateway, base)
        finally:
            upstream.release("b")
            for thread in threads:
                thread.join()
        assert set(statuses) <= {204, 503}, statuses
        wait_for_nothing_held(gateway)


def heads_are_counted(program):
    settings = SETTINGS + 'head-bytes = "256kb"\nhead-timeout = "20s"\n'
    with served(program, settings) as (gateway, _):
        start = b"GET /a HTTP/1.1\r\nHost: a\r\n"
        large = start + b"".join(b"X-%d: %s\r\n" % (i, b"x" * 8000) for i in range(31))
        base = gateway.rss()
        with readers(gateway, [large] * 200) as plugs:
            until(lambda: gateway.metric(HELD) > BUDGET // 2, "large heads")
            assert gateway.metric(HELD) <= BUDGET
            assert grown(gateway, base) < 120, grown(gateway, base)
            for plug in plugs:
                plug.close()
        wait_for_nothing_held(gateway)
        assert gateway.request("GET", "/a").status == 200


def who_does_not_read_is_ended(program):
    """Also one that reads a little: what is without end is not the progress, it is the time."""
    with served(program, SETTINGS + 'transfer-timeout = "1s"\n') as (gateway, _):
        gateway.request(target=BIG, key="slow")
        with readers(gateway, [harness.message(target=BIG, key="slow")]) as plugs:
            assert status_of(plugs[0]) == 201
            until(lambda: gateway.metric("semel_gateway_requests_open") == 0, "the reader's end")
            wait_for_nothing_held(gateway)
        with harness.Client(gateway.port) as client:
            # A byte now and then is progress; the whole has an end all the same.
            client.send(harness.message(body=b"z" * 1000, key="drip")[:-990])
            ended = threading.Event()

            def drip():
                with contextlib.suppress(OSError):
                    while not ended.wait(0.1):
                        client.send(b"z")

            dripping = threading.Thread(target=drip)
            dripping.start()
            try:
                with contextlib.suppress(ConnectionError):
                    assert client.receive() is None
            finally:
                ended.set()
                dripping.join()
            series = 'semel_gateway_requests_total{route="pay",outcome="request_timeout"}'
            assert gateway.wait_for_metric(series, 1) == 1


def test(program):
    for part in (replays_of_one_key_are_held_once, replays_of_many_keys_have_a_budget,
                 who_waits_shares_the_reply, bodies_are_held_once, heads_are_counted,
                 who_does_not_read_is_ended):
        print(part.__name__, flush=True)
        part(program)


prove(4, "memory of requests is counted once and bounded", test)
