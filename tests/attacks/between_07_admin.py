"""Admin ports answer while others hold their places, and to no page under somebody else's name.

Also of this number: a reply to HEAD through a guard has the upstream's length, and a protocol error
where CLIENT REPLY says that nothing is to be answered.
"""

import contextlib
import pathlib
import socket
import sys
import threading

from node import PATIENCE, Node, prove, servers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "gateway"))
import harness  # noqa: E402

PAY = '\n[[route]]\nname = "pay"\npath = "/pay/**"\nguard = "idempotency-key"\n'
ANY = PAY + 'fingerprint = ["path"]\n'


@contextlib.contextmanager
def served(program, routes=PAY, settings="threads = 1\n", flags=()):
    upstream = harness.Upstream()
    with harness.new_directory() as directory:
        gateway = harness.Gateway(program, upstream.port, routes, directory, flags, settings)
        try:
            yield gateway
        finally:
            gateway.end()
            upstream.stop()


def asked(port, path, host="127.0.0.1"):
    """Status and bytes of the answer; 0: there was none."""
    lines = f"GET {path} HTTP/1.1\r\n" + (f"Host: {host}\r\n" if host else "") + "Connection: close"
    with contextlib.suppress(OSError):
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as plug:
            plug.sendall((lines + "\r\n\r\n").encode())
            answer = plug.makefile("rb").read()
            return (int(answer.split(b" ")[1]) if answer else 0), answer
    return 0, b""


def hold(port, sent, ended):
    """Takes a place again as soon as it is lost."""
    while not ended.is_set():
        with contextlib.suppress(OSError):
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as plug:
                plug.sendall(sent)
                plug.settimeout(0.2)
                while not ended.is_set():
                    try:
                        if not plug.recv(4096):
                            break
                    except TimeoutError:
                        pass


def is_answered_while_held(port):
    for sent in (b"", b"GET /livez HTTP/1.1\r\nX: "):
        ended = threading.Event()
        holders = [threading.Thread(target=hold, args=(port, sent, ended)) for _ in range(24)]
        for holder in holders:
            holder.start()
        try:
            for _ in range(8):
                assert asked(port, "/livez")[0] == 200, sent
        finally:
            ended.set()
            for holder in holders:
                holder.join()


def names_of_others_get_nothing(port, name):
    for host in ("evil.example", f"evil.example:{port}", "localhost.evil.example", "", "[::1",
                 "127.0.0.1.evil.example"):
        assert asked(port, "/metrics", host)[0] == 403, host
        assert asked(port, "/livez", host)[0] == 200, host  # a load balancer has its own names
    for host in ("127.0.0.1", f"127.0.0.1:{port}", "localhost", f"LocalHost:{port}", "[::1]",
                 name, f"{name}:{port}"):
        status, text = asked(port, "/metrics", host)
        assert status == 200 and b"# TYPE" in text, host


def ports_answer_while_places_are_held(program):
    with served(program) as gateway, Node(program, "--admin-port", "0") as node:
        for port in (gateway.admin_port, int(node.facts["admin_port"])):
            is_answered_while_held(port)


def metrics_are_for_names_of_this_port(program):
    name = "scrape.internal"
    settings = f'threads = 1\nadmin-hosts = ["{name}"]\n'
    with served(program, settings=settings) as gateway:
        names_of_others_get_nothing(gateway.admin_port, name)
        reply = gateway.admin("POST", "/resolve?route=pay&as=done&key=k",
                              {"Host": "evil.example", "Semel-Admin": "yes"})
        assert reply.status == 403
    with Node(program, "--admin-port", "0", "--admin-hosts", name) as node:
        port = int(node.facts["admin_port"])
        names_of_others_get_nothing(port, name)
        assert asked(port, "/metrics", "10.1.2.3")[0] == 200  # an address is nobody's name
    for wrong in ("a:1", "http://a"):
        with Node(program, "--admin-port", "0", "--admin-hosts", wrong, ready=False) as node:
            assert node.wait() != 0
            assert wrong in node.log(), node.log()


def head_has_the_length(program):
    with served(program, ANY) as gateway:
        lengths = []
        for _ in range(2):
            reply = gateway.request("HEAD", "/pay?bytes=4711", key="head")
            lengths.append((reply.status, reply.fields.get("content-length"), reply.is_replay))
        assert lengths == [(200, ["4711"], False), (200, ["4711"], True)], lengths
        got = gateway.request("GET", "/pay?bytes=4711", key="head")
        assert (got.fields["content-length"], got.body) == (["0"], b""), got.fields  # as recorded
        gateway.request("GET", "/pay?bytes=9", key="get")
        reply = gateway.request("HEAD", "/pay?bytes=9", key="get")
        assert (reply.fields["content-length"], reply.is_replay) == (["9"], True)
        with harness.Client(gateway.port) as client:  # the connection is in step afterwards
            for method in ("HEAD", "GET", "HEAD"):
                reply = client.request(method, "/pay?bytes=9", key="get")
                assert reply.is_replay and reply.fields["content-length"] == ["9"]


BROKEN = (b"*1\r\n!4\r\nPING\r\n", b"*1\r\n$-5\r\n", b"*99999999999\r\n", b'SET "a\r\n',
          b"*1\r\n$99999999999\r\n")
OFF, ON, SKIP = (b"CLIENT REPLY %s\r\n" % word for word in (b"OFF", b"ON", b"SKIP"))
SILENT = (OFF, SKIP)
PREFIXES = (b"", *SILENT, SKIP + b"PING\r\n", OFF + ON)


def said(port, sent, is_closed):
    """All that is answered. A server that does not close by itself is told that this is all."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as plug:
        plug.sendall(sent)
        if not is_closed:
            plug.shutdown(socket.SHUT_WR)
        return plug.makefile("rb").read()


def protocol_errors_are_answered_as_by_redis(program):
    with Node(program) as node:
        found = {(prefix, broken): said(node.port, prefix + broken, True)
                 for prefix in PREFIXES for broken in BROKEN}
    for (prefix, broken), answer in found.items():
        is_told = b"-ERR Protocol error" in answer
        assert is_told == (prefix not in SILENT), (prefix, broken, answer)
    with contextlib.suppress(servers.NoPeer), servers.Redis() as redis:
        for (prefix, broken), answer in found.items():
            assert said(redis.port, prefix + broken, False) == answer, (prefix, broken)


def test(program):
    for part in (ports_answer_while_places_are_held, metrics_are_for_names_of_this_port,
                 head_has_the_length, protocol_errors_are_answered_as_by_redis):
        print(part.__name__, flush=True)
        part(program)


prove(7, "admin ports answer, and only to whom they are for", test)
