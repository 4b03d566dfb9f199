"""What hostile clients can make a node hold: its resident size in scenes, against its limits.

Each scene starts a node with small limits, lets clients misbehave as it says, and looks at the
node's resident size all the while: it never has more than what it had with nothing held, the limit
of connections, a tenth of both limits, and 16 MiB. Afterwards the node must serve as before.

    exhaustion_node.py --program PATH [--scene NAME]
"""

import argparse
import os
import sys
import threading
import time
import traceback

from node import Node, encode, until

MIB = 1 << 20
MAXMEMORY = 64 * MIB
CLIENTS = 48 * MIB  # the least that maxmemory-clients can be
# 24: what was freed by cutting clients off, and lies between what lives in the heaps of threads.
ALLOWED = CLIENTS + (MAXMEMORY + CLIENTS) // 10 + 24 * MIB
# What is pushed to a connection of the same thread counts when that connection's turn comes: 200
# messages to 50 clients, in texts that grow by doubling. Small messages take 53 to 84 MiB.
PUSHED_AT_ONCE = 50 * 256 * 1024
STORED = 8_000_000  # before a scene begins, at least
SCENE_SECONDS = 4.0  # that clients go on at most


class Watch(threading.Thread):
    """The largest resident size while it runs."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node = node
        self.before = node.rss()
        self.most = self.before
        self.ends = threading.Event()

    def run(self):
        while not self.ends.wait(0.01):
            try:
                self.most = max(self.most, self.node.rss())
            except (OSError, IndexError):
                return

    def grown(self):
        return self.most - self.before


class Crowd:
    """Clients that send and do not read; a client that is cut off does not reconnect."""

    def __init__(self, node, count):
        self.clients = [node.client() for _ in range(count)]
        for each in self.clients:
            each.plug.settimeout(0.05)

    def send(self, data):
        """To each as much as it takes; False: no client takes more."""
        taken = 0
        for each in list(self.clients):
            try:
                each.plug.sendall(data)
                taken += 1
            except TimeoutError:
                pass
            except OSError:
                self.clients.remove(each)
        return taken != 0

    def go_on(self, data, rounds):
        end = time.monotonic() + SCENE_SECONDS
        for _ in range(rounds):
            if time.monotonic() > end or not self.send(data):
                return


def half_requests(node, admin):
    crowd = Crowd(node, 60)
    crowd.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16000000\r\n")
    crowd.go_on(b"x" * (MIB // 4), 40)


def half_requests_of_many_clients(node, admin):
    crowd = Crowd(node, 400)
    crowd.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n")
    crowd.go_on(b"x" * 60_000, 8)


def many_arguments(node, admin):
    crowd = Crowd(node, 20)
    crowd.send(b"*1000000\r\n$4\r\nMGET\r\n")
    crowd.go_on(b"$0\r\n\r\n" * 20_000, 20)


def values_that_cannot_be_stored(node, admin):
    crowd = Crowd(node, 4)
    crowd.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$300000000\r\n")
    crowd.go_on(b"x" * MIB, 60)


def readers_of_one_value(node, admin):
    crowd = Crowd(node, 60)
    crowd.go_on(encode("GET", "big0") * 16, 4)


def mget_of_one_value(node, admin):
    Crowd(node, 4).go_on(encode("MGET", *["big0"] * 300), 1)
    time.sleep(1)


def mget_of_all_values(node, admin):
    Crowd(node, 8).go_on(encode("MGET", *[f"big{i}" for i in range(5)]), 2)
    time.sleep(1)


def transaction_of_reads(node, admin):
    crowd = Crowd(node, 4)
    crowd.send(encode("MULTI") + encode("GET", "big0") * 300 + encode("EXEC"))
    time.sleep(1)


def values_made_in_a_transaction(node, admin):
    crowd = Crowd(node, 2)
    made = encode("SETRANGE", "made", 8_000_000, "x") + encode("GETDEL", "made")
    crowd.send(encode("MULTI") + made * 100 + encode("EXEC"))
    time.sleep(1.5)


def queues_of_transactions(node, admin):
    crowd = Crowd(node, 30)
    crowd.send(encode("MULTI"))
    crowd.go_on(encode("SET", "k", "v" * 500_000), 40)


def subscribers_that_do_not_read(node, admin):
    crowd = Crowd(node, 40)
    crowd.send(encode("SUBSCRIBE", "news"))
    for _ in range(60):
        admin("PUBLISH", "news", b"m" * 1_000_000)


def small_messages(node, admin):
    crowd = Crowd(node, 100)
    crowd.send(encode("SUBSCRIBE", "news"))
    end = time.monotonic() + SCENE_SECONDS
    while time.monotonic() < end:
        admin.raw(encode("PUBLISH", "news", b"m" * 900) * 200)
        for _ in range(200):
            admin.reply()


def monitors_that_do_not_read(node, admin):
    crowd = Crowd(node, 10)
    crowd.send(encode("MONITOR"))
    for _ in range(40):
        admin("SET", "k", b"\0" * 1_000_000)


def names_of_channels(node, admin):
    crowd = Crowd(node, 10)
    for i in range(100):
        crowd.send(encode("SUBSCRIBE", f"{i}:" + "c" * 60_000))


def watched_keys(node, admin):
    crowd = Crowd(node, 20)
    for i in range(30):
        crowd.send(encode("WATCH", *[f"{i}:{j}:" + "w" * 2_000 for j in range(100)]))


def client_names(node, admin):
    crowd = Crowd(node, 200)
    crowd.go_on(encode("CLIENT", "SETNAME", "n" * 100_000), 3)
    admin("CLIENT", "LIST")


def keys_of_everything(node, admin):
    crowd = Crowd(node, 6)
    crowd.send(encode("KEYS", "*") + encode("SCAN", "0", "COUNT", "65536"))
    time.sleep(1)


SCENES = [half_requests, half_requests_of_many_clients, many_arguments,
          values_that_cannot_be_stored, readers_of_one_value, mget_of_one_value,
          mget_of_all_values, transaction_of_reads, values_made_in_a_transaction,
          queues_of_transactions, subscribers_that_do_not_read, small_messages,
          monitors_that_do_not_read, names_of_channels, watched_keys, client_names,
          keys_of_everything]
WRITERS = [values_made_in_a_transaction]


def run(program, scene):
    """A line about it; raises if it is not as promised."""
    with Node(program, "--maxmemory", MAXMEMORY, "--maxmemory-clients", CLIENTS,
              "--io-threads", "2", "--monitor", "yes") as node:
        admin = node.client()
        for i in range(5 if scene is mget_of_all_values else 1):
            assert admin("SET", f"big{i}", bytes([97 + i]) * 8_000_000) == "OK"
        if scene is keys_of_everything:
            for i in range(500):
                admin("SET", f"{i}:" + "k" * 60_000, "v")
        watch = Watch(node)
        watch.start()
        scene(node, admin)
        watch.ends.set()
        watch.join()
        # Clients whose objects are gone have hung up; a new client is served.
        claim = until(lambda: node.client()("SEMEL.CLAIM", "ns", "after"), "a claim is taken")
        assert b"granted" in claim, claim
        assert node.is_alive()
        grown = watch.grown()
        # A scene that writes may fill the store as well, which has its own limit.
        allowed = ALLOWED + (MAXMEMORY - STORED if scene in WRITERS else 0)
        allowed += PUSHED_AT_ONCE if scene is small_messages else 0
        what = (f"{scene.__name__.replace('_', ' ')}: {grown / MIB:.0f} MiB more at most, "
                f"{allowed / MIB:.0f} allowed")
        assert grown <= allowed, what
        return what


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="the program semel")
    parser.add_argument("--scene", help="only this one")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    failed = 0
    for scene in SCENES:
        if options.scene not in (None, scene.__name__):
            continue
        try:
            print(run(program, scene), flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            traceback.print_exc()
            print(f"{scene.__name__}: failed", flush=True)
    print(f"exhaustion of a node: {len(SCENES) - failed} of {len(SCENES)} scenes "
          + ("passed" if failed == 0 else "as promised"))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
