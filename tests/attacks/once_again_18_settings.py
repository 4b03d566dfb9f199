"""What a setting promises and the node does not do is refused at the start, whatever gives it."""

import pathlib
import subprocess
import tempfile

from node import Node, prove

# A way to ask for it, and what the error must name.
PROMISES = [
    (("--appendonly", "yes"), "--storage-enabled yes --dir DIR --durability logged"),
    (("--save", "900 1"), "--storage-enabled yes --dir DIR --durability logged"),
    (("--maxmemory-policy", "allkeys-lru"), "noeviction"),
    (("--cluster-enabled", "yes"), "node-id, cluster-id and peer"),
    (("--min-replicas-to-write", "1"), "no write waits for replicas of redis-server"),
    (("--appendfsync", "always"), "--durability synced"),
    (("--rdbcompression", "no"), "no RDB files"),
    (("--aof-load-truncated", "no"), "accept-unknown-namespaces"),
    (("--loadmodule", "/lib/bloom.so"), "no modules"),
    (("--hz", "100"), "ten times a second"),
]
TRUE_ALREADY = ["--appendonly", "no", "--save", "", "--maxmemory-policy", "noeviction",
                "--cluster-enabled", "no", "--replicaof", "no one"]


def start(program, *flags, environment=None):
    done = subprocess.run([program, "node", "--port", "0", "--check-config", *flags],
                          capture_output=True, timeout=15, check=False, env=environment)
    return done.returncode, done.stderr.decode(errors="replace")


def refuses(program):
    for words, remedy in PROMISES:
        code, text = start(program, *words)
        assert code == 2, (words, code, text)
        assert remedy in text and words[0] in text, (words, text)
        if words[0] == "--loadmodule":
            continue
        assert words[1] in text, text
        name = "SEMEL_" + words[0][2:].upper().replace("-", "_")
        code, text = start(program, environment={name: words[1]})
        assert code == 2 and remedy in text and name in text, (name, code, text)


def redis_conf(program, folder):
    conf = folder / "redis.conf"
    conf.write_text("hz 100\nappendonly yes\n")
    code, text = start(program, "--redis-conf", str(conf))
    assert code == 2 and "appendonly = 'yes'" in text, (code, text)
    assert "hz = '100'" in text and "ignored" in text, text


def test(program):
    refuses(program)
    with tempfile.TemporaryDirectory() as folder:
        redis_conf(program, pathlib.Path(folder))
    with Node(program, *TRUE_ALREADY) as node:
        client = node.client()
        assert client("CONFIG", "GET", "appendonly") == [b"appendonly", b"no"]
        assert client("CONFIG", "GET", "maxmemory-policy")[1] == b"noeviction"
        refused = client("CONFIG", "SET", "appendonly", "yes")
        assert "--durability logged" in refused, refused
        assert client("CONFIG", "GET", "appendonly")[1] == b"no"
    with Node(program, "--storage-enabled", "yes", "--dir", "{dir}/data", "--durability", "logged",
              "--appendonly", "yes") as node:
        client = node.client()
        assert client("CONFIG", "GET", "appendonly")[1] == b"yes"
        assert "aof_enabled:1" in client("INFO", "persistence").decode()
        assert "storage-enabled" in client("CONFIG", "SET", "appendonly", "no")


prove(18, "a promise that is not kept is refused, and CONFIG GET is true", test)
