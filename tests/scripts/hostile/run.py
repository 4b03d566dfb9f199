#!/usr/bin/env python3
"""Hostile scripts against a node with small bounds: tests/scripts/hostile/run.py [NAME]..

The head of each file in cases/ says what it tries, what must come back, and how it is sent:

    -- Tries: to run for ever.
    -- Expects: error | reply TEXT | either
    -- As: eval | library (FUNCTION LOAD) | fcall (loaded, then its function f is called)

and @{TEXT * N} stands for N times TEXT. A script must be answered within its bounds; meanwhile
others are answered, with BUSY if it must be, and afterwards the node is the same process, works,
and has not grown beyond what it may hold. With --against redis it is reported, not judged, what a
redis-server does, which is one per script.
"""

import argparse
import re
import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cases import target  # noqa: E402
from pair import Silent, send, wire  # noqa: E402
from resp import Failed  # noqa: E402  (cases has found the folder)
from servers import CannotStart  # noqa: E402
from transcript import unescape  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
CASES = Path(__file__).resolve().parent / 'cases'

# The bounds, as settings of the node.
TIME_MAX_MS = 1500
MEMORY_MAX = 32 << 20
SETTINGS = {
    'script-time-max': str(TIME_MAX_MS),
    'script-steps-max': '50000000',
    'script-memory-max': str(MEMORY_MAX),
    'busy-reply-threshold': '200',
    'maxmemory': '512mb',
    'io-threads': '2',
}
DEADLINE_SECONDS = 15  # of a reply; the machine may be doing something else as well
SILENCE_SECONDS = 3  # how long others may wait for an answer
RSS_GROWTH_MAX = 640 << 20  # all that keys may take, and scripts on both threads
REDIS_SECONDS = 3
HEAD = re.compile(r'-- (Tries|Expects|As): (.*)')
REPEATED = re.compile(r'@\{(.*?) \* (\d+)\}')


class Hostile:
    def __init__(self, path):
        self.name = path.stem
        lines = path.read_text(encoding='utf-8').rstrip('\n').split('\n')
        self.head = {'As': 'eval'}
        while lines and HEAD.fullmatch(lines[0]):
            word, text = HEAD.fullmatch(lines.pop(0)).groups()
            self.head[word] = text
        if 'Tries' not in self.head or 'Expects' not in self.head or self.head['As'] not in (
                'eval', 'library', 'fcall'):
            raise SystemExit(f'hostile: {path.name} lacks its head')
        self.source = expanded('\n'.join(lines))

    def requests(self):
        """The last one is the one that is judged."""
        if self.head['As'] == 'eval':
            return [['EVAL', self.source, '0']]
        load = ['FUNCTION', 'LOAD', 'REPLACE', self.source]
        return [load] if self.head['As'] == 'library' else [load, ['FCALL', 'f', '0']]

    def judge(self, reply):
        """None, or what is wrong."""
        kind, _, text = self.head['Expects'].partition(' ')
        shown = reply[:200]
        if kind == 'either':
            return None
        if kind == 'error':
            return None if reply[:1] == b'-' else f'no error, but {shown!r}'
        return None if short(reply) == text.encode() else f'not {text!r}, but {shown!r}'


def expanded(text):
    """Bytes of a source in which repetitions are written out."""
    out = b''
    at = 0
    for match in REPEATED.finditer(text):
        out += text[at:match.start()].encode('utf-8')
        out += unescape(match.group(1)) * int(match.group(2))
        at = match.end()
    return out + text[at:].encode('utf-8')


def short(reply):
    """`:1`, `+OK`, `$text`, `*3` of a reply's bytes."""
    first, _, rest = reply.partition(b'\r\n')
    if first[:1] == b'$' and first != b'$-1':
        return b'$' + rest[:-2]
    return first


