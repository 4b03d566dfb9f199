"""Black-box tests of `semel node`: node_test.py PATH_OF_SEMEL [unittest arguments].

Each test starts nodes of its own, on ports that the system chooses. Nothing sleeps for a guessed
time: `until` looks again and again, with a bound.
"""

import fcntl
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import servers  # noqa: E402
from resp import PATIENCE, SIGNED, Client  # noqa: E402
from servers import until  # noqa: E402

SEMEL = ""


def is_alive(process):
    """Whether it is there and no zombie; of processes that are not our children, too."""
    try:
        stat = pathlib.Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def claim(client, *words):
    """The answer of SEMEL.CLAIM or SEMEL.COMPLETE, its fields by their names."""
    reply = client(*words)
    return dict(zip(reply[::2], reply[1::2])) if isinstance(reply, list) else reply


class Node(servers.Node):
    """Simple strings and errors are texts with their sign. It ends with its test case."""

    form = SIGNED

    def __init__(self, case, *flags, **options):
        super().__init__(SEMEL, *flags, folder=tempfile.mkdtemp(dir=case.folder), **options)
        self.case = case
        case.addCleanup(self.end)

    def client(self, **options):
        client = super().client(**options)
        self.case.addCleanup(client.close)
        return client

    def greeting(self):
        """The lines of its standard output."""
        return self.out.read_text().splitlines()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def node(self, *arguments, **options):
        return Node(self, *arguments, **options).start()

    def keep(self, *arguments, **options):
        return self.node("--storage-enabled", "yes", "--dir", self.folder / "kept", *arguments,
                         **options)

    def refusal(self, *arguments, code):
        """The error text of a node that must not start."""
        node = Node(self, *arguments).start(ready=False)
        self.assertEqual(node.wait(), code, node.log())
        self.assertEqual(node.greeting(), [])
        self.assertFalse(node.ready.exists())
        return node.log()


