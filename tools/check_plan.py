"""Which tests are nearest to a change, for tools/check.

A unit that changed reaches those that include it, over any number of units in between. The tests of
a part's folder are run if the part is reached: first those of the parts that changed, then those of
the parts above them, as long as there is time by what each took the last time.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import tidy  # noqa: E402
import tidy_rooms  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
# The tests of a part lie in the folder of its name, and these beside it.
MORE_TESTS = {'include': ('engine',), 'engine': ('claim_rules',), 'bindings': ('c_abi',),
              'tools': ('tools',)}
AT_ONCE = 3
UNKNOWN_SECONDS = 1.0  # of a test that has not been run here
NOT_BUILT = 3  # the exit code where a test's program is not there yet


def git(*arguments):
    return subprocess.run(['git', '-C', str(ROOT), *arguments], check=True, capture_output=True,
                          text=True).stdout.splitlines()


def changed_files(since):
    """What differs from `since`; without it: what is not committed, or else the last commit."""
    others = git('ls-files', '--others', '--exclude-standard')
    if since:
        return sorted({*git('diff', '--name-only', since), *others})
    found = sorted({*git('diff', '--name-only', 'HEAD'), *others})
    return found or git('diff', '--name-only', 'HEAD~1', 'HEAD')


def part_of(path):
    return path.split('/', 1)[0]


def reached_units(units, changed):
    """The units that changed, and all that include them."""
    users = {}
    for unit, others in units.includes.items():
        for other in others:
            users.setdefault(other, set()).add(unit)
    reached = {tidy_rooms.unit_of(path) for path in changed} & set(units.paths)
    work = list(reached)
    while work:
        for user in users.get(work.pop(), ()):
            if user not in reached:
                reached.add(user)
                work.append(user)
    return reached


def folders_of(changed, reached):
    """Folders of tests with how near they are: 0 for what changed itself."""
    near = {}

    def add(folder, distance):
        near[folder] = min(distance, near.get(folder, distance))

    for path in changed:
        if path.startswith('tests/') and path.count('/') > 1:
            add(path.split('/')[1], 0)
        elif path.endswith('.md'):
            add('tools', 0)  # pages are played there
    direct = {part_of(path) for path in changed} & set(tidy.ROOM_PARTS)
    for part in direct | {part_of(unit) for unit in reached}:
        distance = 0 if part in direct else 1 + tidy.ROOM_PARTS.index(part)
        for folder in (part, *MORE_TESTS.get(part, ())):
            add(folder, distance)
    return near


def folder_of(test, build):
    for item in test.get('properties', ()):
        if item['name'] == 'WORKING_DIRECTORY':
            rest = Path(item['value']).resolve()
            if rest.is_relative_to(build / 'tests'):
                parts = rest.relative_to(build / 'tests').parts
                return parts[0] if parts else ''
    return None


def programs_of(test, build):
    """What the build makes of that which the test's command names: targets of Ninja."""
    paths = [Path(word) for word in test.get('command', ()) if word.startswith(f'{build}/')]
    return [str(path.relative_to(build)) for path in paths if path.is_file()]


def seconds_of(build):
    costs = {}
    path = build / 'Testing/Temporary/CTestCostData.txt'
    if path.exists():
        for line in path.read_text(encoding='utf-8').splitlines():
            row = line.split(' ')
            if len(row) == 3:
                costs[row[0]] = float(row[2])
    return costs


def declared_costs(tests):
    """Seconds of those that the build calls long (semel_long_tests), where none has been run."""
    return {name: item['value'] for name, test in tests.items()
            for item in test.get('properties', ()) if item['name'] == 'COST'}


def choose(folders, near, costs, seconds):
    """Names in the order of their folders' distance, the cheap ones of each first; and how many
    were left out. `folders`: of each test."""
    wanted = sorted((near[folder], costs.get(name, UNKNOWN_SECONDS), name)
                    for name, folder in folders.items() if folder in near)
    budget, chosen = seconds * AT_ONCE, []
    for _, cost, name in wanted:
        if cost <= budget and cost <= seconds:
            budget -= cost
            chosen.append(name)
    return chosen, len(wanted) - len(chosen)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--since')
    parser.add_argument('--seconds', type=float, default=60, help='of tests')
    parser.add_argument('--list', action='store_true', help='only says what would be run')
    parser.add_argument('--build', type=Path, required=True)
    parser.add_argument('--plan', type=Path, required=True)
    options = parser.parse_args()
    build = options.build.resolve()
    changed = changed_files(options.since)
    units = tidy_rooms.Units(s for s in tidy.Tidy(ROOT).sources if s.path.startswith(
        tuple(f'{part}/' for part in tidy.ROOM_PARTS)))
    near = folders_of(changed, reached_units(units, changed))
    listed = json.loads(subprocess.run(
        ['ctest', '--test-dir', str(build), '--show-only=json-v1'], check=True,
        capture_output=True, text=True).stdout)
    tests = {test['name']: test for test in listed['tests']}
    folders = {name: folder_of(test, build) for name, test in tests.items()}
    if any(name.endswith('_NOT_BUILT') and folders[name] in near for name in tests):
        sys.exit(NOT_BUILT)
    costs = declared_costs(tests) | seconds_of(build)
    chosen, left = choose(folders, near, costs, options.seconds)
    rooms = {folders[name] for name in chosen}
    targets = {target for name in chosen for target in programs_of(tests[name], build)}
    verdict = (f'{len(changed)} files changed, {len(chosen)} tests of {", ".join(sorted(rooms))}'
               f' chosen, {left} left out')
    options.plan.parent.mkdir(parents=True, exist_ok=True)
    # A name may be the beginning of another one.
    names = '|'.join(map(re.escape, chosen))
    write(options.plan, '.tests', f'^({names})$' if chosen else '')
    write(options.plan, '.targets', ''.join(f'{each}\n' for each in sorted(targets)))
    write(options.plan, '.run', '' if options.list else verdict)
    print(f'check: {verdict}', file=sys.stderr)


def write(plan, ending, text):
    plan.with_name(plan.name + ending).write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
