"""semel dedup at its edges: dedup_edges_test.py SEMEL [unittest arguments].

Outputs that fail or are inputs, inputs that are cut or never end, limits, what is refused by name.
"""

import gzip
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

SEMEL = ""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, data):
        (self.folder / name).write_bytes(data)
        return name

    def dedup(self, *arguments, stdin=b"", code=0, **more):
        done = subprocess.run([SEMEL, "dedup", "--quiet", *arguments], input=stdin, timeout=60,
                              capture_output=True, check=False, cwd=self.folder, **more)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        return done

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())


class Outputs(Case):
    def test_a_relative_name_is_written_in_its_directory(self):
        self.write("in", b"a\na\n")
        self.dedup("in", "-o", "out")
        self.assertEqual(self.names(), ["in", "out"])
        self.assertEqual((self.folder / "out").read_bytes(), b"a\n")
        self.dedup("in", "-o", "again", "--resume", "kept")
        self.assertEqual(self.names(), ["again", "in", "kept", "out"])

    def test_the_input_is_replaced_where_a_link_leads_with_its_mode(self):
        self.write("real", b"a\na\nb\n")
        (self.folder / "real").chmod(0o640)
        (self.folder / "link").symlink_to("real")
        self.dedup("link", "-o", "link", "--keep", "last")
        self.assertTrue((self.folder / "link").is_symlink())
        self.assertEqual((self.folder / "real").read_bytes(), b"a\nb\n")
        self.assertEqual((self.folder / "real").stat().st_mode & 0o777, 0o640)

    def test_after_an_error_the_name_has_what_it_had(self):
        self.write("out", b"old\n")
        self.write("cut.gz", gzip.compress(b"a\n" * 100_000)[:-9])
        done = self.dedup("cut.gz", "-o", "out", code=3)
        self.assertIn(b"ends too early", done.stderr)
        self.dedup("-f", "2", "-o", "out", stdin=b"a 1\nb\n", code=3)
        self.assertEqual((self.folder / "out").read_bytes(), b"old\n")
        self.assertEqual(self.names(), ["cut.gz", "out"])

    def test_after_a_signal_the_name_has_what_it_had(self):
        run = subprocess.Popen([SEMEL, "dedup", "-o", "out"], stdin=subprocess.PIPE,
                               stderr=subprocess.PIPE, cwd=self.folder)
        run.stdin.write(b"a\n" * 100_000)
        run.stdin.flush()
        run.send_signal(signal.SIGTERM)
        run.stdin.close()
        error = run.stderr.read()
        run.stderr.close()
        if run.wait(60) != 0:  # the signal may come before its handler is there
            self.assertIn(run.returncode, (128 + signal.SIGTERM, -signal.SIGTERM), error)
            self.assertNotIn("out", self.names())

    def test_a_full_disk_is_named(self):
        self.write("in", b"a\n" * 10)
        for flags in ([], ["--count"], ["--compress", "zst"]):
            self.assertIn(b"No space left", self.dedup("in", "-o", "/dev/full", *flags,
                                                       code=1).stderr)

    def test_what_cannot_be_written_is_named(self):
        self.write("in", b"a\n")
        for name in (".", "none/out"):
            self.assertIn(name.encode(), self.dedup("in", "-o", name, code=1).stderr)
        done = self.dedup("--count", stdin=b"a\n", code=1,
                          env=dict(os.environ, TMPDIR="/nonexistent"))
        self.assertIn(b"/nonexistent", done.stderr)

    def test_an_error_ends_the_run_while_the_pipe_stays_open(self):
        run = subprocess.Popen([SEMEL, "dedup", "-j", "/a"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        run.stdin.write(b'{"a":1}\nnot\n')
        run.stdin.flush()
        self.assertEqual(run.wait(60), 3)
        self.assertEqual(run.stdout.read(), b'{"a":1}\n')
        for pipe in (run.stdin, run.stdout, run.stderr):
            pipe.close()


class Inputs(Case):
    def test_lines_that_are_too_long_pass_where_they_are(self):
        long = b"x" * (70 << 20)
        data = b"a\n" + long + b"\na\nb\n" + long + b"\nb"
        kept = b"a\n" + long + b"\nb\n" + long
        done = self.dedup("--missing", "pass", stdin=data)
        self.assertTrue(done.stdout == kept + b"\n", len(done.stdout))
        done = self.dedup(stdin=data, code=3)
        self.assertEqual(done.stdout, b"a\n")
        self.assertIn(b"line 2: a line is longer than the limit of 64.0 MiB", done.stderr)

    def test_headers_are_one(self):
        self.write("mark", b"\xef\xbb\xbfid,x\r\n1,2\r\n")
        self.write("plain", b"id,x\n1,2\n2,3\n")
        self.write("other", b"x,id\n1,2\n")
        self.assertEqual(self.dedup("--csv", "--key", "id", "mark", "plain").stdout,
                         b"\xef\xbb\xbfid,x\r\n1,2\r\n2,3\n")
        self.assertEqual(self.dedup("--csv", "--key", "id", "--count", "mark", "plain").stdout,
                         b"\xef\xbb\xbfcount,id,x\r\n2,1,2\r\n1,2,3\n")
        done = self.dedup("--csv", "--key", "id", "plain", "other", code=3)
        self.assertIn(b"other, line 1: the header is 'x,id'; the previous input has 'id,x'",
                      done.stderr)
        for data, words in ((b"id,id\n", b"more than one column 'id'"), (b"x\n", b"no column 'id'"),
                            (b'"id\n', b"in the header a quoted field")):
            self.assertIn(words, self.dedup("--csv", "--key", "id", stdin=data, code=3).stderr)
        self.assertEqual(self.dedup("--csv", "--key", "id").stdout, b"")
        self.assertEqual(self.dedup("--csv", "--key", "id", stdin=b"id").stdout, b"id")

    def test_quotes_of_a_table(self):
        data = b'id\tx\n1\t"a\n2\t"a\n'
        self.assertEqual(self.dedup("--tsv", "--key", "x", "--quotes-literal", stdin=data).stdout,
                         b'id\tx\n1\t"a\n')
        self.assertEqual(self.dedup("--header", "-d", ";", "--key", "x",
                                    stdin=b"id;x\n1;2\n2;2\n").stdout, b"id;x\n1;2\n")
        self.assertIn(b"line 5", self.dedup("--csv", "-f", "2", code=3,
                                            stdin=b'a,b\n"1\n\n",2\n1,"a"b\n').stderr)

    def test_case_is_that_of_ascii_and_of_json_strings(self):
        self.assertEqual(self.dedup("-i", stdin="É\né\nÉ\nAb\naB\n".encode()).stdout,
                         "É\né\nAb\n".encode())
        rows = b'{"k":"A"}\n{"k":"a"}\n{"k":{"A":1}}\n{"k":{"a":1}}\n{"k":65.5}\n{"k":97.5}\n'
        self.assertEqual(self.dedup("-i", "-j", "/k", stdin=rows).stdout,
                         b"".join(rows.splitlines(True)[i] for i in (0, 2, 3, 4, 5)))
        # Folding makes X the delimiter: the fields are still two.
        self.assertEqual(self.dedup("-i", "-d", "x", "-f", "1,2", stdin=b"aXxb\nax" b"Xb\n").stdout,
                         b"aXxb\naxXb\n")


class Limits(Case):
    def test_the_memory_is_never_exceeded_and_no_line_is_lost(self):
        lines = b"".join(b"%040d\n" % i for i in range(200_000))
        self.write("in", lines)
        for threads in ("1", "2", "64"):
            done = self.dedup("in", "--memory", "4MiB", "--threads", threads, code=4)
            kept = done.stdout.count(b"\n")
            self.assertGreater(kept, 10_000)
            self.assertEqual(done.stdout, lines[:kept * 41])
            self.assertIn(b"line %d: the memory limit of 4.00 MiB" % (kept + 1), done.stderr)
        done = self.dedup("in", "--memory", "4MiB", "--count", code=4)
        self.assertEqual(done.stdout, b"")

    def test_few_addresses_and_few_threads_are_enough(self):
        lines = b"".join(b"%d\n" % i for i in range(50_000))
        self.write("in", lines)
        few = lambda: resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))
        self.assertEqual(self.dedup("in", "--threads", "2", preexec_fn=few).stdout, lines)


