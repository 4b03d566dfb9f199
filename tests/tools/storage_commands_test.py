"""Black-box tests of the subcommands for storages and of `semel dedup --state`:
storage_commands_test.py PATH_OF_SEMEL PATH_OF_GOLDEN_MAKER [unittest arguments].
"""

import json
import os
import pathlib
import pty
import random
import subprocess
import sys
import tempfile
import unittest

SEMEL = MAKER = ""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def path(self, name):
        return str(self.folder / name)

    def semel(self, *arguments, stdin=b"", code=0):
        done = subprocess.run([SEMEL, *arguments], input=stdin, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr.decode() + done.stdout.decode())
        return done

    def json(self, *arguments, code=0):
        return json.loads(self.semel(*arguments, "--json", code=code).stdout)

    def dedup(self, stdin, *arguments, state="state", code=0):
        return self.semel("dedup", "--state", self.path(state), *arguments, stdin=stdin, code=code)

    def made(self, name, *arguments):
        subprocess.run([MAKER, self.path(name), *arguments], check=True, timeout=60)
        return self.path(name)

    def damage(self, name, folder="log"):
        """Flips a byte of a value in the first file that holds it."""
        for file in sorted((self.folder / name / folder).iterdir()):
            content = bytearray(file.read_bytes())
            at = content.find(b"golden-value")
            if file.suffix in (".log", ".sst") and at >= 0:
                content[at] ^= 1
                file.write_bytes(content)
                return str(file)
        self.fail("nothing to damage")


