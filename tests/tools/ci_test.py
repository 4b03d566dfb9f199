""".ci/run says at its end what failed: ci_test.py [unittest arguments].

Each test runs a copy of .ci/run in a folder whose tools/prove is written by the test.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def runs(process):
    """Whether it has not ended; one that nobody waits for has."""
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


class EndOfRun(unittest.TestCase):
    @staticmethod
    def make_folder(folder, scripts):
        """A copy of .ci/run, with tools of the test's. No build waits for an idle machine."""
        for script in (".ci/run", "tools/setup"):
            (folder / script).parent.mkdir()
            shutil.copy(ROOT / script, folder / script)
        scripts = {"chrt": 'exec "${@:3}"', **{f"tools/{n}": t for n, t in scripts.items()}}
        for name, text in scripts.items():
            (folder / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
            (folder / name).chmod(0o755)
        return dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")

    def run_stages(self, *stages, prove="", tools=None, **variables):
        """Exit code and the lines behind the table."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            environment = self.make_folder(folder, {"prove": prove, **(tools or {})})
            done = subprocess.run(["bash", folder / ".ci/run", *stages], check=False, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  env={**environment, **variables}, timeout=50)
        lines = done.stdout.splitlines()
        table_end = next(i for i, line in enumerate(lines) if line.startswith("total "))
        return done.returncode, lines[table_end + 1:]

    def test_lines_that_say_what_failed_are_shown_of_failed_stages_alone(self):
        code, lines = self.run_stages("claims", "model", prove="""
            echo "ERROR: $1"
            [ "$1" = model ] && exit 0
            printf '%s\\n' "noise" "a.cpp:7: FAILED:" "WARNING: ThreadSanitizer: data race" \\
              "b.cpp:3:1: runtime error: overflow" "  3 - engine_tests.claims (Failed)" \\
              "  4 - engine_tests.model (Timeout)" "1 proof failed" "2 passed, 0 failed" \\
              "100% tests passed, 0 tests failed out of 9" "test_a_failed_lookup ... ok" "noise"
            exit 1
        """)
        self.assertEqual(code, 1)
        self.assertEqual(lines, [
            "", "claims:", "ERROR: claim-rules", "a.cpp:7: FAILED:",
            "WARNING: ThreadSanitizer: data race", "b.cpp:3:1: runtime error: overflow",
            "  3 - engine_tests.claims (Failed)", "  4 - engine_tests.model (Timeout)",
            "1 proof failed", "10 passed, 1 failed"])

    def test_a_stage_without_such_lines_shows_its_last_25(self):
        code, lines = self.run_stages("claims", prove="seq 100; exit 1")
        self.assertEqual(code, 1)
        self.assertEqual(lines, ["", "claims:", *map(str, range(76, 101)), "0 passed, 1 failed"])

    def test_at_most_40_lines_that_say_why_are_shown(self):
        _, lines = self.run_stages("claims", prove="seq -f 'ERROR: %g' 100; exit 1")
        self.assertEqual(lines[2:-1], [f"ERROR: {number}" for number in range(61, 101)])

    def test_the_last_25_lines_are_shown_where_none_says_why(self):
        _, lines = self.run_stages("claims", prove="seq -f 'line %g' 100; exit 1")
        self.assertEqual(lines[2:-1], [f"line {number}" for number in range(76, 101)])

    def test_a_run_without_failures_ends_with_its_sum(self):
        code, lines = self.run_stages("claims", "model", prove="echo 'ERROR: none'")
        self.assertEqual((code, lines), (0, ["2 passed, 0 failed"]))

    def test_a_skipped_stage_has_not_failed(self):
        code, lines = self.run_stages("claims", prove="exit 77")
        self.assertEqual((code, lines), (0, ["1 stages skipped", "0 passed, 0 failed"]))

    BESIDE = """
        case $* in
          claim-rules)
            for ((i = 0; i < 400; i++)); do
              [ ! -s "$HERE/builder" ] || break
              sleep 0.05
            done
            ;;
          "sanitizers-core --build") echo $$ >"$HERE/builder" && exec sleep 1000 ;;
          *) echo "$*" >>"$HERE/others" ;;
        esac
    """

    def test_a_later_stage_is_built_beside_one_that_waits_and_no_longer(self):
        with tempfile.TemporaryDirectory() as here:
            code, lines = self.run_stages("claims", "sanitizers", prove=self.BESIDE, HERE=here)
            builder = int((pathlib.Path(here) / "builder").read_text())
            others = (pathlib.Path(here) / "others").read_text().splitlines()
        self.assertEqual((code, lines), (0, ["2 passed, 0 failed"]))
        self.assertEqual(others, ["sanitizers-core --seed 9"])
        self.assertFalse(runs(builder))

    def test_nothing_is_built_beside_where_nobody_needs_it_or_wants_it(self):
        for stages, variables in ((("sanitizers", "claims"), {}),
                                  (("claims", "sanitizers"), {"SEMEL_BESIDE": "0"})):
            with tempfile.TemporaryDirectory() as here:
                code, _ = self.run_stages(*stages, HERE=here, **variables, prove="""
                    [ "$2" != --build ] || touch "$HERE/builder"
                    sleep 0.3
                """)
                self.assertEqual(code, 0)
                self.assertFalse((pathlib.Path(here) / "builder").exists())

    def test_a_build_goes_on_from_stage_to_stage(self):
        with tempfile.TemporaryDirectory() as here:
            code, _ = self.run_stages(
                "claims", "model", "interleavings", "sanitizers", HERE=here,
                SEMEL_STAGES_AT_ONCE="1", prove="""
                    if [ "$2" = --build ]; then
                      echo "$1" >>"$HERE/builders"
                      exec sleep 1000
                    fi
                    for ((i = 0; i < 400; i++)); do
                      [ ! -s "$HERE/builders" ] || break
                      sleep 0.05
                    done
                """)
            builders = (pathlib.Path(here) / "builders").read_text().splitlines()
        self.assertEqual((code, builders), (0, ["sanitizers-core"]))

    # Says that it is there, and waits for the other.
    MEETING = """
        touch "$HERE/$1"
        for ((i = 0; i < $TURNS; i++)); do
          [ "$(ls "$HERE" | wc -l)" -lt 2 ] || exit 0
          sleep 0.05
        done
        rm "$HERE/$1"
        exit 1
    """

    def test_two_stages_that_wait_run_at_a_time(self):
        with tempfile.TemporaryDirectory() as here:
            code, lines = self.run_stages("java", "model", prove=self.MEETING, HERE=here,
                                          TURNS="400")
        self.assertEqual((code, lines), (0, ["2 passed, 0 failed"]))

    def test_others_run_one_after_the_other(self):
        for stages, variables in ((("model", "races"), {}), (("races", "model"), {}),
                                  (("doors", "java"), {}),
                                  (("java", "model"), {"SEMEL_STAGES_AT_ONCE": "1"})):
            with self.subTest(stages=stages), tempfile.TemporaryDirectory() as here:
                code, lines = self.run_stages(*stages, prove=self.MEETING, HERE=here, TURNS="10",
                                              SEMEL_BESIDE="0", **variables)
                self.assertEqual((code, lines[-1]), (1, "0 passed, 2 failed"))

    def test_stages_end_with_the_run(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            environment = self.make_folder(folder, {
                "prove": 'echo $$ >"$HERE/$1.new" && mv "$HERE/$1.new" "$HERE/$1"; '
                         'exec sleep 1000'})
            said = [folder / "claim-rules", folder / "model"]
            end = time.monotonic() + 40
            run = subprocess.Popen(["bash", folder / ".ci/run", "claims", "model"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env={**environment, "HERE": name})
            while not all(path.exists() for path in said) and time.monotonic() < end:
                time.sleep(0.02)
            run.terminate()
            stages = [int(path.read_text()) for path in said if path.exists()]
            while any(map(runs, [run.pid, *stages])) and time.monotonic() < end:
                run.poll()
                time.sleep(0.02)
            left = [process for process in [run.pid, *stages] if runs(process)]
            for process in left:
                os.kill(process, signal.SIGKILL)
            run.wait()
            self.assertEqual((len(stages), left), (2, []))

    def test_what_another_stage_plays_is_no_test_again(self):
        for stages, wanted in ((("tests",), ""),
                               (("tests", "claims"), "-E ^(claim_rules_tests[.].*)$"),
                               (("tests", "claims", "package"),
                                "-E ^(claim_rules_tests[.].*|python[.]bindings)$")):
            with self.subTest(stages=stages), tempfile.TemporaryDirectory() as here:
                self.run_stages(*stages, HERE=here,
                                tools={"test": 'printf "%s\\n" "$*" >"$HERE/words"', "package": ""})
                words = (pathlib.Path(here) / "words").read_text().strip()
                self.assertEqual(words, wanted)

    def test_a_package_that_fails_fails_its_stage(self):
        for words, at in (("", '[ $# = 0 ]'), ("wheel", '[ "${1:-}" = wheel ]')):
            with self.subTest(words=words):
                code, lines = self.run_stages("package", tools={"package": f"! {at}"})
                self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed"))
        code, _ = self.run_stages("package", tools={"package": '[ $# = 0 ] || exit 77'})
        self.assertEqual(code, 0)

    def test_each_stage_is_in_one_group_of_the_workflow(self):
        run = (ROOT / ".ci/run").read_text()
        stages = re.search(r"^stages=\(([^)]*)\)", run, re.MULTILINE).group(1).split()
        workflow = (ROOT / ".github/workflows/ci.yml").read_text()
        groups = re.findall(r"^ *- \{group: .*, stages: (.*)\}", workflow, re.MULTILINE)
        grouped = [stage for group in groups for stage in group.split()]
        self.assertEqual(sorted(grouped), sorted(set(stages) - {"setup"}))


if __name__ == "__main__":
    unittest.main()
