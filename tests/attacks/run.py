"""Runs every test of a fault that attacks from outside once found: run.py --build DIR.

The first attack: Catch2 tests tagged [attack][fault-N] in all suites of the build, and the programs
fault_NN_name.py beside this file. The second one: tests tagged [once-again-N], the programs
once_again_NN_name.py, and those of our clients with "once-again-N" in their names (clients.py), for
which --program names the node and --clients a folder for what is built. Its second half, between
two systems: tests tagged [between-N], the programs between_NN_name.py. Prints a table of the
faults; the last line is the figure. Fails if a test fails, or if a fault has no test that passed.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as tree

import clients

HERE = pathlib.Path(__file__).resolve().parent
# By the name of an attack: its tag, its programs, its faults.
ATTACKS = {"fault": range(1, 24), "once-again": range(1, 28), "between": range(1, 18)}
TAG = re.compile(r"\[(fault|once-again|between)-(\d+)\]")
SCRIPT = re.compile(r"(fault|once_again|between)_(\d+)_")
SKIPPED = 77
SUITE_SECONDS = 900
PROGRAM_SECONDS = 120

Result = collections.namedtuple("Result", "fault name verdict detail")


def suites(build):
    found = sorted(path for path in (build / "tests").rglob("*_tests")
                   if path.is_file() and os.access(path, os.X_OK))
    return [path for path in found if "CMakeFiles" not in path.parts]


def faults_of(tags):
    return [(attack, int(number)) for attack, number in TAG.findall(tags)]


# Catch2 has no patterns within a tag: all of them are named.
SELECTION = ",".join(f"[{attack}-{number}]~[.]"
                     for attack, numbers in ATTACKS.items() for number in numbers)


def run_catch(suite, selection):
    done = subprocess.run([str(suite), selection, "--reporter", "xml"], capture_output=True,
                          timeout=SUITE_SECONDS, check=False)
    out, errors = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    return done.returncode, out, errors


def cases_of(suite):
    """Names and tags of the suite's attacks."""
    done = subprocess.run([str(suite), SELECTION, "--list-tests"],
                          capture_output=True, timeout=60, check=False)
    text = done.stdout.decode(errors="replace")
    cases = []
    name = None
    for line in text.splitlines():
        if line.startswith("  ") and not line.startswith("    "):
            name = line.strip()
        elif line.startswith("    ") and not line.startswith("      "):
            name = f"{name} {line.strip()}"
        elif line.startswith("      [") and name is not None:
            cases.append([name, line.strip()])
            name = None
        elif line.startswith("       ") and name is None and cases:
            cases[-1][1] += line.strip()
    return cases


def results_of(suite):
    expected = cases_of(suite)
    if not expected:
        return
    code, out, errors = run_catch(suite, SELECTION)
    try:
        root = tree.fromstring(out[out.find("<?xml"):])  # a suite prints its seed before
    except tree.ParseError:
        for name, tags in expected:
            for fault in faults_of(tags) or [("fault", 0)]:
                yield Result(fault, f"{suite.name}: {name}", "failed",
                             f"the suite ended with {code}: {errors[-2000:]}{out[-2000:]}")
        return
    for case in root.iter("TestCase"):
        passed = case.find("OverallResult").get("success") == "true"
        detail = "" if passed else tree.tostring(case, encoding="unicode")[:4000]
        for fault in faults_of(case.get("tags", "")) or [("fault", 0)]:
            yield Result(fault, f"{suite.name}: {case.get('name')}",
                         "passed" if passed else "failed", detail)


def result_of(script, program, build):
    attack, number = SCRIPT.match(script.name).groups()
    fault = attack.replace("_", "-"), int(number)
    try:
        done = subprocess.run([sys.executable, str(script), "--program", str(program)],
                              capture_output=True, timeout=PROGRAM_SECONDS, check=False,
                              env={**os.environ, "SEMEL_BUILD_DIR": str(build)})
        code, text = done.returncode, (done.stdout + done.stderr).decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        code, text = None, f"not within {PROGRAM_SECONDS} s: {late.stdout}"
    verdict = {0: "passed", SKIPPED: "skipped"}.get(code, "failed")
    return Result(fault, script.name, verdict, "" if verdict == "passed" else text[-4000:])


def table(results):
    print("fault           tests  passed  failed  skipped")
    wanted = {(attack, number) for attack, numbers in ATTACKS.items() for number in numbers}
    for fault in sorted(wanted | {each.fault for each in results}):
        own = [each.verdict for each in results if each.fault == fault]
        name = f"{fault[0]} {fault[1]}"
        print(f"{name:14}  {len(own):5}  {own.count('passed'):6}  {own.count('failed'):6}"
              f"  {own.count('skipped'):7}{'' if 'passed' in own else '   no test passed'}")
    return [fault for fault in sorted(wanted)
            if not any(each.fault == fault and each.verdict == "passed" for each in results)]


def all_results(build, program, folder):
    for suite in suites(build):
        yield from results_of(suite)
    for script in sorted(HERE.glob("*.py")):
        if SCRIPT.match(script.name):
            yield result_of(script, build / "tools" / "semel" / "semel", build)
    for number, name, verdict, detail in clients.results(build, program, folder):
        yield Result(("once-again", number), name, verdict, detail)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True,
                        help="a whole build, as build/dev")
    parser.add_argument("--program", type=pathlib.Path,
                        help="for the clients; else that of the build")
    parser.add_argument("--clients", type=pathlib.Path, help="else without our clients' tests")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    program = (arguments.program or build / "tools" / "semel" / "semel").resolve()
    folder = arguments.clients and arguments.clients.resolve()
    results = list(all_results(build, program, folder))
    for each in results:
        if each.verdict != "passed":
            attack, number = each.fault
            print(f"--- {attack} {number}: {each.name}: {each.verdict}\n{each.detail}")
    untested = table(results)
    failed = sum(each.verdict == "failed" for each in results)
    skipped = sum(each.verdict == "skipped" for each in results)
    if untested:
        print("without a test that passed:", *(f"{name} {number}" for name, number in untested))
    tests = len({each.name for each in results})
    faults = sum(map(len, ATTACKS.values()))
    print(f"attacks: {faults - len(untested)} of {faults} faults, {tests} tests, "
          f"{failed} failed, {skipped} skipped")
    sys.exit(1 if failed or untested else 0)


if __name__ == "__main__":
    main()