class Bystander(threading.Thread):
    """Asks all the time; `longest` is how long an answer took, in seconds."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.longest = 0.0
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.wait(0.02):
            began = time.monotonic()
            try:
                self.server.ask('PING')
            except Failed:
                pass  # BUSY is an answer
            except OSError:
                return
            self.longest = max(self.longest, time.monotonic() - began)

    def stop(self):
        self.stopping.set()
        self.join(60)
        return self.longest


def answer(server, hostile, seconds):
    """The reply, and after how many seconds it came."""
    began = time.monotonic()
    with wire(server, 2, seconds) as client:
        send(client, hostile.requests())
        for _ in hostile.requests():
            reply = client.reply()
        seconds_taken = time.monotonic() - began
        if client.ask('ECHO', 'behind the reply') != b'$16\r\nbehind the reply\r\n':
            raise Silent('there is more behind the reply')
        return reply, seconds_taken


def wrong_afterwards(server, process, before):
    """What does not work any more; None if all does."""
    if server.pid != process or not server.is_alive():
        return f'the node has ended: {server.log_tail()[-600:]}'
    asked = [(('PING',), b'PONG'), (('SET', 'plain', 'v'), b'OK'), (('GET', 'plain'), b'v'),
             (('EVAL', 'return 1 + 1', '0'), 2),
             (('EVAL', "return redis.call('GET', KEYS[1])", '1', 'plain'), b'v'),
             (('EVAL', "return ('x'):rep(2) .. #KEYS .. type(rawget(_G, 'left'))", '0'), b'xx0nil')]
    for words, expected in asked:
        try:
            found = server.ask(*words)
        except (OSError, Failed) as error:
            return f'{words}: {error}'
        if found != expected:
            return f'{words}: {found!r} instead of {expected!r}'
    for words in (('FLUSHALL',), ('FUNCTION', 'FLUSH')):
        server.ask(*words)
    grown = server.rss() - before
    return f'grown by {grown >> 20} MiB' if grown > RSS_GROWTH_MAX else None


def try_one(server, hostile, before):
    """(what is wrong or None, seconds, longest silence)"""
    process = server.pid
    bystander = Bystander(server)
    bystander.start()
    seconds = 0.0
    try:
        reply, seconds = answer(server, hostile, DEADLINE_SECONDS)
        problem = hostile.judge(reply)
    except (OSError, Silent) as error:
        problem = f'no reply: {error}'
        if not server.is_alive():
            problem += f'; the node has ended: {server.log_tail()[-600:]}'
    silence = bystander.stop()
    problem = problem or wrong_afterwards(server, process, before)
    if not problem and silence > SILENCE_SECONDS:
        problem = f'others were not answered for {silence:.1f} s'
    return problem, seconds, silence


def against_semel(chosen, program):
    options = [word for name, value in SETTINGS.items() for word in (f'--{name}', value)]
    failed = 0
    slowest, quietest = ('', 0.0), ('', 0.0)
    server = None
    try:
        for hostile in chosen:
            if not server:
                server = target.SemelTarget(program, *options).start()
                before = server.rss()
            problem, seconds, silence = try_one(server, hostile, before)
            slowest = max(slowest, (hostile.name, seconds), key=lambda found: found[1])
            quietest = max(quietest, (hostile.name, silence), key=lambda found: found[1])
            if problem:
                failed += 1
                print(f'failed {hostile.name}: tries {hostile.head["Tries"]}\n    {problem}',
                      flush=True)
                server.end()
                server = None
    finally:
        if server:
            server.end()
    print(f'hostile: {len(chosen)} scripts, {failed} failed; slowest {slowest[1]:.1f} s '
          f'({slowest[0]}), longest silence for others {quietest[1]:.2f} s ({quietest[0]})')
    return 1 if failed else 0


def against_redis(chosen):
    """What a redis-server does, one per script."""
    counts = {'answers': 0, 'hangs': 0, 'ends': 0, 'grows': 0}
    for hostile in chosen:
        with target.RedisTarget() as server:
            before = server.rss()
            text = ''
            try:
                reply, _ = answer(server, hostile, REDIS_SECONDS)
                verdict = 'answers'
                text = reply[:100].decode(errors='replace').replace('\r\n', ' ')
                if hostile.judge(reply):
                    text += '  -- OTHERWISE THAN EXPECTED'
            except (OSError, Silent) as error:
                verdict = 'hangs' if 'timed out' in str(error) else 'ends'
            if verdict == 'answers' and server.rss() - before > RSS_GROWTH_MAX:
                verdict = 'grows'
            counts[verdict] += 1
            print(f'{verdict:8} {hostile.name:32} {text}', flush=True)
    print('hostile: redis-server', ', '.join(f'{word} {count}' for word, count in counts.items()))
    return 0


def main():
    parser = argparse.ArgumentParser(description='Hostile scripts against a node.')
    parser.add_argument('--against', choices=('semel', 'redis'), default='semel')
    parser.add_argument('--program', default=ROOT / 'build/release/tools/semel/semel')
    parser.add_argument('names', nargs='*', metavar='NAME', help='only these, or a part of a name')
    arguments = parser.parse_args()
    chosen = [Hostile(path) for path in sorted(CASES.glob('*.lua'))
              if not arguments.names or any(name in path.stem for name in arguments.names)]
    if not chosen:
        parser.error('no such case')
    if arguments.against == 'redis':
        return against_redis(chosen)
    return against_semel(chosen, arguments.program)


if __name__ == '__main__':
    try:
        sys.exit(main())
    except CannotStart as problem:
        sys.exit(f'hostile: {problem}')