class Lifecycle(Case):
    def test_it_greets_in_three_lines_and_serves(self):
        node = self.node()
        lines = until(lambda: len(node.greeting()) == 3 and node.greeting(), "the greeting")
        self.assertRegex(lines[0], rf"^semel \d+\.\d+\.\d+ serves .* port {node.port}, process "
                                   rf"{node.pid}$")
        self.assertRegex(lines[1], rf"^try: redis-cli -p {node.port} ")
        self.assertIn("SIGTERM", lines[2])
        client = node.client()
        self.assertEqual(client("PING"), "+PONG")
        self.assertEqual(client("SET", "job:1", "mine", "NX", "PX", 60000), "+OK")
        self.assertIsNone(client("SET", "job:1", "yours", "NX", "PX", 60000))
        granted = claim(client, "SEMEL.CLAIM", "orders", "4711")
        self.assertEqual(granted[b"outcome"], b"granted")
        client("SEMEL.COMPLETE", "orders", "4711", granted[b"epoch"], "paid")
        self.assertEqual(claim(client, "SEMEL.CLAIM", "orders", "4711")[b"result"], b"paid")
        self.assertEqual(node.stop(), 0)
        self.assertEqual(node.greeting(), lines)

    def test_sigterm_ends_it_within_a_second_and_its_log_tells_the_story(self):
        node = self.node()
        client = node.client()
        client("PING")
        began = time.monotonic()
        self.assertEqual(node.stop(), 0, node.log())
        self.assertLess(time.monotonic() - began, 1)
        self.assertTrue(client.is_closed())
        events = re.findall(r" event=(\w+)", node.log())
        kept = [event for event in events if event in
                ("starting", "listening", "serving", "draining", "ended")]
        self.assertEqual([kept[0], *kept[-3:]], ["starting", "serving", "draining", "ended"])
        self.assertIn(f"127.0.0.1:{node.port}", node.log())

    def test_the_ready_file_is_there_only_while_it_serves(self):
        node = self.node()
        self.assertEqual(node.facts["pid"], str(node.pid))
        node.kill()
        self.assertTrue(node.ready.exists())  # it was not asked
        # A start that fails leaves no sign of a node that serves.
        with socket.socket() as plug:
            plug.bind(("127.0.0.1", 0))
            plug.listen()
            port = str(plug.getsockname()[1])
            self.assertIn(port, self.refusal("--ready-file", node.ready, "--port", port, code=1))
        self.assertFalse(node.ready.exists())
        node.start()
        self.assertEqual(node.stop(), 0)
        self.assertFalse(node.ready.exists())
        # The file of a later process stays, and a folder is no file.
        node.start()
        node.ready.write_text("pid=1\n")
        self.assertEqual(node.stop(), 0)
        self.assertEqual(node.ready.read_text(), "pid=1\n")
        self.assertIn("not a regular file",
                      self.refusal("--ready-file", self.folder, code=1))

    def test_a_client_that_waits_does_not_hold_up_the_end(self):
        node = self.node()
        owner, waiter, paused = node.client(), node.client(), node.client()
        self.assertEqual(claim(owner, "SEMEL.CLAIM", "n", "k")[b"outcome"], b"granted")
        waiter.send("SEMEL.WAIT", 60000, "n", "k")
        until(lambda: b"blocked_clients:1\r" in owner("INFO", "clients"), "a client that waits")
        self.assertEqual(paused("PING"), "+PONG")
        self.assertEqual(owner("CLIENT", "PAUSE", 60000, "WRITE"), "+OK")
        paused.send("SET", "a", "b")
        began = time.monotonic()
        self.assertEqual(node.stop(), 0, node.log())
        self.assertLess(time.monotonic() - began, 1)
        self.assertRegex(waiter.reply(), "^-UNBLOCKED ")
        self.assertEqual(paused.reply(), "+OK")

    def test_a_request_under_way_is_waited_for_and_a_second_sigterm_ends_at_once(self):
        for again in (False, True):
            node = self.node("--admin-port", 0)
            client = node.client()
            client("PING")
            client.raw(b"*2\r\n$4\r\nECHO\r\n")
            # The part of a request is there when its bytes are counted.
            until(lambda: "semel_network_received_bytes_total 28\n" in node.page("/metrics")[1],
                  "the bytes")
            node.signal(signal.SIGTERM)
            until(lambda: node.page("/readyz") == (503, "draining\n"), "the drain")
            self.assertEqual(node.page("/livez")[0], 200)
            if again:
                self.assertEqual(node.stop(), -signal.SIGTERM)
            else:
                client.raw(b"$2\r\nhi\r\n")
                self.assertEqual(client.reply(), b"hi")
                self.assertEqual(node.wait(), 0)

    def test_shutdown_ends_it_and_may_be_said_twice(self):
        node = self.node()
        first, second = node.client(), node.client()
        first.send("SHUTDOWN", "NOSAVE")
        second.send("SHUTDOWN")
        self.assertTrue(first.is_closed())
        self.assertTrue(second.is_closed())
        self.assertEqual(node.wait(), 0)

    def test_it_goes_with_its_parent(self):
        # The shell is the parent; it prints the child's number and waits to be killed.
        node = Node(self, "--exit-with-parent", "yes",
                    under=("/bin/sh", "-c", '"$@" & echo "$!" >&2; wait', "sh")).start()
        child = int(node.facts["pid"])
        self.assertNotEqual(child, node.pid)
        self.assertTrue(is_alive(child))
        node.kill()
        until(lambda: not is_alive(child), "the end of the child")
        self.assertIn("event=ended code=0", node.log())


