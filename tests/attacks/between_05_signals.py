"""Signals: those that ask for nothing end neither node nor gateway, and SIGHUP reads files again.

A gateway that gets SIGHUP goes on with new routes, keys and certificates and with a new log file;
a file that is wrong changes nothing, and requests under way keep what they began with.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading

from node import Node, prove, until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "gateway"))
import harness  # noqa: E402

HARMLESS = ("SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGPIPE", "SIGXFSZ",
            "SIGPWR", "SIGWINCH", "SIGURG", "SIGCHLD", "SIGCONT", "SIGRTMIN", "SIGRTMAX", "SIGHUP")
PAY = '\n[[route]]\nname = "pay"\npath = "/pay/**"\nguard = "idempotency-key"\n'
SHUT = '\n[[route]]\nname = "shut"\npath = "/shut/**"\nguard = "refuse"\n'


class Served:
    """A gateway and its upstream."""

    def __init__(self, program, routes=PAY, settings="threads = 2\n"):
        self.folder = harness.new_directory()
        self.path = pathlib.Path(self.folder.name)
        self.upstream = harness.Upstream()
        self.gateway = harness.Gateway(program, self.upstream.port, routes, self.folder.name,
                                       settings=settings)

    def configure(self, routes, settings="threads = 2\n"):
        text = f'[gateway]\ndefault = "pass"\n{settings}\n{routes}'
        (self.path / "gateway.toml").write_text(text)

    def text(self):
        return self.gateway.log()

    def hang_up(self, words):
        """Sends SIGHUP and waits for a new line with these words."""
        seen = len(self.text())
        self.gateway.signal(signal.SIGHUP)
        return until(lambda: next((line for line in self.text()[seen:].splitlines()
                                   if words in line), None), f"a line with {words!r}")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.gateway.end()
        self.upstream.stop()
        self.folder.cleanup()


def harmless_signals_end_nothing(program):
    with Served(program) as served:
        gateway = served.gateway
        with harness.Client(gateway.port) as client:
            client.send(harness.message(target="/pay?do=hold&name=h", key="k"))
            assert served.upstream.arrived["h"].wait(harness.WITHIN)
            for name in HARMLESS:
                gateway.signal(getattr(signal, name))
                assert gateway.request("GET", "/a").status == 200, name
            until(lambda: served.text().count(" is ignored") >= 9, "lines about signals")
            served.upstream.release("h")
            assert client.receive().status == 201
        assert gateway.stop() == 0
    with Node(program) as node:
        client = node.client()
        for name in HARMLESS:
            node.signal(getattr(signal, name))
            assert client("PING") == "PONG", name
        assert node.stop() == 0


def routes_are_read_again(program):
    with Served(program) as served:
        gateway = served.gateway
        assert gateway.request(key="before").status == 201
        with harness.Client(gateway.port) as client:
            client.send(harness.message(target="/pay?do=hold&name=h", key="under-way"))
            assert served.upstream.arrived["h"].wait(harness.WITHIN)
            served.configure(PAY.replace("idempotency-key", "refuse") + SHUT)
            line = served.hang_up("reloaded 2 routes")
            assert "restart" not in line, line
            until(lambda: gateway.request("GET", "/shut").status == 403, "the new route")
            until(lambda: gateway.request(key="new").status == 403, "the new terms")
            served.upstream.release("h")
            assert client.receive().status == 201  # by the terms it began with
        served.configure(PAY)
        served.hang_up("reloaded 1 routes")
        until(lambda: gateway.request("GET", "/shut").status == 200, "the route's end")
        reply = until(lambda: (again := gateway.request(key="before")).status == 201 and again,
                      "the old terms")
        assert reply.is_replay  # nothing is forgotten
        assert gateway.request(target="/pay?do=hold&name=h", key="under-way").is_replay
        series = 'semel_gateway_requests_total{route="pay",outcome="granted"}'
        assert gateway.wait_for_metric(series, 2) == 2  # a route goes on counting


def a_wrong_file_changes_nothing(program):
    with Served(program) as served:
        gateway = served.gateway
        for wrong in ("guard = ", SHUT + '\n[[route]]\nname = "shut"\npath = "/x"\n',
                      SHUT + '\n[[route]]\nname = "hook"\npath = "/h"\nsignature = true\n'
                      'signature-keys = ["nobody"]\n'):
            served.configure(PAY + wrong)
            served.hang_up("not reloaded")
            assert gateway.request("GET", "/shut").status == 200
            assert gateway.request(key="k").status == 201
        os.remove(served.path / "gateway.toml")
        served.hang_up("not reloaded")
        assert "cannot be read" in served.text()
        served.configure(PAY + SHUT, "threads = 3\nconnections = 7\n")
        line = served.hang_up("reloaded 2 routes")
        assert line.endswith("need a restart: threads, connections"), line
        until(lambda: gateway.request("GET", "/shut").status == 403, "the new route")


def the_log_is_opened_again(program):
    with Served(program) as served:
        log, rotated = pathlib.Path(served.gateway.access_log), served.path / "access.log.1"
        assert served.gateway.request("GET", "/first").status == 200
        until(lambda: "/first" in log.read_text(), "a line")
        log.rename(rotated)
        served.hang_up("reloaded")
        assert served.gateway.request("GET", "/second").status == 200
        until(lambda: log.exists() and "/second" in log.read_text(), "a line in the new file")
        assert "/second" not in rotated.read_text()
        assert all(json.loads(line) for line in log.read_text().splitlines())
        # The log is rotated also where the settings cannot be used.
        log.rename(rotated)
        served.configure("wrong")
        served.hang_up("not reloaded")
        assert served.gateway.request("GET", "/third").status == 200
        until(lambda: log.exists() and "/third" in log.read_text(), "a line in the newest file")


def certificate(folder, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", f"{folder}/{name}.key",
                    "-out", f"{folder}/{name}.crt"], check=True, capture_output=True)


def name_shown(port):
    """The common name of the certificate that a client is shown."""
    plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    plain.check_hostname = False
    plain.verify_mode = ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), harness.WITHIN) as plug:
        with plain.wrap_socket(plug) as secure:
            shown = secure.getpeercert(binary_form=True)
    for name in (b"old", b"new"):
        if b"\x0c\x03" + name in shown:
            return name.decode()
    raise AssertionError("another certificate")


def certificates_are_read_again(program):
    folder = harness.new_directory()
    with contextlib.ExitStack() as stack:
        stack.callback(folder.cleanup)
        for name in ("old", "new"):
            certificate(folder.name, name)
        used = f"{folder.name}/used"

        def install(name, key=None):
            shutil.copy(f"{folder.name}/{name}.crt", used + ".crt")
            shutil.copy(f"{folder.name}/{key or name}.key", used + ".key")

        install("old")
        settings = f'threads = 2\ntls-cert = "{used}.crt"\ntls-key = "{used}.key"\n'
        served = stack.enter_context(Served(program, settings=settings))
        port = served.gateway.port
        assert name_shown(port) == "old"
        install("new", key="old")
        assert "used.key" in served.hang_up("used.key")
        until(lambda: "not reloaded" in served.text(), "a line")
        assert name_shown(port) == "old"
        install("new")
        served.hang_up("reloaded")
        assert name_shown(port) == "new"


def many_reloads_under_load(program):
    """Each request is answered, by the old terms or the new ones, and each effect is there once."""
    with Served(program) as served:
        gateway, ended, failures = served.gateway, threading.Event(), []

        def load(number):
            count = 0
            with harness.Client(gateway.port) as client:
                while not ended.is_set():
                    count += 1
                    body = b"%d-%d" % (number, count)
                    for _ in range(2):
                        reply = client.request(body=body, key=body.decode())
                        if reply is None or reply.status != 201:
                            failures.append((body, reply and reply.status))
                            return

        threads = [threading.Thread(target=load, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        try:
            for i in range(20):
                served.configure(PAY + (SHUT if i % 2 else ""))
                served.hang_up("reloaded")
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        assert not failures, failures
        assert served.upstream.effects and set(served.upstream.effects.values()) == {1}
        assert gateway.stop() == 0


def a_node_as_the_store(program):
    """Its namespaces are declared with the new routes; without a node nothing changes."""
    with Node(program, "--storage-enabled", "yes", "--durability", "synced", "--dir",
              "{dir}/data") as node:
        store = f'store-node = ["127.0.0.1:{node.port}"]\nthreads = 2\n'
        with Served(program, settings=store) as served:
            assert served.gateway.request(key="k").status == 201
            more = '\n[[route]]\nname = "more"\npath = "/more"\nguard = "idempotency-key"\n'
            served.configure(PAY + more, store)
            served.hang_up("reloaded 2 routes")
            until(lambda: served.gateway.request(target="/more", key="m").status == 201,
                  "the new route")
            until(lambda: served.gateway.request(target="/more", key="m").is_replay, "a replay")
            assert served.gateway.request(key="k").is_replay
            assert node.stop() == 0
            served.configure(PAY, store)
            served.hang_up("not reloaded")


def test(program):
    for part in (harmless_signals_end_nothing, routes_are_read_again, a_wrong_file_changes_nothing,
                 the_log_is_opened_again, certificates_are_read_again, many_reloads_under_load,
                 a_node_as_the_store):
        print(part.__name__, flush=True)
        part(program)


prove(5, "signals that ask for nothing end nothing, and SIGHUP reads files again", test)
