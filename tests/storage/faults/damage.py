#!/usr/bin/env python3
"""Damages every file of a storage at random and opens it: damage.py SUBJECT [--long] [--seed N]

SUBJECT is the program damage_subject. It leaves behind directories of a closed and of a killed
process and says what is in them. Each damage is made on a copy, which is opened in a process of
its own, in the same boot (of a closed one also in another). The verdict is one of

  same      what was acknowledged is there, and nothing else: the damage was harmless or repaired
  refused   the error names a file, and the offset where it is one of Semel's own
  vague     refused, but the error does not say where: wrong
  changed   opened, and something is lost or different: wrong
  crashed   the process died or hung: wrong

Each wrong one is printed with the command that makes it again.
"""
import argparse
import concurrent.futures
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, namedtuple

KINDS = ['bit', 'byte', 'sector', 'rest', 'cut', 'delete']
WRONG = ['vague', 'changed', 'crashed']
VERDICTS = ['same', 'refused'] + WRONG
OPEN_SECONDS = 30
SHOWN = 6  # of each verdict

Damage = namedtuple('Damage', 'number origin file kind offset value boot')
Origin = namedtuple('Origin', 'path now unix states records')


def file_kind(name):
    """What a file is, by its path in the storage."""
    base = os.path.basename(name)
    if name.startswith('rocksdb/'):
        if base.endswith('.sst'):
            return 'rocksdb sst'
        if base.endswith('.log'):
            return 'rocksdb wal'
        if base.startswith('LOG'):
            return 'rocksdb text log'
        return 'rocksdb ' + base.split('-')[0]
    if name.startswith('log/'):
        return 'log segment'
    return base


def is_own(name):
    return not name.startswith('rocksdb/')


