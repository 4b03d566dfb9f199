"""What a person at a terminal sees of `semel dedup`: progress, counts, and errors that name the
mend: dedup_terminal_test.py PATH_OF_SEMEL [unittest arguments]."""

import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import threading
import unittest

SEMEL = ""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class Terminal(Case):
    def on_terminal(self, *arguments, both=False):
        """What a person at the terminal of standard error sees while a pipe is slow. `both`: of
        standard output too."""
        main, side = pty.openpty()
        run = subprocess.Popen([SEMEL, "dedup", *arguments], stdin=subprocess.PIPE,
                               stdout=side if both else subprocess.DEVNULL, stderr=side)
        os.close(side)
        seen = bytearray()

        def watch():
            try:
                while chunk := os.read(main, 4096):
                    seen.extend(chunk)
                    # The line was drawn, so the input may end.
                    if b"lines/s" in seen and not run.stdin.closed:
                        run.stdin.close()
            except OSError:  # the other side of the terminal is closed
                return

        (watcher := threading.Thread(target=watch)).start()
        run.stdin.write(b"a\na\n")
        run.stdin.flush()
        return run, watcher, seen, main

    def test_progress_is_shown_and_taken_off_again(self):
        run, watcher, seen, main = self.on_terminal()
        self.assertEqual(run.wait(60), 0)
        watcher.join(60)
        os.close(main)
        self.assertRegex(bytes(seen), rb"\r2 lines, 50\.0 % duplicates, .* lines/s")
        self.assertRegex(bytes(seen),
                         rb"\r\x1b\[K2 lines, 1 first, 1 duplicates, \d+\.\d s\r\n\Z")

    def seen_with(self, *arguments, waits=True):
        run, watcher, seen, main = self.on_terminal(*arguments, both=True)
        if not waits:
            run.stdin.close()
        self.assertEqual(run.wait(60), 0)
        watcher.join(60)
        os.close(main)
        return bytes(seen)

    def test_a_file_that_is_made_shows_progress_and_a_last_line_with_counts(self):
        out = self.folder / "out"
        summary = rb"2 lines, 1 first, 1 duplicates, \d+\.\d s\r\n\Z"
        seen = self.seen_with("-o", out)
        self.assertIn(b"lines/s", seen)
        self.assertRegex(seen, summary)
        self.assertEqual(out.read_bytes(), b"a\n")
        # Too short for a progress line.
        self.assertRegex(self.seen_with("-o", out, waits=False), rb"\A" + summary)
        self.assertEqual(self.seen_with("-o", out, "--quiet", waits=False), b"")
        self.assertIn(b" 0 written, 2 left out,",
                      self.seen_with("-o", out, "--unique", waits=False))
        self.assertIn(b"lines/s", self.seen_with("--total"))

    def test_lines_of_data_on_the_terminal_are_not_torn(self):
        self.assertEqual(self.seen_with(waits=False), b"a\r\n")

    def test_quiet_shows_nothing(self):
        run, watcher, seen, main = self.on_terminal("--quiet")
        run.stdin.close()
        self.assertEqual(run.wait(60), 0)
        watcher.join(60)
        os.close(main)
        self.assertEqual(bytes(seen), b"")


class Columns(Case):
    def test_an_unknown_column_names_those_that_are_there_and_what_separates_them(self):
        table = b"id,e-mail,city\n1,a@x,Rome\n"
        for data, arguments, words in (
                (table, ("--csv", "--key", "email"), "it has 'id', 'e-mail', 'city'\n"),
                (table, ("--csv", "--fields", "city", "-w", "1h", "--time-field", "when"),
                 "no column 'when'; it has 'id', 'e-mail', 'city'\n"),
                (b",".join(b"c%d" % i for i in range(40)) + b"\n1\n", ("--csv", "--key", "x"),
                 "'c11' and 28 more\n"),
                (b"x" * 5000 + b"\n1\n", ("--csv", "--key", "x"), "x...'\n"),
                (table.replace(b",", b";"), ("--csv", "--key", "city"),
                 "it has 'id;e-mail;city'; ';' seems to separate its fields: use --csv "
                 "--delimiter ';'\n"),
                (table.replace(b",", b"\t"), ("--csv", "--key", "city"), "use --tsv\n"),
                (table.replace(b",", b"|"), ("--csv", "--fields", "2"), "--delimiter '|'\n"),
                (table, ("--tsv", "--key", "city"), "use --csv --delimiter ','\n"),
                (b"1;2\n", ("-f", "2"), "no field 2: the line has 1\n"),
                (table.decode().encode("utf-16"), ("--csv", "--key", "city"),
                 "line 1: the text is UTF-16: convert it first, as by iconv"),
                ('{"id": 1}\n'.encode("utf-16"), ("--json", "/id"), "the text is UTF-16"),
                (b"\xfe\xff\0i\0d\0\n\0" + b"1", ("--csv", "--key", "id"), "is UTF-16")):
            with self.subTest(arguments=arguments, words=words):
                done = subprocess.run([SEMEL, "dedup", *arguments], input=data, timeout=60,
                                      capture_output=True, check=False)
                self.assertEqual(done.returncode, 3)
                self.assertIn(words, done.stderr.decode())


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: dedup_terminal_test.py PATH_OF_SEMEL [unittest arguments]")
    SEMEL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
