"""R7: file descriptors run out.

Two ways: more clients than maxclients, which the node fits into the limit of open files and which
leaves some to the storage; and a limit that is lowered under the running node, so that accept()
itself fails while connections wait.
"""

import resource
import select
import socket
import tempfile
import time

from good import Flood, in_turns, rate_with
from server import Client, Node, until

LIMIT = 256
WAITING = 600  # more than fit into the backlog of the listener


RATE = 2_000  # attempts a second


def try_often(port, flood, count):
    """Attempts until the end, at most so many at a time; how many, and what they received."""
    poll = select.poll()
    open_ones, heard, tried = {}, {}, 0
    flood.begin()
    began = time.monotonic()
    while not flood.over():
        while len(open_ones) < count and tried < (time.monotonic() - began) * RATE + 10:
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(('127.0.0.1', port))
            open_ones[one.fileno()] = (one, time.monotonic())
            poll.register(one, select.POLLIN)
            tried += 1
        for number, _ in poll.poll(5):
            one, _ = open_ones.pop(number)
            poll.unregister(number)
            try:
                text = one.recv(128)
            except OSError:
                text = b'(reset)'
            heard[text] = heard.get(text, 0) + 1
            one.close()
    for one, _ in open_ones.values():
        one.close()
    return tried, heard


def beyond_maxclients(judge, program, place, seconds, rounds):
    with Node(program, place, files=LIMIT) as node:
        held = []
        for _ in range(LIMIT):
            client = node.client()
            if not client.ask('PING').startswith(b'+PONG'):
                break
            held.append(client)
        judge.note(f'{LIMIT} open files: {len(held)} clients are let in, '
                   f'{node.open_files()} files are open')
        _, _, quotient, results = in_turns(
            lambda: rate_with(held, seconds), lambda: Flood(try_often, node.port, 64), rounds)
        tried = sum(one[0] for one in results)
        heard = {}
        for _, texts in results:
            for text, count in texts.items():
                heard[text] = heard.get(text, 0) + count
        refused = heard.get(b'-ERR max number of clients reached\r\n', 0)
        judge.note(f'{tried:,} attempts over maxclients: {heard}')
        judge.least('R7', 'rate of those inside, attempts over maxclients, to alone',
                    quotient, 0.95, 'x')
        judge.least('R7', 'attempts over maxclients that got the error',
                    100 * refused / max(sum(heard.values()), 1), 99, '%')


def without_descriptors(judge, program, place, seconds, rounds):
    with Node(program, place, files=LIMIT) as node:
        inside = [node.client() for _ in range(8)]
        for client in inside:
            client.ask('PING')
        # One descriptor is left for a new connection, and one for the error reply.
        tight = node.open_files()
        measured = []

        resource.prlimit(node.pid, resource.RLIMIT_NOFILE, (tight, LIMIT))
        _, _, quotient, results = in_turns(lambda: rate_with(inside, seconds),
                                        lambda: Flood(try_often, node.port, WAITING), rounds)
        judge.note(f'{sum(one[0] for one in results):,} attempts while accept() fails: '
                   f'{results[0][1]} in the first turn')
        judge.least('R7', 'rate of those inside while accept() fails, to alone', quotient, 0.95,
                    'x')
        with Flood(try_often, node.port, WAITING):
            began = node.cpu()
            measured.append(time.monotonic())
            time.sleep(max(seconds, 2))
            busy = (node.cpu() - began) / (time.monotonic() - measured[0])
            judge.most('R7', 'processor time of the node while accept() fails, clients idle',
                       100 * busy, 5, '%')
            complaints = node.log().count('cannot be accepted')
            judge.holds('R7', 'its log says so, and not for each', 1 <= complaints <= 20,
                        f'{complaints} lines')
        resource.prlimit(node.pid, resource.RLIMIT_NOFILE, (LIMIT, LIMIT))

        def is_let_in():
            # A connection that finds the backlog full would try again in a second.
            try:
                return Client(node.port, seconds=0.1).ask('PING') == b'+PONG\r\n'
            except OSError:
                return False
        _, took = until(is_let_in)
        judge.most('R7', 'until a client is let in when there are descriptors again', took, 1, 's')


def storage_goes_on(judge, program, place, megabytes):
    """All that may come in is in; the storage still opens files of its log and of RocksDB."""
    with Node(program, place, '--storage-enabled', 'yes', '--durability', 'logged',
                    '--dir', tempfile.mkdtemp(dir=place), files=LIMIT) as node:
        inside = []
        while True:
            client = node.client()
            if client.ask('PING') != b'+PONG\r\n':
                break
            inside.append(client)
        value = b'v' * 65_536
        errors = 0
        with Flood(try_often, node.port, 64):
            for i in range(megabytes * 16):
                reply = inside[i % len(inside)].ask('SET', f'key:{i}', value)
                errors += reply != b'+OK\r\n'
        judge.holds('R7', f'{megabytes} MiB written to the storage with all clients in',
                    errors == 0, f'{errors} errors')
        failures = [line for line in node.log().splitlines() if 'storage' in line and 'level=err'
                    in line]
        judge.most('R7', 'open files of the node then', node.open_files(), LIMIT)
        judge.holds('R7', 'its log has no errors of the storage', not failures)
        for client in inside:
            client.close()
        keys = 0

        def counts():
            nonlocal keys
            try:
                keys = int(Client(node.port).ask('DBSIZE')[1:-2])
            except ValueError:
                return False
            return True
        until(counts)
        judge.holds('R7', 'and every key is there', keys == megabytes * 16, f'{keys:,}')


def run(judge, program, place, is_long):
    seconds, rounds = (2, 15) if is_long else (0.5, 7)
    beyond_maxclients(judge, program, place, seconds, rounds)
    without_descriptors(judge, program, place, seconds, rounds)
    storage_goes_on(judge, program, place, 1024 if is_long else 192)
