"""Fault 23: `semel dedup` loses no line: fault_23_dedup.py --program PATH.

Signals, quoted fields, compressed input, lines that no key can be read from, large numbers.
"""

import argparse
import gzip
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="semel-dedup-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_dedup(self, *arguments, stdin=b"", code=0):
        done = subprocess.run([PROGRAM, "dedup", *arguments], input=stdin, capture_output=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def dedup(self, stdin, *arguments):
        return self.run_dedup(*arguments, stdin=stdin).stdout


class Signals(Case):
    def stopped(self, number, *arguments):
        """Lines that came out of a run which is stopped while its input goes on."""
        out = (self.folder / "out").open("wb")
        run = subprocess.Popen([PROGRAM, "dedup", *arguments], stdin=subprocess.PIPE, stdout=out,
                               stderr=subprocess.PIPE)
        self.addCleanup(run.stderr.close)
        run.stdin.write(b"".join(b"line %d\n" % i for i in range(100_000)) + b"line 1000")
        run.stdin.flush()
        run.send_signal(number)
        said = run.stderr.read().decode()
        self.assertEqual(run.wait(60), 128 + number, said)
        try:
            run.stdin.close()
        except BrokenPipeError:
            pass
        out.close()
        self.assertRegex(said, f"stopped by {signal.Signals(number).name} after [0-9,]+ lines")
        return (self.folder / "out").read_bytes()

    def test_what_was_read_is_written_before_a_signal_ends_the_run(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            out = self.stopped(number)
            count = out.count(b"\n")
            self.assertEqual(out, b"".join(b"line %d\n" % i for i in range(count)))

    def test_what_a_stopped_run_remembers_it_has_written(self):
        state = str(self.folder / "state")
        if self.has_state():
            first = self.stopped(signal.SIGTERM, "--state", state)
            lines = b"".join(b"line %d\n" % i for i in range(100_000))
            self.assertEqual(first + self.dedup(lines, "--state", state), lines)

    def has_state(self):
        return b"--state" in self.run_dedup("--help").stdout

    def test_a_signal_ends_a_run_that_waits_for_input(self):
        run = subprocess.Popen([PROGRAM, "dedup"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        for pipe in (run.stdin, run.stdout, run.stderr):
            self.addCleanup(pipe.close)
        run.stdin.write(b"a\nunfinished")
        run.stdin.flush()
        self.assertEqual(run.stdout.readline(), b"a\n")
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(60), 130)
        self.assertEqual(run.stdout.read(), b"")
        self.assertIn(b"10 bytes of an unfinished line", run.stderr.read())

    def test_an_ignored_signal_stays_ignored(self):
        run = subprocess.Popen([PROGRAM, "dedup"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.addCleanup(run.stdout.close)
        run.stdin.write(b"a\n")
        run.stdin.flush()
        self.assertEqual(run.stdout.readline(), b"a\n")
        run.send_signal(signal.SIGHUP)
        run.stdin.write(b"b\n")
        run.stdin.close()
        self.assertEqual(run.stdout.read(), b"b\n")
        self.assertEqual(run.wait(60), 0)


class Csv(Case):
    rows = (b'id,"the name",n\r\n', b'1,"a, b",1\r\n', b'2,"say ""hi""",1\r\n', b'1,"a, b",2\r\n',
            b'3,"two\nlines",1\r\n', b'4,"two\nlines",2\r\n', b'5,plain,3\r\n')

    def test_quoted_fields_are_refused_without_csv(self):
        done = self.run_dedup("-f", "2", "-d", ",", stdin=b"".join(self.rows[1:]), code=3)
        self.assertIn(b"--csv", done.stderr)
        self.assertEqual(done.stdout, b"")
        done = self.run_dedup("-f", "1", "-d", ",", "--missing", "pass", stdin=b'1,"a"\n', code=3)
        self.assertIn(b"--quotes-literal", done.stderr)
        self.assertEqual(self.dedup(b'1,"a\n2,"a\n', "-f", "2", "-d", ",", "--quotes-literal"),
                         b'1,"a\n')

    def test_records_are_reported_apart_by_named_columns(self):
        text = b"".join(self.rows)
        kept = [self.rows[i] for i in (0, 1, 2, 4, 5, 6)]
        self.assertEqual(self.dedup(text, "--csv", "-f", "id"), b"".join(kept))
        kept = [self.rows[i] for i in (0, 1, 2, 4, 6)]
        self.assertEqual(self.dedup(text, "--csv", "-f", "the name"), b"".join(kept))
        self.assertEqual(self.dedup(text, "--csv", "-f", "2"), b"".join(kept))
        self.assertEqual(self.dedup(text, "--csv", "-f", "the name,n"), text)
        self.assertEqual(self.dedup(text, "--csv"), text)
        self.assertEqual(self.dedup(text, "--csv", "-f", "2", "--total"), b"4\n")

    def test_fields_of_different_records_never_run_together(self):
        text = b'"a,b",c\n"a","b,c"\n'
        self.assertEqual(self.dedup(text, "--csv", "--no-header", "-f", "1,2"), text)

    def test_one_header_for_all_inputs(self):
        one, two, other = (self.folder / name for name in ("one", "two", "other"))
        one.write_bytes(b"\xef\xbb\xbfid,n\n1,a\n")
        two.write_bytes(b"\xef\xbb\xbfid,n\r\n1,b\n2,b\n")
        other.write_bytes(b"n,id\n1,b\n")
        self.assertEqual(self.dedup(b"", "--csv", "-f", "id", str(one), str(two)),
                         b"\xef\xbb\xbfid,n\n1,a\n2,b\n")
        done = self.run_dedup("--csv", "-f", "id", str(one), str(other), code=3)
        self.assertIn(b"header", done.stderr)
        done = self.run_dedup("--csv", "-f", "no", str(one), code=3)
        self.assertIn(b"no column 'no'", done.stderr)

    def test_bad_records_are_named_or_passed(self):
        text = b'id\n1\n"1" x\n2\n1\n'
        done = self.run_dedup("--csv", "-f", "id", stdin=text, code=3)
        self.assertIn(b"line 3", done.stderr)
        self.assertEqual(self.dedup(text, "--csv", "-f", "id", "--missing", "pass"),
                         b'id\n1\n"1" x\n2\n')
        open_quote = b'id\n1\n"never closed\n2\n'
        done = self.run_dedup("--csv", "-f", "id", stdin=open_quote, code=3)
        self.assertIn(b"line 3", done.stderr)

    def test_records_that_span_blocks(self):
        inside = b"x\n" * 700_000
        text = b"id,t\n" + b'1,"' + inside + b'"\n' + b'2,"' + inside + b'y"\n' + b"1,z\n3,z\n"
        kept = b"id,t\n" + b'1,"' + inside + b'"\n' + b'2,"' + inside + b'y"\n' + b"3,z\n"
        self.assertEqual(self.dedup(text, "--csv", "-f", "id"), kept)


class Compressed(Case):
    lines = b"".join(b"line %d\n" % (i % 70_000) for i in range(100_000))

    def zstd(self, data):
        if shutil.which("zstd") is None:
            self.skipTest("zstd is not installed")
        return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE,
                              check=True).stdout

    def check(self, pack):
        expected = self.dedup(self.lines)
        path = self.folder / "input"  # its name says nothing
        path.write_bytes(pack(self.lines))
        self.assertEqual(self.dedup(b"", str(path)), expected)
        self.assertEqual(self.dedup(path.read_bytes()), expected)
        half = len(self.lines) // 2
        self.assertEqual(self.dedup(pack(self.lines[:half]) + pack(self.lines[half:])), expected)
        self.assertEqual(self.dedup(pack(b"")), b"")
        done = self.run_dedup(stdin=pack(self.lines)[:-20], code=3)
        self.assertIn(b"ends too early", done.stderr)
        damaged = bytearray(pack(self.lines))
        damaged[len(damaged) // 2] ^= 0x55
        done = self.run_dedup(stdin=bytes(damaged), code=3)
        self.assertIn(b"damaged", done.stderr)

    def test_gzip(self):
        self.check(gzip.compress)

    def test_zstandard(self):
        self.check(self.zstd)

    def test_what_only_begins_like_it_is_text(self):
        for text in (b"", b"\x1f", b"\x1f\n\x8b\n", b"(\n", b"a", b"\x28\xb5\n", b"\x28\xb5"):
            self.assertEqual(self.dedup(text), text)


class Lines(Case):
    def test_missing_pass_forgives_every_line_without_a_key(self):
        long_key = b"x" * ((1 << 20) + 1)
        text = b"a\n" + long_key + b"\n" + long_key + b"\na\nb\n"
        self.assertEqual(self.dedup(text, "--missing", "pass"),
                         b"a\n" + long_key + b"\n" + long_key + b"\nb\n")
        self.run_dedup(stdin=text, code=3)
        json = b'{"k":1e9999999999999999999}\n{"k":1}\n{"k":1.0}\n'
        self.assertEqual(self.dedup(json, "-j", "/k", "--missing", "pass"),
                         b'{"k":1e9999999999999999999}\n{"k":1}\n')

    def test_a_line_beyond_the_limit_goes_through_in_pieces(self):
        endless = b"y" * ((64 << 20) + 1000)
        for tail in (b"\na\nb\n", b"\nb"):
            text = b"a\n" + endless + tail
            expected = b"a\n" + endless + b"\nb" + tail[-1:].replace(b"b", b"")
            self.assertEqual(self.dedup(text, "--missing", "pass"), expected)
        done = self.run_dedup(stdin=b"a\n" + endless, code=3)
        self.assertIn(b"line 2: a line is longer than the limit of 64", done.stderr)

    def test_numbers_are_compared_in_full(self):
        numbers = (b"1e17", b"100000000000000001.0", b"123456789012345678901234567890", b"1e400",
                   b"-1e17", b"18446744073709551615.0", b"123456789012345678901234567891")
        same = (b"100000000000000000", b"10.0e16", b"1.23456789012345678901234567890e29",
                b"10e399", b"-100000000000000000", b"18446744073709551615")
        lines = [b'{"k":%s}\n' % number for number in numbers + same]
        self.assertEqual(self.dedup(b"".join(lines), "-j", "/k"), b"".join(lines[:len(numbers)]))
        nested = b'{"a":[1.5,1e17],"k":{"x":1e17}}\n{"k":{"x":100000000000000000}}\n'
        self.assertEqual(self.dedup(nested, "-j", "/k"), nested.split(b"\n")[0] + b"\n")


def main():
    global PROGRAM
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    PROGRAM = os.path.abspath(parser.parse_args().program)
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TextTestRunner(stream=sys.stderr).run(suite)
    verdict = "passed" if result.wasSuccessful() else "FAILED"
    print(f"fault 23: dedup loses no line, {result.testsRun} tests: {verdict}")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
