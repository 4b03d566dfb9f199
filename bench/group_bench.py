"""What benches of groups share: groups that are started, their load, and rows with goals."""

import json
import os
import re
import statistics
import subprocess

from groups import Semel
from sides import Sides, pinned

ENDLESS = 10**12


class LeaderChanged(Exception):
    """A load that does not follow the leader met another one."""


def is_met(goal, ours, ratio):
    """'' without a goal. '>= 2x' is about the ratio, '<= 50 ms' about our figure."""
    if not goal:
        return ''
    sign, bound = re.match(r'([<>]=) ([\d.]+)', goal).groups()
    if ours is None:
        return '**NOT met**'  # what should be measured is refused
    figure = ratio if goal.endswith('x') else ours
    if figure is None:
        return 'skipped'
    good = figure >= float(bound) if sign == '>=' else figure <= float(bound)
    return 'met' if good else '**NOT met**'


class GroupBench(Sides):
    def __init__(self, options, directory):
        super().__init__(options, directory)
        # Built beside the load of single servers.
        self.follow = os.path.join(os.path.dirname(options.load), 'semel_follow_load')
        self.changes = 0  # of leaders, where none was asked for

    def row(self, work, ours, peers, peer, unit, goal=''):
        """Medians; `peers` as many as `ours`, or empty if there is nothing to compare with."""
        ratio = statistics.median(a / b for a, b in zip(ours, peers)) if peers else None
        mine = statistics.median(ours) if ours else None
        theirs = statistics.median(peers) if peers else None
        self.rows.append({'work': work, 'ours': mine, 'redis': theirs, 'peer': peer, 'unit': unit,
                          'ratio': ratio, 'goal': goal, 'met': is_met(goal, mine, ratio)})
        shown = ['-' if figure is None else f'{figure:,.2f}' for figure in (mine, theirs, ratio)]
        print(f'{work:56} {shown[0]:>12} {shown[1]:>12} {unit:8} {shown[2]:>7}  {goal:10} '
              f'{self.rows[-1]["met"]:12} {peer}', flush=True)

    def semel(self, options=(), maxmemory='4gb'):
        return Semel(self.directory, self.options.semel, options, maxmemory)

    def drive(self, port, core=None, **flags):
        """What semel_node_load has measured, with `rate`."""
        words = [self.options.load, '--port', port]
        for name, value in ({'operations': ENDLESS} | flags).items():
            words += ['--' + name.replace('_', '-'), value]
        run = subprocess.run(pinned(core) + [str(word) for word in words], capture_output=True,
                             text=True, timeout=900, check=False)
        if run.returncode != 0:
            changed = re.search('-(MOVED|TRYAGAIN|CLUSTERDOWN).*', run.stderr)
            if changed:
                raise LeaderChanged(changed.group(0))
            raise SystemExit(f'{words}: {run.stderr}{run.stdout}')
        found = json.loads(run.stdout)
        found['rate'] = found['operations'] / found['seconds']
        return found

    def steadily(self, measure):
        """What `measure` returns. A group whose leader changes is no measure of one that has none
        of that: it is measured again, and counted."""
        for _ in range(3):
            try:
                return measure()
            except LeaderChanged as error:
                self.changes += 1
                print(f'  measured again, the leader has changed: {error}', flush=True)
        raise SystemExit('the leader changes again and again')

    def fill(self, group, **flags):
        self.steadily(lambda: self.drive(group.leader_port(), work='fill', **flags))
        group.count()
