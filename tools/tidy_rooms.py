"""Units and rooms, for tidy.py: which includes which.

A unit is a header and its source, by their path without the extension. A room is the directory
of a unit. Run as a program it prints the figures of the tree, with --write it also renews the table
of rooms in docs/architecture.md: its order and its last column, not what a room contains.
"""

import os
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
SOURCE = re.compile(r'\.(cpp|hpp|def|h)$')


def unit_of(path):
    """A list of rows is a unit of its own: its readers need not be the unit of its name."""
    return path if path.endswith('.def') else SOURCE.sub('', path)


def room_of(unit):
    return os.path.dirname(unit)


class Units:
    def __init__(self, sources):
        sources = [s for s in sources if SOURCE.search(s.path)]
        self.paths = {}
        for source in sources:
            self.paths.setdefault(unit_of(source.path), source.path)
        self.includes = {unit: set() for unit in self.paths}
        for source in sources:
            unit = unit_of(source.path)
            for target in INCLUDE.findall(source.text):
                for root in ('', 'include/', 'bindings/c/'):
                    other = unit_of(root + target)
                    if other in self.paths:
                        if other != unit:
                            self.includes[unit].add(other)
                        break

    def path(self, unit):
        return self.paths[unit]

    def rooms(self):
        """room -> its units, sorted."""
        found = {}
        for unit in sorted(self.paths):
            found.setdefault(room_of(unit), []).append(unit)
        return found

    def arrows(self):
        """room -> {room that it includes: how often}"""
        found = {room: {} for room in self.rooms()}
        for unit, others in self.includes.items():
            for other in others:
                if room_of(other) != room_of(unit):
                    row = found[room_of(unit)]
                    row[room_of(other)] = row.get(room_of(other), 0) + 1
        return found

    def upwards(self, order):
        """Pairs of units whose arrow goes against the order of rooms."""
        place = {room: index for index, room in enumerate(order)}
        return [(unit, other) for unit, others in sorted(self.includes.items())
                for other in sorted(others)
                if place.get(room_of(other), -1) > place.get(room_of(unit), len(order))]

    def in_cycles(self):
        """Pairs of units whose arrow is part of a cycle."""
        component = {}
        for index, members in enumerate(self.components()):
            for unit in members:
                component[unit] = index
        return [(unit, other) for unit, others in sorted(self.includes.items())
                for other in sorted(others) if component[unit] == component[other]]

    def components(self):
        """Strongly connected units: Tarjan's algorithm, without recursion."""
        number, low, stack, on_stack, found = {}, {}, [], set(), []
        for start in sorted(self.includes):
            work = [] if start in number else [(start, iter(sorted(self.includes[start])))]
            if work:
                number[start] = low[start] = len(number)
                stack.append(start)
                on_stack.add(start)
            while work:
                unit, others = work[-1]
                for other in others:
                    if other not in number:
                        number[other] = low[other] = len(number)
                        stack.append(other)
                        on_stack.add(other)
                        work.append((other, iter(sorted(self.includes[other]))))
                        break
                    if other in on_stack:
                        low[unit] = min(low[unit], number[other])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[unit])
                    if low[unit] == number[unit]:
                        members = []
                        while not members or members[-1] != unit:
                            members.append(stack.pop())
                            on_stack.discard(members[-1])
                        found.append(members)
        return found


PAGE = 'docs/architecture.md'
HEADER = '| room | contains | includes, besides `base` and the public headers |\n|---|---|---|\n'
FOR_ALL = ('base', 'include/semel', 'include/semel/patterns')


def units_of_tree(root):
    import tidy
    return Units(s for s in tidy.Tidy(root).sources if s.path.startswith(
        tuple(f'{part}/' for part in tidy.ROOM_PARTS)))


def contents_in(page):
    """room -> what it contains, by the page."""
    table = page.partition(HEADER)[2].partition('\n\n')[0]
    rows = (line.split(' | ') for line in table.splitlines())
    return {row[0].strip('| `'): row[1].strip() for row in rows if len(row) == 3}


def table_of(units, order, contents):
    """The table of rooms; a room that the page does not know yet has `?`."""
    arrows, rows = units.arrows(), []
    for room in sorted(arrows, key=order.index):
        others = sorted(set(arrows[room]) - set(FOR_ALL), key=order.index)
        shown = ', '.join(f'`{other}`' for other in others) or 'nothing'
        rows.append(f'| `{room}` | {contents.get(room, "?")} | {shown} |\n')
    return HEADER + ''.join(rows)


def with_table(page, table):
    before, _, rest = page.partition(HEADER)
    return before + table + '\n' + rest.partition('\n\n')[2]


def main():
    import tidy
    root = Path(__file__).resolve().parent.parent
    units = units_of_tree(root)
    if '--write' in sys.argv[1:]:
        page = (root / PAGE).read_text(encoding='utf-8')
        table = table_of(units, tidy.ROOMS, contents_in(page))
        (root / PAGE).write_text(with_table(page, table), encoding='utf-8')
    rooms = units.rooms()
    for room in sorted(rooms, key=tidy.ROOMS.index):
        print(f'{len(rooms[room]):3}  {room}')
    cycles = [members for members in units.components() if len(members) > 1]
    print(f'{len(rooms)} rooms, {len(units.paths)} units, {len(cycles)} cycles of '
          f'{sum(map(len, cycles))} units, {len(units.upwards(tidy.ROOMS))} arrows upwards')


if __name__ == '__main__':
    main()
