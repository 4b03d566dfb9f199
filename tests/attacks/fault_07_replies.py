"""Replies that hold one large value many times, and slow readers, leave a node's size bounded."""

from node import Node, encode, prove, until

MIB = 1 << 20
VALUE = 8 * MIB
LIMIT = 48 * MIB  # the least that maxmemory-clients can be
SLACK = 16 * MIB + LIMIT // 10


def resident_most(node, before, condition):
    """The largest size seen until `condition()`."""
    most = 0

    def look():
        nonlocal most
        most = max(most, node.rss())
        return condition()

    until(look, "the reply is under way")
    return most - before


def omem(admin, client_id):
    line = admin("CLIENT", "LIST", "ID", client_id).decode()
    return int(line.split(" omem=")[1].split()[0])


def test(program):
    with Node(program, "--maxmemory", "64mb", "--maxmemory-clients", "48mb",
              "--io-threads", "2") as node:
        admin = node.client()
        assert admin("SET", "big", b"v" * VALUE) == "OK"
        before = node.rss()

        # 2.4 GB of unread replies: they wait as 8 MiB and a list.
        reader = node.client()
        number = reader("CLIENT", "ID")
        reader.send("MGET", *["big"] * 300)
        grown = resident_most(node, before, lambda: omem(admin, number) > 0)
        assert grown < LIMIT + SLACK, f"MGET: {grown} bytes"
        assert VALUE <= omem(admin, number) < VALUE + MIB
        assert reader.lines.readline() == b"*300\r\n"
        for _ in range(20):
            assert reader.reply() == b"v" * VALUE
        reader.close()

        reader = node.client()
        number = reader("CLIENT", "ID")
        reader("MULTI")
        for _ in range(300):
            assert reader("GET", "big") == "QUEUED"
        reader.send("EXEC")
        grown = resident_most(node, before, lambda: omem(admin, number) > 0)
        assert grown < LIMIT + SLACK, f"EXEC: {grown} bytes"
        assert reader.lines.readline() == b"*300\r\n"
        assert reader.reply() == b"v" * VALUE
        reader.close()

        # Each of these would hold 8 MiB, 320 MiB together.
        readers = [node.client() for _ in range(40)]
        most = 0
        for each in readers:
            each.raw(encode("GET", "big") * 8)
            most = max(most, node.rss() - before)
        until(lambda: int(dict(line.split(":", 1) for line in admin("INFO", "stats").decode()
                               .splitlines() if ":" in line)["evicted_clients"]) > 0,
              "the largest are closed")
        most = max(most, node.rss() - before)
        assert most < LIMIT + SLACK, f"slow readers: {most} bytes"
        for each in readers:
            each.close()
        assert admin("GET", "big") == b"v" * VALUE
        until(lambda: "omem=0 " in admin("CLIENT", "INFO").decode() and
              node.rss() - before < SLACK, "what was held goes back to the system")


prove(7, "replies by reference: 300 times 8 MB hold 8 MB, slow readers stay under the limit", test)
