"""--check-config refuses what a start would refuse; a password may come from a file."""

import os
import pathlib
import subprocess
import tempfile

from node import Node, prove


def check(program, *flags):
    done = subprocess.run([program, "node", "--check-config", *map(str, flags)],
                          capture_output=True, timeout=15, check=False)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def is_refused(program, word, *flags):
    code, text = check(program, *flags)
    assert code != 0 and word in text and "is right" not in text, (flags, code, text)


def test(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        broken = folder / "broken"
        broken.write_text("user default on nopass ~* +@all\nuser x on +nosuch\nfoo\n")
        assert check(program)[0] == 0
        tls = ("--tls-port", "0", "--tls-auth-clients", "no", "--tls-cert-file", broken,
               "--tls-key-file", broken)
        is_refused(program, "TLS certificate", *tls)
        is_refused(program, "cannot be read", "--aclfile", folder / "none")
        is_refused(program, "nosuch", "--aclfile", broken)
        is_refused(program, "cannot be read", "--requirepass-file", folder / "none")
        is_refused(program, "not a directory", "--log-file", broken / "log")
        is_refused(program, "not a directory", "--ready-file", broken / "ready")
        is_refused(program, "not a directory", "--unix-socket", broken / "socket")
        is_refused(program, "not a directory", "--storage-enabled", "yes", "--dir", broken / "d")
        is_refused(program, "there is no dir", "--storage-enabled", "yes")
        is_refused(program, "storage-enabled is no", "--durability", "synced")
        is_refused(program, "not an address", "--bind", "192.0.2.77", "--requirepass", "x")
        is_refused(program, "lets everybody in", "--bind", "0.0.0.0")
        # More than one thing is said at once.
        code, text = check(program, "--aclfile", folder / "none", "--log-file", broken / "log")
        assert code != 0 and "aclfile" in text and "log-file" in text, text
        # Nothing was made, and nothing is needed that a start makes.
        store = folder / "store"
        assert check(program, "--storage-enabled", "yes", "--dir", store, "--log-file",
                     folder / "new" / "log")[0] == 0
        assert not (folder / "new").exists() and not store.exists()
        is_refused(program, "does not exist", "--storage-enabled", "yes", "--dir", store / "x")
        with Node(program, "--storage-enabled", "yes", "--dir", store) as node:
            is_refused(program, "in use", "--storage-enabled", "yes", "--dir", store)
            # A port in use says nothing about the configuration.
            assert check(program, "--port", node.port)[0] == 0
        if os.geteuid() != 0:
            closed = folder / "closed"
            closed.mkdir(mode=0o500)
            is_refused(program, "ermission", "--storage-enabled", "yes", "--dir", closed / "d")
        password = folder / "password"
        password.write_text("s3 cret\n")
        assert check(program, "--requirepass-file", password)[0] == 0
        is_refused(program, "requirepass", "--requirepass-file", password, "--requirepass", "x")
        with Node(program, "--requirepass-file", password) as node:
            client = node.client()
            assert client("GET", "k").startswith("NOAUTH")
            assert client("AUTH", "s3 cret") == "OK"
            command = pathlib.Path(f"/proc/{node.pid}/cmdline").read_bytes()
            assert b"s3 cret" not in command


prove(9, "a configuration that is called right starts", test)
