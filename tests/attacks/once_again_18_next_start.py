"""What CONFIG SET takes and CONFIG REWRITE writes, the next start takes.

And a node that is to belong to a group does not serve alone because a word is missing.
"""

import pathlib
import subprocess
import tempfile

from node import ErrorReply, Node, prove

# The file of the node, what CONFIG SET must refuse, and what the error must name.
REFUSED = [
    ("[security]\nrequirepass-file = 'PASSWORD'\n", ("requirepass", "x"), "requirepass-file"),
    ("[memory]\nshards = 64\n", ("maxmemory", "4194304"), "64 shards"),
    ("", ("port", "-1"), "nothing to listen on"),
    ("", ("cluster-ready-lag", "5"), "node-id"),
]
TAKEN = [
    ("", ("proto-max-bulk-len", "100gb")),
    ("", ("client-query-buffer-limit", "1mb")),
    ("[memory]\nshards = 64\n", ("maxmemory", "64mb")),
    ("[memory]\nshards = 1\n", ("maxmemory", "4194304")),
    ("", ("requirepass", "secret", "timeout", "7")),
]
GROUP = {
    "--cluster-id": "feed",
    "--peer": "1=127.0.0.1:7101,127.0.0.1:7001",
    "--cluster-listen": "127.0.0.1:7101",
    "--cluster-forward": "yes",
    "--cluster-lease-reads": "yes",
}


def check(program, *flags):
    done = subprocess.run([program, "node", "--port", "0", "--check-config", *map(str, flags)],
                          capture_output=True, timeout=15, check=False)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def written(folder, text):
    (folder / "password").write_text("pass\n")
    file = folder / "semel.toml"
    file.write_text(text.replace("PASSWORD", str(folder / "password")))
    return file


def client_of(node, text):
    client = node.client()
    if "PASSWORD" in text:
        assert client("AUTH", "pass") == "OK"
    return client


def next_start(program, folder):
    for text, words, named in REFUSED:
        file = written(folder, text)
        with Node(program, "--config", file) as node:
            client = client_of(node, text)
            before = client("CONFIG", "GET", words[0])
            reply = client("CONFIG", "SET", *words)
            assert isinstance(reply, ErrorReply) and named in reply, (words, reply)
            assert client("CONFIG", "GET", words[0]) == before, words
            assert client("SET", "k", "v") == "OK", words
            assert client("CONFIG", "REWRITE") == "OK"
        assert check(program, "--config", file)[0] == 0, words
    for text, words in TAKEN:
        file = written(folder, text)
        with Node(program, "--config", file) as node:
            client = client_of(node, text)
            assert client("CONFIG", "SET", *words) == "OK", words
            if "requirepass" in words:
                assert client("AUTH", "secret") == "OK"
            assert client("CONFIG", "REWRITE") == "OK"
            shown = client("CONFIG", "GET", words[0])
        with Node(program, "--config", file) as node:
            client = node.client()
            if "requirepass" in words:
                assert client("AUTH", "secret") == "OK"
            assert client("CONFIG", "GET", words[0]) == shown, words


def exposed(program, folder):
    """The node serves this machine alone then, and a start refuses it."""
    file = written(folder, "[server]\nbind = ['0.0.0.0']\nprotected-mode = false\n")
    with Node(program, "--config", file) as node:
        client = node.client()
        assert client("CONFIG", "SET", "protected-mode", "yes") == "OK"
        reply = client("CONFIG", "REWRITE")
        assert isinstance(reply, ErrorReply) and "would not start" in reply, reply
        assert client("CONFIG", "SET", "requirepass", "x") == "OK"
        assert client("AUTH", "x") == "OK"
        assert client("CONFIG", "REWRITE") == "OK"
    assert check(program, "--config", file)[0] == 0


def group(program, folder):
    for flag, value in GROUP.items():
        code, text = check(program, flag, value)
        assert code == 2 and "node-id" in text and flag[2:] in text, (flag, code, text)
        with Node(program, flag, value, ready=False) as node:
            assert node.wait() == 2 and flag[2:] in node.log(), node.log()
    # What is missing beside node-id is found without a start, too.
    whole = {"--node-id": "1", "--dir": folder / "member", **GROUP}
    if "built without replication" in check(program, *sum(whole.items(), ()))[1]:
        return
    assert check(program, *sum(whole.items(), ()))[0] == 0
    for flag in ("--dir", "--cluster-id"):
        words = sum(((name, value) for name, value in whole.items() if name != flag), ())
        code, text = check(program, *words)
        assert code == 2 and flag[2:] in text and "is right" not in text, (flag, code, text)
    for words in (("--node-id", "1"), ("--node-id", "1", "--cluster-id", "feed"),
                  ("--node-id", "1", "--cluster-id", "feed", "--dir", folder / "member")):
        code, text = check(program, *words)
        assert code == 2 and "is right" not in text, (words, code, text)
    code, text = check(program, *sum(whole.items(), ()), "--peer", "x")
    assert code == 2 and "'x'" in text, text
    done = subprocess.run([program, "node", "--cluster-init"],
                          capture_output=True, timeout=15, check=False)
    assert done.returncode == 2 and b"node-id is needed" in done.stderr, done.stderr


def test(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        next_start(program, folder)
        exposed(program, folder)
        group(program, folder)


prove(18, "what CONFIG SET and REWRITE leave starts again; no node of a group serves alone", test)
