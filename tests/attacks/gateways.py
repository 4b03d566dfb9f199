"""Starts gateways for the tests of this folder: between_NN_name.py --program PATH_OF_SEMEL.

A test is a unittest whose cases are made of Case. Its upstream is that of tests/gateway/harness.py.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "gateway"))
# pylint: disable=wrong-import-position,unused-import
from harness import (WITHIN, Client, Gateway, Upstream, handshake, message,  # noqa: E402,F401
                     new_directory)
from stores import wait_until  # noqa: E402,F401

PAYMENTS = """
[[route]]
name = "payments"
methods = ["POST"]
path = "/payments/**"
guard = "idempotency-key"
"""


class Case(unittest.TestCase):
    """A gateway in front of an upstream; `routes` and `settings` are its configuration."""

    program = ""
    routes = PAYMENTS
    settings = "threads = 1\n"

    def start(self, upstream):
        directory = new_directory()
        self.addCleanup(directory.cleanup)
        self.upstream = upstream
        self.addCleanup(upstream.stop)
        self.gateway = Gateway(Case.program, upstream.port, self.routes, directory.name,
                               settings=self.settings)
        self.addCleanup(self.gateway.end)

    def ask(self, line, fields=(), body=b"{}"):
        """One request, its lines as they are."""
        head = [line, "Host: shop", "Authorization: alice", *fields]
        if body is not None:
            head.append(f"Content-Length: {len(body)}")
        with Client(self.gateway.port) as client:
            client.send("\r\n".join([*head, "", ""]).encode() + (body or b""))
            return client.receive(line.split(" ")[0])

    def refuses(self, line, fields, status, problem, body=b"{}"):
        """It is refused by this name, and the upstream has seen nothing."""
        before = len(self.upstream.requests)
        reply = self.ask(line, fields, body)
        self.assertEqual(reply.status, status, line)
        if problem is not None:
            self.assertEqual(reply.problem, problem)
        self.assertEqual(len(self.upstream.requests), before, line)
        return reply


def check_config(text, directory, *flags):
    """The exit code and the lines of `--check-config`."""
    path = os.path.join(directory, "checked.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    ended = subprocess.run([Case.program, "gateway", *flags, "--config", path, "--check-config"],
                           capture_output=True, text=True, timeout=WITHIN, check=False)
    return ended.returncode, ended.stderr.splitlines()


def main(sentence):
    parser = argparse.ArgumentParser(description=sentence)
    parser.add_argument("--program", required=True, help="the program semel")
    arguments, rest = parser.parse_known_args()
    Case.program = os.path.abspath(arguments.program)
    unittest.main(argv=[sys.argv[0], *rest])
