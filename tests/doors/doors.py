#!/usr/bin/env python3
"""Builds the doors' programs and plays the stories through them: doors.py --build DIR --clients DIR
--program SEMEL [--only DOOR]. A door whose toolchain or packages cannot be had is skipped, which
the table shows."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / 'tests' / 'clients'))
import suites  # noqa: E402

DOORS = json.loads((HERE / 'stories.json').read_text(encoding='utf-8'))['doors']


class NodeDoor(suites.SemelNode):
    def prepare(self, folder):
        super().prepare(folder)
        return [suites.tool('node', 'nodejs'), folder / 'clients/node/dist/test/door.js']


class GoDoor(suites.SemelGo):
    def prepare(self, folder):
        super().prepare(folder)
        return [folder / 'built/semel.test', '-test.run=^TestDoorStories$']


def native(build, name):
    program = build / 'tests/doors' / name
    if not program.exists():
        raise suites.Missing(f'{program} is not built')
    return [program]


def python(build, *words):
    library = build / 'bindings/c/libsemel.so.0'
    return ['/usr/bin/env', f'SEMEL_LIBRARY={library}', f"PYTHONPATH={ROOT / 'bindings/python'}",
            sys.executable, HERE / 'python_door.py', *words]


def command_of(door, build, clients):
    if door in ('cpp', 'c'):
        return native(build, f'{door}_door')
    if door == 'python':
        return python(build)
    if door == 'python-aio':
        return python(build, 'aio')
    if door == 'gateway':
        return [sys.executable, HERE / 'gateway_door.py']
    suite = {'go': GoDoor('go', 'Door'), 'node': NodeDoor('node'),
             'java': suites.Starter('java', 'core', 'DoorStories')}[door]
    return suite.prepare(clients / suite.folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', type=pathlib.Path, required=True)
    parser.add_argument('--clients', type=pathlib.Path, required=True)
    parser.add_argument('--program', required=True)
    parser.add_argument('--only', action='append', choices=list(DOORS))
    arguments = parser.parse_args()
    build, clients = arguments.build.resolve(), arguments.clients.resolve()
    commands = {}
    for door in arguments.only or DOORS:
        try:
            words = command_of(door, build, clients)
            commands[door] = {'command': [str(word) for word in words]}
        except suites.Missing as why:
            commands[door] = {'skip': str(why)}
    clients.mkdir(parents=True, exist_ok=True)
    table = clients / 'doors.json'
    table.write_text(json.dumps(commands), encoding='utf-8')
    only = [word for door in arguments.only or () for word in ('--only', door)]
    return subprocess.run([sys.executable, HERE / 'run.py', '--program',
                           os.path.abspath(arguments.program), '--doors', table, *only],
                          check=False).returncode


if __name__ == '__main__':
    sys.exit(main())
