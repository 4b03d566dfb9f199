"""semel dedup beside a model of a page of Python: dedup_oracle_test.py SEMEL [unittest arguments].

Random inputs under random options, compared byte for byte. SEMEL_DEDUP_SEED repeats a run,
SEMEL_DEDUP_ROUNDS makes it longer.
"""

import csv
import gzip
import io
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
import zlib

SEMEL = ""
SEED = int(os.environ.get("SEMEL_DEDUP_SEED") or random.randrange(2**32))
ROUNDS = int(os.environ.get("SEMEL_DEDUP_ROUNDS") or 120)


def fold(text):
    return bytes(byte + 32 if 65 <= byte <= 90 else byte for byte in text)


def expected(records, options):
    """What is written of [(record, key or None)], and the duplicates. A record has its end, except
    perhaps the last one of an input."""
    seen = {}
    for number, (_, key) in enumerate(records):
        if key is not None:
            seen.setdefault(key, []).append(number)
    chosen = {}
    for key, numbers in seen.items():
        if options["select"] == "--unique" and len(numbers) > 1:
            continue
        if options["select"] == "--repeated" and len(numbers) == 1:
            continue
        chosen[numbers[-1 if options["keep"] == "last" else 0]] = len(numbers)
    out, others = [], []
    for number, (record, key) in enumerate(records):
        if key is None:
            out.append(record)
        elif number in chosen:
            if options["count"]:
                count = chosen[number]
                record = (b"%d%s" % (count, options["joint"]) if options["table"] else
                          b"%7d " % count) + record
            out.append(record)
        else:
            others.append(record)
    return out, others


def joined(records, end):
    """Two records never run together."""
    text = b"".join(record if record.endswith(end) else record + end for record in records)
    return text[:-1] if records and not records[-1].endswith(end) else text


class Lines:
    """Whole lines, also with NUL bytes as their ends."""

    def __init__(self, source, zero):
        self.end = b"\0" if zero else b"\n"
        self.flags = ["-z"] if zero else []
        letters = [b"a", b"B", b"b", b" ", b"\r", b"\xc3\x84", b"\n" if zero else b"\0", b"xyz" * 9]
        self.words = [b"".join(source.choices(letters, k=source.choice([0, 1, 2, 3, 40])))
                      for _ in range(source.choice([3, 60, 4000]))]
        self.header = None
        self.joint = b","

    def record(self, source):
        return source.choice(self.words) + self.end

    @staticmethod
    def key(record):
        return record


class Fields(Lines):
    def __init__(self, source):
        super().__init__(source, False)
        self.flags = ["--fields", "2,1", "--missing", source.choice(["pass", "key"])]
        self.words = [b" ".join(source.choices([b"a", b"B", b"b", b"\t", b"cc"], k=source.choice(
            [0, 1, 2, 3]))) for _ in range(200)]

    def key(self, record):
        fields = record.replace(b"\t", b" ").split(b" ")
        fields = [field for field in fields if field]
        if len(fields) < 2 and "pass" in self.flags:
            return None
        fields += [b"", b""]
        return fields[1], fields[0]


class Table(Lines):
    """Records with quotes, the key by name."""

    def __init__(self, source, tabs):
        super().__init__(source, False)
        self.joint = b"\t" if tabs else b","
        self.flags = ["--tsv" if tabs else "--csv", "--key", source.choice(['"k,1"', 'n,"k,1"'])]
        self.header = self.written([b"n", b"k,1", b"other"], True)
        self.quote_all = source.choice([True, False])
        values = [b"", b"a", b"A", b'say "x"', b"two\nlines", b"\n", b"\n\n", b"a,b", b"\t", b"aB"]
        self.words = [self.written(source.choices(values, k=3), self.quote_all)
                      for _ in range(source.choice([4, 300]))]

    def written(self, values, quotes):
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=self.joint.decode(), lineterminator="\n",
                   quoting=csv.QUOTE_ALL if quotes else csv.QUOTE_MINIMAL).writerow(
                       value.decode() for value in values)
        return text.getvalue().encode()[:-1]

    def key(self, record):
        row = next(csv.reader(io.StringIO(record.decode(), newline=""),
                              delimiter=self.joint.decode()))
        key = (row[0].encode(), row[1].encode()) if "n," in self.flags[2] else (row[1].encode(),)
        return key


