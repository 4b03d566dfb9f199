"""Black-box tests of the program: semel_test.py PATH_OF_SEMEL [unittest arguments].

Makes its own small data. The counts of the shared access log are checked where that log exists
(SEMEL_SHARED_DATA, or ../shared/data beside the project), and skipped visibly elsewhere.
"""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

SEMEL = ""
ROOT = pathlib.Path(__file__).resolve().parents[2]


def shared_log():
    folder = os.environ.get("SEMEL_SHARED_DATA") or ROOT.parent / "shared" / "data"
    return pathlib.Path(folder) / "apache_access.log"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return str(path)

    def semel(self, *arguments, stdin=b"", code=0):
        done = subprocess.run([SEMEL, *arguments], input=stdin, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done

    def dedup(self, stdin, *arguments, code=0):
        return self.semel("dedup", *arguments, stdin=stdin, code=code).stdout

    def refusal(self, *arguments, stdin=b"", code=2):
        """The error text; nothing may be on standard output."""
        done = self.semel("dedup", *arguments, stdin=stdin, code=code)
        self.assertEqual(done.stdout, b"")
        return done.stderr.decode()


class Program(Case):
    def test_version_and_help_go_to_standard_output(self):
        self.assertRegex(self.semel("--version").stdout, rb"^semel \d+\.\d+\.\d+\n$")
        for arguments in (["--help"], ["dedup", "--help"], ["demo", "--help"]):
            self.assertIn(b"Exit codes", self.semel(*arguments).stdout, arguments)

    def test_without_a_subcommand_the_help_is_an_error(self):
        self.assertIn(b"dedup", self.semel(code=2).stderr)

    def test_the_demo_tells_a_true_story(self):
        done = self.semel("demo", "--seed", "7")
        text = done.stdout.decode()
        self.assertNotIn("WRONG", text)
        self.assertNotIn("\x1b", text)
        for words in ("seed 7", "takes over", "stale owner", "stored result", "NX GET PX",
                      "claims/s", "checks hold"):
            self.assertIn(words, text)

    def test_the_demo_names_a_wrong_seed(self):
        self.assertIn(b"'x'", self.semel("demo", "--seed", "x", code=2).stderr)

    def test_the_demo_tells_when_it_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([SEMEL, "demo"], stdout=full, stderr=subprocess.PIPE, timeout=120)
        self.assertEqual(done.returncode, 1)


def listed():
    """{subcommand: [names of a flag]} of `semel help --list`; the program's own under ''."""
    rows = subprocess.run([SEMEL, "help", "--list"], capture_output=True, text=True, timeout=60,
                          check=True).stdout.splitlines()
    found = {"": []}
    for what, name, *rest in (row.split("\t") for row in rows):
        if what == "subcommand":
            found[name] = []
        elif what == "flag":
            found[name].append(rest[0].split(","))
    return found


def shown(name):
    """{names of a flag: its kind of value and description} of `semel NAME --help`."""
    text = subprocess.run([SEMEL, *name.split(), "--help"], capture_output=True, text=True,
                          timeout=60, check=True).stdout
    found = {}
    for names, rest in re.findall(r"^  (-\S+)(.*(?:\n {30}.*)*)", text, re.MULTILINE):
        found[names] = " ".join(rest.split())
    return found


class Help(Case):
    def test_help_shows_what_the_flag_shows(self):
        self.assertEqual(self.semel("help").stdout, self.semel("--help").stdout)
        for name in filter(None, listed()):
            with self.subTest(name):
                self.assertEqual(self.semel("help", *name.split()).stdout,
                                 self.semel(*name.split(), "--help").stdout)

    def test_version_prints_what_the_flag_prints(self):
        self.assertEqual(self.semel("version").stdout, self.semel("--version").stdout)

    def test_what_is_mistyped_is_named_with_the_nearest_name(self):
        long = "x" * 100_000
        cut = f"'{'x' * 60}...' (100000 bytes)"
        for arguments, said in (
                (["dedpu"], "semel: no subcommand 'dedpu'; did you mean 'dedup'?"),
                (["dmeo"], "semel: no subcommand 'dmeo'; did you mean 'demo'?"),
                (["dedupxx"], "semel: no subcommand 'dedupxx'; did you mean 'dedup'?"),
                (["dedupxxx"], "semel: no subcommand 'dedupxxx'"),
                (["de"], "semel: no subcommand 'de'"),
                ([""], "semel: no subcommand ''"),
                (["-"], "semel: no subcommand '-'"),
                ([long], f"semel: no subcommand {cut}"),
                ([b"ded\xffp"], "semel: no subcommand 'ded\\xffp'; did you mean 'dedup'?"),
                (["\x1b[31m"], "semel: no subcommand '\\x1b[31m'"),
                (["--versoin"], "semel: no flag '--versoin'; did you mean '--version'?"),
                (["--fields", "1", "dedup"],
                 "semel: no flag '--fields'; write it after the subcommand 'dedup'"),
                (["--fields=1", "dedup"],
                 "semel: no flag '--fields'; write it after the subcommand 'dedup'"),
                (["--fields", "1"],
                 "semel: no flag '--fields'; write it after the subcommand 'dedup'"),
                (["--seed", "1", "dedup"], "semel: no flag '--seed'"),
                (["--fields", "1", "demo"], "semel: no flag '--fields'"),
                (["dedup", "--feilds=1"],
                 "semel dedup: no flag '--feilds'; did you mean '--fields'?"),
                (["dedup", "-stats"], "semel dedup: no flag '-stats'; did you mean '--stats'?"),
                (["dedup", "--what"], "semel dedup: no flag '--what'"),
                (["dedup", "-x"], "semel dedup: no flag '-x'"),
                (["dedup", "-sx"], "semel dedup: no flag '-x'"),
                (["dedup", "--" + long[2:]],
                 f"semel dedup: no flag '--{'x' * 58}...' (100000 bytes)"),
                (["dedup", b"--\xff\xfe"], "semel dedup: no flag '--\\xff\\xfe'"),
                (["demo", "dedup"], "semel demo: unexpected argument 'dedup'"),
                (["demo", "a", "--sed"], "semel demo: no flag '--sed'; did you mean '--seed'?"),
                (["dedpu", "--stats"], "semel: no subcommand 'dedpu'; did you mean 'dedup'?"),
                (["demo", ""], "semel demo: unexpected argument ''"),
                (["version", "--x"], "semel version: no flag '--x'"),
                (["help", "help", "extra"], "semel help: unexpected argument 'extra'")):
            with self.subTest(arguments):
                done = self.semel(*arguments, code=2)
                self.assertEqual(done.stdout, b"")
                name = said.split(":")[0]
                self.assertEqual(done.stderr.decode(), f"{said}\nTry '{name} --help'.\n")

    def test_what_help_does_not_know_is_named(self):
        for typed, said in (("dedpu", "'dedpu'; did you mean 'dedup'?"), ("", "''"),
                            ("x" * 60, f"'{'x' * 60}'"),
                            ("x" * 61, f"'{'x' * 60}...' (61 bytes)")):
            done = self.semel("help", typed, code=2)
            self.assertEqual(done.stderr.decode(),
                             f"semel help: no subcommand {said}\nTry 'semel help'.\n")
        self.assertIn(b"--list", self.semel("help", "--list", "dedup", code=2).stderr)

    def test_flags_of_the_node_and_of_storages_are_suggested(self):
        known = listed()
        if "node" in known:
            for typed, near in (("--prot", "--port"), ("--log_level", "--log-level"),
                                ("--appendonyl", "--appendonly")):
                done = self.semel("node", typed, "1", code=2)
                self.assertEqual(done.stderr.decode(), f"semel node: no flag '{typed}'; did you "
                                 f"mean '{near}'?\nTry 'semel node --help'.\n")
        if "verify" in known:
            # Its exit code of bad usage; and the flag is named, not the DIR that is missing.
            done = self.semel("verify", "--jsno", code=2)
            self.assertEqual(done.stderr.decode(), "semel verify: no flag '--jsno'; did you mean "
                             "'--json'?\nTry 'semel verify --help'.\n")
            self.assertIn(b"argument 'b'", self.semel("verify", "a", "b", code=2).stderr)

    def test_a_subcommand_of_a_subcommand_is_named_with_both_words(self):
        if "cluster" not in listed():
            self.skipTest("this build has no node")
        for arguments, said in (
                (["cluster", "stauts"],
                 "semel cluster: no subcommand 'stauts'; did you mean 'status'?"),
                (["cluster", "status", "--jsno"],
                 "semel cluster status: no flag '--jsno'; did you mean '--json'?"),
                (["cluster", "status", "x"], "semel cluster status: unexpected argument 'x'")):
            done = self.semel(*arguments, code=2)
            name = said.split(":")[0]
            self.assertEqual(done.stderr.decode(), f"{said}\nTry '{name} --help'.\n")
        self.assertIn(b"Try 'semel cluster --help'", self.semel("cluster", code=2).stderr)
        self.assertIn(b"no subcommand 'ad'", self.semel("help", "cluster", "ad", code=2).stderr)

    def test_a_smaller_build_says_what_it_lacks(self):
        whole = b"The whole program has it: cmake --preset release, or the Debian package semel"
        names = {"node": "node", "cluster": "node", "import": "node", "gateway": "gateway",
                 "verify": "storage", "restore": "storage"}
        absent = [name for name in names if name not in listed()]
        if not absent:
            self.assertNotIn(b"This build", self.semel("dedup", "--help").stdout)
            self.skipTest("this build has everything")
        for name in absent:
            for arguments in ([name, "--port", "1"], ["help", name]):
                said = self.semel(*arguments, code=2).stderr
                self.assertIn(f"no subcommand '{name}' in this build, which is without the "
                              f"{names[name]}".encode(), said)
                self.assertIn(whole, said)
        if "verify" in absent:
            said = self.semel("dedup", "--help").stdout
            self.assertIn(b"so there is no --state", said)
            self.assertNotIn(b"a run with --state", said)
            self.assertIn(whole, self.semel("dedup", "--state", "x", code=2).stderr)

    def test_help_tells_when_it_cannot_be_written(self):
        for arguments in (["help"], ["--help"], ["help", "dedup"], ["version"], ["--version"],
                          ["help", "--list"]):
            with self.subTest(arguments):
                with open("/dev/full", "wb") as full:
                    done = subprocess.run([SEMEL, *arguments], stdout=full, stderr=subprocess.PIPE,
                                          timeout=60)
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"standard output", done.stderr)
                words = " ".join(arguments)
                done = subprocess.run(f"'{SEMEL}' {words} >&-", shell=True, timeout=60,
                                      stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 1)

    def test_a_closed_standard_error_changes_no_exit_code(self):
        chosen = listed()
        for arguments in ("", "dedpu", "help nobody", "dedup --what", "dedup --fields x",
                          "demo --seed x", "node --port 99999", "verify /nobody",
                          "inspect /nobody", "repair /nobody"):
            if arguments and arguments.split()[0] in ("node", "verify", "inspect", "repair") \
                    and arguments.split()[0] not in chosen:
                continue
            done = subprocess.run(f"'{SEMEL}' {arguments} 2>&-", shell=True, timeout=60)
            self.assertEqual(done.returncode, 1 if "/nobody" in arguments else 2, arguments)

    def test_an_incomplete_configuration_is_reported(self):
        if "node" not in listed():
            self.skipTest("this build has no node")
        for flag in ("--print-config", "--check-config"):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([SEMEL, "node", "--port", "0", flag], stdout=full,
                                      stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(done.returncode, 1, flag)
            self.assertIn(b"standard output", done.stderr)

    def test_each_setting_of_the_node_shows_its_default_and_its_unit(self):
        if "node" not in listed():
            self.skipTest("this build has no node")
        flags = shown("node")
        self.assertGreater(len(flags), 50)
        for names, text in flags.items():
            if names in ("-h,--help", "--config", "--redis-conf", "--print-config",
                         "--check-config", "--cluster-init"):
                continue
            self.assertRegex(text, r"Default: \S", names)
            if re.match("DURATION|BYTES", text):
                self.assertRegex(text, r"A plain number is in (us|ms|s|bytes)\.", names)

    def test_flags_of_the_other_subcommands_show_defaults_and_units(self):
        flags = shown("dedup")
        for names, words in (("-w,--window", "ms, s, m, h or d. Default: forever"),
                             ("-m,--memory", "Default: half"), ("--missing", "(default)"),
                             ("--time-format", "iso8601 (default)"), ("--late", "(default)"),
                             ("-f,--fields",
                              "Without --fields and --json the key is the whole line")):
            self.assertIn(words, flags[names])
        self.assertIn("default: random", shown("demo")["--seed"])


class Documents(Case):
    """Manual pages and completion, as the build makes them."""

    def made(self, script):
        subprocess.run([sys.executable, str(ROOT / "packaging" / script), SEMEL, str(self.folder)],
                       check=True, capture_output=True, timeout=120)
        return self.folder

    def test_the_list_has_the_flags_that_help_shows(self):
        for name, flags in listed().items():
            self.assertCountEqual([",".join(names) for names in flags], shown(name), name)

    def test_each_subcommand_has_a_manual_page_with_its_flags(self):
        folder = self.made("manual.py")
        for name in listed():
            page = (folder / ("-".join(["semel", *name.split()]) + ".1")).read_text()
            for names in shown(name):
                self.assertIn(f".B {names}".replace("-", "\\-"), page, name)

    def test_the_page_of_the_command_line_is_what_help_shows(self):
        if "redis-server" not in listed() or "gateway" not in listed():
            self.skipTest("this build has a part of the subcommands")
        done = subprocess.run([sys.executable, str(ROOT / "packaging/command_page.py"), SEMEL,
                               str(ROOT / "docs/command-line.md"), "--check"], timeout=120,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def complete_in_bash(self, *words):
        script = (f"source '{self.folder}/semel.bash'; COMP_WORDS=(\"$@\"); "
                  "COMP_CWORD=$(($# - 1)); _semel; printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "-c", script, "bash", "semel", *words], check=True,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stderr, "", words)
        return [line for line in done.stdout.split("\n") if line]

    def test_bash_completes_what_help_shows(self):
        self.made("completion.py")
        known = listed()
        self.assertEqual(self.complete_in_bash("d"), ["dedup", "demo"])
        outer = [name for name in filter(None, known) if " " not in name]
        self.assertEqual(self.complete_in_bash("")[:len(outer)], outer)
        for name in filter(None, known):
            names = [name for names in shown(name) for name in names.split(",")]
            self.assertCountEqual(self.complete_in_bash(*name.split(), "-"), names, name)
        self.assertEqual(self.complete_in_bash("dedup", "--late", ""), ["pass", "drop"])
        self.assertEqual(self.complete_in_bash("dedup", "--late", "=", "d"), ["drop"])
        self.assertEqual(self.complete_in_bash("dedup", "--window", ""), [])
        self.assertEqual(self.complete_in_bash("help", "de"), ["dedup", "demo"])
        if "cluster" in known:
            self.assertEqual(self.complete_in_bash("cluster", "re")[-1:], ["remove"])
            self.assertEqual(self.complete_in_bash("cluster", "add", "--wa"), ["--wait"])
        path = self.file("only", b"")
        self.assertEqual(self.complete_in_bash("dedup", path[:-1]), [path])
        self.assertEqual(self.complete_in_bash("nobody", ""), [])

    def test_zsh_and_fish_know_what_help_shows(self):
        folder = self.made("completion.py")
        fish = (folder / "semel.fish").read_text().splitlines()
        zsh = (folder / "_semel").read_text()
        for name in filter(None, listed()):
            mine = [row for row in fish if f"'__semel_subcommand {name}'" in row]
            pattern = f"'{name}'" if " " in name else name
            part = zsh.split(f"\n        {pattern})\n")[1].split(";;")[0]
            for option in (option for names in shown(name) for option in names.split(",")):
                word = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
                self.assertTrue(any(f" {word} " in row for row in mine), f"fish: {name} {option}")
                self.assertRegex(part, rf"'\*?{option}[=+]?\[", f"zsh: {name} {option}")

    def test_the_shells_that_are_here_take_their_script(self):
        folder = self.made("completion.py")
        for shell, script in (("bash", "semel.bash"), ("zsh", "_semel"), ("fish", "semel.fish")):
            if shutil.which(shell):
                done = subprocess.run([shell, "-n", str(folder / script)], capture_output=True,
                                      timeout=60)
                self.assertEqual((done.returncode, done.stderr), (0, b""), shell)


class Lines(Case):
    def test_first_occurrences_pass_in_order(self):
        self.assertEqual(self.dedup(b"b\na\nb\nc\na\n"), b"b\na\nc\n")
        self.assertEqual(self.dedup(b""), b"")

    def test_bytes_are_kept_as_they_are(self):
        lines = b"\n\n \n\x00\xff\n\x00\xff\ncr\r\ncr\n"
        self.assertEqual(self.dedup(lines), b"\n \n\x00\xff\ncr\r\ncr\n")

    def test_a_missing_last_newline_stays_missing_and_does_not_make_a_line_new(self):
        self.assertEqual(self.dedup(b"a\nb"), b"a\nb")
        self.assertEqual(self.dedup(b"a\nb\na"), b"a\nb\n")

    def test_lines_of_two_files_never_run_together(self):
        one, two = self.file("one", b"a\nb"), self.file("two", b"b\nc")
        self.assertEqual(self.dedup(b"", one, two), b"a\nb\nc")
        self.assertEqual(self.dedup(b"x\n", two, "-", one), b"b\nc\nx\na\n")

    def test_random_lines_against_a_set(self):
        seed = random.randrange(2**32)
        print(f"seed {seed}", file=sys.stderr)
        source = random.Random(seed)
        lines = [source.randbytes(source.choice([0, 3, 40, 300])).replace(b"\n", b"") + b"\n"
                 for _ in range(20_000)]
        lines += source.choices(lines, k=10_000)
        source.shuffle(lines)
        self.assertEqual(self.dedup(b"".join(lines)), b"".join(dict.fromkeys(lines)))

    def test_lines_longer_than_a_block_are_read_whole(self):
        line = b"k " + b"x" * (5 << 20) + b"\n"
        self.assertEqual(self.dedup(line + b"k y\n" + b"l\n", "--fields", "1"), line + b"l\n")

    def test_a_key_beyond_the_limit_is_reported_with_line_length_and_limit(self):
        longest = b"x" * (1 << 20) + b"\n"
        self.assertEqual(self.dedup(longest * 2), longest)
        done = self.semel("dedup", stdin=b"a\nx" + longest, code=3)
        self.assertEqual(done.stdout, b"a\n")
        for words in ("line 2", "1048577", "1048576", "--line-max"):
            self.assertIn(words, done.stderr.decode())

    def test_duplicates_go_to_their_file(self):
        path = self.folder / "again"
        self.assertEqual(self.dedup(b"a\nb\na\nb\na", "--duplicates", str(path)), b"a\nb\n")
        self.assertEqual(path.read_bytes(), b"a\nb\na")

    def test_total_prints_one_number(self):
        self.assertEqual(self.dedup(b"a\nb\na\n", "--total"), b"2\n")

    def test_stats_go_to_standard_error(self):
        done = self.semel("dedup", "--stats", stdin=b"a\nb\na\na\n")
        self.assertEqual(done.stdout, b"a\nb\n")
        for words in (r"lines +4\n", r"first +2\n", r"duplicates +2 \(50\.0 %\)", r"rate .*lines/s",
                      r"remembered +2 keys", r"memory .*keys \(limit .*process at most"):
            self.assertRegex(done.stderr.decode(), words)


class Keys(Case):
    def test_fields_are_those_of_awk(self):
        lines = b"a x 1\n  a\ty 2\nb x 1\na x 9\n"
        self.assertEqual(self.dedup(lines, "--fields", "1"), b"a x 1\nb x 1\n")
        self.assertEqual(self.dedup(lines, "-f", "1,2"), b"a x 1\n  a\ty 2\nb x 1\n")

    def test_a_delimiter_keeps_blanks_and_empty_fields(self):
        lines = b"a b,c\na,b c\n,c\n,d\n"
        self.assertEqual(self.dedup(lines, "-f", "1,2", "-d", ","), lines)
        self.assertEqual(self.dedup(lines, "-f", "1", "-d", ","), b"a b,c\na,b c\n,c\n")
        self.assertEqual(self.dedup(b"a\tb\na\tc\n", "-f", "1", "-d", "\\t"), b"a\tb\n")

    def test_a_missing_field_is_an_error_unless_asked_otherwise(self):
        lines = b"a 1\nb\nb\na 1\n"
        done = self.semel("dedup", "-f", "2", stdin=lines, code=3)
        self.assertEqual(done.stdout, b"a 1\n")
        self.assertIn("standard input, line 2: no field 2: the line has 1", done.stderr.decode())
        self.assertEqual(self.dedup(lines, "-f", "2", "--missing", "pass"), b"a 1\nb\nb\n")
        self.assertEqual(self.dedup(lines, "-f", "2", "--missing", "key"), b"a 1\nb\n")

    def test_the_line_number_counts_within_its_file(self):
        one, two = self.file("one", b"a 1\na 2\n"), self.file("two", b"a 3\nb\n")
        done = self.semel("dedup", "-f", "2", one, two, code=3)
        self.assertIn(f"{two}, line 2:", done.stderr.decode())

    def test_json_values_are_compared_by_value_and_type(self):
        rows = [{"id": 1}, {"id": "1"}, {"id": 1.0}, {"id": {"x": 1, "y": 2}},
                {"id": {"y": 2, "x": 1}}, {"id": [1]}, {"n": 0, "id": "1"}]
        lines = [json.dumps(row).encode() + b"\n" for row in rows]
        kept = b"".join(lines[i] for i in (0, 1, 3, 5))
        self.assertEqual(self.dedup(b"".join(lines), "--json", "/id"), kept)

    def test_json_keys_of_several_values(self):
        lines = b'{"a":"x","b":{"c":"yz"}}\n{"a":"xy","b":{"c":"z"}}\n{"b":{"c":"yz"},"a":"x"}\n'
        self.assertEqual(self.dedup(lines, "--json", "/a", "--json", "/b/c"),
                         b"".join(lines.splitlines(True)[:2]))

    def test_broken_json_is_reported_with_its_line(self):
        lines = b'{"a":1}\n{"a":\n{"a":1}\n'
        done = self.semel("dedup", "-j", "/a", stdin=lines, code=3)
        self.assertIn("line 2", done.stderr.decode())
        self.assertEqual(self.dedup(lines, "-j", "/a", "--missing", "pass"), b'{"a":1}\n{"a":\n')
        self.semel("dedup", "-j", "/a", "--missing", "key", stdin=lines, code=3)


class Windows(Case):
    def by_time(self, events, *arguments, window="10s"):
        """Events are (unix seconds, key); returns those that passed."""
        lines = "".join(f"{time} {key}\n" for time, key in events).encode()
        out = self.dedup(lines, "-f", "2", "-w", window, "--time-field", "1", "--time-format",
                         "unix", *arguments)
        return [(float(a), b) for a, b in (line.split() for line in out.decode().splitlines())]

    def test_a_window_starts_with_the_first_occurrence_and_ends_to_the_millisecond(self):
        events = [(100, "a"), (105, "a"), (109.999, "a"), (110, "a"), (111, "a"), (119.999, "a")]
        self.assertEqual(self.by_time(events), [(100, "a"), (110, "a")])

    def test_a_sliding_window_starts_again_with_each_repeat(self):
        events = [(100, "a"), (109, "a"), (118, "a"), (128, "a")]
        self.assertEqual(self.by_time(events, "--sliding"), [(100, "a"), (128, "a")])

    def test_time_never_goes_back(self):
        events = [(100, "a"), (108, "b"), (101, "c"), (117, "c"), (118, "c"), (108.5, "b")]
        # c came late and is judged at 108; at 118 its window is over, as is b's.
        self.assertEqual(self.by_time(events), [(100, "a"), (108, "b"), (101, "c"), (118, "c"),
                                                (108.5, "b")])

    def test_a_line_older_than_the_window_is_late(self):
        events = [(100, "a"), (90, "b"), (90, "b"), (90.001, "b"), (90.001, "b")]
        self.assertEqual(self.by_time(events), [(100, "a"), (90, "b"), (90, "b"), (90.001, "b")])
        self.assertEqual(self.by_time(events, "--late", "drop"), [(100, "a"), (90.001, "b")])

    def test_random_events_against_a_model(self):
        seed = random.randrange(2**32)
        print(f"seed {seed}", file=sys.stderr)
        source = random.Random(seed)
        now, events = 1_500_000_000_000, []
        for _ in range(20_000):
            now += source.choice([0, 0, 1, 20, 200, 20_000])
            events.append((now - source.choice([0, 0, 0, 5, 5_000, 50_000]),
                           source.randrange(300)))
        for sliding in (False, True):
            newest, seen, passed = 0, {}, []
            for time, key in events:
                newest = max(newest, time)
                if newest - time >= 10_000:
                    passed.append((time, key))
                    continue
                if key not in seen or newest - seen[key] >= 10_000:
                    passed.append((time, key))
                    seen[key] = newest
                elif sliding:
                    seen[key] = newest
            lines = "".join(f'{{"t":{time},"k":{key}}}\n' for time, key in events).encode()
            out = self.dedup(lines, "-j", "/k", "-w", "10s", "--time-json", "/t", "--time-format",
                             "unix_ms", *(["--sliding"] if sliding else []))
            rows = [json.loads(line) for line in out.splitlines()]
            self.assertEqual([(row["t"], row["k"]) for row in rows], passed)

    def test_by_arrival_a_long_window_holds_for_the_run(self):
        self.assertEqual(self.dedup(b"a\nb\na\n", "--window", "100d"), b"a\nb\n")

    def test_an_unreadable_time_is_an_error_unless_asked_otherwise(self):
        lines = b"100 a\nsoon a\n\n101 a\n"
        flags = ["-f", "2", "-w", "1h", "--time-field", "1", "--time-format", "unix"]
        done = self.semel("dedup", *flags, stdin=lines, code=3)
        self.assertIn("line 2: field 1 is 'soon', not a time of the format 'unix'",
                      done.stderr.decode())
        self.assertEqual(self.dedup(lines, *flags, "--missing", "pass"), b"100 a\nsoon a\n\n")

    def test_memory_of_ended_windows_is_used_again(self):
        # 40 windows of 2,000 keys of 1,000 bytes: 80 MB in all, 2 MB at a time.
        lines = "".join(f"{window * 20 + 100} {window}-{key}-{'x' * 1000}\n"
                        for window in range(40) for key in range(2000)).encode()
        out = self.dedup(lines, "-f", "2", "-w", "10s", "--time-field", "1", "--time-format",
                         "unix", "--memory", "24MiB", "--total")
        self.assertEqual(out, b"80000\n")


class Files(Case):
    def test_a_file_that_cannot_be_read_is_named_before_anything_is_written(self):
        good = self.file("good", b"a\n")
        self.assertIn("'/no/such'", self.refusal(good, "/no/such", code=1))
        self.assertIn("Is a directory", self.refusal(str(self.folder), code=1))

    def test_a_full_disk_is_reported(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([SEMEL, "dedup"], input=b"a\n", stdout=full,
                                  stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard output", done.stderr)
        done = self.semel("dedup", "-D", "/dev/full", stdin=b"a\na\n", code=1)
        self.assertIn(b"'/dev/full'", done.stderr)

    def test_an_input_is_never_its_own_output(self):
        path = self.file("input", b"a\na\n")
        self.assertIn("input and output", self.refusal(path, "--duplicates", path))
        with open(path, "ab") as output:
            done = subprocess.run([SEMEL, "dedup", path], stdout=output, stderr=subprocess.PIPE,
                                  timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(pathlib.Path(path).read_bytes(), b"a\na\n")

    def test_a_reader_that_leaves_ends_the_run_quietly(self):
        lines = b"".join(b"%d\n" % i for i in range(2_000_000))
        path = self.file("many", lines)
        run = subprocess.Popen([SEMEL, "dedup", path], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        self.assertEqual(run.stdout.readline(), b"0\n")
        run.stdout.close()
        self.assertEqual(run.stderr.read(), b"")
        run.stderr.close()
        self.assertIn(run.wait(60), (0, -signal.SIGPIPE))

    def test_lines_of_a_pipe_come_out_before_its_writer_is_done(self):
        run = subprocess.Popen([SEMEL, "dedup"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        guard = threading.Timer(60, run.kill)
        guard.start()
        for line in (b"a\n", b"b\n"):
            run.stdin.write(line * 2)
            run.stdin.flush()
            self.assertEqual(run.stdout.readline(), line)
        run.stdin.close()
        self.assertEqual(run.stdout.read(), b"")
        run.stdout.close()
        self.assertEqual(run.wait(60), 0)
        guard.cancel()

    def test_a_full_memory_ends_the_run_and_names_the_limit(self):
        lines = b"".join(b"%0100d\n" % i for i in range(200_000))
        done = self.semel("dedup", "--memory", "4MiB", "--stats", stdin=lines, code=4)
        kept = done.stdout.count(b"\n")
        self.assertGreater(kept, 10_000)
        self.assertEqual(done.stdout, lines[:kept * 101])
        self.assertIn(f"line {kept + 1}: the memory limit of 4.00 MiB", done.stderr.decode())


class Usage(Case):
    def test_wrong_values_are_named_with_what_is_allowed(self):
        for arguments, words in (
                (["--fields", "0"], "'0'"), (["--fields", "1,,2"], "1 to 10000"),
                (["--fields", "1,"], "'1,'"), (["--fields", "x"], "'x'"),
                (["--window", "24"], "'24'"), (["--window", "0s"], "1ms to 36600d"),
                (["--memory", "1MiB"], "4.00 MiB to 256 GiB"), (["--memory", "lots"], "'lots'"),
                (["--json", "id"], "'id'"), (["-f", "1", "-d", ",,"], "',,'"),
                (["--missing", "no"], "error, pass, key"),
                (["-w", "1h", "--time-field", "1", "--late", "no"], "pass, drop"),
                (["-w", "1h", "--time-field", "1", "--time-format", "no"], "'no'"),
                (["-w", "1h", "--time-field", "1,2"], "'1,2'")):
            self.assertIn(words, self.refusal(*arguments), arguments)

    def test_flags_that_do_not_go_together_are_named(self):
        for arguments, words in (
                (["-f", "1", "-j", "/a"], "exclude each other"),
                (["-w", "1s", "--time-field", "1", "--time-json", "/t"], "exclude each other"),
                (["--time-field", "1"], "needs a --window"), (["--sliding"], "needs a --window"),
                (["--late", "drop"], "needs --time-field"), (["-d", ","], "needs --fields")):
            self.assertIn(words, self.refusal(*arguments), arguments)


class SharedLog(Case):
    def test_counts_of_the_access_log(self):
        log = shared_log()
        if not log.exists():
            self.skipTest(f"{log} is not there")
        for key, first in (([], 9981), (["--fields", "1,7"], 7910), (["--fields", "1"], 1753)):
            self.assertEqual(self.dedup(b"", *key, "--total", str(log)), b"%d\n" % first)
        lines = log.read_bytes().splitlines(True)
        self.assertEqual(self.dedup(b"", str(log)), b"".join(dict.fromkeys(lines)))
        day = self.dedup(b"", "-f", "1", "-w", "24h", "--time-field", "4", "--time-format",
                         "apache", "--total", str(log))
        self.assertTrue(1753 < int(day) < 9981, day)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: semel_test.py PATH_OF_SEMEL [unittest arguments]")
    SEMEL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
