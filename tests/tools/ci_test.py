""".ci/run says at its end what failed: ci_test.py [unittest arguments].

Each test runs a copy of .ci/run in a folder whose tools/prove is written by the test.
"""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class EndOfRun(unittest.TestCase):
    def run_stages(self, *stages, prove):
        """Exit code and the lines behind the table."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for script in (".ci/run", "tools/setup"):
                (folder / script).parent.mkdir()
                shutil.copy(ROOT / script, folder / script)
            program = folder / "tools/prove"
            program.write_text("#!/usr/bin/env bash\n" + prove)
            program.chmod(0o755)
            done = subprocess.run(["bash", folder / ".ci/run", *stages], check=False, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
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


if __name__ == "__main__":
    unittest.main()
