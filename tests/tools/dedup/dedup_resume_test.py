"""semel dedup --resume, killed at random points: dedup_resume_test.py SEMEL [unittest arguments].

A run is killed again and again until it ends; the output then is the bytes of a run that was not
killed. The kills come when the output beside has reached a random length, so that no clock is
asked. SEMEL_DEDUP_SEED repeats a run.
"""

import gzip
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import unittest

SEMEL = ""
SEED = int(os.environ.get("SEMEL_DEDUP_SEED") or random.randrange(2**32))


def size_of(path):
    try:
        return path.stat().st_size
    except FileNotFoundError:  # not yet, or it has its name
        return -1


class Resume(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.source = random.Random(SEED)

    def path(self, name):
        return str(self.folder / name)

    def write(self, name, data):
        (self.folder / name).write_bytes(data)
        return self.path(name)

    def run_dedup(self, *arguments, code=0):
        done = subprocess.run([SEMEL, "dedup", "--quiet", *arguments], capture_output=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, code, (f"seed {SEED}", done.stderr))
        return done

    def killed(self, arguments, partial, length):
        """Starts a run and kills it when the output has `length` bytes. True: it ended before."""
        run = subprocess.Popen([SEMEL, "dedup", "--quiet", *arguments], stderr=subprocess.PIPE)
        while run.poll() is None:
            if size_of(partial) >= length:
                run.send_signal(signal.SIGKILL)
                break
        error = run.stderr.read()
        run.stderr.close()
        self.assertIn(run.wait(60), (0, -signal.SIGKILL), (f"seed {SEED}", error))
        return run.returncode == 0

    def lines(self, count):
        pick = self.source.randrange
        return b"".join(b"%d,%s\n" % (pick(count), b"x" * pick(90)) for _ in range(count))

    def killed_until_done(self, arguments, name):
        """How often it was killed."""
        partial = self.folder / f".{name}.semel-partial"
        kills = 0
        # Each length is beyond what the run before had: it ends.
        for length in sorted(self.source.randrange(5_000_000) for _ in range(12)):
            if self.killed(arguments, partial, length):
                break
            kills += 1
        else:
            self.run_dedup(*arguments)
        self.assertFalse(partial.exists())
        self.assertFalse((self.folder / "resume" / "checkpoint.json").exists())
        return kills

    def test_a_run_that_was_killed_goes_on_and_writes_the_same_bytes(self):
        print(f"seed {SEED}", file=sys.stderr)
        kills = 0
        for name, flags in (("plain", []), ("table", ["--csv", "--key", "id"]), ("out.gz", []),
                            ("out.zst", ["--missing", "pass", "-d", ",", "-f", "2"])):
            head = b"id,text\n" if name == "table" else b""
            one = self.write("one", head + self.lines(60_000)[:-1])
            data = head + self.lines(90_000)
            two = self.write("two", gzip.compress(data[:1_000_000], 1) +
                             gzip.compress(data[1_000_000:], 1))
            arguments = [*flags, "--resume-every", "1MiB", "--resume", self.path("resume"),
                         "--threads", str(self.source.choice([1, 2, 3])), one, two]
            self.run_dedup(*arguments, "-o", self.path(name))
            expected = (self.folder / name).read_bytes()
            if name in ("plain", "table"):
                self.assertEqual(self.run_dedup(*flags, one, two).stdout, expected)
            (self.folder / name).unlink()
            kills += self.killed_until_done([*arguments, "-o", self.path(name)], name)
            self.assertEqual((self.folder / name).read_bytes(), expected, f"{name}, seed {SEED}")
        self.assertGreater(kills, 4)

    def test_the_output_may_be_the_input(self):
        data = self.lines(90_000)
        one = self.write("one", data)
        arguments = ["--resume-every", "1MiB", "--resume", self.path("resume"), one, "-o", one]
        self.killed_until_done(arguments, "one")
        self.assertEqual((self.folder / "one").read_bytes(),
                         b"".join(dict.fromkeys(data.splitlines(True))))

    def stopped(self, one, *more):
        """A run that was killed after its first checkpoints."""
        arguments = ["--resume-every", "1MiB", "--resume", self.path("resume"), one, *more]
        partial = self.folder / ".out.semel-partial"
        self.assertFalse(self.killed([*arguments, "-o", self.path("out")], partial, 2_500_000))
        self.assertTrue((self.folder / "resume" / "checkpoint.json").exists())
        return [*arguments, "-o", self.path("out")]

    def test_what_has_changed_is_named(self):
        one = self.write("one", self.lines(200_000))
        arguments = self.stopped(one)
        self.assertIn(b"other options", self.run_dedup(*arguments, "-i", code=2).stderr)
        other = [*arguments[:-1], self.path("out2")]
        self.assertIn(b"other options", self.run_dedup(*other, code=2).stderr)
        partial = self.folder / ".out.semel-partial"
        kept = partial.read_bytes()
        partial.write_bytes(kept[:1000])
        self.assertIn(b"has 1000 bytes", self.run_dedup(*arguments, code=3).stderr)
        partial.write_bytes(kept[:1000] + kept[:len(kept) - 1000])
        self.assertIn(b"keys and had", self.run_dedup(*arguments, code=3).stderr)
        partial.write_bytes(kept)
        with open(one, "ab") as file:
            file.write(b"more\n")
        self.assertIn(b"size or time", self.run_dedup(*arguments, code=3).stderr)
        (self.folder / "resume" / "checkpoint.json").write_bytes(b"{")
        self.assertIn(b"is not a checkpoint", self.run_dedup(*arguments, code=3).stderr)
        self.assertFalse((self.folder / "out").exists())

    def test_what_cannot_be_resumed_is_named(self):
        one = self.write("one", b"a\n")
        for more, words in ((["--count"], b"--count"), (["--keep", "last"], b"--keep last"),
                            (["--window", "1h"], b"--window"), (["-D", "x"], b"--duplicates"),
                            (["-"], b"standard input"), (["/dev/null"], b"not a plain file"),
                            (["--resume-every", "1"], b"1.00 MiB")):
            done = self.run_dedup("--resume", self.path("resume"), "-o", self.path("out"), one,
                                  *more, code=2)
            self.assertIn(words, done.stderr)
        self.assertIn(b"needs --output", self.run_dedup("--resume", "x", one, code=2).stderr)
        self.assertIn(b"/dev/null", self.run_dedup("--resume", self.path("resume"), "-o",
                                                   "/dev/null", one, code=2).stderr)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: dedup_resume_test.py PATH_OF_SEMEL [unittest arguments]")
    SEMEL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
