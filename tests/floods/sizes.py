"""R13: requests that are too large, declare too much, or come from unauthenticated clients.

Protocol errors are in redis-server's words, and compared with a redis-server if there is one;
DIFFERENT holds where we answer otherwise, and why.
"""

import contextlib
import time

from good import Flood, in_turns, often, own_core, p99_of
from server import Client, Node, encode, redis_for, until

KIB, MIB = 1 << 10, 1 << 20
KEY_MAX, VALUE_MAX, ARGUMENTS_MAX = 64 * KIB, 16 * MIB, 1 << 20
PASSWORD = 'secret'

FORMS = [
    b'*-1\r\nPING\r\n', b'*0\r\nPING\r\n', b'*-2147483648\r\nPING\r\n', b'*x\r\n',
    b'*99999999999999999999\r\n', b'*1\r\n$-1\r\n', b'*1\r\n$536870913\r\n',
    b'*1\r\n$99999999999999999999\r\n', b'*1\r\n$x\r\n', b'*1\r\nPING\r\n', b'*1\r\n:1\r\n',
    b'"\r\n', b"'a\r\n", b'"a"b\r\n', b'\r\nPING\r\n', b'*1\r\n$0\r\n\r\n', b'*2147483648\r\n',
]
# Which of two errors redis-server gives depends on how these come in, and so it may take the first.
LINES = [b'a' * (64 * KIB + 2), b'*' + b'1' * (64 * KIB + 1), b'*1\r\n$' + b'1' * (64 * KIB + 1)]
# redis-server accepts 2^31 - 1 arguments; here 2^20 are the most, and more are refused at once.
DIFFERENT = {b'*2147483647\r\n': b'-ERR Protocol error: invalid multibulk length\r\n',
             b'*1048577\r\n': b'-ERR Protocol error: invalid multibulk length\r\n'}


def answer(port, data):
    """What comes to these bytes and whether the connection is closed then."""
    client = Client(port)
    try:
        client.raw(data)
        client.raw(b'*1\r\n$4\r\nPING\r\n')
    except OSError:
        pass  # closed before it was all sent
    client.plug.settimeout(0.15)
    heard = client.to_end()
    if heard is not None:
        return heard, 'closed'
    client.close()
    client = Client(port)
    client.raw(data + b'*1\r\n$4\r\nPING\r\n')
    text = b''
    client.plug.settimeout(0.15)
    try:
        while True:
            text += client.plug.recv(65536)
    except TimeoutError:
        return text, 'open'


def forms(judge, node, redis):
    same = 0
    for data in FORMS:
        ours = answer(node.port, data)
        theirs = answer(redis.port, data) if redis else ours
        if ours == theirs:
            same += 1
        else:
            judge.note(f'{data[:40]!r}: {ours[0][:100]!r} {ours[1]}, redis-server: '
                       f'{theirs[0][:100]!r} {theirs[1]}')
    judge.holds('R13', f'{len(FORMS)} forms of requests are answered as by redis-server',
                same == len(FORMS), f'{same} the same')
    refused = all(answer(node.port, data)[0].startswith(text) for data, text in DIFFERENT.items())
    lines = [answer(node.port, data) for data in LINES]
    judge.holds('R13', 'lines over 64 KiB end the connection',
                all(text.startswith(b'-ERR Protocol error: ') and how == 'closed'
                    for text, how in lines))
    judge.holds('R13', '2^31-1 arguments are refused where redis-server would wait', refused)


def bounds(judge, node):
    """Each at the limit and one beyond."""
    client = node.client()
    right = client.ask('SET', b'k' * KEY_MAX, 'v') == b'+OK\r\n'
    text = client.ask('SET', b'k' * (KEY_MAX + 1), 'v')
    judge.holds('R13', 'a key of 64 KiB is taken, one byte more refused with size and limit',
                right and b'65537' in text and b'65536' in text, text[:90].decode())
    right = client.ask('SET', 'k', b'v' * VALUE_MAX) == b'+OK\r\n'
    text = client.ask('SET', 'k', b'v' * (VALUE_MAX + 1))
    judge.holds('R13', 'a value of 16 MiB is taken, one byte more refused with size and limit',
                right and b'16777217' in text and b'16777216' in text, text[:90].decode())
    judge.holds('R13', 'and the connection goes on', client.ask('PING') == b'+PONG\r\n')
    client.raw(b'*%d\r\n' % ARGUMENTS_MAX + encode('DEL')[4:] +
                b'$1\r\nk\r\n' * (ARGUMENTS_MAX - 1))
    text = client.reply()
    judge.holds('R13', '2^20 arguments are taken', text.startswith(b':') or b'ERR' in text,
                text[:60].decode())
    judge.holds('R13', 'an inline line of 64 KiB is taken, one byte more is not',
                node.client().reply_to(b'a' * (64 * KIB) + b'\n').startswith(b'-ERR unknown') and
                b'too big inline' in node.client().reply_to(b'a' * (64 * KIB + 1) + b'\n'))


