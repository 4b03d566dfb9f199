"""celery_app.py: a real worker with a broker of files, which the test kills in the middle, and
delivers the message again as a broker would."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

try:
    import celery  # noqa: F401
except ImportError as missing:
    raise unittest.SkipTest('Celery is not installed') from missing

HERE = Path(__file__).resolve().parent
LIMIT_S = 60


class CeleryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='semel_celery_')
        self.addCleanup(folder.cleanup)
        self.home = Path(folder.name)
        for name in ('queue', 'control'):
            (self.home / name).mkdir()
        self.env = {**os.environ, 'SHOP_HOME': folder.name, 'SHOP_BROKER': 'filesystem://',
                    'PYTHONPATH': f'{HERE}:{os.environ.get("PYTHONPATH", "")}'}

    def worker(self):
        log = open(self.home / 'log', 'ab')
        self.addCleanup(log.close)
        made = subprocess.Popen(
            [sys.executable, '-m', 'celery', '-A', 'celery_app', 'worker', '--pool=solo',
             '--loglevel=INFO', '--without-gossip', '--without-mingle', '--without-heartbeat'],
            env=self.env, cwd=self.home, stdout=log, stderr=log)
        self.addCleanup(made.wait, LIMIT_S)
        self.addCleanup(made.kill)
        return made

    def deliver(self, task_id, **named):
        script = ('import celery_app, sys, json; celery_app.ship.apply_async(("o",), '
                  'json.loads(sys.argv[2]), task_id=sys.argv[1])')
        import json
        subprocess.run([sys.executable, '-c', script, task_id, json.dumps(named)], env=self.env,
                       cwd=self.home, check=True, timeout=LIMIT_S)

    def until(self, what, wanted):
        end = time.monotonic() + LIMIT_S
        while not wanted():
            if time.monotonic() > end:
                self.fail(f'{what} has not come:\n{(self.home / "log").read_text()[-3000:]}')
            time.sleep(0.02)

    def effects(self):
        path = self.home / 'effects'
        return path.read_text().split('\n')[:-1] if path.exists() else []

    def said(self, text):
        return (self.home / 'log').read_text().count(text)

    def test_a_worker_that_is_killed_in_the_middle(self):
        self.deliver('id-1', slow=True)
        first = self.worker()
        self.until('the middle', (self.home / 'in the middle').exists)
        first.send_signal(signal.SIGKILL)
        first.wait(LIMIT_S)
        self.assertEqual(self.effects(), ['charge o'])
        (self.home / 'go').touch()
        self.deliver('id-1', slow=True)
        second = self.worker()
        self.until('the mail', lambda: 'mail o' in self.effects())
        self.deliver('id-1', slow=True)  # acknowledged, and delivered once more
        self.deliver('id-2')
        self.until('the second order', lambda: len(self.effects()) >= 4)
        self.assertEqual(self.effects(), ['charge o', 'mail o', 'charge o', 'mail o'])
        self.until('the duplicate', lambda: self.said('REPLAYED') + self.said('EXPIRED') == 1)
        second.send_signal(signal.SIGTERM)  # a warm shutdown, with an open engine
        self.assertEqual(second.wait(LIMIT_S), 0)


if __name__ == '__main__':
    unittest.main()
