"""What a suite written in Python prints; see run.py."""

import os
import time
import traceback

HOST = os.environ['SEMEL_TEST_HOST']
PORT = int(os.environ['SEMEL_TEST_PORT'])
SCRIPTS = os.environ['SEMEL_TEST_SCRIPTS'] == 'yes'


def check(name, work):
    """`work` raises where something is wrong."""
    try:
        work()
    except Exception as error:  # pylint: disable=broad-except
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f'{type(error).__name__} {error}'.replace('\n', ' ')
        print(f'failed {name}: {text} ({os.path.basename(where.filename)}:{where.lineno} '
              f'{where.line})', flush=True)
    else:
        print(f'ok {name}', flush=True)


def skip(name, why='waits for scripts'):
    print(f'skipped {name}: {why}', flush=True)


def until(condition, seconds=10):
    """Waits for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f'not so within {seconds} s'
        time.sleep(0.005)
