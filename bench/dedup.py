#!/usr/bin/env python3
"""semel dedup beside what people use: mawk, huniq, DuckDB, sort -u.

Question: how long does it take to remove the repeated lines of a file, and how much memory?
Method:   one generated file, read before the first run so that it is in the page cache; each
          program by itself, in turn, its output to a file. What was written before is on the disk
          when a run begins, so that the kernel slows down none for the writes of another. Median
          of the rounds by wall time. A run of more than a minute is not repeated.
Compare:  mawk '!s[$0]++' and huniq keep the order of the lines, huniq keeps 64 bits of a hash and
          is not exact; DuckDB (select distinct) and sort -u do not keep it. huniq comes from
          cargo, DuckDB from PyPI; what cannot be had is left out and named.
Report:   a row per program; what semel writes is compared with mawk byte for byte, and with the
          others as a set. Wrong results end the bench.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

LINE_BYTES = 39
# What the hungriest of them, DuckDB and mawk, took a line, rounded up.
MEMORY_BYTES_A_LINE = 180
LONG_SECONDS = 60
DUCKDB = """
import duckdb, sys
duckdb.sql("copy (select distinct line from read_csv('" + sys.argv[1] + "', columns={'line': "
           "'varchar'}, delim='\\x01', header=false, quote='', escape='')) to '" + sys.argv[2] +
           "' (header false, quote '', delim '\\x01')")