class Storages(Case):
    def test_help_has_the_exit_codes(self):
        for name in ("verify", "repair", "inspect", "backup", "restore"):
            self.assertIn(b"3 written by a later release", self.semel(name, "--help").stdout)
            self.assertIn(f"semel {name}", self.semel(name, code=2).stderr.decode())
            self.assertIn("--what", self.semel(name, "x", "y", "--what", code=2).stderr.decode())

    def test_a_sound_storage_is_reported_so(self):
        path = self.made("s")
        self.assertIn(b"sound", self.semel("verify", path).stdout)
        found = self.json("verify", path)
        self.assertEqual((found["sound"], found["findings"]), (True, []))
        self.assertGreater(found["mutations"], 10)
        self.assertEqual(self.json("repair", path)["changed"], False)

    def test_no_storage_is_an_error(self):
        for name in ("verify", "repair", "inspect"):
            self.assertEqual(self.json(name, self.path("none"), code=1)["error"]["code"],
                             "storage_failed")
        for name in ("backup", "restore"):
            self.json(name, self.path("none"), self.path("to"), code=1)
            self.assertIn(b"none: there is no such directory",
                          self.semel(name, self.path("none"), self.path("to"), code=1).stderr)
        self.assertIn(b"none: there is no such directory",
                      self.semel("verify", self.path("none"), code=1).stderr)
        self.assertFalse((self.folder / "none").exists())
        self.assertFalse((self.folder / "to").exists())

    def test_a_later_format_ends_with_3(self):
        path = self.made("s", "--newer")
        for arguments in (["verify", path], ["repair", path], ["inspect", path],
                          ["repair", path, "--accept-loss"], ["backup", path, self.path("to")],
                          ["restore", path, self.path("to")]):
            found = self.json(*arguments, code=3)
            self.assertEqual(found["error"]["code"], "storage_newer", arguments)
            self.assertIn("this release knows", found["error"]["text"])
        self.assertIn("later release", self.dedup(b"a\n", state="s", code=3).stderr.decode())

    def test_a_storage_in_use_is_refused_with_a_hint(self):
        path = self.path("s")
        with subprocess.Popen([MAKER, path, "--hold"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as holder:
            self.assertEqual(holder.stdout.readline(), b"ready\n")
            for arguments in (["verify", path], ["repair", path], ["inspect", path],
                              ["backup", path, self.path("to")]):
                text = self.json(*arguments, code=1)["error"]["text"]
                self.assertIn("used by another process", text)
            self.assertIn("Storage::backup()", text)
            holder.communicate()
        self.semel("verify", path)

    def test_damage_is_found_and_repaired(self):
        for folder in ("log", "rocksdb"):
            with self.subTest(folder=folder):
                path = self.made(folder)
                file = self.damage(folder, folder)
                finding, = self.json("verify", path, code=1)["findings"]
                self.assertEqual(finding["file"], file)
                self.assertGreaterEqual(finding["offset"], 0)
                self.assertGreater(finding["bytes_lost"], 0)
                self.assertIn(b"--accept-loss", self.semel("repair", path, code=1).stdout)
                self.json("verify", path, code=1)
                done = self.json("repair", path, "--accept-loss")
                self.assertTrue(done["changed"])
                self.assertTrue(os.path.exists(done["moved_to"] + "/" + folder))
                # What was drained has the policy of the namespace: no repair brings that back.
                lost = {"golden": 6} if folder == "rocksdb" else {}
                self.assertEqual(done["unknown_namespaces"], lost)
                after = self.json("verify", path, code=1 if lost else 0)
                self.assertEqual((after["sound"], after["findings"]), (not lost, []))
                self.assertEqual(after["unknown_namespaces"], lost)
                text = self.semel("repair", path, "--accept-loss", code=1 if lost else 0).stdout
                self.assertIn(b"namespace golden" if lost else b"sound", text)

    def test_inspect_shows_records(self):
        path = self.made("s")
        lines = self.semel("inspect", path, "--records", "--json").stdout.splitlines()
        *records, info = map(json.loads, lines)
        self.assertEqual(info["format"], 9)
        self.assertIn("plain-undrained", {record["key"] for record in records})
        self.assertEqual({record["state"] for record in records if "state" in record},
                         {"held", "done", "failed"})
        self.assertIn(b"plain-undrained", self.semel("inspect", path, "--records").stdout)
        self.assertIn(b"format    9", self.semel("inspect", path).stdout)

    def test_a_cold_store_is_part_of_its_storage(self):
        path = self.made("s", "--tiered")
        found = self.json("verify", path)["cold"]
        self.assertEqual((found["directory"], found["records"]), (path + "/cold", 500))
        self.assertIn(b"500 records in 1 parts", self.semel("verify", path).stdout)
        parts = self.json("inspect", path)["cold"]["parts"]
        self.assertEqual([part["records"] for part in parts], [500])
        self.semel("backup", path, self.path("backup"))
        self.assertTrue(self.json("verify", self.path("backup"))["sound"])
        self.semel("restore", self.path("backup"), self.path("again"))
        self.assertEqual(self.json("verify", self.path("again"))["cold"]["records"], 500)
        # That of another restore, and of the original, is refused.
        other = self.json("verify", path, "--cold", self.path("again/cold"), code=1)["cold"]
        self.assertIn("not used together last", other["findings"][0]["what"])
        (self.folder / "s/cold").rename(self.folder / "moved")
        self.assertIn("--cold", self.json("verify", path, code=1)["cold"]["findings"][0]["what"])
        self.assertIn(b"name it with --cold", self.semel("inspect", path).stdout)
        self.semel("backup", path, self.path("to"), code=1)
        self.semel("backup", path, self.path("to"), "--cold", self.path("nowhere"), code=1)
        self.assertFalse((self.folder / "to").exists())
        self.semel("backup", path, self.path("to"), "--cold", self.path("moved"))
        self.assertTrue(self.json("verify", path, "--cold", self.path("moved"))["sound"])
        # Given up only when asked.
        self.assertFalse(self.json("repair", path, "--accept-loss", code=1)["changed"])
        done = self.json("repair", path, "--accept-loss", "--without-cold")
        self.assertTrue(done["cold_given_up"])
        self.assertTrue(self.json("verify", path)["sound"])

    def test_backup_and_restore(self):
        path, copy, again = self.made("s"), self.path("copy"), self.path("again")
        self.assertIn(b"copied", self.semel("backup", path, copy).stdout)
        self.json("restore", copy, again)
        self.assertRegex(self.semel("restore", copy, self.path("third")).stdout,
                         rb"third; [1-9][\d.]* [KM]?i?B")
        self.assertTrue(self.json("verify", again)["sound"])
        self.assertGreater(self.json("inspect", again)["versions"], 1 << 48)
        text = self.json("restore", copy, again, code=1)["error"]["text"]
        self.assertIn("is there already", text)

    def test_a_backup_may_share_files_with_an_older_one(self):
        path, one, two = self.made("s"), self.path("one"), self.path("two")
        first = self.json("backup", path, one, "--copy", "--rate", "1000000000")
        self.assertEqual((first["bytes_linked"], first["bytes_shared"]), (0, 0))
        second = self.json("backup", path, two, "--copy", "--base", one)
        self.assertGreater(second["bytes_shared"], 0)
        self.assertTrue(self.json("verify", two)["sound"])
        file = self.folder / "two" / "backup"
        file.write_bytes(file.read_bytes().replace(b"state complete", b"state complet"))
        text = self.json("restore", two, self.path("x"), code=1)["error"]["text"]
        self.assertIn("checksum", text)
        file.write_bytes(b"")
        for arguments in (["verify", two], ["restore", two, self.path("x")], ["repair", two]):
            text = self.json(*arguments, code=1)["error"]["text"]
            self.assertIn("was not completed", text)

    def test_an_incomplete_output_is_reported(self):
        path = self.made("s")
        for arguments in (["verify", path], ["inspect", path], ["inspect", path, "--records"],
                          ["inspect", path, "--json"], ["repair", path],
                          ["backup", path, self.path("copy")]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([SEMEL, *arguments], stdout=full, stderr=subprocess.PIPE,
                                      timeout=60)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn(b"cannot write standard output", done.stderr, arguments)

    def test_output_to_a_terminal_has_no_escapes_when_it_is_short(self):
        path = self.made("s")
        main, other = pty.openpty()
        done = subprocess.run([SEMEL, "verify", path], stdout=subprocess.PIPE, stderr=other,
                              timeout=60)
        os.close(other)
        self.assertIn(b"sound", done.stdout)
        os.close(main)


class State(Case):
    def halves(self, lines, *arguments, cuts):
        out, start = b"", 0
        for n, cut in enumerate([*cuts, len(lines)]):
            out += self.dedup(b"".join(lines[start:cut]), *arguments).stdout
            start = cut
        return out

    def test_parts_are_as_the_whole(self):
        seed = random.randrange(2**32)
        print(f"seed {seed}", file=sys.stderr)
        source = random.Random(seed)
        lines = [b"%d\n" % source.randrange(5000) for _ in range(20_000)]
        cuts = sorted(source.sample(range(1, len(lines)), 3))
        whole = self.semel("dedup", stdin=b"".join(lines)).stdout
        self.assertEqual(self.halves(lines, cuts=cuts), whole)
        self.assertTrue(self.json("verify", self.path("state"))["sound"])

    def test_windows_by_the_time_of_lines_go_on(self):
        seed = random.randrange(2**32)
        print(f"seed {seed}", file=sys.stderr)
        source = random.Random(seed)
        time, lines = 1_400_000_000, []
        for _ in range(5_000):
            time += source.choice([0, 0, 1, 5, 60])
            lines.append(b"%d k%d\n" % (time - source.choice([0, 0, 0, 30, 4000]),
                                         source.randrange(40)))
        cuts = sorted(source.sample(range(1, len(lines)), 4))
        for extra in ([], ["--sliding"], ["--late", "drop"]):
            arguments = ["-f", "2", "--time-field", "1", "--time-format", "unix", "-w", "10m",
                         *extra]
            whole = self.semel("dedup", *arguments, stdin=b"".join(lines)).stdout
            with self.subTest(extra=extra):
                with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                    out, start = b"", 0
                    for cut in [*cuts, len(lines)]:
                        out += self.semel("dedup", "--state", folder + "/s", *arguments,
                                          stdin=b"".join(lines[start:cut])).stdout
                        start = cut
                    self.assertEqual(out, whole)

    def test_a_window_by_arrival_is_kept_by_the_clock(self):
        self.assertEqual(self.dedup(b"a\n", "-w", "1h").stdout, b"a\n")
        self.assertEqual(self.dedup(b"a\nb\n", "-w", "1h").stdout, b"b\n")
        self.assertEqual(self.dedup(b"x\n", "-w", "1ms", state="short").stdout, b"x\n")
        # Starting the program again alone takes longer than the window.
        self.assertEqual(self.dedup(b"x\n", "-w", "1ms", state="short").stdout, b"x\n")

    def test_another_key_or_time_is_refused_and_both_are_named(self):
        self.dedup(b"a 1\n", "-f", "1")
        for arguments, words in ((["-f", "2"], ("--fields 1", "--fields 2")),
                                 ([], ("--fields 1", "whole lines")),
                                 (["-f", "1", "-d", ","], ("--delimiter", "--fields 1")),
                                 (["-f", "1", "-w", "1h", "--time-field", "2"],
                                  ("time of arrival", "time of the lines"))):
            text = self.dedup(b"", *arguments, code=2).stderr.decode()
            for word in words:
                self.assertIn(word, text)
        self.assertEqual(self.dedup(b"a 2\nb 1\n", "-f", "1").stdout, b"b 1\n")

    def test_a_storage_of_others_is_refused(self):
        self.made("other")
        text = self.dedup(b"", state="other", code=2).stderr.decode()
        self.assertIn("not one of semel dedup", text)

    def test_a_damaged_state_is_bad_data(self):
        self.dedup(b"a\n")
        (self.folder / "state" / "dedup.json").write_text("{}")
        self.assertIn("dedup.json", self.dedup(b"a\n", code=3).stderr.decode())

    def test_lines_before_an_error_are_remembered(self):
        self.dedup(b"a\n" + b"x" * 70_000 + b"\n", code=3)
        self.assertEqual(self.dedup(b"a\nb\n").stdout, b"b\n")

    def test_a_time_beyond_the_range_is_named(self):
        arguments = ["-f", "2", "--time-field", "1", "--time-format", "unix", "-w", "1h"]
        text = self.dedup(b"99999999999 a\n", *arguments, code=3).stderr.decode()
        for word in ("line 1", "99999999999000", "8796093022208"):
            self.assertIn(word, text)


if __name__ == "__main__":
    SEMEL, MAKER = sys.argv[1:3]
    del sys.argv[1:3]
    unittest.main(verbosity=1)
