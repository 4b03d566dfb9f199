#!/usr/bin/env python3
"""The node beside redis-server: rates, processor time, memory, tails.

Question: what does a command cost a server that everybody can talk to, and what does a key?
Method:   one server at a time on one processor, the client on the other; rates by redis-benchmark
          (50 connections), pairs and tails by semel_node_load; processor time of the server from
          /proc, so that the client's share does not hide it. Median of the rounds, servers in turn.
Compare:  redis-server, without persistence, and with appendonly everysec against `logged`.
Report:   a table of ratios; every run's results are checked.
"""

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TICKS = os.sysconf('SC_CLK_TCK')
SET = ['SET', 'key:__rand_int__', 'v', 'NX', 'GET', 'PX', '3600000']
CLAIM = "return redis.call('SET',KEYS[1],ARGV[1],'NX','GET','PX',ARGV[2])"
COMPLETE = "return redis.call('SET',KEYS[1],ARGV[1],'PX',ARGV[2])"


def pinned(core):
    return ['taskset', '-c', str(core)] if (os.cpu_count() or 1) > 1 else []


class Server:
    """One server on a free port, with what of it is measured."""

    def __init__(self, name, args, port, directory):
        self.name, self.port = name, port
        self.log = open(os.path.join(directory, f'{name}.log'), 'wb')
        self.started = time.perf_counter()
        self.process = subprocess.Popen(pinned(0) + args, stdout=self.log, stderr=self.log,
                                        cwd=directory)
        for _ in range(20000):
            try:
                if self.call('PING') == b'+PONG\r\n':
                    break
            except OSError:
                time.sleep(0.0005)
        else:
            raise SystemExit(f'{name} does not answer')
        self.ready_ms = (time.perf_counter() - self.started) * 1000

    def call(self, *words):
        request = b'*%d\r\n' % len(words)
        for word in words:
            word = str(word).encode()
            request += b'$%d\r\n%s\r\n' % (len(word), word)
        with socket.create_connection(('127.0.0.1', self.port), timeout=30) as client:
            client.sendall(request)
            return client.recv(65536)

    def cpu(self):
        with open(f'/proc/{self.process.pid}/stat', encoding='ascii') as file:
            fields = file.read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def rss(self):
        with open(f'/proc/{self.process.pid}/status', encoding='ascii') as file:
            return int(re.search(r'VmRSS:\s+(\d+)', file.read()).group(1)) * 1024

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def touch_memory(count):
    """On a virtual machine the first who uses a page pays for it once more: not the first server."""
    code = (f'import mmap\nm = mmap.mmap(-1, {count})\n'
            f'for at in range(0, {count}, 4096): m[at] = 1\n')
    subprocess.run([sys.executable, '-c', code], check=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


class Bench:
    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.rows = []

    def start(self, which, durable=False):
        port = free_port()
        place = tempfile.mkdtemp(dir=self.directory)
        if which == 'redis':
            args = ['redis-server', '--port', str(port), '--save', '', '--dir', place,
                    '--appendonly', 'yes' if durable else 'no', '--appendfsync', 'everysec']
        else:
            args = [self.options.semel, 'node', '--port', str(port), '--io-threads', '1',
                    '--bind', '127.0.0.1', '--maxmemory', '8gb', '--maxclients', '25000']
            if durable:
                args += ['--storage-enabled', 'yes', '--dir', place, '--durability', 'logged']
        return Server(which, args, port, place)

    def redis_benchmark(self, server, count, pipeline, command):
        before = server.cpu()
        run = subprocess.run(
            pinned(1) + ['redis-benchmark', '-p', str(server.port), '-c', '50', '-n', str(count),
                         '-P', str(pipeline), '-r', '1000000000', '--csv'] + command,
            capture_output=True, text=True, check=True, timeout=600)
        rate = float(run.stdout.strip().splitlines()[-1].split('","')[1])
        return rate, (server.cpu() - before) / count * 1e6

    def load(self, server, **flags):
        args = [self.options.load, '--port', str(server.port)]
        for name, value in flags.items():
            args += ['--' + name.replace('_', '-'), str(value)]
        before = server.cpu()
        run = subprocess.run(pinned(1) + args, capture_output=True, text=True, timeout=900,
                             check=False)
        if run.returncode != 0:
            raise SystemExit(f'{server.name}: {run.stderr}{run.stdout}')
        found = json.loads(run.stdout)
        found['rate'] = found['operations'] / found['seconds']
        found['cpu_us'] = (server.cpu() - before) / found['operations'] * 1e6
        return found

    def add(self, work, ours, theirs, unit, goal=''):
        ratio = ours / theirs if theirs else 0
        self.rows.append({'work': work, 'ours': ours, 'redis': theirs, 'unit': unit,
                          'ratio': ratio, 'goal': goal})
        print(f'{work:58} {ours:14,.2f} {theirs:14,.2f} {unit:10} {ratio:6.2f}x  {goal}',
              flush=True)

    def rates(self, title, count, pipeline, command, goals, durable=False, prepare=None):
        found = {'semel': [], 'redis': []}
        for _ in range(self.options.rounds):
            for which in found:
                server = self.start(which, durable)
                try:
                    if prepare:
                        prepare(server)
                    found[which].append(self.redis_benchmark(server, count, pipeline, command))
                    size = int(server.call('DBSIZE')[1:-2])
                    if size == 0:
                        raise SystemExit(f'{which} has no keys after {title}')
                finally:
                    server.stop()
        ours, theirs = found['semel'], found['redis']
        mid = lambda runs, at: statistics.median(run[at] for run in runs)
        self.add(title, mid(ours, 0), mid(theirs, 0), 'op/s', goals[0])
        self.add(title + ', CPU', mid(ours, 1), mid(theirs, 1), 'us/op', goals[1])

    def pairs(self, count):
        ours, theirs = [], []
        for _ in range(self.options.rounds):
            server = self.start('semel')
            ours.append(self.load(server, work='claim', operations=count, pipeline=16))
            server.stop()
            server = self.start('redis')
            shas = [server.call('SCRIPT', 'LOAD', text).split(b'\r\n')[1].decode()
                    for text in (CLAIM, COMPLETE)]
            theirs.append(self.load(server, work='script', operations=count, pipeline=16,
                                    claim_sha=shas[0], complete_sha=shas[1]))
            server.stop()
        mid = lambda runs, at: statistics.median(run[at] for run in runs)
        self.add('claim and complete, pairs, pipeline 16', mid(ours, 'rate'), mid(theirs, 'rate'),
                 'pair/s', '>= 2x')
        self.add('claim and complete, pairs, CPU', mid(ours, 'cpu_us'), mid(theirs, 'cpu_us'),
                 'us/pair')

    def memory(self, count):
        bytes_a_key = {}
        for which in ('semel', 'redis'):
            server = self.start(which)
            empty = server.rss()
            self.load(server, work='fill', operations=count, pipeline=64)
            bytes_a_key[which] = (server.rss() - empty) / count
            server.stop()
        self.add(f'memory a key, {count:,} keys', bytes_a_key['semel'], bytes_a_key['redis'],
                 'bytes', '<= 0.5x')

    def expiry(self, count, seconds):
        """All keys end while GETs of other keys come at half of what redis-server can take."""
        server = self.start('redis')
        self.load(server, work='fill', operations=100_000, pipeline=16)
        rate = self.load(server, work='get', operations=300_000, keys=100_000,
                         pipeline=1)['rate'] / 2
        server.stop()
        found = {}
        for which in ('semel', 'redis'):
            server = self.start(which)
            ttl = int(seconds * 1000) + (30_000 if not self.options.quick else 3_000)
            began = time.time()
            self.load(server, work='fill', operations=count, pipeline=64, ttl_ms=ttl)
            self.load(server, work='fill', operations=1000, pipeline=64)  # these stay
            time.sleep(max(0, began + ttl / 1000 - 2 - time.time()))
            run = self.load(server, work='get', keys=1000, pipeline=1, rate=rate,
                            operations=int(rate * (2 if self.options.quick else 20)))
            left = int(server.call('DBSIZE')[1:-2])
            print(f'  {which}: {left} keys left', flush=True)
            found[which] = run
            server.stop()
        self.add(f'p99.9 while {count:,} keys end, {rate:,.0f} GET/s', found['semel']['p999_us'],
                 found['redis']['p999_us'], 'us', '<= 0.5x')
        self.add('p99 of the same', found['semel']['p99_us'], found['redis']['p99_us'], 'us')

    def start_up(self):
        found = {'semel': [], 'redis': []}
        rss = {}
        for _ in range(15):
            for which, times in found.items():
                server = self.start(which)
                times.append(server.ready_ms)
                rss[which] = server.rss()
                server.stop()
        self.add('spawn to PONG, median of 15', statistics.median(found['semel']),
                 statistics.median(found['redis']), 'ms', '<= 10 ms')
        self.add('idle memory', rss['semel'] / 1e6, rss['redis'] / 1e6, 'MB', '<= 20 MB')

    def idle(self, count):
        p99, each = {}, {}
        for which in ('semel', 'redis'):
            server = self.start(which)
            if which == 'redis':
                server.call('CONFIG', 'SET', 'maxclients', '25000')
            alone = self.load(server, work='fill', operations=200_000, pipeline=1, connections=1)
            before = server.rss()
            clients = []
            for _ in range(count):
                clients.append(socket.create_connection(('127.0.0.1', server.port)))
            clients[-1].sendall(b'PING\r\n')
            clients[-1].recv(16)
            each[which] = (server.rss() - before) / count
            beside = self.load(server, work='fill', operations=200_000, pipeline=1, connections=1)
            p99[which] = beside['p99_us'] / alone['p99_us']
            for client in clients:
                client.close()
            server.stop()
        self.add(f'memory of an idle connection, {count:,}', each['semel'], each['redis'], 'bytes',
                 '<= 4096')
        self.add('p99 beside them, to alone', p99['semel'], p99['redis'], 'ratio', '<= 1.2')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--semel', required=True)
    parser.add_argument('--load', required=True)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--quick', action='store_true', help='small counts, one round')
    parser.add_argument('--json', help='write the rows here')
    parser.add_argument('--only', default='', help='rates, counters, pairs, memory, expiry, start, '
                        'idle, durable; with commas')
    options = parser.parse_args()
    if shutil.which('redis-server') is None:
        raise SystemExit('redis-server is not installed')
    few = options.quick
    if few:
        options.rounds = 1
    wanted = set(filter(None, options.only.split(',')))
    runs = lambda name: not wanted or name in wanted
    scale = 50 if few else 1
    directory = tempfile.mkdtemp(prefix='semel_node_')
    try:
        bench = Bench(options, directory)
        touch_memory((1 if few else 6) << 30)
        if runs('rates'):
            bench.rates('SET NX GET PX, pipeline 1', 400_000 // scale, 1, SET,
                        ('>= 1.0x', '<= 0.8x'))
            bench.rates('SET NX GET PX, pipeline 16', 2_000_000 // scale, 16, SET,
                        ('>= 2x', '<= 0.3x'))
            bench.rates('SET NX GET PX, pipeline 64', 4_000_000 // scale, 64, SET,
                        ('>= 3x', '<= 0.2x'))
        if runs('counters'):
            def fill(server):
                bench.load(server, work='fill', operations=1_000_000 // scale, pipeline=64)
            bench.rates('GET hits, pipeline 16', 2_000_000 // scale, 16,
                        ['-r', str(1_000_000 // scale), 'GET', 'key:__rand_int__'],
                        ('>= 2x', ''), prepare=fill)
            bench.rates('INCR, pipeline 16', 2_000_000 // scale, 16,
                        ['-r', '1000000', 'INCR', 'counter:__rand_int__'], ('>= 2x', ''))
        if runs('pairs'):
            bench.pairs(1_000_000 // scale)
        if runs('durable'):
            for pipeline, count, goals in ((1, 400_000, ('>= 1.0x', '<= 0.8x')),
                                           (16, 2_000_000, ('>= 2x', '<= 0.3x')),
                                           (64, 4_000_000, ('>= 3x', '<= 0.2x'))):
                bench.rates(f'logged against everysec, pipeline {pipeline}', count // scale,
                            pipeline, SET, goals, durable=True)
        if runs('start'):
            bench.start_up()
        if runs('idle'):
            bench.idle(19_000 // scale)
        if runs('memory'):
            bench.memory(10_000_000 // scale)
        if runs('expiry'):
            bench.expiry(10_000_000 // scale, 60 if not few else 1)
        if options.json:
            with open(options.json, 'w', encoding='utf-8') as file:
                json.dump(bench.rows, file, indent=1)
        print(f'node: {len(bench.rows)} rows, all results right')
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == '__main__':
    sys.exit(main())
