#!/usr/bin/env python3
"""Records the dialogues from redis-server: tests/transcripts/record.py [NAME]..

What belongs to a request is what comes before all clients have been silent for a while; so this is
for people to run, and its result to be read before it is committed.
"""

import select
import sys

sys.dont_write_bytecode = True
import transcript  # noqa: E402
from transcript import target  # noqa: E402

VERSION = 'v=7.0.15'
SILENCE_SECONDS = 0.06


def heard_by(clients, asked):
    """{name: bytes} of what came, once there was something for `asked` and then nothing more."""
    found = {name: b'' for name in clients}
    names = {client.plug: name for name, client in clients.items()}
    while True:
        wait = SILENCE_SECONDS if found[asked] else 5
        readable = select.select(list(names), [], [], wait)[0]
        if not readable:
            return found
        for each in readable:
            piece = each.recv(1 << 20)
            found[names[each]] += piece
            if not piece:
                del names[each]
        if not names:
            return found


def record(path, dialect):
    lines = [f'# {path.stem}: recorded from redis-server 7.0.15 by record.py', f'dialect {dialect}']
    _, steps = transcript.read(path)
    at = {step.number: step for step in steps}
    with target.RedisTarget() as server:
        clients = {}
        for number, line in enumerate(path.read_text(encoding='ascii').rstrip('\n').split('\n'), 1):
            lines.append(line)
            step = at.get(number)
            if not step:
                continue
            if step.client not in clients:
                clients[step.client] = server.client()
                transcript.greet(clients[step.client], dialect)
            clients[step.client].send(*step.words)
            for name, data in sorted(heard_by(clients, step.client).items()):
                if data:
                    lines.append(f'{name}< {transcript.escape(data)}')
        for client in clients.values():
            client.close()
    out = transcript.GOLDEN / f'{path.stem}.{dialect}.txt'
    out.write_text('\n'.join(lines) + '\n', encoding='ascii')
    print(f'{out.name}: {len(steps)} requests')


def main():
    import subprocess  # only to ask for the version
    version = subprocess.run(['redis-server', '--version'], capture_output=True, text=True,
                             check=True).stdout
    if VERSION not in version:
        sys.exit(f'record: this is not redis-server {VERSION[2:]}: {version.strip()}')
    for path in sorted(transcript.DIALOGUES.glob('*.txt')):
        if len(sys.argv) == 1 or path.stem in sys.argv[1:]:
            for dialect in (2, 3):
                record(path, dialect)


if __name__ == '__main__':
    main()
