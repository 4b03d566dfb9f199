"""What data looks like at its edges: dedup_data_test.py SEMEL [unittest arguments].

Empty lines of tables, one record written in several ways, byte order marks, compressed inputs that
are padded, cut or damaged, long lines, JSON values that are missing.
"""

import ctypes
import gzip
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
import zlib

SEMEL = ""
MARK = b"\xef\xbb\xbf"


def zstd(data, level=3):
    """One frame, by the library that the program has as well. None: it is not here."""
    try:
        library = ctypes.CDLL("libzstd.so.1")
    except OSError:
        return None
    library.ZSTD_compressBound.restype = library.ZSTD_compress.restype = ctypes.c_size_t
    size = library.ZSTD_compressBound(ctypes.c_size_t(len(data)))
    into = ctypes.create_string_buffer(size)
    size = library.ZSTD_compress(into, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)),
                                 level)
    return into.raw[:size]


def zlib_prefix(data):
    """What of cut gzip can be decompressed."""
    return zlib.decompressobj(31).decompress(data)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, data):
        (self.folder / name).write_bytes(data)
        return name

    def run_dedup(self, *arguments, stdin=b"", code=0):
        done = subprocess.run([SEMEL, "dedup", "--quiet", *arguments], input=stdin, timeout=60,
                              capture_output=True, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        return done

    def dedup(self, data, *arguments):
        """The same in one run and with a window, which is the engine's path."""
        out = self.run_dedup(*arguments, stdin=data).stdout
        for threads in ("1", "3"):
            more = self.run_dedup(*arguments, "--threads", threads, stdin=data).stdout
            self.assertEqual(more, out, threads)
        if not {"--keep", "--count", "--unique", "--repeated", "--digest",
                "--line-max"} & set(arguments):
            by_engine = self.run_dedup(*arguments, "--window", "1000d", stdin=data).stdout
            self.assertEqual(by_engine, out, arguments)
        return out


class Tables(Case):
    def test_once_again_17_an_empty_line_of_a_table_is_no_record_with_an_empty_key(self):
        data = b"k,v\n\n,5\n\na,1\n\r\n,6\na,2\n"
        self.assertEqual(self.dedup(data, "--csv", "--key", "k"), b"k,v\n\n,5\n\na,1\n\r\n")
        for flags in (["-f", "1"], ["--key", "k", "--missing", "pass"],
                      ["--key", "k", "--missing", "key"], ["--key", "k", "-i"]):
            self.assertEqual(self.dedup(data, "--csv", *flags), b"k,v\n\n,5\n\na,1\n\r\n", flags)
        self.assertEqual(self.dedup(data, "--csv", "--key", "k", "--keep", "last"),
                         b"k,v\n\n\n\r\n,6\na,2\n")
        self.assertEqual(self.dedup(data, "--csv", "--key", "k", "--count"),
                         b"count,k,v\n2,,5\n2,a,1\n")
        self.assertEqual(self.dedup(data + b"b,1\n", "--csv", "--key", "k", "--unique"),
                         b"k,v\nb,1\n")
        self.assertEqual(self.dedup(data + b"b,1\n", "--csv", "--key", "k", "--repeated"),
                         b"k,v\n,5\na,1\n")
        self.assertEqual(self.dedup(data, "--csv", "--key", "k", "--total"), b"2\n")
        self.run_dedup("--csv", "--key", "k", "-D", "again", stdin=data)
        self.assertEqual((self.folder / "again").read_bytes(), b"k,v\n,6\na,2\n")

    def test_once_again_17_every_kind_of_table_has_it(self):
        for flags, joint in ((["--tsv"], b"\t"), (["--tsv", "--quotes-literal"], b"\t"),
                             (["--header", "-d", ";"], b";"), (["--csv", "-d", ";"], b";")):
            data = b"k,v\n\n,5\n\na,1\n,7\n".replace(b",", joint)
            self.assertEqual(self.dedup(data, *flags, "--key", "k"),
                             b"k,v\n\n,5\n\na,1\n".replace(b",", joint), flags)
        self.assertEqual(self.dedup(b"\n,5\n,6\n", "--csv", "--no-header", "-f", "1"),
                         b"\n,5\n")
        # Lines that are no table have an empty line as before.
        self.assertEqual(self.dedup(b"\n\na\n"), b"\na\n")

    def test_once_again_17_empty_lines_before_the_names_are_none_of_the_table(self):
        data = b"\n\r\nk,v\n\n,5\n"
        self.assertEqual(self.dedup(data, "--csv", "--key", "k"), b"k,v\n\n,5\n")
        self.assertEqual(self.dedup(b"\n\n", "--csv", "--key", "k"), b"")
        far = b"\n" * 1_500_000 + b"k,v\n1,2\n1,3\n"
        self.assertEqual(self.dedup(far, "--csv", "--key", "k"), b"k,v\n1,2\n")
        self.assertIn(b"standard input, line 1500003: a quoted",
                      self.run_dedup("--csv", "--key", "v", code=3,
                                     stdin=b"\n" * 1_500_000 + b'k,v\n1,2\n1,"3"x\n').stderr)

    def test_once_again_17_records_with_the_same_fields_are_the_same(self):
        data = (b'a,b\n1,x\n"1",x\n1,"x"\n1,x\r\n"1","x"\n1,"x,"\n1,x,\n1,x,""\n"1,x"\n'
                b'1,"two\nlines"\n"1","two\nlines"\n1,"say ""x"""\n"1","say ""x"""\n')
        kept = b'a,b\n1,x\n1,"x,"\n1,x,\n"1,x"\n1,"two\nlines"\n1,"say ""x"""\n'
        self.assertEqual(self.dedup(data, "--csv"), kept)
        self.assertEqual(self.dedup(data.replace(b",", b"\t"), "--tsv"),
                         kept.replace(b",", b"\t"))
        self.assertEqual(self.dedup(data, "--csv", "--digest"), kept)
        self.assertEqual(self.dedup(b'a,b\n1,x\n"1",X\n', "--csv", "-i"), b"a,b\n1,x\n")
        self.assertEqual(self.dedup(b'a,b\n1,x\n"1",x\n', "--csv", "--count"),
                         b"count,a,b\n2,1,x\n")
        # Folding makes X the delimiter: the records still differ.
        self.assertEqual(self.dedup(b"axb\naXxb\naxXb\n", "--csv", "-d", "x", "-i"),
                         b"axb\naXxb\naxXb\n")
        # A field of nothing is a record, and one of newlines is not the same.
        self.assertEqual(self.dedup(b'a\n""\n\n"\n"\n""\n', "--csv"), b'a\n""\n\n"\n"\n')
        done = self.run_dedup("--csv", stdin=b'a,b\n1,2\n"1"x,2\n', code=3)
        self.assertEqual(done.stdout, b"a,b\n1,2\n")
        self.assertIn(b"line 3: a quoted field does not end", done.stderr)

    def test_once_again_17_a_quote_that_stays_open_behind_the_key_is_an_error(self):
        whole = b"a,b\n1,x\n"
        ways = (["--key", "a"], ["-f", "1"], ["-f", "1", "--no-header"], ["--key", "a", "-i"],
                ["--key", "a", "--threads", "1"], ["--key", "a", "--window", "1000d"])
        for bad in (b'1,"5 inch\n2,b\n3,c\n', b'1,"5 inch\n2,b\n3,c', b'1,"', b'1,x,"y""\n2,b\n',
                    b'1,"x"y\n2,b\n', b'1,5" x,"y"z\n2,b\n', b'1,"5 inch\n2,"b"\n'):
            for way in ways:
                done = self.run_dedup("--csv", *way, stdin=whole + bad, code=3)
                self.assertEqual(done.stdout, whole, (bad, way))
                self.assertIn(b"line 3: a quoted field does not end", done.stderr)
            for way in (["--count"], ["--total"], ["--unique"], ["--repeated"],
                        ["--keep", "last"]):
                done = self.run_dedup("--csv", "--key", "a", *way, stdin=whole + bad, code=3)
                self.assertEqual(done.stdout, b"", (bad, way))
        # A time between the key and such a field.
        self.run_dedup("--csv", "-f", "1", "--time-field", "2", "--time-format", "unix", "-w", "1h",
                       stdin=b't,at,x\n1,5,"\n2,6,y\n', code=3)
        # A quote inside a field is a byte like others, and so is a delimiter inside quotes.
        right = whole + b'2,5",6"\n3,"x,y","",""""\n4,"two\nlines",\r\n'
        self.assertEqual(self.dedup(right + b'2,"z"\n', "--csv", "--key", "a"), right)

    def test_once_again_17_a_mark_and_a_carriage_return_are_in_no_key(self):
        self.assertEqual(self.dedup(MARK + b"1,2\n1,2\n2,2\n", "--csv", "--no-header"),
                         MARK + b"1,2\n2,2\n")
        quoted = MARK + b'"a,b",1\n'
        self.assertEqual(self.dedup(quoted + b'"a,b",2\n', "--csv", "--no-header", "-f", "1"),
                         quoted)
        self.assertEqual(self.dedup(MARK + b'"k\n1",v\r\n1,2\r\n1,3\n', "--csv", "-f", "1"),
                         MARK + b'"k\n1",v\r\n1,2\r\n')
        self.assertEqual(self.dedup(MARK + b'{"a":1}\n{"a":1}\n', "--json", "/a"),
                         MARK + b'{"a":1}\n')
        self.assertEqual(self.dedup(b"k;v\r\n1;2\r\n2;2\n", "--header", "-d", ";", "--key", "v"),
                         b"k;v\r\n1;2\r\n")
        # Of a plain line all bytes count.
        self.assertEqual(self.dedup(MARK + b"a\na\na\r\n"), MARK + b"a\na\na\r\n")


class Compressed(Case):
    LINES = b"".join(b"%d %x\n" % (i, bits) for i, bits in enumerate(
        random.Random(17).choices(range(2**32), k=60_000)))

    def check(self, name, data, kept, code, words=b"", *flags):
        """Of an input that ends in the middle: the whole lines before, on both paths."""
        self.write(name, data)
        for way in ([], ["--threads", "1"], ["--window", "1000d"], ["-f", "1"]):
            done = self.run_dedup(name, *way, *flags, code=code)
            self.assertEqual(len(done.stdout), len(kept), (name, way))
            self.assertEqual(done.stdout, kept)
            self.assertIn(words, done.stderr)
            if code != 0:
                self.assertIn(name.encode(), done.stderr)

    def test_once_again_17_zeros_behind_gzip_are_padding(self):
        one, two = gzip.compress(b"a\nb\n"), gzip.compress(b"c\nd")
        for zeros in (1, 512, 300_000):
            self.check("padded.gz", one + bytes(zeros), b"a\nb\n", 0)
            self.check("several.gz", one + bytes(zeros) + two + bytes(zeros), b"a\nb\nc\nd", 0)
        self.check("empty.gz", gzip.compress(b""), b"", 0)
        self.check("nothing.gz", b"", b"", 0)

    def test_once_again_17_bytes_behind_gzip_are_an_error_after_all_lines(self):
        words = b"bytes that are not compressed data follow"
        for tail in (b"\n", b"garbage", bytes(9) + b"x", b"\x1f\x00"):
            self.check("tail.gz", gzip.compress(b"a\nb\nc") + tail, b"a\nb\nc", 3, words)
        # It begins as another stream does, so that the last line may be half of one.
        self.check("half.gz", gzip.compress(b"a\nb\nc") + b"\x1f\x8b\x07\x00garbage", b"a\nb\n", 3,
                   b"damaged")

    def test_once_again_17_of_cut_gzip_the_lines_before_are_written(self):
        whole = gzip.compress(self.LINES)
        for cut in (len(whole) // 2, len(whole) - 9, len(whole) - 4):
            known = zlib_prefix(whole[:cut])
            self.assertGreater(len(known), len(self.LINES) // 3)
            kept = known[:known.rindex(b"\n") + 1]
            self.check("cut.gz", whole[:cut], kept, 3, b"the compressed data ends too early")

    def test_once_again_17_of_damaged_gzip_the_lines_before_are_written(self):
        whole = bytearray(gzip.compress(self.LINES))
        whole[-6] ^= 1  # the sum: all lines are there
        self.check("sum.gz", bytes(whole), self.LINES, 3, b"incorrect data check")
        second = gzip.compress(b"z\n" * 10)[:12] + b"\xff" * 30
        self.check("second.gz", gzip.compress(self.LINES) + second, self.LINES, 3,
                   b"the compressed data")

    def test_once_again_17_the_same_of_zstandard(self):
        whole = zstd(self.LINES)
        if whole is None:
            self.skipTest("no libzstd.so.1")
        skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
        self.check("whole.zst", skippable + whole + skippable + zstd(b"last"),
                   self.LINES + b"last", 0)
        self.check("tail.zst", zstd(b"a\nb") + b"garbage", b"a\nb", 3,
                   b"bytes that are not compressed data follow")
        cut = self.run_dedup(self.write("cut.zst", whole[:len(whole) // 2]), code=3)
        self.assertIn(b"cut.zst: the compressed data ends too early", cut.stderr)
        self.assertGreater(len(cut.stdout), len(self.LINES) // 4)
        self.assertEqual(cut.stdout, self.LINES[:len(cut.stdout)])
        self.assertTrue(cut.stdout.endswith(b"\n"))
        # A block that cannot be: what the blocks before it hold is written.
        broken = bytearray(whole)
        broken[len(whole) * 3 // 4:] = b"\xff" * (len(whole) - len(whole) * 3 // 4)
        done = self.run_dedup(self.write("broken.zst", bytes(broken)), code=3)
        self.assertIn(b"broken.zst: the compressed data", done.stderr)
        self.assertGreater(len(done.stdout), len(self.LINES) // 3)
        self.assertEqual(done.stdout, self.LINES[:len(done.stdout)])

    def test_once_again_17_what_needs_the_whole_input_writes_nothing_of_a_part(self):
        self.write("cut.gz", gzip.compress(self.LINES)[:-9])
        for flags in (["--count"], ["--keep", "last"], ["--unique"], ["-o", "out"]):
            self.assertEqual(self.run_dedup("cut.gz", *flags, code=3).stdout, b"")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["cut.gz"])

    def test_once_again_17_records_before_the_cut_are_whole(self):
        rows = b"k,v\n" + b"".join(b'%d,"two\nlines"\n' % i for i in range(50_000))
        whole = gzip.compress(rows)
        self.write("cut.gz", whole[:len(whole) * 2 // 3])
        for way in ([], ["--window", "1000d"]):
            out = self.run_dedup("--csv", "--key", "k", "cut.gz", *way, code=3).stdout
            self.assertGreater(len(out), len(rows) // 3)
            self.assertEqual(out, rows[:len(out)])
            self.assertTrue(out.endswith(b'"\n'))


class Long(Case):
    def test_once_again_17_long_lines_are_keys_up_to_the_bound(self):
        most = 1 << 20
        self.write("in", b"a\n" + b"x" * most + b"\n" + b"x" * most + b"\n" + b"x" * 70_000 + b"\n")
        self.assertEqual(self.run_dedup("in").stdout,
                         b"a\n" + b"x" * most + b"\n" + b"x" * 70_000 + b"\n")
        done = self.run_dedup("in", "--line-max", "64KiB", code=3)
        self.assertEqual(done.stdout, b"a\n")
        self.assertEqual(done.stderr, b"semel dedup: in, line 2: the line has 1048576 bytes, the "
                                      b"limit of a key is 65536 (--line-max)\n")
        self.write("more", b"y" * (most + 1) + b"\n")
        self.assertIn(b"more, line 1: the line has 1048577 bytes, the limit of a key is 1048576 "
                      b"(--line-max)", self.run_dedup("in", "more", code=3).stderr)
        self.assertEqual(self.run_dedup("more", "more", "--line-max", "1025KiB").stdout,
                         b"y" * (most + 1) + b"\n")

    def test_once_again_17_the_bound_is_that_of_every_kind_of_key(self):
        long = b"z" * 200_000
        row = b"k,v\n" + long + b',1\n"' + long + b'",2\n' + long + b"z,3\n"
        kept = b"k,v\n" + long + b",1\n" + long + b"z,3\n"
        for flags in ([], ["--digest"], ["-i"], ["--keep", "first"]):
            self.assertEqual(self.dedup(row, "--csv", "--key", "k", "--line-max", "1MiB", *flags),
                             kept)
        self.assertEqual(self.dedup(row, "--csv", "--key", "k", "--line-max", "1MiB", "--count"),
                         b"count,k,v\n2," + long + b",1\n1," + long + b"z,3\n")
        lines = b'{"a":"%s"}\n' % long
        self.assertEqual(self.dedup(lines * 3, "--json", "/a", "--line-max", "1MiB"), lines)
        largest = b"w" * (20 << 20)
        self.assertEqual(len(self.run_dedup("--line-max", "64MiB",
                                            stdin=(largest + b"\n") * 2).stdout), len(largest) + 1)

    def test_once_again_17_with_a_window_or_a_state_the_bound_is_that_of_the_engine(self):
        long = b"x" * 65_537 + b"\n"
        done = self.run_dedup("--window", "1h", stdin=b"a\n" + long, code=3)
        self.assertEqual(done.stdout, b"a\n")
        self.assertIn(b"line 2: the line has 65537 bytes, the limit of a key is 65536 with "
                      b"--window", done.stderr)
        self.assertIn(b"--line-max and --window", self.run_dedup(
            "--window", "1h", "--line-max", "1MiB", code=2).stderr)
        for size in ("1", "1023", "65MiB", "x"):
            self.assertIn(b"--line-max: '" + size.encode(), self.run_dedup(
                "--line-max", size, code=2).stderr)


class Json(Case):
    def test_once_again_17_missing_and_null_are_two_keys(self):
        rows = [b'{"a":1}\n', b'{"a":null}\n', b'{}\n', b'{"a":""}\n', b'{"a":"null"}\n']
        data = b"".join(rows)
        self.assertEqual(self.dedup(data * 2, "--json", "/a", "--missing", "key"), data)
        self.assertEqual(self.dedup(data * 2, "--json", "/a", "--json", "/b", "--missing", "key"),
                         data)
        for row in rows[1:3]:
            self.run_dedup("--json", "/a", stdin=row, code=3)
            self.assertEqual(self.dedup(row * 2, "--json", "/a", "--missing", "pass"), row * 2)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: dedup_data_test.py PATH_OF_SEMEL [unittest arguments]")
    SEMEL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
