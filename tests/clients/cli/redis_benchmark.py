"""redis-benchmark: that it runs to its end, and counts: redis_benchmark.py PROGRAM"""

import csv
import io
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from report import HOST, PORT, check  # noqa: E402


def benchmark(tests, *options):
    """Ends well, and says of each of `tests` how many a second there were."""
    done = subprocess.run(
        [sys.argv[1], '-h', HOST, '-p', str(PORT), '--csv', '-n', '4000', '-c', '20', *options],
        stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, f'exit code {done.returncode}: {done.stdout} {done.stderr}'
    assert 'error' not in (done.stdout + done.stderr).lower(), done.stdout + done.stderr
    rows = {row['test']: float(row['rps']) for row in csv.DictReader(io.StringIO(done.stdout))}
    for test in tests:
        assert rows.get(test, 0) > 0, f'{test}: no figure in {rows}'


check('set, get, incr, ping', lambda: benchmark(
    ['SET', 'GET', 'INCR', 'PING_MBULK'], '-t', 'set,get,incr,ping_mbulk'))
check('pipelines of 16', lambda: benchmark(
    ['SET', 'GET'], '-t', 'set,get', '-P', '16', '-r', '1000', '-d', '100'))
check('threads', lambda: benchmark(['SET', 'GET'], '-t', 'set,get', '--threads', '2'))
CLAIM = ['SET', 'claim:__rand_int__', 'x', 'NX', 'GET', 'PX', '60000']
check('a command of our own', lambda: benchmark([' '.join(CLAIM)], '-r', '500', *CLAIM))
check('RESP3', lambda: benchmark(['GET'], '-t', 'get', '-3'))
print('end')
