#!/usr/bin/env python3
"""Starts of `semel redis-server` one after another, beside redis-server where it is installed:
redis_server_starts.py PATH_OF_SEMEL [--starts 1000]. By name only: it takes a minute, and its
times are those of the machine.

Each start is timed to its first answer, and ended by SHUTDOWN NOSAVE or, every other one, by kill.
Nothing may be left of it: no process, no file in its folder, no descriptor here; and the last has
no more memory than the first. The last line is the median and the least of the times.
"""

import argparse
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'support'))
from servers import free_ports  # noqa: E402

BETWEEN_LOOKS = 0.0002
START_SECONDS = 20
GROWTH_KB_MAX = 2048


def first_answer(port):
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            plug = socket.create_connection(('127.0.0.1', port))
        except OSError:
            time.sleep(BETWEEN_LOOKS)
            continue
        plug.sendall(b'PING\r\n')
        assert plug.recv(16) == b'+PONG\r\n'
        return plug
    raise AssertionError(f'no answer within {START_SECONDS} s')


def resident_kb(pid):
    for line in pathlib.Path(f'/proc/{pid}/status').read_text(encoding='ascii').splitlines():
        if line.startswith('VmRSS:'):
            return int(line.split()[1])
    raise AssertionError('it has ended')


def start(command, folder, asks_for_end):
    """Milliseconds to the first answer, and KiB of resident memory then."""
    port = free_ports(1)[0]
    began = time.perf_counter()
    process = subprocess.Popen([*command, '--port', str(port), '--save', '', '--dir', folder],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with first_answer(port) as plug:
        took = (time.perf_counter() - began) * 1000
        memory = resident_kb(process.pid)
        if asks_for_end:
            plug.sendall(b'SHUTDOWN NOSAVE\r\n')
        else:
            process.kill()
        code = process.wait(START_SECONDS)
    assert code == (0 if asks_for_end else -9), code
    assert not os.listdir(folder), os.listdir(folder)
    return took, memory


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('semel')
    parser.add_argument('--starts', type=int, default=1000)
    options = parser.parse_args()
    kinds = {'semel': [os.path.abspath(options.semel), 'redis-server']}
    if shutil.which('redis-server'):
        kinds['redis-server'] = [shutil.which('redis-server')]
    times = {name: [] for name in kinds}
    memory = {name: [] for name in kinds}
    with tempfile.TemporaryDirectory() as folder:
        files = len(os.listdir('/proc/self/fd'))
        for number in range(options.starts):
            for name, command in kinds.items():
                took, resident = start(command, folder, number % 2 == 0)
                times[name].append(took)
                memory[name].append(resident)
        assert len(os.listdir('/proc/self/fd')) == files
    grown = memory['semel'][-1] - memory['semel'][0]
    assert grown < GROWTH_KB_MAX, f'{grown} KiB more than the first'
    print('; '.join(f'{name}: median {statistics.median(times[name]):.1f} ms, '
                    f'least {min(times[name]):.1f} ms, {max(memory[name]) / 1024:.1f} MiB'
                    for name in kinds))


if __name__ == '__main__':
    main()