class Refused(Case):
    def test_what_does_not_go_together_is_named(self):
        for arguments, words in (
                (["--keep", "last", "--window", "1h"], "--keep last and --window"),
                (["--unique", "--window", "1h"], "--unique and --window"),
                (["--digest", "--window", "1h"], "--digest and --window"),
                (["--threads", "2", "--window", "1h"], "--threads and --window"),
                (["--count", "-D", "x"], "--count and --duplicates"),
                (["--repeated", "-D", "x"], "--repeated and --duplicates"),
                (["--unique", "--repeated"], "exclude each other"),
                (["--count", "--total"], "exclude each other"),
                (["--total", "-o", "x"], "exclude each other"),
                (["--count", "--missing", "pass", "-f", "1"], "--missing pass"),
                (["-z", "--csv"], "--zero-terminated and --csv"),
                (["--csv", "--tsv"], "exclude each other"),
                (["--tsv", "-d", ","], "exclude each other"),
                (["--csv", "-d", '"'], "neither a quote"),
                (["--key", "a"], "--key needs"), (["--csv", "--key", "a,,b"], "a name is empty"),
                (["--csv", "--key", "a", "-f", "1"], "exclude each other"),
                (["--header"], "--header needs"), (["--no-header"], "--no-header needs"),
                (["--keep", "no"], "'no'"), (["--compress", "bz2"], "gz, zst, none"),
                (["--threads", "0"], "1 to 64"), (["--threads", "65"], "1 to 64"),
                (["--resume-every", "1MiB"], "needs --resume"), (["-o", ""], "is empty")):
            done = self.dedup(*arguments, code=2)
            self.assertIn(words, done.stderr.decode(), arguments)
            self.assertEqual(done.stdout, b"")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: dedup_edges_test.py PATH_OF_SEMEL [unittest arguments]")
    SEMEL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
