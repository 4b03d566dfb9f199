"""R12: peers that are slow on purpose, come and go, ask and do not read."""

import time

from good import Flood, in_turns, often, own_core, p99_of
from server import Client, Node, encode, redis_for, until

DEADLINE_MS = 3_000
SLACK = 2.2  # seconds; the node looks at a deadline once a second, and so do we at a client
MIB = 1 << 20


def drip(port, flood, count):
    """A byte a second of a request each; how many were cut, and after how long the last one."""
    clients = [Client(port) for _ in range(count)]
    began = [time.monotonic()] * count
    for client in clients:
        client.raw(b'*')
    flood.begin()
    request = encode('SET', 'slow', 'x' * 1000)
    lives, latest, text = set(range(count)), 0, b''
    for client in clients:
        client.plug.setblocking(False)
    step = 0
    while lives and not flood.over():
        started = time.monotonic()
        # One in fifty at a time, so that they do not come as one.
        for at in range(step % 50, count, 50):
            if at not in lives:
                continue
            try:
                text = clients[at].plug.recv(256) or text
                lives.discard(at)
                latest = max(latest, time.monotonic() - began[at])
                continue
            except BlockingIOError:
                pass
            except OSError:
                lives.discard(at)
                continue
            try:
                clients[at].plug.send(request[step // 50 + 1:step // 50 + 2])
            except OSError:
                pass
        step += 1
        flood.stop.wait(max(0, 0.02 - (time.monotonic() - started)))
    for client in clients:
        client.close()
    return len(lives), latest, text


def knock(port):
    client = Client(port)
    client.raw(b'PING\r\n')
    client.plug.recv(16)
    client.cut()


def slowloris(judge, program, place, count, seconds, rounds):
    with Node(program, place, '--request-deadline', f'{DEADLINE_MS}ms') as node:
        own_core()
        until_cut = DEADLINE_MS / 1000 + SLACK
        node.client().ask('PING')
        empty = node.rss()
        with Flood(drip, node.port, count) as flood:
            memory = (node.rss() - empty) / count
            time.sleep(until_cut + 0.5)
        left, latest, text = flood.result
        judge.note(f'{count:,} clients send a byte a second; got {text!r}; '
                   f'{memory:,.0f} bytes of memory each')
        judge.most('R12', f'of {count:,} slow requests not cut', left, 0)
        judge.most('R12', f'seconds until the last was cut, deadline {DEADLINE_MS / 1000:g}',
                   latest, until_cut, 's')
    with Node(program, place) as node:
        _, _, quotient, _ = in_turns(lambda: p99_of(node.port, seconds),
                                     lambda: Flood(drip, node.port, count), rounds)
        judge.most('R12', 'p99 of a good client beside them, to alone', quotient, 1.5, 'x')


def reconnects(judge, program, place, seconds, rounds):
    with Node(program, place) as node:
        own_core()
        _, _, quotient, results = in_turns(
            lambda: p99_of(node.port, seconds), lambda: Flood(often, node.port, knock, 1_000),
            rounds)
        judge.note(f'{sum(results):,} reconnects in {rounds} turns of {seconds} s')
        judge.most('R12', 'p99 of a good client beside them, to alone', quotient, 1.5, 'x')
        judge.most('R12', 'connections that the node still has', int(node.info(
            'connected_clients')), 3)


def hoard(port, flood, count, requests):
    """Asks for much and reads nothing."""
    clients = [Client(port, receive_buffer=4096) for _ in range(count)]
    for client in clients:
        client.raw(requests)
    flood.begin()
    flood.stop.wait()
    for client in clients:
        client.cut()


def unread_replies(judge, program, place, count, seconds, rounds):
    """200 MiB of replies are asked for by each. The node makes 64 at once, and more when those are
    read."""
    value = b'v' * MIB
    with Node(program, place) as node:
        own_core()
        node.client().ask('SET', 'big', value)
        empty = node.rss()
        with Flood(hoard, node.port, count, encode('GET', 'big') * 200):
            node.client().ask('PING')
            time.sleep(1)
            each = (node.rss() - empty) / count
        _, _, quotient, _ = in_turns(
            lambda: p99_of(node.port, seconds),
            lambda: Flood(hoard, node.port, count, encode('GET', 'big') * 200), rounds)
        judge.most('R12', f'memory of one of {count} that ask for 200 MiB and read nothing',
                   each / MIB, 70, 'MiB')
        judge.most('R12', 'p99 of a good client beside them, to alone', quotient, 1.5, 'x')
    redis = redis_for(place)
    if redis is not None:
        with redis:
            redis.client().ask('SET', 'big', value)
            empty = redis.rss()
            with Flood(hoard, redis.port, 4, encode('GET', 'big') * 200):
                redis.client().ask('PING')
                time.sleep(0.5)
                judge.note(f'redis-server: {(redis.rss() - empty) / 4 / MIB:,.0f} MiB for each '
                           'of 4')
    limits = 'normal 1048576 524288 1'
    with Node(program, place, '--client-output-buffer-limit', limits) as node:
        node.client().ask('SET', 'big', value)
        with Flood(hoard, node.port, count, encode('GET', 'big') * 200):
            cut, took = until(lambda: int(node.info('connected_clients')) <= 2)
        judge.holds('R12', f'all are cut under client-output-buffer-limit {limits}', cut,
                    f'{took:.1f} s')


def unread_messages(judge, program, place, count):
    limit, message = 2 * MIB, b'm' * 65_536
    limits = f'pubsub {limit} 0 0'
    with Node(program, place, '--client-output-buffer-limit', limits) as node:
        deaf = [Client(node.port, receive_buffer=4096) for _ in range(count)]
        for client in deaf:
            client.send('SUBSCRIBE', 'news')
            client.plug.recv(256)
        listener = node.client()
        listener.send('SUBSCRIBE', 'news')
        listener.plug.recv(256)
        publisher = node.client()
        empty, most, heard, sent = node.rss(), 0, 0, 0
        while sent < 400:
            receivers = int(publisher.ask('PUBLISH', 'news', message)[1:-2])
            sent += 1
            most = max(most, node.rss() - empty)
            want = len(b'*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$65536\r\n') + len(message) + 2
            while want:
                want -= len(listener.plug.recv(want))
            heard += 1
            if receivers == 1:
                break
        judge.holds('R12', f'{count} that subscribe and do not read are cut, the listener is not',
                    receivers == 1 and heard == sent, f'{sent} messages')
        judge.most('R12', f'memory of each until then, limit {limit / MIB:g} MiB',
                   most / count / MIB, 1.5 * limit / MIB, 'MiB')
        closed, _ = until(lambda: all(client.is_closed() for client in deaf), 5)
        judge.holds('R12', 'their connections are closed', closed)


def run(judge, program, place, is_long):
    seconds, rounds = (2, 15) if is_long else (0.5, 7)
    slowloris(judge, program, place, 5_000 if is_long else 500, seconds, rounds)
    reconnects(judge, program, place, seconds, rounds)
    unread_replies(judge, program, place, 100 if is_long else 25, seconds, rounds)
    unread_messages(judge, program, place, 100 if is_long else 25)
