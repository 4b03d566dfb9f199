"""A node on all addresses whose password is taken away serves this machine only.

Needs an address of this machine that is not loopback; a network namespace of its own gives one
where it is allowed, otherwise an address that the machine has.
"""

import pathlib
import re
import shutil
import socket
import subprocess
import tempfile

from node import ErrorReply, Node, Skip, prove, until


def foreign_address():
    """An address of this machine that is not loopback: what comes from it counts as remote."""
    if shutil.which("ip") is not None:
        found = subprocess.run(["ip", "-4", "-o", "addr", "show"], capture_output=True, check=False)
        for address in re.findall(r"inet ([0-9.]+)/", found.stdout.decode(errors="replace")):
            if not address.startswith("127."):
                return address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: only asks for a route
        except OSError as why:
            raise Skip(f"this machine has no address but loopback ({why})") from why
        return probe.getsockname()[0]


def is_denied(node, address):
    guest = node.client(host=address)
    answer = guest.reply()
    assert isinstance(answer, ErrorReply) and answer.startswith("DENIED "), answer
    assert guest.rest() == b""


def opened_later(program, address, *change):
    with Node(program, "--bind", "0.0.0.0", "--requirepass", "secret") as node:
        early = node.client(host=address)
        assert early("GET", "x").startswith("NOAUTH")
        mine = node.client()
        assert mine("AUTH", "secret") == "OK"
        assert mine(*change) == "OK"
        is_denied(node, address)
        assert early("SET", "x", "1").startswith("NOAUTH")
        assert early("AUTH", "default", "any").startswith("WRONGPASS")
        assert mine("EXISTS", "x") == 0
        until(lambda: "event=default_user_open" in node.log(), "a line about the user")
        until(lambda: "event=client_denied" in node.log(), "a line about the client")
        assert mine("CONFIG", "SET", "protected-mode", "no") == "OK"
        assert node.client(host=address)("PING") == "PONG"


def by_aclfile(program, address):
    with tempfile.TemporaryDirectory() as folder:
        rules = pathlib.Path(folder) / "users"
        rules.write_text("user default off\nuser x on nopass ~* +@all\n")
        with Node(program, "--bind", "0.0.0.0", "--aclfile", rules) as node:
            guest = node.client(host=address)
            assert guest("AUTH", "x", "any").startswith("WRONGPASS")
            assert guest("SET", "a", "b").startswith("NOAUTH")
            assert node.client()("AUTH", "x", "any") == "OK"
        rules.write_text("user default on nopass ~* +@all\n")
        with Node(program, "--bind", "0.0.0.0", "--aclfile", rules, ready=False) as node:
            assert node.wait() == 2, node.log()


def test(program):
    address = foreign_address()
    opened_later(program, address, "CONFIG", "SET", "requirepass", "")
    opened_later(program, address, "ACL", "SETUSER", "default", "nopass")
    by_aclfile(program, address)


prove(4, "protected mode is asked about each connection", test)
