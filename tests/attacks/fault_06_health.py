"""One io thread is stuck in a call: health says so, and systemd's watchdog is not fed.

The call is ACL LOAD of a file that has become a pipe without a writer; a byte into it ends it.
"""

import os
import pathlib
import socket
import tempfile
import time

from node import Node, prove, until

WATCHDOG_SECONDS = 3


def fed(notices, seconds):
    """How often the watchdog is fed in so much time."""
    count = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        notices.settimeout(max(end - time.monotonic(), 0.001))
        try:
            count += b"WATCHDOG=1" in notices.recv(4096)
        except TimeoutError:
            break
    return count


def test(program):
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        rules = home / "users"
        rules.write_text("user default on nopass ~* &* +@all\n")
        notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notices.bind(str(home / "notify"))
        environment = {"NOTIFY_SOCKET": str(home / "notify"),
                       "WATCHDOG_USEC": str(WATCHDOG_SECONDS * 1_000_000)}
        with Node(program, "--io-threads", "2", "--admin-port", "0", "--aclfile", rules,
                  environment=environment) as node:
            until(lambda: node.page("/readyz")[0] == 200, "readiness")
            assert fed(notices, WATCHDOG_SECONDS) >= 1
            rules.unlink()
            os.mkfifo(rules)
            stuck = node.client()
            stuck.send("ACL", "LOAD")
            # A thread is missed after half of systemd's time, so that it is noticed in all of it.
            time.sleep(WATCHDOG_SECONDS / 2 + 0.3)
            fed(notices, 0.05)
            assert fed(notices, WATCHDOG_SECONDS) == 0
            status, text = until(lambda: (page := node.page("/readyz"))[0] == 503 and page, "a 503")
            assert status == 503 and "io thread" in text and "has not answered for" in text, text
            until(lambda: "event=thread_silent" in node.log(), "a line in the log")
            with rules.open("w") as pipe:
                pipe.write("user default on nopass ~* &* +@all\n")
            assert stuck.reply() == "OK"
            until(lambda: node.page("/readyz")[0] == 200, "readiness again")
            assert fed(notices, WATCHDOG_SECONDS) >= 1


prove(6, "a stuck io thread is seen by health and by the watchdog", test)
