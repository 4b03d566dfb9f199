#!/usr/bin/env python3
"""Plays one table of stories through every door: run.py --program SEMEL --doors FILE [--only DOOR]

Starts a node and a proxy that loses, delays and refuses replies (proxy.py), runs each door's
program, and compares what it says of each story with stories.json. Prints the table: one column a
door. The last line is the figure; a cell that differs, or a story that a door did not play, fails.
FILE has the doors' commands: {"go": {"command": [..], "skip": "why it cannot run here"}, ..}.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'attacks')]
from node import Node  # noqa: E402
from proxy import Proxy  # noqa: E402

DOOR_SECONDS = 300
SETTLE_SECONDS = 20  # until a grant that came too late is given back

TABLE = json.loads((HERE / 'stories.json').read_text(encoding='utf-8'))


def applies(story, door):
    if door in story.get('without', {}) or door not in story.get('doors', [door]):
        return False
    return 'wire' not in story or TABLE['doors'][door]['wire']


def play(command, environment):
    """What the door's program said: {story: outcome}, and what it printed besides."""
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True,
                          text=True, errors='replace', timeout=DOOR_SECONDS, check=False)
    told, other = {}, []
    for line in done.stdout.splitlines():
        name, tab, outcome = line.partition('\t')
        if tab:
            told[name] = outcome
        else:
            other.append(line)
    if done.returncode != 0:
        other.append(f'exit code {done.returncode}')
    return told, '\n'.join(other + [done.stderr])[-4000:]


def text_of(value):
    return value.decode(errors='replace') if isinstance(value, bytes) else str(value)


def space_of(door):
    return TABLE['doors'][door].get('namespace', f'doors-{door}')


def state_of(client, door, story):
    """The node's record of a story's key. Keys of a door are in the namespace of its name; the
    gateway writes a scope in front of them."""
    space = space_of(door)
    _, keys = client('SCAN', '0', 'MATCH', f"{space}:*{story['name']}", 'COUNT', '100000')
    for name in keys:
        key = text_of(name).split(':', 1)[1]
        if key.split('|')[-1] == story['name']:
            view = [text_of(each) for each in client('SEMEL.GETCLAIM', space, key)]
            return dict(zip(view[::2], view[1::2]))['state']
    return 'absent'


def settled(client, door, story):
    end = time.monotonic() + SETTLE_SECONDS
    while (state := state_of(client, door, story)) != story['state']:
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    return state


def check(door, command, client, proxy, environment):
    told, other = play(command, environment)
    cells, complaints = {}, []
    for story in TABLE['stories']:
        name = story['name']
        if not applies(story, door):
            cells[name] = '-'
            continue
        cells[name] = 'as expected'
        outcome = told.get(name, 'not played')
        if outcome != story['outcome']:
            cells[name] = 'DIFFERS'
            complaints.append(f"{door}: {name}: '{outcome}', not '{story['outcome']}'")
        elif 'wire' in story and not proxy.has_met(space_of(door), name):
            cells[name] = 'DIFFERS'
            complaints.append(f'{door}: {name}: no request met its fault')
        elif 'state' in story and TABLE['doors'][door]['wire']:
            state = settled(client, door, story)
            if state != story['state']:
                cells[name] = 'DIFFERS'
                complaints.append(f"{door}: {name}: the node has '{state}', not {story['state']}")
    for name in told:
        if cells.get(name, '-') == '-':
            complaints.append(f'{door}: {name} is no story of this door')
    if complaints:
        complaints.append(f'{door} printed: {other}')
    return cells, complaints


def show(columns):
    width = max(len(story['name']) for story in TABLE['stories'])
    print(' ' * width, *(f'{door:12}' for door in columns))
    for story in TABLE['stories']:
        cells = (columns[door].get(story['name'], 'skipped') for door in columns)
        print(f"{story['name']:{width}}", *(f'{cell:12}' for cell in cells))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--program', type=os.path.abspath, required=True)
    parser.add_argument('--doors', type=pathlib.Path, required=True)
    parser.add_argument('--only', action='append')
    arguments = parser.parse_args()
    doors = json.loads(arguments.doors.read_text(encoding='utf-8'))
    columns, complaints, skipped = {}, [], 0
    with (Node(arguments.program, '--test-clock') as node,
          Proxy(node.port, TABLE['stories']) as proxy):
        client = node.client()
        for door in TABLE['doors']:
            if arguments.only and door not in arguments.only:
                continue
            if doors.get(door, {'skip': 'not built'}).get('skip'):
                print(f"{door}: skipped: {doors.get(door, {}).get('skip', 'not built')}")
                columns[door] = {}
                skipped += 1
                continue
            environment = {'SEMEL_TEST_HOST': '127.0.0.1', 'SEMEL_TEST_PORT': str(proxy.port),
                           'SEMEL_TEST_DIRECT_PORT': str(node.port),
                           'SEMEL_TEST_NAMESPACE': f'doors-{door}',
                           'SEMEL_TEST_PROGRAM': arguments.program}
            columns[door], wrong = check(door, doors[door]['command'], client, proxy,
                                         environment)
            complaints += wrong
    show(columns)
    for complaint in complaints:
        print(complaint)
    cells = [cell for column in columns.values() for cell in column.values() if cell != '-']
    print(f"doors: {len(TABLE['stories'])} stories, {len(columns) - skipped} doors, {len(cells)} "
          f"cells, {cells.count('DIFFERS')} differ, {skipped} doors skipped")
    return 1 if complaints else 0


if __name__ == '__main__':
    sys.exit(main())
