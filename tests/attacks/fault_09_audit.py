"""What clients do to the node is in its log, without secrets; so are those that are refused."""

from node import ErrorReply, Node, prove, until


def test(program):
    with Node(program, "--requirepass", "s3cret-one", "--slowlog-log-slower-than", "0",
              "--monitor", "yes") as node:
        mine = node.client()
        assert isinstance(mine("AUTH", "default", "s3cret-two"), ErrorReply)
        assert mine("AUTH", "s3cret-one") == "OK"
        watcher = node.client()
        assert watcher("AUTH", "s3cret-one") == "OK"
        assert watcher("MONITOR") == "OK"
        mine("COMMAND", "GETKEYS", "AUTH", "s3cret-three")
        mine("ACL", "DRYRUN", "default", "AUTH", "s3cret-four")
        mine("HELLO", "3", "AUTH", "default", "s3cret-five")
        assert mine("CONFIG", "SET", "timeout", "77") == "OK"
        assert mine("CONFIG", "SET", "requirepass", "s3cret-six") == "OK"
        assert mine("ACL", "SETUSER", "ada", "on", ">s3cret-seven") == "OK"
        mine("ACL", "SETUSER", "ada", "<s3cret-eight")
        assert mine("FLUSHALL") == "OK"
        for event in ("login_denied", "config_set", "acl_setuser", "flushall"):
            until(lambda wanted=event: f"event={wanted} " in node.log(), event)
        assert "CONFIG SET timeout 77" in node.log()
        entries = str(mine("SLOWLOG", "GET", "-1"))
        mine("ECHO", "the end")
        seen = b""
        while b"the end" not in seen:
            seen += watcher.lines.readline()
        for place, text in (("log", node.log()), ("slow log", entries), ("monitor", str(seen))):
            assert "s3cret" not in text, (place, text)
        assert mine("CONFIG", "SET", "maxclients", "2") == "OK"
        refused = node.client()
        assert isinstance(refused.reply(), ErrorReply)
        until(lambda: "is refused: maxclients is 2" in node.log(), "a refused client")


prove(9, "the log says who did what, and no secret is in it", test)