def run(command):
    """Exit code (None: it hung) and lines."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=OPEN_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None, [], ''
    return (done.returncode, done.stdout.decode(errors='replace').splitlines(),
            done.stderr.decode(errors='replace'))


def states_of(lines):
    return dict(line.split(' ', 2)[1:] for line in lines if line.startswith('k '))


def make_origin(subject, path, seed, end):
    code, lines, errors = run([subject, 'make', path, str(seed), end])
    if 'made' not in lines:
        sys.exit(f'damage: no storage was made ({code}): {lines[-1:]} {errors}')
    now = next(line.split()[1:] for line in lines if line.startswith('now '))
    states = states_of(lines)
    records = sum(1 for state in states.values() if state != '-')
    return Origin(path, now[0], now[1], states, records)


def files_of(path):
    found = []
    for directory, _, names in os.walk(path):
        found += [os.path.relpath(os.path.join(directory, name), path) for name in names]
    return sorted(name for name in found if os.path.basename(name) != 'LOCK')


def choose(generator, number, origins):
    index = generator.randrange(len(origins))
    origin = origins[index]
    names = files_of(origin.path)
    # Each kind of file as often as any other, not each file.
    wanted = generator.choice(sorted({file_kind(name) for name in names}))
    name = generator.choice([each for each in names if file_kind(each) == wanted])
    with open(os.path.join(origin.path, name), 'rb') as file:
        data = file.read()
    used = len(data.rstrip(b'\0'))
    # Most of a segment is zeros that nobody has written yet; mostly what is written is hit.
    limit = max(1, used if generator.random() < 0.8 else len(data))
    offset = generator.randrange(limit)
    kind = generator.choices(KINDS, [6, 4, 4, 2, 2, 1])[0]
    value = generator.randrange(1, 256)
    is_closed = index % 2 == 0
    boot = 'second' if is_closed and generator.random() < 0.3 else 'first'
    return Damage(number, index, name, kind, offset, value, boot)


def apply(damage, path):
    """Changes the file. False: there is nothing to change."""
    name = os.path.join(path, damage.file)
    if damage.kind == 'delete':
        os.remove(name)
        return True
    size = os.path.getsize(name)
    with open(name, 'r+b') as file:
        before = file.read()
        data = bytearray(before)
        at = damage.offset
        if damage.kind == 'cut':
            file.truncate(at)
            return at != size
        if at >= size:
            return False
        if damage.kind == 'bit':
            data[at] ^= 1 << (damage.value % 8)
        elif damage.kind == 'byte':
            data[at] ^= damage.value
        elif damage.kind == 'sector':
            start = at - at % 512
            end = min(size, start + 512)
            data[start:end] = bytes(end - start)
        else:
            data[at:] = bytes(size - at)
        file.seek(0)
        file.write(data)
        return bytes(data) != before


def judge(damage, origin, code, lines, errors):
    if code is None:
        return 'crashed', f'did not end in {OPEN_SECONDS} s'
    if code == 0 and 'opened' in lines:
        found = states_of(lines)
        different = [f'{key} holds {found.get(key, "nothing")[:50]}, expected {state[:50]}'
                     for key, state in origin.states.items() if found.get(key) != state]
        records = next(int(line.split()[1]) for line in lines if line.startswith('records '))
        if not different and records != origin.records:
            different = [f'{records} records, expected {origin.records}']
        return ('changed', f'{len(different)} keys: {different[0]}') if different else ('same', '')
    refusal = next((line for line in lines if line.startswith('refused ')), None)
    if code != 1 or refusal is None:
        return 'crashed', f'exit code {code}: {errors.strip()[-300:]}'
    # Where a file is gone, or its log, RocksDB knows only what is missing in it.
    names = [os.path.basename(name) for name in files_of(origin.path)] + ['MANIFEST', 'CURRENT']
    names_file = any(name in refusal for name in names)
    names_offset = re.search(r'(offset|at|byte) \d+', refusal) is not None
    needs_offset = is_own(damage.file) and damage.kind not in ('delete', 'cut')
    if names_file and (names_offset or not needs_offset):
        return 'refused', refusal
    return 'vague', refusal


def try_one(subject, scratch, origins, damage):
    origin = origins[damage.origin]
    path = os.path.join(scratch, f'copy{damage.number}')
    shutil.copytree(origin.path, path)
    try:
        if not apply(damage, path):
            return 'same', ''
        return judge(damage, origin, *run([subject, 'open', path, origin.now, origin.unix,
                                           damage.boot]))
    finally:
        shutil.rmtree(path, ignore_errors=True)


def print_table(counts):
    kinds = sorted({kind for kind, _ in counts})
    print('damage: ' + ' ' * 20 + ''.join(f'{verdict:>9}' for verdict in VERDICTS))
    for kind in kinds:
        print(f'damage: {kind:20}' + ''.join(f'{counts[kind, each]:9}' for each in VERDICTS))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('subject')
    parser.add_argument('--long', action='store_true')
    parser.add_argument('--seed', type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument('--damages', type=int, help='how many; short: 300, long: 10,000')
    parser.add_argument('--only', type=int, help='this one alone, with its answer')
    options = parser.parse_args()
    total = options.damages or (10_000 if options.long else 300)
    print(f'damage: seed {options.seed}')
    memory = '/dev/shm' if os.path.isdir('/dev/shm') else None
    scratch = tempfile.mkdtemp(prefix='semel_damage_', dir=memory)
    counts, shown = Counter(), Counter()
    try:
        origins = [make_origin(options.subject, os.path.join(scratch, f'origin{i}'),
                               options.seed + i, 'kill' if i % 2 else 'close') for i in range(4)]
        for i, origin in enumerate(origins):  # undamaged, each must open
            untouched = Damage(f'_origin{i}', i, 'CURRENT', 'cut', 1 << 40, 1, 'first')
            path = os.path.join(scratch, 'untouched')
            shutil.copytree(origin.path, path)
            verdict, text = judge(untouched, origin, *run(
                [options.subject, 'open', path, origin.now, origin.unix, 'first']))
            shutil.rmtree(path)
            if verdict != 'same':
                sys.exit(f'damage: an undamaged storage is {verdict}: {text}')
        generator = random.Random(options.seed)
        damages = [choose(generator, number, origins) for number in range(total)]
        if options.only is not None:
            damages = [damages[options.only]]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            answers = pool.map(lambda damage: try_one(options.subject, scratch, origins, damage),
                               damages)
            for damage, (verdict, text) in zip(damages, answers):
                counts[file_kind(damage.file), verdict] += 1
                if options.only is not None or (verdict in WRONG and shown[verdict] < SHOWN):
                    shown[verdict] += 1
                    print(f'damage: {verdict}: {damage.kind} at {damage.offset} of {damage.file}, '
                          f'boot {damage.boot} (--seed {options.seed} --damages {total} --only '
                          f'{damage.number}): {text}')
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print_table(counts)
    sums = Counter()
    for (_, verdict), count in counts.items():
        sums[verdict] += count
    print(f'damage: {sum(sums.values())} damages, '
          + ', '.join(f'{sums[verdict]} {verdict}' for verdict in VERDICTS))
    return 1 if any(sums[verdict] for verdict in WRONG) else 0


if __name__ == '__main__':
    sys.exit(main())
