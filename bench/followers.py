"""Clients that follow the leader of a group: semel_follow_load, and the gaps that it reports."""

import json
import queue
import subprocess
import threading


class Followers:
    """Clients that follow the leader, in a process of their own, and the gaps that they tell of."""

    def __init__(self, program, group, **flags):
        words = ['setpriv', '--pdeathsig', 'KILL', program, '--ports',
                 ' '.join(map(str, group.ports))]
        for name, value in flags.items():
            words += ['--' + name.replace('_', '-'), str(value)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put('')

    def next_gap(self, seconds):
        """(client, begin, end) in seconds of CLOCK_MONOTONIC; None if there is none in time."""
        try:
            line = self.lines.get(timeout=seconds) if seconds else self.lines.get_nowait()
        except queue.Empty:
            return None
        if not line.startswith('gap '):
            raise SystemExit(f'the clients have ended: {line}')
        _, client, begin, ms = line.split()
        return int(client), float(begin), float(begin) + float(ms) / 1000

    def forget(self):
        while self.next_gap(0) is not None:
            pass

    def finish(self, end=True):
        """What they have counted. A wrong reply ends the bench."""
        if end:
            self.process.terminate()
        lines = list(iter(lambda: self.lines.get(timeout=900), ''))
        if self.process.wait() != 0 or not lines:
            raise SystemExit(f'claims that were not granted once: {lines[-1:]}')
        return json.loads(lines[-1])
