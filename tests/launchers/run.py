#!/usr/bin/env python3
"""Programs that start a redis-server start Semel: run.py --program SEMEL [--only NAME].. [--work D]

Each by its documented setting for the path of the binary, which is a link named redis-server:
pytest-redis (--redis-exec), redis-memory-server (REDISMS_SYSTEM_BINARY), embedded-redis (its
constructor). What a registry does not give is skipped, and said. The last line is
`launchers: N of M passed, S skipped, T tests`. Exit code 0: all that ran passed; 1: one failed; 77:
all were skipped.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'fixtures'))
from projects import fresh, main, run, tool  # noqa: E402


def link(work):
    return work / 'redis-server'


class PytestRedis:
    def prepare(self, work):
        python = work / 'pytest_redis/venv/bin/python'
        place = fresh(HERE / 'pytest_redis', work / 'pytest_redis')
        if not python.exists():
            run([sys.executable, '-m', 'venv', place / 'venv'], work)
        run([python, '-m', 'pip', 'install', '--disable-pip-version-check', '--quiet',
             '--requirement', 'requirements.txt'], place)
        return [python, '-m', 'pytest', '-q', '--redis-exec', link(work), 'test_launch.py'], place


class MemoryServer:
    def prepare(self, work):
        place = fresh(HERE / 'memory_server', work / 'memory_server')
        # Its script for installing would compile a redis-server.
        run([tool('npm'), 'install', '--no-audit', '--no-fund', '--ignore-scripts',
             '--no-package-lock'], place)
        os.environ['REDISMS_SYSTEM_BINARY'] = str(link(work))
        return [tool('node', 'nodejs'), '--test', '--test-reporter=tap', 'launch.test.mjs'], place


class EmbeddedRedis:
    def prepare(self, work):
        maven = [tool('mvn'), '--batch-mode', '--no-transfer-progress']
        place = fresh(HERE / 'embedded_redis', work / 'embedded_redis')
        run([*maven, '--quiet', 'test-compile'], place)
        os.environ['REDIS_SERVER'] = str(link(work))
        return [*maven, 'test'], place


SUITES = {
    'pytest-redis': PytestRedis(),
    'redis-memory-server': MemoryServer(),
    'embedded-redis': EmbeddedRedis(),
}


def make_link(work, program):
    link(work).unlink(missing_ok=True)
    link(work).symlink_to(program)


if __name__ == '__main__':
    sys.exit(main('launchers', __doc__, SUITES, make_link))
