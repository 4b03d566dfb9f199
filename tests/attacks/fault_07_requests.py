"""Requests that are not whole, and values that cannot be stored, leave a node's size bounded."""

from node import ErrorReply, Node, prove, until

MIB = 1 << 20
LIMIT = 48 * MIB
SLACK = 16 * MIB + LIMIT // 10


def half(client, size, part):
    """The head of a SET of `size` bytes and the first `part` of them; the node may hang up."""
    try:
        client.raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % size)
        client.raw(b"x" * part)
    except (ConnectionError, TimeoutError):
        pass


def field(client, section, name):
    lines = client("INFO", section).decode().splitlines()
    return int(dict(line.split(":", 1) for line in lines if ":" in line)[name])


def test(program):
    with Node(program, "--maxmemory", "64mb", "--maxmemory-clients", "48mb",
              "--io-threads", "2") as node:
        admin = node.client()
        before = node.rss()

        # What can never be stored is not kept at all.
        clients = [node.client() for _ in range(4)]
        for each in clients:
            half(each, 300_000_000, 100_000_000)
        grown = node.rss() - before
        assert grown < SLACK, f"four half values of 300 MB: {grown} bytes"
        assert field(admin, "memory", "mem_clients_normal") < MIB
        for each in clients:
            each.close()

        # One that comes as a whole is refused, and its connection goes on.
        client = node.client()
        reply = client("SET", "k", b"x" * (20 * MIB))
        assert isinstance(reply, ErrorReply) and "20971520 bytes" in reply, reply
        assert client("PING") == "PONG"

        # What could be stored is kept, up to the limit of all.
        clients = [node.client() for _ in range(30)]
        most = 0
        for each in clients:
            half(each, 16_000_000, 4_000_000)
            most = max(most, node.rss() - before)
        until(lambda: field(admin, "stats", "evicted_clients") > 0, "the largest are closed")
        assert most < LIMIT + SLACK, f"half requests: {most} bytes"
        assert field(admin, "memory", "mem_clients_normal") <= LIMIT + MIB
        shown = admin("CLIENT", "LIST").decode().splitlines()
        assert all(" tot-mem=0 " not in line for line in shown)
        assert any(int(line.split(" qbuf=")[1].split()[0]) > MIB for line in shown)
        for each in clients:
            each.close()
        until(lambda: field(admin, "memory", "mem_clients_normal") < MIB, "all is given back")
        assert admin("PING") == "PONG"


prove(7, "requests: what cannot be stored is passed over, half requests stay under the limit", test)
