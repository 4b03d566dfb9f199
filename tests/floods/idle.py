"""R11: connections that do nothing."""

import resource
import socket
import statistics

from good import own_core, p99_of
from server import Node, redis_for

MOST = 19_000
OURS = 200  # descriptors of this process beside those


def many():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return MOST if hard == resource.RLIM_INFINITY else min(MOST, hard - OURS)


def connect(port, count):
    return [socket.create_connection(('127.0.0.1', port), timeout=20) for _ in range(count)]


def memory(server, count):
    """Bytes each, before the first command and after it; and the connections."""
    server.client().ask('PING')
    empty = server.rss()
    clients = connect(server.port, count)
    server.client().ask('PING')  # the last of them is in
    before = (server.rss() - empty) / count
    for client in clients:
        client.sendall(b'*3\r\n$3\r\nSET\r\n$4\r\nidle\r\n$1\r\nv\r\n')
    for client in clients:
        client.recv(16)
    return before, (server.rss() - empty) / count, clients


def run(judge, program, place, is_long):
    count = many()
    judge.note(f'{count:,} connections, as the limit of open files allows')
    with Node(program, place, '--maxclients', count + 50) as node, \
            Node(program, place) as other:
        before, after, clients = memory(node, count)
        judge.most('R11', f'memory of one of {count:,} before its first command', before, 1536,
                   'bytes')
        judge.most('R11', 'memory of it after that', after, 4096, 'bytes')
        seconds, rounds = (2, 15) if is_long else (0.5, 7)
        own_core()
        ratios = []
        for _ in range(rounds):
            alone = p99_of(other.port, seconds)
            ratios.append(p99_of(node.port, seconds) / alone)
        judge.most('R11', 'p99 of a good client beside them, to that of a node without',
                   statistics.median(ratios), 1.2, 'x')
        for client in clients:
            client.close()
    redis = redis_for(place, '--maxclients', count + 50)
    if redis is None:
        return
    with redis:
        before, after, clients = memory(redis, count)
        judge.note(f'redis-server: {before:,.0f} bytes before, {after:,.0f} after')
        for client in clients:
            client.close()
