#!/usr/bin/env python3
"""Runs the fuzz targets, or replays what is known: tests/fuzz/fuzz.py [--replay] [--only NAME]..

Known inputs lie in corpus/NAME.txt and, where they once broke something, in regress/NAME.txt: one
a line, escaped as transcripts are; `#` begins a remark. Those of `commands` come from the dialogues
of tests/transcripts as well. Each target runs for --seconds, or --runs executions; as many run at
a time as there are processors. An input that breaks something is written to regress/NAME.txt; the
program's last lines are shown.
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'transcripts'))
import transcript  # noqa: E402

ROOT = HERE.parents[1]
LENGTH_MAX = {'resp': 4096, 'commands': 4096, 'acl': 1024, 'config': 2048, 'matcher': 2048,
              'conversion': 512, 'dump': 4096, 'peer': 4096, 'rdb': 4096,
              'trail': 512}
TARGETS = tuple(LENGTH_MAX)
# A single input may hold on for so long, and take so much memory.
INPUT_SECONDS = 30
MEMORY_MIB = 2048


def lines_of(path):
    text = path.read_text(encoding='ascii') if path.exists() else ''
    return [transcript.unescape(line) for line in text.split('\n')
            if line and not line.startswith('#')]


def known(name):
    """Inputs whose replies are not compared: only that nothing breaks."""
    inputs = lines_of(HERE / f'corpus/{name}.txt') + lines_of(HERE / f'regress/{name}.txt')
    if name == 'commands':
        for path in sorted(transcript.DIALOGUES.glob('*.txt')):
            said = [s.line.replace('> ', '', 1) for s in transcript.read(path)[1]]
            inputs.append('\n'.join(said).encode())
    return inputs


def write_inputs(name, folder):
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, data in enumerate(known(name), 1):
        paths.append(folder / f'known-{number:03}')
        paths[-1].write_bytes(data)
    return paths


def words():
    """What the mutations are made of: the commands and the texts of the tables."""
    found = set()
    for table in ('net/commands/command_table.def', 'net/settings/settings.def'):
        text = (ROOT / table).read_text(encoding='utf-8')
        found.update(re.findall(r'^[A-Z]\((?:\w+, )?"([^"| ]+)"', text, re.MULTILINE))
    found.update('NX XX GET EX PX EXAT PXAT KEEPTTL PERSIST GT LT REPLACE DB WITHVALUES COUNT '
                 'MATCH nopass resetkeys allkeys allchannels reset ~* &* +@all -@all %R~ +get|x '
                 '$9 *3 \\x0d\\x0a \\x0aa \\x0ab \\x0at \\x0aA*2~$3~GET~$1~k~'.split())
    found.update('KEYS[1] ARGV[1] redis.call( redis.pcall( ipairs(KEYS) unpack(KEYS) local for do '
                 'then elseif else end return function repeat until while not and or nil --[[ [==[ '
                 '~= == ..'.split())
    return ''.join(f'"{word}"\n' for word in sorted(found))


def replay(name, programs):
    with tempfile.TemporaryDirectory() as folder:
        paths = write_inputs(name, Path(folder))
        done = subprocess.run([programs / f'fuzz_{name}', *paths], text=True, errors='replace',
                              capture_output=True, check=False)
    print(f'fuzz {name}: {len(paths)} known inputs, '
          f'{"all well" if done.returncode == 0 else "broken"}')
    if done.returncode != 0:
        print(done.stderr[-4000:])
    return done.returncode == 0 and paths


def keep(name, folder):
    """Puts what was found into regress/NAME.txt."""
    found = sorted(p for p in folder.glob('*') if p.name.split('-')[0] in
                   ('crash', 'timeout', 'oom', 'leak'))
    path = HERE / f'regress/{name}.txt'
    for each in found:
        with open(path, 'a', encoding='ascii') as file:
            file.write(transcript.escape(each.read_bytes()) + '\n')
    return found


def fuzz(name, arguments, build):
    folder = build / name
    (folder / 'found').mkdir(parents=True, exist_ok=True)
    write_inputs(name, folder / 'corpus')
    for old in (folder / 'found').iterdir():
        old.unlink()
    limit = [f'-runs={arguments.runs}'] if arguments.runs else [
        f'-max_total_time={arguments.seconds}']
    if arguments.seed is not None:
        limit.append(f'-seed={arguments.seed}')
    log = folder / 'log'
    environment = dict(os.environ, UBSAN_OPTIONS='print_stacktrace=1',
                       ASAN_OPTIONS='detect_leaks=1')
    with open(log, 'wb') as out:
        code = subprocess.run(
            [arguments.programs / f'fuzz_{name}', folder / 'corpus', *limit,
             f'-max_len={LENGTH_MAX[name]}', f'-timeout={INPUT_SECONDS}',
             f'-rss_limit_mb={MEMORY_MIB}', f'-dict={build / "words.dict"}', '-print_final_stats=1',
             f'-artifact_prefix={folder / "found"}/', '-reload=0'],
            stdout=out, stderr=subprocess.STDOUT, env=environment, check=False).returncode
    text = log.read_text(errors='replace')
    runs = re.search(r'stat::number_of_executed_units: *(\d+)', text)
    covered = re.findall(r' cov: (\d+)', text)
    seed = re.search(r'Seed: (\d+)', text)
    count = int(runs.group(1)) if runs else 0
    print(f'fuzz {name}: {count} executions, {covered[-1] if covered else 0} edges, '
          f'seed {seed.group(1) if seed else "none"}', flush=True)
    found = keep(name, folder / 'found')
    if code != 0 or found:
        print(text[-6000:])
        for each in found:
            print(f'input: {transcript.escape(each.read_bytes())[:3000]}')
        print(f'fuzz {name}: broken; its inputs are now in tests/fuzz/regress/{name}.txt')
    return count, code == 0 and not found and count > 0


def main():
    parser = argparse.ArgumentParser(description='Runs the fuzz targets.')
    parser.add_argument('--programs', type=Path, default=ROOT / 'build/asan-clang/tests/fuzz')
    parser.add_argument('--replay', action='store_true', help='only what is known')
    parser.add_argument('--only', action='append', choices=TARGETS, default=[])
    parser.add_argument('--seconds', type=int, default=60, help='for each target')
    parser.add_argument('--runs', type=int, help='executions of each target, instead')
    parser.add_argument('--seed', type=int)
    arguments = parser.parse_args()
    names = arguments.only or TARGETS
    arguments.programs = arguments.programs.resolve()
    if arguments.replay:
        return 0 if all([replay(name, arguments.programs) for name in names]) else 1
    executions = 0
    broken = []
    build = ROOT / 'build/asan-clang/corpus'
    build.mkdir(parents=True, exist_ok=True)
    (build / 'words.dict').write_text(words(), encoding='utf-8')
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda name: fuzz(name, arguments, build), names))
    for name, (count, good) in zip(names, done):
        executions += count
        broken += [] if good else [name]
    print(f'fuzz: {executions} executions of {len(names)} targets, '
          f'{len(broken)} broken{": " + " ".join(broken) if broken else ""}')
    return 1 if broken else 0


if __name__ == '__main__':
    sys.exit(main())
