"""Absolute ends: 10^5 of them come back as they were given, over seconds of real time."""

import time

from node import Node, encode, prove

CALLS = 100_000
BATCH = 2_000
KEPT = 500


def rounds(client, given):
    """Sends `given` (key, end, command) in one go; the ends that are answered."""
    client.raw(b"".join(encode(*command) + encode("PEXPIRETIME", key)
                        for key, _, command in given))
    wrong = []
    for key, end, _ in given:
        client.reply()
        answer = client.reply()
        if answer != end:
            wrong.append((key, end, answer))
    return wrong


def commands(number, end):
    key = f"k{number % 50}"
    yield key, end, ("SET", key, "v", "PXAT", end)
    yield key, end + 1, ("PEXPIREAT", key, end + 1, "GT")
    yield key, end + 1, ("PEXPIREAT", key, end + 1, "LT")
    yield key, end + 2, ("GETEX", key, "PXAT", end + 2)


def test(program):
    with Node(program, "--io-threads", "2") as node:
        client = node.client()
        first = int(time.time() * 1000) + 3_600_000
        untouched = {f"u{i}": first + i * 7 for i in range(KEPT)}
        for key, end in untouched.items():
            client("SET", key, "v", "PXAT", end)
        wrong, sent, moved = [], 0, 0
        while sent < CALLS:
            given = [one for i in range(BATCH // 4) for one in commands(i, first + sent + i)]
            wrong += rounds(client, given)
            sent += len(given)
            for key, end in untouched.items():
                client.raw(encode("PEXPIREAT", key, end, "GT"))
            moved += sum(client.reply() for _ in untouched)
        for key, end in untouched.items():
            assert client("PEXPIRETIME", key) == end, (key, end)
            assert abs(client("PTTL", key) - (end - time.time() * 1000)) < 1_000
        assert not wrong, f"{len(wrong)} of {sent}: {wrong[:3]}"
        assert moved == 0, f"{moved} ends were moved by PEXPIREAT .. GT with the same time"
        script = ("local bad = 0 for i = 1, 1000 do local t = tonumber(ARGV[1]) + i "
                  "redis.call('SET', 'k', 'v', 'PXAT', t) "
                  "if redis.call('PEXPIRETIME', 'k') ~= t then bad = bad + 1 end "
                  "if redis.call('PEXPIREAT', 'k', t, 'GT') ~= 0 then bad = bad + 1 end end "
                  "return bad")
        for _ in range(20):
            assert client("EVAL", script, 0, first) == 0
        span = ("local t = redis.call('TIME') redis.call('SET', 'k', 'v', 'PX', 60000) "
                "return redis.call('PEXPIRETIME', 'k') - 60000 - t[1] * 1000 - "
                "math.floor(t[2] / 1000)")
        off = sum(client("EVAL", span, 0) != 0 for _ in range(5_000))
        assert off == 0, f"{off} of 5000 ends differ from the script's own TIME"


prove(20, "an absolute end is what was given", test)