"""


def available_bytes():
    with open('/proc/meminfo', encoding='ascii') as file:
        for row in file:
            if row.startswith('MemAvailable'):
                return int(row.split()[1]) * 1024
    return 0


def run_once(command, source, target):
    """Seconds, processor seconds, largest resident bytes."""
    with open(source, 'rb') as stdin, open(target, 'wb') as stdout:
        start = time.monotonic()
        process = subprocess.Popen(command, stdin=stdin, stdout=stdout,
                                   env=dict(os.environ, LC_ALL='C'))
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f'{command[0]}: exit code {process.returncode}')
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.source = os.path.join(folder, 'lines')
        self.found = {}

    def output(self, name):
        return os.path.join(self.folder, name.replace(' ', '_'))

    def programs(self):
        options = self.options
        semel = [options.semel, 'dedup', '--quiet']
        memory = ['--memory', options.memory] if options.memory else []
        found = {'semel dedup': [*semel, *memory],
                 'semel dedup --threads 1': [*semel, *memory, '--threads', '1'],
                 'semel dedup --digest': [*semel, *memory, '--digest']}
        peers = {'mawk': ['mawk', '!s[$0]++'], 'huniq': [options.huniq],
                 'duckdb': [options.duckdb, '-c', DUCKDB, self.source, self.output('duckdb')],
                 'sort -u': ['sort', '-u', '-S', '50%', '-T', self.folder]}
        chosen = options.peers.split(',') if options.peers is not None else list(peers)
        unknown = set(chosen) - set(peers) - {''}
        if unknown:
            raise SystemExit(f"--peers: no {', '.join(sorted(unknown))}; there are "
                             f"{', '.join(peers)}")
        for name, command in peers.items():
            if name not in chosen:
                continue
            if command[0] and shutil.which(command[0]):
                found[name] = command
            else:
                print(f'{name} is left out: it is not here', flush=True)
        return found

    def measure(self, programs):
        runs = {name: [] for name in programs}
        for _ in range(self.options.rounds):
            for name, command in programs.items():
                if runs[name] and runs[name][0][0] > LONG_SECONDS:
                    continue
                # DuckDB writes its file itself.
                target = os.devnull if name == 'duckdb' else self.output(name)
                os.sync()
                runs[name].append(run_once(command, self.source, target))
                print(f'{name}: {runs[name][-1][0]:.2f} s', flush=True)
        for name, rows in runs.items():
            self.found[name] = {
                'wall_s': statistics.median(row[0] for row in rows),
                'cpu_s': statistics.median(row[1] for row in rows),
                'resident_bytes': max(row[2] for row in rows), 'rounds': len(rows)}

    def check(self, programs):
        exact = self.output('semel dedup')
        for name in programs:
            if name in ('duckdb', 'sort -u'):
                continue
            if subprocess.run(['cmp', exact, self.output(name)], check=False).returncode != 0:
                raise SystemExit(f'semel dedup and {name} wrote different bytes')
        unordered = [name for name in ('duckdb', 'sort -u') if name in programs]
        if unordered:
            digests = {name: self.digest_of_set(self.output(name))
                       for name in ('semel dedup', *unordered)}
            if len(set(digests.values())) != 1:
                raise SystemExit(f'the sets of lines differ: {digests}')

    def digest_of_set(self, path):
        done = subprocess.run(['sh', '-c', 'sort -S 30% -T "$0" "$1" | cksum', self.folder, path],
                              env=dict(os.environ, LC_ALL='C'), capture_output=True, check=True)
        return done.stdout

    def report(self):
        peers = {name: row for name, row in self.found.items() if not name.startswith('semel')}
        best = min(peers, key=lambda name: peers[name]['wall_s']) if peers else None
        ours = self.found['semel dedup']['wall_s']
        print(f"{'':26}{'wall s':>9}{'M lines/s':>11}{'CPU s':>9}{'MiB':>8}   wall time, semel = 1")
        for name, row in self.found.items():
            print(f"{name:26}{row['wall_s']:9.2f}{self.options.lines / row['wall_s'] / 1e6:11.2f}"
                  f"{row['cpu_s']:9.2f}{row['resident_bytes'] / 2**20:8.0f}"
                  f"{row['wall_s'] / ours:10.1f}")
        if best is None:
            return
        ratio = peers[best]['wall_s'] / ours
        print(f'the best peer is {best}: {ratio:.1f} times the wall time; goal >= 2: '
              f"{'met' if ratio >= 2 else 'NOT met'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--semel', required=True)
    parser.add_argument('--generate', required=True)
    parser.add_argument('--huniq', default='huniq')
    parser.add_argument('--duckdb', default='', help='a python that has duckdb')
    parser.add_argument('--peers', help='only these, separated by commas; none: an empty text')
    parser.add_argument('--lines', type=int)
    parser.add_argument('--repeats', type=int, default=30, help='percent')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--memory', help="semel's limit; default: half of the machine")
    parser.add_argument('--folder', help='for the file and the outputs')
    parser.add_argument('--quick', action='store_true', help='200,000 lines, one round')
    parser.add_argument('--long', action='store_true', help='100 million lines')
    parser.add_argument('--json', help='write the figures to this file')
    options = parser.parse_args()
    if options.lines is None:
        options.lines = 100_000_000 if options.long else 200_000 if options.quick else 5_000_000
    if options.quick:
        options.rounds = 1
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        disk = options.lines * LINE_BYTES * 9
        free = shutil.disk_usage(folder).free
        if free < disk:
            raise SystemExit(f'{folder}: {disk:,} bytes are needed, {free:,} are free; --folder '
                             'names another place')
        if available_bytes() < options.lines * MEMORY_BYTES_A_LINE:
            raise SystemExit(f'{options.lines * MEMORY_BYTES_A_LINE:,} bytes of memory are needed, '
                             f'{available_bytes():,} are available; --lines asks for less')
        bench = Bench(options, folder)
        programs = bench.programs()
        with open(bench.source, 'wb') as file:
            subprocess.run([options.generate, str(options.lines), str(options.repeats),
                            str(options.seed)], stdout=file, stderr=subprocess.DEVNULL, check=True)
        print(f'{options.lines:,} lines, {os.path.getsize(bench.source):,} bytes, '
              f'{options.repeats} % repeats, seed {options.seed}, median of {options.rounds}',
              flush=True)
        bench.measure(programs)
        bench.check(programs)
        bench.report()
        if options.json:
            with open(options.json, 'w', encoding='utf-8') as file:
                json.dump({'lines': options.lines, 'rows': bench.found}, file, indent=1)


if __name__ == '__main__':
    main()
