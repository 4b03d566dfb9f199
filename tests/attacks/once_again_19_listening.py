"""bind and port change while the node runs: connections stay, and a failure changes nothing."""

import socket

from node import TEXTS, Client, Node, prove, servers, until


def refused(port, host="127.0.0.1"):
    try:
        socket.create_connection((host, port), timeout=2).close()
    except ConnectionRefusedError:
        return True
    return False


def change_port(node, client):
    before = node.port
    wanted = servers.free_ports(1)[0]
    assert client("CONFIG", "SET", "port", str(wanted)) == "OK"
    assert client("PING") == "PONG", "the connection must stay"
    assert node.client(port=wanted)("PING") == "PONG"
    until(lambda: refused(before), "the old port to be closed")
    assert f"tcp_port:{wanted}" in client("INFO", "server").decode()
    until(lambda: f"port={wanted}\n" in node.ready.read_text(), "the ready file")
    return wanted


def taken_port(client, now):
    with socket.socket() as plug:
        plug.bind(("127.0.0.1", 0))
        plug.listen()
        taken = plug.getsockname()[1]
        answer = client("CONFIG", "SET", "port", str(taken))
        assert "Address already in use" in answer and str(taken) in answer, answer
    assert client("CONFIG", "GET", "port")[1] == str(now).encode()
    assert not refused(now), "the old port must still be served"


def change_bind(node, client, port):
    answer = client("CONFIG", "SET", "bind", "192.0.2.1")
    assert "192.0.2.1" in answer, answer
    assert client("CONFIG", "GET", "bind")[1] == b"127.0.0.1 127.0.0.2"
    assert not refused(port), "the old address must still be served"
    # Open to everybody, without a password: refused as at the start.
    answer = client("CONFIG", "SET", "bind", "0.0.0.0")
    assert "requirepass" in answer, answer
    assert client("CONFIG", "SET", "bind", "127.0.0.2") == "OK"
    assert client("PING") == "PONG"
    until(lambda: refused(port), "the old address to be closed")
    assert node.client(host="127.0.0.2", port=port)("PING") == "PONG"
    # From one address of a port to all of it: the one gives way.
    assert client("CONFIG", "SET", "protected-mode", "no") == "OK"
    assert client("CONFIG", "SET", "bind", "0.0.0.0") == "OK"
    assert client("PING") == "PONG"
    assert node.client(port=port)("PING") == "PONG"
    # All or nothing: the port is taken back with the name that fails.
    answer = client("CONFIG", "SET", "port", str(servers.free_ports(1)[0]), "bind", "192.0.2.1")
    assert "192.0.2.1" in answer, answer
    assert node.client(port=port)("PING") == "PONG"


def test(program):
    with Node(program, "--bind", "127.0.0.1 127.0.0.2") as node:
        client = node.client()
        port = change_port(node, client)
        taken_port(client, port)
        change_bind(node, client, port)
        assert "nothing to listen on" in client("CONFIG", "SET", "port", "-1")
        assert node.stop() == 0
    with Node(program, "--unix-socket", "{dir}/s") as node:
        client = Client(node.facts["unix"], form=TEXTS)
        assert client("CONFIG", "SET", "port", "-1") == "OK"
        until(lambda: refused(node.port), "the port to be closed")
        assert client("CONFIG", "SET", "port", "0") == "OK"
        assert Client(node.facts["unix"], form=TEXTS)("PING") == "PONG"
    memory(program)
    databases(program)


def memory(program):
    """Raised beyond the start's limit, lowered below what is held."""
    with Node(program, "--maxmemory", "8mb") as node:
        client = node.client()
        held = 0
        while client("SET", f"k{held}", b"v" * 10_000) == "OK":
            held += 1
        assert held > 100
        assert client("CONFIG", "SET", "maxmemory", "16mb") == "OK"
        for i in range(held, 2 * held):
            assert client("SET", f"k{i}", b"v" * 10_000) == "OK", i
        assert client("CONFIG", "SET", "maxmemory", "8mb") == "OK"
        assert "OOM" in client("SET", "new", "v")
        assert client("GET", "k0") == b"v" * 10_000
        client("FLUSHALL")
        until(lambda: client("SET", "new", "v") == "OK", "room for a new key")


def databases(program):
    with Node(program, "--databases", "1") as node:
        client = node.client()
        assert client("SELECT", "0") == "OK"
        assert "out of range" in client("SELECT", "1")


prove(19, "bind, port, maxmemory and databases are what was asked for", test)
