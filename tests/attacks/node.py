"""Starts nodes for the tests in this folder, and speaks to them.

A test is a program `fault_NN_name.py --program PATH_OF_SEMEL`: exit code 0 passed, 1 failed, 77
skipped with a line that says why. Its last line is `fault N: <sentence>: passed`. It takes at most
20 s. The environment variable SEMEL_BUILD_DIR, if set, names the build the program came from.

    from node import Node, prove

    def test(program):
        with Node(program, "--io-threads", "2") as node:
            client = node.client()
            assert client("PING") == "PONG"

    prove(6, "a stuck thread is seen", test)
"""

import argparse
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import servers  # noqa: E402
from servers import encode, ready_facts  # noqa: E402

PATIENCE = 15  # seconds until something that must happen counts as missing
SKIPPED = 77


class ErrorReply(str):
    """The text of an error reply, without its minus."""


class Skip(Exception):
    """This machine cannot run the test; the text says why."""


def until(condition, what, patience=PATIENCE):
    """What `condition` gives as soon as that is true."""
    return servers.until(condition, what, patience)


class Client(servers.Client):
    """Simple strings are texts, errors of a type of their own."""

    status = staticmethod(lambda text: text.decode("latin1"))
    error = staticmethod(lambda text: ErrorReply(text.decode("latin1")))

    def __init__(self, plug):
        super().__init__(plug, PATIENCE)


class Node:
    """A node on a port of 127.0.0.1 that the system chooses, and in a folder of its own.

    `flags` follow `semel node`; "{dir}" in them is the folder. `under`: words in front of the
    program, as of a tool that runs it. `ready`: False starts it without waiting.
    """

    def __init__(self, program, *flags, under=(), environment=None, ready=True, port="0"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="semel_attack_"))
        self.ready_file = self.folder / "ready"
        self.facts = {}
        words = [str(flag).replace("{dir}", str(self.folder)) for flag in flags]
        if port is not None:
            words = ["--port", str(port), *words]
        self.out = self.folder / "stdout"
        self.errors = self.folder / "stderr"
        with self.out.open("wb") as out, self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [*under, program, "node", "--ready-file", str(self.ready_file), *words],
                stdout=out, stderr=errors, cwd=self.folder,
                env={**os.environ, **(environment or {})})
        if ready:
            try:
                self.wait_ready()
            except BaseException:
                self.__exit__()
                raise

    def wait_ready(self):
        def is_ready():
            if self.process.poll() is not None:
                raise AssertionError(f"ended with {self.process.returncode}: {self.log()}")
            return ready_facts(self.ready_file)

        self.facts = until(is_ready, "the ready file")
        return self

    @property
    def port(self):
        return int(self.facts["port"])

    @property
    def pid(self):
        return self.process.pid

    def client(self, host="127.0.0.1", port=None):
        return Client(socket.create_connection((host, port or self.port), timeout=PATIENCE))

    def unix_client(self):
        plug = socket.socket(socket.AF_UNIX)
        plug.settimeout(PATIENCE)
        plug.connect(self.facts["unix"])
        return Client(plug)

    def log(self):
        return self.errors.read_text(errors="replace")

    def is_alive(self):
        return self.process.poll() is None

    def resident_bytes(self):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, patience=PATIENCE):
        """Its exit code; negative: the signal that ended it."""
        return self.process.wait(patience)

    def stop(self, patience=PATIENCE):
        """Ends it as an operator does. Returns the exit code."""
        if self.is_alive():
            self.signal(signal.SIGTERM)
        return self.wait(patience)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.is_alive():
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def prove(number, sentence, test):
    """Runs `test(program)` with the program of the command line, prints the line and ends."""
    parser = argparse.ArgumentParser(description=f"fault {number}: {sentence}")
    parser.add_argument("--program", required=True, help="the program semel")
    program = os.path.abspath(parser.parse_args().program)
    try:
        test(program)
    except Skip as why:
        print(f"fault {number}: {sentence}: skipped, {why}")
        sys.exit(SKIPPED)
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
        print(f"fault {number}: {sentence}: failed")
        sys.exit(1)
    print(f"fault {number}: {sentence}: passed")
    sys.exit(0)
