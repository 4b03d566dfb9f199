#!/usr/bin/env python3
"""Runs tests of another language and prints them as a suite: native.py go|tap COMMAND..

`go` reads what `go test -v` prints, `tap` the Test Anything Protocol as node:test writes it. The
suite has come to its end if the tests have, whatever they found.
"""

import re
import subprocess
import sys

GO = re.compile(r'--- (PASS|FAIL|SKIP): (\S+)')
TAP = re.compile(r'(not ok|ok) \d+ - (.*?)(?: # (SKIP|TO[D]O)\b ?(.*))?')
LINES_KEPT = 12


def one_line(lines):
    return ' | '.join(' '.join(line.split()) for line in lines[-LINES_KEPT:])[:2000]


def go(lines):
    """Lines of a suite. What a test says comes before its verdict, or behind it, indented."""
    said = []
    verdict = None

    def told():
        word, name = verdict
        if word == 'PASS':
            return f'ok {name}'
        return f'{"failed" if word == "FAIL" else "skipped"} {name}: {one_line(said)}'

    for line in lines:
        match = GO.match(line)
        if verdict and not line.startswith('    '):
            yield told()
            verdict, said = None, []
        if match:
            verdict = match.groups()
        elif line in ('PASS', 'FAIL'):
            yield 'end'
        elif not line.startswith('=== '):
            said.append(line)
    if verdict:
        yield told()


def tap(lines):
    """Lines of a suite. Why a test failed stands behind its verdict, indented."""
    failed = None
    said = []
    for line in lines:
        match = TAP.fullmatch(line)
        if failed and not line.startswith(' '):
            yield f'failed {failed}: {one_line([s for s in said if s.strip()])}'
            failed, said = None, []
        if match and match[1] == 'not ok':
            failed = match[2]
        elif match and match[3]:
            yield f'skipped {match[2]}: {match[4] or "no reason"}'
        elif match:
            yield f'ok {match[2]}'
        elif failed:
            said.append(line)
        elif line.startswith('# duration_ms'):
            yield 'end'


def main():
    translate = {'go': go, 'tap': tap}[sys.argv[1]]
    with subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          errors='replace') as process:
        for line in translate(each.rstrip('\n') for each in process.stdout):
            print(line, flush=True)
    return process.returncode


if __name__ == '__main__':
    sys.exit(main())
