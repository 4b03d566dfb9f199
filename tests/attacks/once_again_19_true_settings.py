"""CONFIG GET shows what is true, and a start refuses what cannot be kept."""

import os
import pathlib
import tempfile

from node import ErrorReply, Node, prove

FILES = 300  # open files that the shell below allows


def shown(client, name):
    return client("CONFIG", "GET", name)[1].decode()


def maxclients(program, folder):
    file = folder / "semel.toml"
    file.write_text("[server]\nmaxclients = 1000000\n")
    under = ("sh", "-c", f"ulimit -n {FILES}; exec \"$@\"", "sh")
    with Node(program, "--config", file, under=under) as node:
        client = node.client()
        present = int(shown(client, "maxclients"))
        assert present < FILES, present
        assert f"maxclients:{present}\r\n" in client("INFO", "clients").decode()
        assert f"maxclients is now {present}" in node.log(), node.log()
        assert isinstance(client("CONFIG", "SET", "maxclients", "1000000"), ErrorReply)
        assert client("CONFIG", "SET", "maxclients", str(present)) == "OK"
    # What was asked for stays in the file unless CONFIG SET changed it.
    file.write_text("[server]\nmaxclients = 1000000\n")
    with Node(program, "--config", file, under=under) as node:
        assert node.client()("CONFIG", "REWRITE") == "OK"
    assert file.read_text() == "[server]\nmaxclients = 1000000\n"


def maxmemory(program):
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    above = min(4 * machine, 256 << 30)
    if above <= machine:
        return
    # Addresses are all that the engine needs: a start takes it, and says so in the log.
    with Node(program, "--maxmemory", above) as node:
        client = node.client()
        assert shown(client, "maxmemory") == str(above)
        assert "maxmemory_above_machine" in node.log(), node.log()
        assert client("CONFIG", "SET", "maxmemory", "1gb") == "OK"
        assert client("CONFIG", "SET", "maxmemory", str(above)) == "OK"
    with Node(program) as node:
        client = node.client()
        assert "maxmemory_above_machine" not in node.log(), node.log()
        reply = client("CONFIG", "SET", "maxmemory", str(above))
        assert isinstance(reply, ErrorReply) and "start the node anew" in reply, reply
        assert shown(client, "maxmemory") == str(1 << 30)


def backups(program):
    with Node(program, "--backup-dir", "{dir}/backups", ready=False) as node:
        assert node.wait() == 2, node.log()
        assert "backup-dir" in node.log() and "storage-enabled" in node.log(), node.log()
    with Node(program, "--backup-dir", "{dir}", "--storage-enabled", "yes", "--dir", "{dir}/data",
              "--durability", "logged") as node:
        assert node.client()("BGSAVE") == "Background saving started"


def test(program):
    with tempfile.TemporaryDirectory() as name:
        maxclients(program, pathlib.Path(name))
    maxmemory(program)
    backups(program)


prove(19, "CONFIG GET is true of maxclients and maxmemory, and no backup goes nowhere", test)
