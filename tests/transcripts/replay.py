#!/usr/bin/env python3
"""Holds the transcripts against a server: tests/transcripts/replay.py [--against redis] [NAME]..

Every byte that a client receives must be as recorded, and nothing more may come. A dialogue with a
command that the server does not know, and redis-server knew, is skipped and counted.
"""

import argparse
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import transcript  # noqa: E402
from transcript import target  # noqa: E402
from resp import encode  # noqa: E402  (target has found the folder)
from servers import CannotStart  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
REPLY_SECONDS = 10


class Different(Exception):
    pass


class NotThere(Exception):
    """The server does not know a command."""


def receive(client, count):
    found = b''
    client.plug.settimeout(REPLY_SECONDS)
    try:
        while len(found) < count:
            piece = client.plug.recv(count - len(found))
            if not piece:
                break
            found += piece
    except TimeoutError:
        pass
    return found


def rest(client):
    """What lies there beyond what was expected: all that has come when a last call is answered."""
    end = encode('PING', 'end of transcript')
    found = b''
    client.plug.settimeout(REPLY_SECONDS)
    try:
        client.plug.sendall(end)
        while b'end of transcript' not in found:
            piece = client.plug.recv(4096)
            if not piece:
                return found
            found += piece
    except OSError:  # closed, as it should be, behind a QUIT
        return found
    found = found.removesuffix(b'$17\r\nend of transcript\r\n')
    subscribed = b'*2\r\n$4\r\npong\r\n'
    return found.removesuffix(subscribed)


def replay(path, server):
    """How many replies were compared."""
    dialect, steps = transcript.read(path)
    clients = {}
    asked = None
    compared = 0
    try:
        for step in steps:
            if step.client not in clients:
                clients[step.client] = server.client()
                transcript.greet(clients[step.client], dialect)
            client = clients[step.client]
            if step.words is not None:
                asked = step
                client.send(*step.words)
                continue
            found = receive(client, len(step.reply))
            if found != step.reply:
                if found.startswith(b'-ERR unknown command') and not step.reply.startswith(
                        b'-ERR unknown command'):
                    raise NotThere(asked.words[0].decode())
                raise Different(f'{path.name}:{step.number}: {asked.line}\n'
                                f'  expected {step.line}\n  found    {step.client}< '
                                f'{transcript.escape(found)}')
            compared += 1
        for name, client in clients.items():
            more = rest(client)
            if more:
                raise Different(f'{path.name}: {name} receives more: {transcript.escape(more)}')
    finally:
        for client in clients.values():
            client.close()
    return compared


def main():
    parser = argparse.ArgumentParser(description='Holds the transcripts against a server.')
    parser.add_argument('--against', choices=target.TARGETS, default='semel')
    parser.add_argument('--program', default=ROOT / 'build/release/tools/semel/semel')
    parser.add_argument('names', nargs='*', metavar='NAME')
    arguments = parser.parse_args()
    paths = [p for p in sorted(transcript.GOLDEN.glob('*.txt'))
             if not arguments.names or p.name.split('.')[0] in arguments.names]
    passed = failed = skipped = compared = 0
    for path in paths:
        try:  # a server each: a client of the last one may not be gone yet
            with target.open_target(arguments.against, arguments.program) as server:
                compared += replay(path, server)
            passed += 1
        except NotThere as command:
            print(f'skipped {path.name}: no {command}')
            skipped += 1
        except Different as error:
            print(f'failed {error}')
            failed += 1
        except OSError as error:
            print(f'failed {path.name}: {error}')
            failed += 1
    print(f'transcripts: {compared} replies in {len(paths)} transcripts; {passed} passed, '
          f'{failed} failed, {skipped} skipped')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except CannotStart as problem:
        sys.exit(f'transcripts: {problem}')