class Scripts(Case):
    ENDLESS = "while true do end"
    BUSY = ("-BUSY Redis is busy running a script. "
            "You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")

    def busy_node(self, threads):
        node = self.node("--io-threads", threads, "--busy-reply-threshold", 100)
        return node, [node.client() for _ in range(4)]

    def test_the_others_get_busy_and_may_kill_it(self):
        for threads in (1, 2):
            _, (script, *others) = self.busy_node(threads)
            script.send("EVAL", self.ENDLESS, 0)
            for other in others:
                until(lambda other=other: other("PING") == self.BUSY, "BUSY")
            self.assertEqual(others[1]("GET", "k"), self.BUSY)
            self.assertEqual(others[0]("SCRIPT", "KILL"), "+OK")
            self.assertRegex(script.reply(), "^-ERR Script killed by user with SCRIPT KILL")
            for client in (script, *others):
                self.assertEqual(client("PING"), "+PONG")
            self.assertRegex(others[2]("SCRIPT", "KILL"), "^-NOTBUSY ")

    def test_the_log_says_which_of_them_run(self):
        for policy, words in (("any", "all scripts and functions run"), ("off", "no script"),
                              ("known", "scripts of the node's catalogue run")):
            node = self.node("--scripts", policy)
            self.assertIn(f'event=scripts policy={policy} by="the setting" text="{words}',
                          node.log())
        client = node.client()
        self.assertRegex(client("EVAL", "return 1 + 1", 0), "none of those .* 'any' lets all")
        self.assertEqual(client("CONFIG", "SET", "scripts", "any"), "+OK")
        self.assertEqual(client("EVAL", "return 1 + 1", 0), 2)
        until(lambda: "event=scripts policy=any" in node.log(), "a line for the change")

    def test_a_call_that_waits_for_the_keys_of_a_long_script_gets_busy(self):
        _, (script, *others) = self.busy_node(2)
        script.send("EVAL", self.ENDLESS, 0)
        for other in others:
            other.send("GET", "k")  # at the latest now some of them wait inside the engine
        replies = [other.reply() for other in others]
        self.assertTrue(all(reply in (None, self.BUSY) for reply in replies), replies)
        until(lambda: others[0]("SCRIPT", "KILL") == "+OK", "the kill")
        self.assertRegex(script.reply(), "^-ERR Script killed")

    def test_one_that_wrote_is_not_killed_but_ends_with_the_node(self):
        node, (script, other, *_) = self.busy_node(2)
        script.send("EVAL", "redis.call('set', 'k', 'v') " + self.ENDLESS, 0)
        until(lambda: other("PING") == self.BUSY, "BUSY")
        self.assertRegex(other("SCRIPT", "KILL"), "^-UNKILLABLE ")
        self.assertEqual(other("SHUTDOWN"), self.BUSY)
        other.send("SHUTDOWN", "NOSAVE")
        self.assertEqual(node.wait(), 0, node.log())

    def test_a_client_that_hangs_up_leaves_its_script_to_its_end(self):
        for threads in (1, 2):
            node, (script, other, *_) = self.busy_node(threads)
            script.send("EVAL", "redis.call('set', 'k', 'v') " + self.ENDLESS, 0)
            until(lambda: other("PING") == self.BUSY, "BUSY")
            script.plug.shutdown(socket.SHUT_RDWR)
            script.plug.close()
            self.assertEqual(other("PING"), self.BUSY)
            self.assertRegex(other("SCRIPT", "KILL"), "^-UNKILLABLE ")
            self.assertEqual(node.stop(), 0, node.log())

    def test_what_touches_other_keys_goes_on_beside_it(self):
        node = self.node("--io-threads", 2)
        clients = [node.client() for _ in range(4)]
        # Connections are dealt out to the threads in turn; the script is on one of them.
        clients[0].send("EVAL", "local i = 0 while redis.call('get', KEYS[1]) == false and "
                                "i < 3000000 do i = i + 1 end return i", 1, "{a}")
        keys = [f"key{i}" for i in range(64)]
        served = sum(clients[1]("SET", key, "1", "NX") in ("+OK", None) for key in keys[:4])
        self.assertEqual(served, 4)
        self.assertIsInstance(clients[0].reply(), int)