class Oracle(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def make_inputs(self, source, form):
        """Files, and what is in them as records."""
        size = source.choice([0, 1, 5, 400, 400, 60_000])
        inputs = []
        for number in range(source.choice([1, 1, 2, 3])):
            records = [form.record(source) for _ in range(size)]
            if form.header is None:
                if records and source.random() < 0.3 and len(records[-1]) > 1:
                    records[-1] = records[-1][:-1]
                head = b""
            else:
                head = form.header + b"\n"
                if source.random() < 0.2:
                    head = b"\xef\xbb\xbf" + head
            path = self.folder / f"in{number}"
            data = head + b"".join(records)
            if source.random() < 0.2:
                half = source.randrange(len(data) + 1)
                data = gzip.compress(data[:half], 1) + gzip.compress(data[half:], 1)
            path.write_bytes(data)
            inputs.append((path, head, records))
        return inputs

    def one_round(self, seed):
        source = random.Random(seed)
        form = source.choice([lambda: Lines(source, False), lambda: Lines(source, True),
                              lambda: Fields(source), lambda: Table(source, False),
                              lambda: Table(source, True)])()
        options = {"keep": source.choice(["first", "last"]), "count": source.random() < 0.4,
                   "select": source.choice([None, None, "--unique", "--repeated"]),
                   "joint": form.joint, "table": form.header is not None}
        if "pass" in form.flags:
            options.update(count=False, select=None)
        ignore_case = source.random() < 0.3
        duplicates = not options["count"] and options["select"] is None and source.random() < 0.5
        total = not options["count"] and source.random() < 0.1
        flags = [*form.flags, "--keep", options["keep"], "--quiet",
                 "--threads", str(source.choice([1, 2, 3, 5]))]
        flags += ["--count"] if options["count"] else []
        flags += [options["select"]] if options["select"] else []
        flags += ["--ignore-case"] if ignore_case else []
        flags += ["--digest"] if source.random() < 0.3 else []
        flags += ["--total"] if total else []
        flags += ["-D", str(self.folder / "again")] if duplicates else []
        inputs = self.make_inputs(source, form)

        def key_of(record):
            key = form.key(record[:-1] if record.endswith(form.end) else record)
            if not ignore_case or key is None:
                return key
            return tuple(map(fold, key)) if isinstance(key, tuple) else fold(key)

        records = [(record, key_of(record)) for _, _, lines in inputs for record in lines]
        out, others = expected(records, options)
        # An input without a byte has no header.
        head = inputs[0][1]
        if options["count"] and head:
            mark = b"\xef\xbb\xbf" if head.startswith(b"\xef\xbb\xbf") else b""
            head = mark + b"count" + form.joint + head[len(mark):]
        text = head + joined(out, form.end)
        if total:
            text = b"%d\n" % (len(out) - sum(key is None for _, key in records))
        arguments = [str(path) for path, _, _ in inputs]
        pipe = b""
        if source.random() < 0.3:
            pipe = inputs[-1][0].read_bytes()
            arguments[-1] = "-"
        target = self.folder / source.choice(["out", "out.gz", "in0"])
        named = not total and source.random() < 0.4
        if named:
            flags += ["-o", str(target)]
        done = subprocess.run([SEMEL, "dedup", *flags, *arguments], input=pipe,
                              capture_output=True, timeout=60, check=False)
        what = f"round seed {seed}: {' '.join(flags + arguments)}"
        self.assertEqual((done.returncode, done.stderr), (0, b""), what)
        written = done.stdout
        if named:
            self.assertEqual(written, b"", what)
            written = target.read_bytes()
            if target.name.endswith(".gz"):
                written = gzip.decompress(written)
        self.assertEqual(written, text, what)
        if duplicates:
            again = inputs[0][1] + joined(others, form.end)
            self.assertEqual((self.folder / "again").read_bytes(), again, what)
        self.assertEqual([path.name for path in self.folder.iterdir()
                          if path.name.startswith(".")], [], what)

    def test_random_inputs_under_random_options(self):
        print(f"seed {SEED}", file=sys.stderr)
        for number in range(ROUNDS):
            with self.subTest(number):
                self.one_round(SEED + number)

    def test_the_number_of_threads_changes_no_byte(self):
        source = random.Random(SEED)
        lines = b"".join(b"%d %s\n" % (source.randrange(60_000), b"x" * source.randrange(60))
                         for _ in range(200_000))
        path = self.folder / "in"
        path.write_bytes(lines)
        sums = {zlib.crc32(subprocess.run(
            [SEMEL, "dedup", "-f", "1", "--threads", str(threads), str(path)],
            capture_output=True, check=True, timeout=60).stdout) for threads in (1, 2, 3, 8, 64)}
        self.assertEqual(len(sums), 1, f"seed {SEED}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: dedup_oracle_test.py PATH_OF_SEMEL [unittest arguments]")
    SEMEL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
