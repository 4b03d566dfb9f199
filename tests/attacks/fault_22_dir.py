"""A directory without a storage is an error, not a node that forgets."""

import subprocess

from node import Node, prove


def start(program, *flags):
    done = subprocess.run([program, "node", "--port", "0", *map(str, flags)], capture_output=True,
                          timeout=15, check=False)
    return done.returncode, done.stderr.decode(errors="replace")


def test(program):
    code, text = start(program, "--dir", "/tmp/semel-nowhere")
    assert code == 2 and "storage-enabled" in text, (code, text)
    code, text = start(program, "--dir", "/tmp/semel-nowhere", "--check-config")
    assert code == 2 and "storage-enabled" in text, (code, text)
    code, text = start(program, "--durability", "logged")
    assert code == 2 and "storage-enabled" in text, (code, text)
    with Node(program, "--dir", "{dir}/data", "--storage-enabled", "no") as node:
        assert node.client()("PING") == "PONG"


prove(22, "--dir without a storage is refused", test)
