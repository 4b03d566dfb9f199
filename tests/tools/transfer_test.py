"""Moving from redis-server and back: transfer_test.py PATH_OF_SEMEL [unittest arguments].

`semel import`, `semel export`, functions over a restart, and MIGRATE, beside a redis-server."""

import os
import random
import socket
import subprocess
import threading

import node_test
import servers
from resp import SIGNED
from servers import NoPeer, Redis, until

LIBRARY = "#!lua name=lib\nredis.register_function('answer', function() return 42 end)"
SIZES = (1, 2, 7, 127, 128, 129, 300)  # around the bounds of packed encodings


def word(rng):
    return rng.choice((
        lambda: str(rng.randrange(-2 ** rng.randrange(1, 63), 2 ** rng.randrange(1, 63))),
        lambda: bytes(rng.randrange(256) for _ in range(rng.randrange(70))),
        lambda: "x" * rng.choice((63, 64, 65, 300, 5000)),
        lambda: f"word {rng.randrange(10 ** 6)}"))()


def fill(client, rng, count):
    """Keys of all types in three databases."""
    for number in range(count):
        key, kind, size = f"k:{number}", number % 7, rng.choice(SIZES)
        client("SELECT", rng.choice((0, 0, 3, 15)))
        words = [word(rng) for _ in range(2 * size)]
        if kind == 0:
            client("SET", key, words[0])
        elif kind == 1:
            client("RPUSH", key, *words)
        elif kind == 2:
            client("SADD", key, *[rng.randrange(-2 ** rng.choice((7, 15, 31, 62)), 2 ** 31)
                                  for _ in range(size)])
        elif kind == 3:
            client("SADD", key, *words)
        elif kind == 4:
            client("HSET", key, *words)
        elif kind == 5:
            scores = [rng.choice(("inf", "-inf", rng.random() * 1e9)) for _ in words]
            client("ZADD", key, *[each for pair in zip(scores, words) for each in pair])
        else:
            client("XGROUP", "CREATE", key, "g", "0", "MKSTREAM")
            for at in range(size):
                client("XADD", key, f"{at + 1}-{rng.randrange(3)}", "f", words[at],
                       *([] if at % 9 else ["g", words[at + size]]))
            client("XREADGROUP", "GROUP", "g", f"c{number % 3}", "COUNT", 5, "STREAMS", key, ">")
            client("XDEL", key, "2-0", "2-1", "2-2")
            client("XGROUP", "CREATE", key, "h", "$")
        if rng.random() < 0.3:
            client("PEXPIRE", key, rng.randrange(10 ** 6, 10 ** 9))
    client("FUNCTION", "LOAD", LIBRARY)


def value(client, key):
    kind = client("TYPE", key)
    if kind == "+string":
        return client("GET", key)
    if kind == "+list":
        return client("LRANGE", key, 0, -1)
    if kind == "+set":
        return sorted(client("SMEMBERS", key))
    if kind == "+hash":
        words = client("HGETALL", key)
        return sorted(zip(words[::2], words[1::2]))
    if kind == "+zset":
        return client("ZRANGE", key, 0, -1, "WITHSCORES")
    pending = [each[:2] + each[3:] for each in client("XPENDING", key, "g", "-", "+", 1000)]
    return [client("XRANGE", key, "-", "+"), client("XINFO", "GROUPS", key), pending]


def state(client):
    """All that clients can see: keys by database, and functions."""
    seen = {}
    for db in range(16):
        client("SELECT", db)
        cursor = b"0"
        while True:
            cursor, keys = client("SCAN", cursor, "COUNT", 500)
            for key in keys:
                seen[db, key] = (client("TYPE", key), value(client, key),
                                 client("PEXPIRETIME", key))
            if cursor == b"0":
                break
    return seen, client("FUNCTION", "LIST", "WITHCODE")


