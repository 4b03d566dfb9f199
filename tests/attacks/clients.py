"""The tests of the packages for Python, Go, Node.js and Java that hold a fault of the second
attack: those with its number in their names."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "clients"))
import suites  # noqa: E402
import target  # noqa: E402

SECONDS = 900
NUMBER = re.compile(r"[Oo]nce[-_ ]?[Aa]gain[-_ ]?0*(\d+)")
LINE = re.compile(r"(ok|failed|skipped) (.*)")
VERDICTS = {"ok": "passed", "failed": "failed", "skipped": "skipped", "FAIL": "failed",
            "ERROR": "failed"}


def lines_of(command, folder, environment):
    """What a suite printed; None: it did not end in time."""
    try:
        done = subprocess.run([str(word) for word in command], cwd=folder, text=True,
                              errors="replace", capture_output=True, timeout=SECONDS, check=False,
                              env={**os.environ, **environment})
    except subprocess.TimeoutExpired:
        return None
    return done.stdout + done.stderr


def of_suite(suite, folder, environment):
    place = folder / suite.folder
    try:
        command = suite.prepare(place)
    except suites.Missing as why:
        yield 0, suite.name, "skipped", str(why)
        return
    text = lines_of(command, place, environment)
    if text is None:
        yield 0, suite.name, "failed", f"not within {SECONDS} s"
        return
    for word, name in LINE.findall(text):
        number = NUMBER.search(name)
        if number:
            yield (int(number.group(1)), f"{suite.name}: {name}", VERDICTS[word],
                   "" if word == "ok" else name)


def of_python(build):
    environment = {"PYTHONPATH": str(ROOT / "bindings/python"),
                   "SEMEL_LIBRARY": str(build / "bindings/c/libsemel.so.0")}
    command = [sys.executable, "-m", "unittest", "discover", "-v", "-s",
               ROOT / "bindings/python/tests", "-k", "once_again"]
    text = lines_of(command, ROOT / "bindings/python/tests", environment) or "not in time"
    found = re.findall(r"^(test_once_again_(\d+)_\w+) \(.*?(ok|FAIL|ERROR|skipped [^\n]*)$", text,
                       re.MULTILINE | re.DOTALL)
    for name, number, word in found:
        verdict = VERDICTS[word.split()[0]]
        yield int(number), f"python: {name}", verdict, "" if verdict == "passed" else text[-4000:]
    if not found:
        yield 0, "python", "failed", text[-4000:]


def results(build, program, folder):
    """(number, name, verdict, detail) of each test. Without a folder those of Python alone."""
    yield from of_python(build)
    if folder is None:
        return
    tests = sorted(path.name[:-len(".test.ts")]
                   for path in (ROOT / "clients/node/test").glob("*.test.ts"))
    with target.open_target("semel", program=str(program)) as node:
        environment = {"SEMEL_TEST_HOST": node.host, "SEMEL_TEST_PORT": str(node.port),
                       "SEMEL_TEST_PROGRAM": str(program), "SEMEL_TEST_SCRIPTS": "yes"}
        for suite in (suites.SemelGo("go", "^TestOnceAgain"),
                      suites.SemelNode("node", *tests),
                      suites.Starter("java", "core", "AgainSuite"),
                      suites.Starter("java-boot", "boot3", "WebSuite")):
            yield from of_suite(suite, folder, environment)
