"""What benches of servers share: one server at a time, what it costs, the table of ratios."""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../tests/support'))
import servers  # noqa: E402


def pinned(core):
    """On one processor; None: on any."""
    several = (os.cpu_count() or 1) > 1 and core is not None
    return ['taskset', '-c', str(core)] if several else []


def middle(runs, at):
    return statistics.median(run[at] for run in runs)


class Side(servers.Server):
    """One server on a free port, and how long it took from its start to its first PONG."""

    must_live = True
    poll_seconds = 0.0005

    def __init__(self, name, command, port, folder, core=0):
        super().__init__(folder)
        self.name, self.command, self.port = name, command, port
        self.under = pinned(core)

    def words(self):
        return self.command

    def start(self, ready=True):
        began = time.perf_counter()
        super().start(ready)
        self.ready_ms = (time.perf_counter() - began) * 1000
        return self

    def is_ready(self):
        return self.answers()


def touch_memory(count):
    """A virtual machine charges the first use of a page: not to the first server."""
    code = (f'import mmap\nm = mmap.mmap(-1, {count})\n'
            f'for at in range(0, {count}, 4096): m[at] = 1\n')
    subprocess.run([sys.executable, '-c', code], check=True)


def machine():
    with open('/proc/cpuinfo', encoding='ascii') as file:
        model = re.search(r'model name\s*: (.*)', file.read()).group(1)
    return f'{model}, {os.cpu_count()} processors, Linux {os.uname().release}'


def shown(figure):
    return '-' if figure is None else f'{figure:,.2f}'


def write_rows(name, rows, options):
    """Into the files that were asked for. Rows that an earlier run has left in the JSON stay, if
    this run has none of their work: a long bench may be run in parts."""
    stamp = time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())
    rows = [dict(row, rounds=options.rounds, at=stamp) for row in rows]
    if options.json and os.path.exists(options.json):
        with open(options.json, encoding='utf-8') as file:
            new = {row['work'] for row in rows}
            rows = [row for row in json.load(file) if row['work'] not in new] + rows
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump(rows, file, indent=1)
    if not options.markdown:
        return
    with open(options.markdown, encoding='utf-8') as file:
        page = file.read()
    has_peers = any('peer' in row for row in rows)  # else it is redis-server
    head = ('peer | | ratio | goal | met | peer\'s name' if has_peers else
            'redis-server 7.0.15 | | ratio | goal')
    lines = [f'- Machine: {machine()}', f'- Command: `tools/bench {name}`', '',
             f'| work | ours | {head} | rounds | measured |',
             '|---' * (10 if has_peers else 8) + '|']
    for row in rows:
        ours, theirs = (shown(row[side]) for side in ('ours', 'redis'))
        ratio = '-' if row['ratio'] is None else f'{row["ratio"]:.2f}x'
        peer = f' | {row["met"]} | {row["peer"]}' if has_peers else ''
        lines.append(f'| {row["work"]} | {ours} | {theirs} | {row["unit"]} | {ratio} | '
                     f'{row["goal"]}{peer} | {row["rounds"]} | {row["at"]} |')
    begin, end = (f'<!-- {name} figures: {side} -->' for side in ('begin', 'end'))
    before, rest = page.split(begin)
    text = '\n'.join([begin, '', *lines, '', end])
    with open(options.markdown, 'w', encoding='utf-8') as file:
        file.write(before + text + rest.split(end)[1])


class Sides:
    """Our node and redis-server, and the rows of what was found."""

    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.rows = []

    def start(self, which, durable=False, threads=1, options=()):
        """`which`: redis, semel, or before: an earlier build of semel, in options.before."""
        port = servers.free_ports(1)[0]
        place = tempfile.mkdtemp(dir=self.directory)
        if which == 'redis':
            args = ['redis-server', '--port', str(port), '--save', '', '--dir', place,
                    '--appendonly', 'yes' if durable else 'no', '--appendfsync', 'everysec']
        else:
            program = self.options.before if which == 'before' else self.options.semel
            args = [program, 'node', '--port', str(port), '--io-threads', str(threads), '--bind',
                    '127.0.0.1', '--maxmemory', '8gb', '--maxclients', '25000', *options]
            if durable:
                # The log of the server is in `place`, and a storage wants a directory of its own.
                args += ['--storage-enabled', 'yes', '--dir', os.path.join(place, 'data'),
                         '--durability', 'logged']
        return Side(which, args, port, place, core=0 if threads == 1 else None).start()

    def redis_benchmark(self, server, count, pipeline, command):
        before = server.cpu()
        run = subprocess.run(
            pinned(1) + ['redis-benchmark', '-p', str(server.port), '-c', '50', '-n', str(count),
                         '-P', str(pipeline), '-r', '1000000000', '--csv'] + command,
            capture_output=True, text=True, check=True, timeout=600)
        rate = float(run.stdout.strip().splitlines()[-1].split('","')[1])
        return rate, (server.cpu() - before) / count * 1e6

    def load(self, server, core=1, **flags):
        """What semel_node_load says, with `rate`, `cpu_us` an operation, and `cores` in use."""
        args = [self.options.load, '--port', str(server.port)]
        for name, value in flags.items():
            args += ['--' + name.replace('_', '-'), str(value)]
        before = server.cpu()
        run = subprocess.run(pinned(core) + args, capture_output=True, text=True, timeout=900,
                             check=False)
        if run.returncode != 0:
            raise SystemExit(f'{server.name}: {run.stderr}{run.stdout}')
        found = json.loads(run.stdout)
        found['rate'] = found['operations'] / found['seconds']
        spent = server.cpu() - before
        found['cpu_us'] = spent / found['operations'] * 1e6
        found['cores'] = spent / found['seconds']
        return found

    def add(self, work, ours, theirs, unit, goal=''):
        ratio = ours / theirs if theirs else 0
        self.rows.append({'work': work, 'ours': ours, 'redis': theirs, 'unit': unit,
                          'ratio': ratio, 'goal': goal})
        print(f'{work:58} {ours:14,.2f} {theirs:14,.2f} {unit:10} {ratio:6.2f}x  {goal}',
              flush=True)


def run_bench(name, doc, parts, make, work, arguments=None):
    """A bench's main: reads the command line, calls work(bench, runs, scale), where runs(part) says
    whether a part is wanted, and writes the rows. `make` takes what Sides takes; `arguments` adds
    the bench's own to the parser."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument('--semel', required=True)
    parser.add_argument('--load', required=True)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--quick', action='store_true', help='small counts, one round')
    parser.add_argument('--json', help='write the rows here; those of other parts stay')
    parser.add_argument('--markdown', help='put the table between its marks in this page')
    parser.add_argument('--seed', type=int, default=0, help='of what is drawn')
    parser.add_argument('--only', default='', help=f'{parts}; with commas')
    if arguments:
        arguments(parser)
    options = parser.parse_args()
    options.semel, options.load = map(os.path.abspath, (options.semel, options.load))
    if shutil.which('redis-server') is None:
        raise SystemExit('redis-server is not installed')
    if options.quick:
        options.rounds = 1
    wanted = set(filter(None, options.only.split(',')))
    directory = tempfile.mkdtemp(prefix=f'semel_{name}_')
    try:
        bench = make(options, directory)
        touch_memory((1 if options.quick else 6) << 30)
        work(bench, lambda part: not wanted or part in wanted, 50 if options.quick else 1)
        write_rows(name, bench.rows, options)
        print(f'{name}: {len(bench.rows)} rows, all results right')
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 0
