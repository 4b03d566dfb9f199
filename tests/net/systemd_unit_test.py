#!/usr/bin/env python3
"""tools/systemd/semel.service is one that systemd takes, and it stays shut in.

Usage: systemd_unit_test.py UNIT. Ends with 77 where there is no systemd-analyze.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

EXPOSURE_MAX = 15  # tenths, as `systemd-analyze security` counts them; 12 with systemd 252


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, (done.stdout + done.stderr).strip()


def main():
    unit = Path(sys.argv[1])
    text = unit.read_text(encoding='utf-8')
    begin = 'ExecStart=/usr/bin/semel node --config /etc/semel/semel.toml\n'
    failures = []
    if text.count(begin) != 1:
        failures.append(f'no line {begin.strip()!r}')
    for wanted in ('Type=notify', 'DynamicUser=yes', 'StateDirectory=semel', 'ProtectSystem=strict',
                   'NoNewPrivileges=yes', 'PrivateTmp=yes', 'MemoryDenyWriteExecute=yes',
                   'SystemCallFilter=@system-service', 'Restart=on-failure'):
        if f'\n{wanted}\n' not in text:
            failures.append(f'no line {wanted!r}')
    if not re.search(r'\nTimeoutStopSec=\d+\n', text):
        failures.append('no bound for the time that stopping takes')

    if not shutil.which('systemd-analyze'):
        print('systemd unit: skipped, systemd-analyze is not installed')
        return 77 if not failures else report(failures)

    with tempfile.TemporaryDirectory() as folder:
        # The program need not be installed; what is checked is the unit.
        copy = Path(folder) / unit.name
        copy.write_text(text.replace('/usr/bin/semel', '/bin/true'), encoding='utf-8')
        code, said = run('systemd-analyze', 'verify', '--man=no', '--recursive-errors=no',
                         str(copy))
        if code != 0 or said:
            failures.append(f'systemd-analyze verify: {code}: {said}')
        code, said = run('systemd-analyze', 'security', '--offline=yes', '--no-pager',
                         f'--threshold={EXPOSURE_MAX}', str(copy))
        if code != 0:
            failures.append(f'systemd-analyze security: {said.splitlines()[-1:]}')
        # The check must be able to fail.
        copy.write_text(text.replace('Type=notify', 'Type=nonsense'), encoding='utf-8')
        code, said = run('systemd-analyze', 'verify', '--man=no', '--recursive-errors=no',
                         str(copy))
        if code == 0 and not said:
            failures.append('systemd-analyze takes Type=nonsense')
    return report(failures)


def report(failures):
    for failure in failures:
        print(failure)
    print(f'systemd unit: {"failed" if failures else "as it should be"}')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