def declared(judge, node, count):
    """Memory that was announced and never sent."""
    empty = node.rss()
    clients = []
    for _ in range(count):
        client = node.client()
        client.raw(b'*1048576\r\n$536870912\r\nabc')
        clients.append(client)
    node.client().ask('PING')
    each = (node.rss() - empty) / count
    judge.most('R13', f'memory of one of {count:,} that declare 2^20 x 512 MiB', each / KIB, 8,
               'KiB')
    for client in clients:
        client.close()


def room_is_given_back(judge, node):
    client = node.client()
    client.ask('PING')
    before = node.rss()
    for _ in range(3):
        data = encode('ECHO', b'e' * (64 * MIB))
        client.raw(data[:-1000])
        client.raw(data[-1000:])
        client.reply()
    after = node.rss() - before
    judge.most('R13', 'memory that the allocator keeps after requests and replies of 64 MiB',
               after / MIB, 64, 'MiB')


def unauthenticated(judge, program, place, count):
    with Node(program, place, '--requirepass', PASSWORD, '--request-deadline', '2s') as node:
        Client(node.port).ask('PING')
        empty = node.rss()
        clients = []
        data = b'*10\r\n' + b'$6000\r\n' + b'x' * 6000 + b'\r\n' + b'$10000\r\n' + \
            b'x' * 10000 + b'\r\n' + b'$4000\r\n' + b'x' * 3900
        for _ in range(count):
            client = node.client()
            for at in range(0, len(data), 7000):
                client.raw(data[at:at + 7000])
            clients.append(client)
        Client(node.port).ask('PING')
        each = (node.rss() - empty) / count
        judge.most('R13', f'memory of one of {count:,} before AUTH that send what they may',
                   each / KIB, 32, 'KiB')
        cut, took = until(lambda: all(client.is_closed() for client in clients), 8)
        judge.holds('R13', 'they are cut at the deadline of 2 s', cut, f'{took:.1f} s')
        quiet = node.client()
        quiet.plug.settimeout(5)
        text = quiet.to_end()
        judge.holds('R13', 'so is who says nothing and does not log in',
                    bool(text) and b'not authenticated within' in text, repr(text))
        for text, want in ((b'*11\r\n', b'unauthenticated multibulk length'),
                           (b'*1\r\n$16385\r\n', b'unauthenticated bulk length')):
            judge.holds('R13', f'{text!r} before AUTH is refused',
                        want in node.client().reply_to(text))


def unread_refusals(judge, program, place):
    """CVE-2025-21605: replies pile up for unauthenticated clients."""
    with Node(program, place, '--requirepass', PASSWORD) as node:
        Client(node.port).ask('PING')
        empty = node.rss()
        client = Client(node.port, receive_buffer=4096)
        client.plug.settimeout(0.2)
        sent, most = 0, 0
        began = time.monotonic()
        while time.monotonic() - began < 10:
            try:
                sent += client.plug.send(b'PING\r\n' * 10_000)
            except TimeoutError:
                pass
            except OSError:
                break
            most = max(most, node.rss() - empty)
        cut, _ = until(lambda: client.is_closed(), 2)
        judge.holds('R13', 'who reads no refusals before AUTH is cut', cut, f'{sent / MIB:.1f} MiB')
        judge.most('R13', 'memory of the node until then', most / MIB, 8, 'MiB')


def err(port):
    """CVE-2025-48367: errors of the protocol before AUTH."""
    client = Client(port)
    client.raw(b'*99\r\n')
    if b'unauthenticated' not in client.plug.recv(128):
        raise SystemExit('a protocol error was not answered')
    client.cut()


def starvation(judge, program, place, seconds, rounds):
    with Node(program, place, '--requirepass', PASSWORD) as node:
        own_core()
        node.client()
        lines = node.log().count('\n')

        _, _, quotient, counts = in_turns(lambda: p99_of(node.port, seconds, PASSWORD),
                                        lambda: Flood(often, node.port, err, 1_000), rounds)
        judge.most('R13', f'p99 beside {sum(counts):,} protocol errors without a login, to alone',
                   quotient, 1.5, 'x')
        judge.most('R13', 'lines that they put into the log', node.log().count('\n') - lines, 20)


def run(judge, program, place, is_long):
    redis = redis_for(place)
    with Node(program, place) as node, redis or contextlib.nullcontext():
        forms(judge, node, redis)
        bounds(judge, node)
    with Node(program, place) as node:
        declared(judge, node, 5_000 if is_long else 1_000)
        room_is_given_back(judge, node)
    unauthenticated(judge, program, place, 5_000 if is_long else 1_000)
    unread_refusals(judge, program, place)
    starvation(judge, program, place, *((2, 15) if is_long else (0.5, 7)))
