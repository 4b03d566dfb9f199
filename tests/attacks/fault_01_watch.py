"""Connections that watch many keys beside writers on other threads: the node stays."""

import random
import threading

from node import Node, encode, prove

ROUNDS = 12
SEED = 1


def work(node, chance, make, replies):
    client = node.client()
    for _ in range(ROUNDS):
        client.raw(make(chance))
        for _ in range(replies):
            client.reply()
    client.close()


def watches(chance):
    names = [f"key:{i:016}" for i in range(chance.choice([30, 60, 120, 400]))]
    return b"".join(encode("WATCH", *names) + encode("UNWATCH") for _ in range(20))


def writes(chance):
    return b"".join(encode("SET", f"key:{chance.randrange(3):016}", "v") for _ in range(200))


def scripts(chance):
    size = chance.choice([48, 192, 768, 3000])
    return b"".join(encode("EVAL", "return {KEYS[1],ARGV[1]}", 1, f"key:{i:016}", "A" * size)
                    for i in range(20))


def test(program):
    print("seed", SEED)
    with Node(program, "--io-threads", "3") as node:
        jobs = [(watches, 40), (watches, 40), (writes, 200), (writes, 200), (scripts, 20),
                (watches, 40)]
        threads = [threading.Thread(target=work, args=(node, random.Random(SEED + i), *job))
                   for i, job in enumerate(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert node.is_alive(), node.log()
        assert node.client()("PING") == "PONG"
        assert node.stop() == 0, node.log()


prove(1, "watched keys beside writers end nothing", test)