class Moving(node_test.Case):
    def setUp(self):
        super().setUp()
        seed = int(os.environ.get("TRANSFER_SEED", random.randrange(2 ** 32)))
        print(f"TRANSFER_SEED={seed}")
        self.rng = random.Random(seed)

    def redis(self, *flags, folder=None):
        try:
            server = Redis("--enable-debug-command", "yes", *flags, folder=folder)
            server.start()
        except NoPeer as error:
            self.skipTest(str(error))
        self.addCleanup(server.end)
        return server

    def client_of(self, server):
        client = server.client(form=SIGNED)
        self.addCleanup(client.close)
        return client

    def semel(self, *words, code=0):
        done = subprocess.run([node_test.SEMEL, *map(str, words)], capture_output=True, text=True,
                              timeout=node_test.PATIENCE, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def loaded(self, file):
        """What a redis-server sees that starts with this RDB file."""
        return state(self.client_of(self.redis("--dbfilename", file.name, folder=file.parent)))

    def test_rdb_and_aof_go_to_a_node_and_a_storage_and_back(self):
        folder = self.folder / "redis"
        folder.mkdir()
        client = self.client_of(self.redis("--appendonly", "yes", folder=folder))
        fill(client, self.rng, 70)
        client("BGREWRITEAOF")
        until(lambda: b"rewrite_in_progress:0" in client("INFO", "persistence")
              and b"rewrite_scheduled:0" in client("INFO", "persistence"), "the rewrite")
        client("SELECT", 3)
        for words in (("SET", "after", "it"), ("INCR", "n"), ("INCR", "n"), ("MULTI",),
                      ("LPUSH", "l", 1), ("LPUSH", "l", 2), ("EXEC",), ("DEL", "k:1")):
            client(*words)
        client("SAVE")
        want = state(client)
        rdb, aof = folder / "dump.rdb", folder / "appendonlydir"
        node = self.node()
        to = ("--to", f"127.0.0.1:{node.port}")
        self.semel("import", "--rdb", rdb, *to)
        self.assertEqual(state(node.client()), want)
        # Repeated, nothing changes.
        self.assertIn("kept that were there", self.semel("import", "--rdb", rdb, *to))
        self.semel("import", "--rdb", rdb, *to, "--replace")
        self.assertEqual(state(node.client()), want)
        self.assertIn("without keys", self.semel("import", "--aof", aof, *to, code=2))
        self.semel("import", "--aof", aof, *to, "--flush")
        self.assertEqual(state(node.client()), want)
        out = self.folder / "out" / "exported.rdb"
        out.parent.mkdir()
        self.semel("export", "--rdb", out, "--from", f"127.0.0.1:{node.port}")
        self.assertEqual(self.loaded(out), want)
        for flags in (("--rdb", rdb), ("--aof", aof)):
            kept = self.folder / flags[0].strip("-")
            self.semel("import", *flags, "--dir", kept)
            self.semel("export", "--rdb", out, "--dir", kept)
            self.assertEqual(self.loaded(out), want)
            stored = self.node("--storage-enabled", "yes", "--dir", kept)
            self.assertEqual(state(stored.client()), want)
            self.assertEqual(stored.client()("FCALL", "answer", 0), 42)

    def test_a_damaged_or_cut_file_is_named_with_its_offset(self):
        folder = self.folder / "redis"
        folder.mkdir()
        client = self.client_of(self.redis(folder=folder))
        for number in range(200):
            client("SET", f"k{number}", "v" * 1000)
        client("SAVE")
        whole = (folder / "dump.rdb").read_bytes()
        node = self.node()
        to = ("--to", f"127.0.0.1:{node.port}")
        cut = self.folder / "cut.rdb"
        cut.write_bytes(whole[:-1000])
        self.assertIn(f"cut at byte {len(whole) - 1000}",
                      self.semel("import", "--rdb", cut, *to, code=3))
        # The keys before the cut may be there; the whole file brings the others.
        self.semel("import", "--rdb", folder / "dump.rdb", *to)
        self.assertEqual(node.client()("DBSIZE"), 200)
        cut.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
        self.semel("import", "--rdb", cut, *to, code=3)
        cut.write_bytes(b"*1\r\n$4\r\nPING\r\n")
        self.assertIn("no RDB file", self.semel("import", "--rdb", cut, *to, code=3))

    def test_things_that_cannot_be_taken_are_named_and_counted(self):
        aof = self.folder / "old.aof"
        aof.write_bytes(b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
                        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
                        b"*1\r\n$8\r\nSHUTDOWN\r\n*2\r\n$6\r\nSELECT\r\n$2\r\n99\r\n"
                        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nw\r\n#TS:5\r\n"
                        b"*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n*1\r\n$5\r\nMULTI\r\n"
                        b"*3\r\n$3\r\nSET\r\n$1\r\nc\r\n$1\r\nw\r\n")
        node = self.node()
        text = self.semel("import", "--aof", aof, "--to", f"127.0.0.1:{node.port}", code=3)
        self.assertIn("command shutdown", text)
        self.assertIn("database 99", text)
        self.assertIn("a transaction without an end", text)
        client = node.client()
        self.assertEqual(client("GET", "k"), b"v")
        client("SELECT", 1)
        self.assertEqual(client("DBSIZE"), 0)
        client("SELECT", 0)
        client("SEMEL.CLAIM", "orders", "4711")
        out = self.folder / "out.rdb"
        text = self.semel("export", "--rdb", out, "--from", f"127.0.0.1:{node.port}", code=3)
        self.assertIn("WRONGTYPE", text)
        self.assertTrue(out.exists())

    def test_an_export_beside_writers_has_every_key_that_stays(self):
        node = self.node()
        client = node.client()
        for number in range(3000):
            client("SET", f"stays:{number}", "v")
        ends = threading.Event()

        def write():
            other = servers.Client(("127.0.0.1", node.port))
            number = 0
            while not ends.is_set():
                number += 1
                other("SET", f"goes:{number % 500}", number)
                other("DEL", f"goes:{(number + 250) % 500}")
                other("SET", f"stays:{number % 3000}", "w")
            other.close()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            out = self.folder / "dump.rdb"
            self.semel("export", "--rdb", out, "--from", f"127.0.0.1:{node.port}")
        finally:
            ends.set()
            writer.join()
        seen, _ = self.loaded(out)
        self.assertEqual(sum(key.startswith(b"stays:") for _, key in seen), 3000)

    def test_functions_survive_a_restart_and_go_to_redis_server_and_back(self):
        kept = self.folder / "kept"
        node = self.node("--storage-enabled", "yes", "--dir", kept)
        client = node.client()
        self.assertEqual(client("FUNCTION", "LOAD", LIBRARY), b"lib")
        dump = client("FUNCTION", "DUMP")
        node.kill()
        node = self.node("--storage-enabled", "yes", "--dir", kept)
        client = node.client()
        self.assertEqual(client("FCALL", "answer", 0), 42)
        redis = self.client_of(self.redis())
        self.assertEqual(redis("FUNCTION", "RESTORE", dump), "+OK")
        self.assertEqual(redis("FCALL", "answer", 0), 42)
        self.assertEqual(client("FUNCTION", "RESTORE", redis("FUNCTION", "DUMP"), "FLUSH"), "+OK")
        self.assertEqual(client("FUNCTION", "DELETE", "lib"), "+OK")
        self.assertEqual(node.stop(), 0)
        client = self.node("--storage-enabled", "yes", "--dir", kept).client()
        self.assertEqual(client("FUNCTION", "LIST"), [])

    # --- MIGRATE --------------------------------------------------------------------------------

    def migrate(self, client, port, *words, key="k", db=0, wait=2000):
        return client("MIGRATE", "127.0.0.1", port, key, db, wait, *words)

    def test_migrate_moves_keys_between_nodes_and_redis_server(self):
        sides = [self.node(), self.node(), self.redis()]
        clients = [self.client_of(side) for side in sides]
        clients[2]("CONFIG", "SET", "requirepass", "pw")
        for here, there in ((0, 1), (0, 2), (2, 1)):
            login = ("AUTH2", "default", "pw") if there == 2 else ()
            one, other = clients[here], clients[there]
            for client in (one, other):
                client("FLUSHALL")
            fill(one, self.rng, 21)
            one("SELECT", 0)
            one("SET", "k", "v", "PX", 10 ** 7)
            keys = one("KEYS", "*")
            want = {key: (one("TYPE", key), value(one, key)) for key in keys}
            port = sides[there].port
            self.assertEqual(self.migrate(one, port, "COPY", *login), "+OK")
            self.assertEqual(one("EXISTS", "k"), 1)
            self.assertIn("BUSYKEY", self.migrate(one, port, *login))
            self.assertEqual(one("EXISTS", "k"), 1)
            self.assertEqual(self.migrate(one, port, "REPLACE", *login, "KEYS", *keys, "none",
                                          key=""), "+OK")
            self.assertEqual(one("DBSIZE"), 0)
            other("SELECT", 0)
            self.assertEqual({key: (other("TYPE", key), value(other, key)) for key in keys}, want)
            self.assertGreater(other("PTTL", "k"), 9 * 10 ** 6)
            self.assertEqual(self.migrate(one, port, *login), "+NOKEY")
            for client in (one, other):
                client("FUNCTION", "FLUSH")

    def test_migrate_that_fails_leaves_the_key(self):
        node = self.node()
        client, other = node.client(), node.client()
        client("SET", "k", "v")
        self.assertRegex(self.migrate(client, 1), "^-IOERR error or timeout connecting")
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            client.send("MIGRATE", "127.0.0.1", port, "k", 0, 300)
            self.assertEqual(other("GET", "k"), b"v")  # only the client waits
            self.assertRegex(client.reply(), "^-IOERR error or timeout reading")
            silent.accept()[0].close()
            # The target closes in the midst of an answer, before or behind the value; or refuses.
            for replies, error in (((b"+O",), "^-IOERR error or timeout reading"),
                                   ((b"+OK\r\n", b"+O"), "^-IOERR error or timeout reading"),
                                   ((b"-ERR no\r\n",), "target.* replied with error: ERR no"),
                                   ((b"+OK\r\n", b"-OOM no\r\n"), "replied with error: OOM no"),
                                   ((b"?\r\n",), "^-IOERR error or timeout reading")):
                target = threading.Thread(target=self.answer, args=(silent, replies))
                target.start()
                self.assertRegex(self.migrate(client, port), "(?i)" + error)
                target.join()
                self.assertEqual(client("GET", "k"), b"v")
            client.send("MIGRATE", "127.0.0.1", port, "k", 0, 60000)
            until(lambda: b"blocked_clients:1\r" in other("INFO", "clients"), "the wait")
            self.assertEqual(node.stop(), 0)  # does not wait for the target

    def answer(self, listener, replies):
        """To one request each, and then closes."""
        plug, _ = listener.accept()
        with plug:
            for reply in replies:
                plug.recv(1 << 16)
                plug.sendall(reply)

    def test_migrate_tells_that_the_key_has_gone_and_brings_ends_of_fields(self):
        here, there = self.node(), self.node()
        client, listener = here.client(), here.client()
        client("CONFIG", "SET", "notify-keyspace-events", "Eg")
        listener("SUBSCRIBE", "__keyevent@0__:del")
        client("HSET", "k", "f", "v", "g", "w")
        client("HPEXPIRE", "k", 10 ** 7, "FIELDS", 1, "f")
        end = client("HPEXPIRETIME", "k", "FIELDS", 1, "f")
        self.assertEqual(self.migrate(client, there.port), "+OK")
        self.assertEqual(listener.reply(), [b"message", b"__keyevent@0__:del", b"k"])
        self.assertEqual(client("EXISTS", "k"), 0)
        self.assertEqual(there.client()("HGETALL", "k"), [b"f", b"v", b"g", b"w"])
        self.assertEqual(there.client()("HPEXPIRETIME", "k", "FIELDS", 2, "f", "g"), [end[0], -1])

    def test_a_key_that_is_changed_while_it_moves_is_sent_again(self):
        node = self.node()
        client, other, watcher = node.client(), node.client(), node.client()
        client("SET", "k", "old")
        watcher("WATCH", "k")
        payloads = []
        with socket.create_server(("127.0.0.1", 0)) as target:
            def serve():
                plug, _ = target.accept()
                with plug, plug.makefile("rb") as lines:
                    for reply in (b"+OK\r\n", b"+OK\r\n", b"+OK\r\n"):
                        count = int(lines.readline()[1:])
                        payloads.append([lines.read(int(lines.readline()[1:]) + 2)[:-2]
                                         for _ in range(count)])
                        if len(payloads) == 2:
                            other("SET", "k", "new")
                        plug.sendall(reply)
            server = threading.Thread(target=serve)
            server.start()
            self.assertEqual(self.migrate(client, target.getsockname()[1]), "+OK")
            server.join()
        self.assertIn(b"old", payloads[1][3])
        self.assertIn(b"new", payloads[2][3])
        self.assertEqual(payloads[2][4:], [b"REPLACE"])
        self.assertEqual(client("EXISTS", "k"), 0)
        watcher("MULTI")
        self.assertIsNone(watcher("EXEC"))

    def test_migrate_has_the_words_and_errors_of_redis_server(self):
        node, redis = self.node(), self.redis()
        client, peer = node.client(), self.client_of(redis)
        for words in (("h", "1", "none", "0", "100"), ("h", "1", "none", "x", "100"),
                      ("h", "1", "none", "0", "x"), ("h", "1", "none", "0", "1", "foo"),
                      ("h", "1", "none", "0", "1", "KEYS", "a"), ("h", "1", "", "0", "1"),
                      ("h", "1", "none", "0", "1", "AUTH"), ("h", "1", "k", "0"),
                      ("h", "1", "none", "0", "1", "AUTH2", "a"),
                      ("h", "1", "", "0", "1", "KEYS", "none", "other")):
            self.assertEqual(client("MIGRATE", *words), peer("MIGRATE", *words), words)
        self.assertEqual(client("COMMAND", "INFO", "MIGRATE"), peer("COMMAND", "INFO", "MIGRATE"))
        client("SET", "k", "v")
        client("MULTI")
        client("MIGRATE", "127.0.0.1", redis.port, "k", 0, 100)
        self.assertRegex(client("EXEC")[0], "^-ERR MIGRATE waits")
        client("ACL", "SETUSER", "some", "on", ">pw", "+@all", "~a*", "&*")
        some = node.client()
        some("AUTH", "some", "pw")
        self.assertRegex(some("MIGRATE", "127.0.0.1", redis.port, "", 0, 100, "KEYS", "a", "k"),
                         "^-NOPERM")
        self.assertEqual(some("MIGRATE", "127.0.0.1", redis.port, "", 0, 100, "KEYS", "a"),
                         "+NOKEY")


if __name__ == "__main__":
    node_test.main(__doc__)