class Settings(Case):
    def semel_node(self, *arguments, code=0):
        done = subprocess.run([SEMEL, "node", *arguments], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_the_configuration_can_be_checked_and_printed(self):
        self.assertIn("right", self.semel_node("--check-config", "--port", "7000").stdout)
        self.assertIn("99999", self.semel_node("--check-config", "--port", "99999", code=2).stderr)
        printed = self.semel_node("--print-config", "--port", "7000", "--requirepass", "s3cret")
        self.assertRegex(printed.stdout, r"(?m)^port = 7000 +# --port$")
        self.assertNotIn("s3cret", printed.stdout)

    def test_all_addresses_without_a_password_are_refused(self):
        text = self.refusal("--bind", "0.0.0.0", code=2)
        self.assertIn("0.0.0.0", text)
        self.assertIn("password", text)
        node = self.node("--bind", "0.0.0.0", "--requirepass", "s3cret")
        client = node.client()
        self.assertRegex(client("PING"), "^-NOAUTH ")
        self.assertRegex(client("AUTH", "wrong"), "^-WRONGPASS ")
        self.assertEqual(client("AUTH", "s3cret"), "+OK")
        self.assertEqual(client("PING"), "+PONG")
        self.assertRegex(node.log(), "event=login_denied user=default address=")
        self.assertNotIn("s3cret", node.log())
        self.assertNotIn("wrong", node.log())

    def test_a_port_that_is_taken_is_named(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.assertIn(str(port), self.refusal("--port", port, code=1))
            self.assertIn(str(port), self.refusal("--admin-port", port, code=1))

    def test_a_unix_socket_is_served(self):
        path = str(self.folder / "socket")
        node = self.node("--port", "-1", "--unix-socket", path)
        self.assertEqual(node.facts["unix"], path)
        self.assertNotIn("port", node.facts)
        until(lambda: path in "".join(node.greeting()[:1]), "the greeting")
        with Client(path, form=SIGNED) as client:
            self.assertEqual(client("PING"), "+PONG")
        self.assertEqual(node.stop(), 0)

    def test_the_log_is_a_file_that_can_be_moved_away_and_its_level_changes(self):
        log = self.folder / "node.log"
        node = self.node("--log-file", log, "--log-format", "json")
        self.assertIn('"event":"serving"', log.read_text())
        moved = self.folder / "node.log.1"
        log.rename(moved)
        node.signal(signal.SIGHUP)
        until(lambda: log.exists() and "log_reopened" in log.read_text(), "the new file")
        self.assertEqual(node.client()("CONFIG", "SET", "loglevel", "warning"), "+OK")
        self.assertEqual(node.stop(), 0)
        self.assertNotIn("draining", log.read_text())
        self.assertEqual(node.log(), "")

    def test_health_and_metrics(self):
        node = self.node("--admin-port", 0, "--redis-metric-names", "yes")
        client = node.client()
        client("SET", "k", "v")
        client("NOSUCH")
        self.assertEqual(node.page("/livez")[0], 200)
        self.assertEqual(node.page("/readyz")[0], 200)
        status, text = node.page("/metrics")
        self.assertEqual(status, 200)
        for line in ("semel_ready 1", "semel_connections 1", "semel_records 1", "redis_up 1",
                     'semel_database_records{db="0"} 1',
                     'semel_command_calls_total{command="set"} 1'):
            self.assertIn(f"\n{line}\n", text)
        self.assertNotIn("semel_storage_accepting", text)


class Storage(Case):
    def test_keys_are_back_after_a_restart_and_after_a_kill(self):
        node = self.keep("--durability", "logged", "--admin-port", 0)
        self.assertEqual(node.client()("SET", "calm", "1"), "+OK")
        self.assertIn("\nsemel_storage_accepting 1\n", node.page("/metrics")[1])
        self.assertEqual(node.stop(), 0)
        node = self.keep("--durability", "logged")
        self.assertRegex(node.log(), r"event=recovered mutations=1 ")
        self.assertEqual(node.client()("GET", "calm"), b"1")
        self.assertEqual(node.client()("SET", "rude", "2"), "+OK")
        node.kill()
        node = self.keep("--durability", "synced")
        client = node.client()
        self.assertEqual(client("MGET", "calm", "rude"), [b"1", b"2"])
        self.assertEqual(client("SET", "sure", "3"), "+OK")
        self.assertEqual(node.stop(), 0)

    def test_namespaces_are_what_they_were(self):
        node = self.keep()
        client = node.client()
        words = ("LEASE", "5000", "RESULT-TTL", "1", "UNIQUE-TTL", "0", "FAILURE-TTL", "7",
                 "ATTEMPTS-TTL", "8", "WINDOW", "9", "RETRY-AFTER-MAX", "10", "ATTEMPTS-MAX", "3",
                 "ON-LEASE-END", "IN-DOUBT", "ON-FAILURE", "KEEP", "ON-EXCEPTION",
                 "IN-DOUBT", "STRICT", "FAIL-OPEN")
        self.assertEqual(client("SEMEL.NAMESPACE", "payments", *words), "+OK")
        self.assertEqual(client("SEMEL.NAMESPACE", "mails", "LEASE", "1"), "+OK")
        self.assertEqual(client("SEMEL.NAMESPACE", "CHANGE", "mails", "LEASE", "2"),
                         b"lease 1 -> 2")
        self.assertEqual(client("SELECT", "3"), "+OK")
        client("SEMEL.CLAIM", "used-first", "key")
        names = ("payments", "mails", "used-first")
        before = [client("SEMEL.NAMESPACE", name) for name in names]
        node.kill()
        node = self.keep()
        client = node.client()
        self.assertEqual([client("SEMEL.NAMESPACE", name) for name in names], before)
        self.assertIn("database 3", client("SEMEL.CLAIM", "used-first", "key"))
        self.assertEqual(client("SELECT", "0"), "+OK")
        self.assertEqual(client("SEMEL.NAMESPACE", "DROP", "mails"), b"0")
        self.assertEqual(node.stop(), 0)

    def test_the_file_of_namespaces_of_an_earlier_release_is_read_once(self):
        kept = self.folder / "kept/namespaces"
        self.assertEqual(self.keep().stop(), 0)
        lines = "mails 0 LEASE 7\npayments 3 LEASE 5000 STRICT\n"
        kept.write_text(lines + "broken 99 LEASE 1\n")
        node = Node(self, "--storage-enabled", "yes", "--dir", self.folder / "kept")
        node.start(ready=False)
        self.assertNotEqual(node.wait(), 0)
        self.assertIn("namespaces, line 3: ", node.log())
        kept.write_text(lines)
        node = self.keep()
        client = node.client()
        self.assertEqual(claim(client, "SEMEL.NAMESPACE", "mails")[b"lease_ms"], b"7")
        self.assertEqual(claim(client, "SEMEL.NAMESPACE", "payments")[b"db"], b"3")
        self.assertFalse(kept.exists())
        self.assertEqual(client("SEMEL.NAMESPACE", "DROP", "mails"), b"0")
        node.kill()
        client = self.keep().client()
        self.assertIsNone(client("SEMEL.NAMESPACE", "mails"))
        self.assertEqual(claim(client, "SEMEL.NAMESPACE", "payments")[b"lease_ms"], b"5000")

    def test_namespaces_of_the_configuration_are_there_and_hold_from_start_to_start(self):
        file = self.folder / "semel.toml"
        file.write_text('[namespaces.tokens]\nas = "token"\nlease = "5s"\n'
                        '[namespaces.payments]\nas = "payment"\ndb = 3\n')
        node = self.keep("--config", file)
        client = node.client()
        tokens = claim(client, "SEMEL.NAMESPACE", "tokens")
        self.assertEqual((tokens[b"lease_ms"], tokens[b"issued"]), (b"5000", b"1"))
        self.assertEqual(claim(client, "SEMEL.NAMESPACE", "payments")[b"db"], b"3")
        self.assertEqual(client("SEMEL.NAMESPACE", "CHANGE", "tokens", "AS", "token", "LEASE", "9"),
                         b"lease 5000 -> 9")
        self.assertEqual(node.stop(), 0)
        # The file says what holds now; what it does not name stays as it was declared.
        client = self.keep("--config", file).client()
        self.assertEqual(claim(client, "SEMEL.NAMESPACE", "tokens")[b"lease_ms"], b"5000")
        file.write_text('[namespaces.tokens]\nleese = 5\n')
        self.assertIn("did you mean 'lease'", self.refusal("--config", file, code=2))
        file.write_text('[namespaces."no blanks"]\n')
        self.assertIn("no blanks", self.refusal("--config", file, code=2))

    def stand_at_recovery(self):
        """A node whose log is a pipe with room for the first lines, but not for the long one that
        tells of the recovery: there it stands until `read` is called."""
        folder = self.folder.joinpath(*["d" * 200] * 6)
        folder.mkdir(parents=True, exist_ok=True)
        pipe = self.folder / "log"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDWR)
        self.addCleanup(os.close, reader)
        room = fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        filling = os.write(reader, b"-" * (room - 600))
        node = Node(self, "--storage-enabled", "yes", "--dir", folder, "--admin-port", 0,
                    "--log-file", pipe, "--log-format", "json").start(ready=False)

        def holds():
            return struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"\0" * 4))[0]

        # One byte always stays: a pipe that was emptied would have room again.
        until(lambda: holds() > filling, "the first line")
        self.assertEqual(len(os.read(reader, filling)), filling)
        text = b""
        while not (port := re.search(rb'"address":"127.0.0.1:(\d+)"', text)):
            until(lambda: holds() > 1, "the second line")
            text += os.read(reader, 1)
        node.facts = {"admin_port": port[1]}
        until(lambda: node.page("/readyz") == (503, "recovering\n"), "the recovery")
        return node, lambda: os.read(reader, room)

    def test_while_it_recovers_it_lives_and_is_not_ready(self):
        node, read = self.stand_at_recovery()
        self.assertEqual(node.page("/livez"), (200, "ok\n"))
        self.assertIn("\nsemel_ready 0\n", node.page("/metrics")[1])
        self.assertFalse(node.ready.exists())
        text = b""
        while b'"event":"serving"' not in text:
            text += read()
        self.assertEqual(node.wait_ready().page("/readyz"), (200, "ok\n"))
        self.assertEqual(node.stop(), 0)

    def test_a_recovery_can_be_ended(self):
        node, _ = self.stand_at_recovery()
        self.assertEqual(node.stop(), 0)
        self.assertFalse(node.ready.exists())

    def test_systemd_is_notified(self):
        path = str(self.folder / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as plug:
            plug.bind(path)
            plug.settimeout(PATIENCE)
            node = self.keep(under=("env", "NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=200000"))
            states = []

            def next_state():
                states.append(plug.recv(4096).decode().splitlines()[0])
                return states[-1]

            until(lambda: next_state() == "WATCHDOG=1" == next_state(), "the watchdog, twice")
            self.assertLess(states.index("STATUS=recovering"), states.index("READY=1"))
            self.assertLess(states.index("READY=1"), states.index("WATCHDOG=1"))
            node.signal(signal.SIGTERM)
            until(lambda: next_state() == "STOPPING=1", "the end")
        self.assertEqual(node.wait(), 0)

    def test_a_second_node_on_the_directory_is_refused_and_harms_nothing(self):
        node = self.keep()
        self.assertEqual(node.client()("SET", "k", "v"), "+OK")
        text = self.refusal("--storage-enabled", "yes", "--dir", self.folder / "kept", code=1)
        self.assertIn(str(self.folder / "kept"), text)
        self.assertIn("used by another process", text)
        self.assertEqual(node.client()("GET", "k"), b"v")

    def test_a_storage_that_does_not_fit_into_memory_is_refused_and_kept(self):
        node = self.keep("--durability", "logged")
        client = node.client()
        for i in range(80):
            self.assertEqual(client("SET", f"k{i}", "v" * 100_000), "+OK")
        self.assertEqual(node.stop(), 0)
        text = self.refusal("--storage-enabled", "yes", "--dir", self.folder / "kept",
                            "--maxmemory", "4mb", code=4)
        self.assertIn("memory limit", text)
        self.assertEqual(self.keep().client()("DBSIZE"), 80)

    def test_a_missing_password_is_reported_before_the_storage_is_read(self):
        text = self.refusal("--storage-enabled", "yes", "--dir", self.folder / "kept",
                            "--bind", "0.0.0.0", code=2)
        self.assertNotIn("recovery_begins", text)


@unittest.skipUnless(shutil.which("openssl"), "no openssl program to make certificates with")
class Tls(Case):
    def make_certificate(self, name):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", "key.pem", "-out", "cert.pem"],
                       cwd=self.folder, check=True, capture_output=True)
        return (self.folder / "cert.pem").read_text()

    def shown(self, node):
        return ssl.get_server_certificate(("127.0.0.1", int(node.facts["tls_port"])))

    def test_tls_is_served_and_new_certificates_are_taken(self):
        first = self.make_certificate("first")
        node = self.node("--tls-port", 0, "--tls-auth-clients", "no", "--tls-reload", "no",
                         "--tls-cert-file", self.folder / "cert.pem",
                         "--tls-key-file", self.folder / "key.pem")
        trust = ssl.create_default_context(cadata=first)
        plug = socket.create_connection(("127.0.0.1", int(node.facts["tls_port"])))
        plug = trust.wrap_socket(plug, server_hostname="127.0.0.1")
        self.addCleanup(plug.close)
        old = Client(plug, form=SIGNED)
        self.assertEqual(old("PING"), "+PONG")

        second = self.make_certificate("second")
        self.assertEqual(self.shown(node), first)
        node.signal(signal.SIGHUP)
        until(lambda: self.shown(node) == second, "the second certificate")

        third = self.make_certificate("third")
        self.assertEqual(node.client()("CONFIG", "SET", "tls-cert-file",
                                       self.folder / "cert.pem"), "+OK")
        until(lambda: self.shown(node) == third, "the third certificate")

        (self.folder / "cert.pem").write_text("no certificate")
        node.signal(signal.SIGHUP)
        until(lambda: "event=tls_not_loaded" in node.log(), "the warning")
        self.assertEqual(self.shown(node), third)
        self.assertEqual(node.client()("CONFIG", "SET", "tls-cert-file",
                                       self.folder / "cert.pem"),
                         "-ERR CONFIG SET failed (possibly related to argument 'tls-cert-file') - "
                         "Unable to update TLS configuration. Check server logs.")
        self.assertEqual(node.client()("CONFIG", "SET", "tls-ciphersuites", "none-such"),
                         "-ERR CONFIG SET failed (possibly related to argument "
                         "'tls-ciphersuites') - Unable to update TLS configuration. "
                         "Check server logs.")
        self.assertEqual(self.shown(node), third)

        fourth = self.make_certificate("fourth")
        self.assertEqual(node.client()("CONFIG", "SET", "tls-reload", "yes"), "+OK")
        until(lambda: self.shown(node) == fourth, "the fourth certificate, by itself")
        self.assertEqual(old("PING"), "+PONG")
        self.assertEqual(node.stop(), 0)

    def test_a_certificate_that_cannot_be_read_is_named(self):
        self.make_certificate("any")
        text = self.refusal("--tls-port", 0, "--tls-auth-clients", "no",
                            "--tls-cert-file", self.folder / "none.pem",
                            "--tls-key-file", self.folder / "key.pem", code=1)
        self.assertIn("none.pem", text)


def main(usage):
    global SEMEL
    if len(sys.argv) < 2:
        sys.exit(usage)
    SEMEL = str(pathlib.Path(sys.argv.pop(1)).resolve())
    for name in [name for name in os.environ if name.startswith("SEMEL_")]:
        del os.environ[name]  # settings of a node
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main(__doc__)
