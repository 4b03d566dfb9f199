#!/usr/bin/env python3
"""packaging/monitoring: dashboard and alerts ask for what there is, and each alert is tested.

monitoring_test.py [--promtool]: with the option the alerts are checked and played by promtool
(Debian's package prometheus); without promtool that is skipped, and says so.
"""

import json
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MONITORING = ROOT / 'packaging/monitoring'
NAME = re.compile(r'\b(?:semel|process)_[a-z_]+\b')
SUFFIX = re.compile(r'_(bucket|sum|count)$')
LABELS_ADDED = {'instance', 'job', 'le', 'severity'}
SKIPPED = 77


def metrics():
    """name -> its labels"""
    text = (ROOT / 'net/admin/metrics.def').read_text()
    rows = re.findall(r'^X\((\w+), \w+, \w+, "([^"]*)"', text, re.MULTILINE)
    return {name: set(labels.split()) for name, labels in rows}


def targets():
    board = json.loads((MONITORING / 'grafana-dashboard.json').read_text())
    for panel in board['panels']:
        for target in panel.get('targets', []):
            yield panel['title'], target['expr']
    for variable in board['templating']['list']:
        if variable['type'] == 'query':
            yield variable['name'], variable['definition']


class Monitoring(unittest.TestCase):
    def known(self, where, expression):
        names = set(NAME.findall(expression))
        for name in names:
            self.assertIn(SUFFIX.sub('', name) if name not in metrics() else name, metrics(), where)
        labels = {label for name in names for label in metrics().get(name, set())}
        for label in re.findall(r'(\w+)(?:=~|!=|!~|=)"', expression):
            self.assertIn(label, labels | LABELS_ADDED, where)
        return names

    def test_dashboard_asks_for_metrics_that_there_are(self):
        asked = set()
        for where, expression in targets():
            names = self.known(where, expression)
            self.assertTrue(names, where)
            asked |= names
        self.assertIn('semel_claims_total', asked)

    def test_panels_do_not_overlap(self):
        board = json.loads((MONITORING / 'grafana-dashboard.json').read_text())
        taken = {}
        for panel in board['panels']:
            at = panel['gridPos']
            self.assertLessEqual(at['x'] + at['w'], 24)
            for x in range(at['x'], at['x'] + at['w']):
                for y in range(at['y'], at['y'] + at['h']):
                    self.assertNotIn((x, y), taken, panel['title'])
                    taken[x, y] = panel['title']
        identities = [panel['id'] for panel in board['panels']]
        self.assertEqual(len(identities), len(set(identities)))

    def test_alerts_ask_for_metrics_that_there_are(self):
        text = (MONITORING / 'alerts.yml').read_text()
        expressions = re.findall(r'expr: (>-\n(?:\s{10}.*\n)+|.*\n)', text)
        self.assertEqual(len(expressions), text.count('- alert: '))
        for expression in expressions:
            self.known(expression, expression)

    def test_each_alert_is_tested_both_ways(self):
        alerts = re.findall(r'- alert: (\w+)', (MONITORING / 'alerts.yml').read_text())
        test = (MONITORING / 'alerts_test.yml').read_text()
        healthy, troubled = test.split('- name: a node in trouble')
        self.assertEqual(len(alerts), len(set(alerts)))
        for alert in alerts:
            self.assertRegex(healthy, rf'alertname: {alert}}}')
            self.assertRegex(troubled, rf'alertname: {alert}\n\s+exp_alerts:')


def play():
    promtool = shutil.which('promtool')
    if promtool is None:
        print('promtool is not there (package prometheus): the alerts are not played')
        return SKIPPED
    for words in (['check', 'rules', 'alerts.yml'], ['test', 'rules', 'alerts_test.yml']):
        done = subprocess.run([promtool, *words], cwd=MONITORING, timeout=60, check=False)
        if done.returncode != 0:
            return 1
    return 0


if __name__ == '__main__':
    if '--promtool' in sys.argv:
        sys.exit(play())
    unittest.main()
