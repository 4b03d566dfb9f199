"""The runners themselves: what they read, and what they take for a difference.

python3 tests/scripts/run_test.py
"""

import random
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import cases  # noqa: E402
import generator  # noqa: E402
import pair  # noqa: E402


def hostile_runner():
    """It has the same name as the runner of the corpus."""
    import importlib.util
    spec = importlib.util.spec_from_file_location('hostile_run', HERE / 'hostile' / 'run.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class CasesTest(unittest.TestCase):
    def test_the_corpus_is_read_and_is_as_large_as_docs_say(self):
        found = [case for path in sorted(cases.CORPUS.glob('*.txt')) for case in cases.read(path)]
        self.assertEqual(len(found), len({case.name for case in found}))
        self.assertGreaterEqual(len(found), 2000)

    def test_a_paragraph_has_commands_keys_and_a_script(self):
        case = cases.parse('x:1', ['> SET k "a b"', 'keys k', 'args 1 "\\xff"', 'local a = 1',
                                   'return a', '> GET k'])
        before, script, behind = case.steps
        self.assertEqual((before, behind), ([b'SET', b'k', b'a b'], [b'GET', b'k']))
        self.assertEqual((script.text, script.keys, script.args),
                         ('local a = 1\nreturn a', [b'k'], [b'1', b'\xff']))

    def test_a_case_without_a_script_is_refused(self):
        with self.assertRaises(cases.BadCase):
            cases.parse('x:1', ['> GET k'])

    def test_a_seed_makes_the_same_script_again(self):
        one, other = (generator.case(random.Random('4:2'), 'x', 2).text() for _ in range(2))
        self.assertEqual(one, other)


class SameTest(unittest.TestCase):
    def test_bytes_decide(self):
        self.assertTrue(pair.same(b':1\r\n', b':1\r\n'))
        self.assertFalse(pair.same(b':1\r\n', b':2\r\n'))
        self.assertFalse(pair.same(b'$1\r\nx\r\n', b'+x\r\n'))
        self.assertFalse(pair.same(b'*1\r\n:1\r\n', b'*2\r\n:1\r\n:1\r\n'))

    def test_addresses_are_one(self):
        self.assertTrue(pair.same(b'$13\r\ntable: 0x55aa\r\n', b'$17\r\ntable: 0x7f00aabb\r\n'))
        self.assertFalse(pair.same(b'$13\r\ntable: 0x55aa\r\n', b'$12\r\nfunc: 0x55aa\r\n'))

    def test_ttls_are_near_or_both_none(self):
        self.assertTrue(pair.same_ttl(b':100000\r\n', b':99000\r\n'))
        self.assertFalse(pair.same_ttl(b':100000\r\n', b':90000\r\n'))
        self.assertFalse(pair.same_ttl(b':1000\r\n', b':-1\r\n'))
        self.assertFalse(pair.same_ttl(b':-2\r\n', b':-1\r\n'))

    def test_known_scripts_may_answer_other_times_and_nothing_else(self):
        for one, other, right in ((b':100000\r\n', b':99000\r\n', True),
                                  (b':100000\r\n', b':70000\r\n', False),
                                  (b'*1\r\n:500\r\n', b'*1\r\n:499\r\n', True),
                                  (b':500\r\n', b':479\r\n', False),
                                  (b':41\r\n', b':42\r\n', False),
                                  (b':9007199254740992\r\n', b':9007199254740993\r\n', False),
                                  (b'$6\r\n100000\r\n', b'$5\r\n99000\r\n', False),
                                  (b'+OK\r\n', b'$2\r\nOK\r\n', False),
                                  (b'*1\r\n:1\r\n', b'*2\r\n:1\r\n:1\r\n', False)):
            self.assertEqual(pair.about_same(one, other), right, one)


class ExpectedTest(unittest.TestCase):
    def test_once_again_16_pairs_of_a_map_in_resp2_have_no_order(self):
        one, other = (pair.parsed(each)[0] for each in (
            b'*4\r\n+a\r\n:1\r\n+b\r\n:2\r\n', b'*4\r\n+b\r\n:2\r\n+a\r\n:1\r\n'))
        mixed = pair.parsed(b'*4\r\n+a\r\n:2\r\n+b\r\n:1\r\n')[0]
        self.assertEqual(pair.without_order(one), pair.without_order(other))
        self.assertNotEqual(pair.without_order(one), pair.without_order(mixed))

    def test_once_again_16_a_listed_cause_is_taken_out_of_a_script(self):
        script = cases.Script("return (0 / -2) + 10 / 0.5 + (2 * 0) + k0 - 0 .. '\\0\\255'", [], [])
        case = cases.Case('x', [['GET', '0 / 1'], script], {})
        found = pair.without_causes(case)
        self.assertEqual(found.steps[1].text, "return (tonumber('0') / -2) + 10 / 0.5 + "
                         "(2 * tonumber('0')) + k0 - 0 .. '\\1\\255'")
        self.assertEqual(found.steps[0], ['GET', '0 / 1'])
        self.assertEqual(case.steps[1].text, script.text)
        self.assertIsNone(pair.without_causes(found))

    def test_once_again_16_one_double_has_one_text(self):
        for one, other in ((b',-2250000000000000\r\n', b',-2.25e+15\r\n'),
                           (b'$7\r\n1000000\r\n', b'$5\r\n1e+06\r\n'),
                           (b'$21\r\n109.9999999999974e+14\r\n',
                            b'$21\r\n109.9999999999975e+14\r\n')):
            both = [pair.without_deviations(pair.parsed(each)[0]) for each in (one, other)]
            self.assertEqual(both[0], both[1])
        both = [pair.without_deviations(pair.parsed(each)[0])
                for each in (b',-2250000000000000\r\n', b',-2.5e+15\r\n')]
        self.assertNotEqual(both[0], both[1])


class HostileTest(unittest.TestCase):
    def test_repetitions_are_written_out(self):
        runner = hostile_runner()
        self.assertEqual(runner.expanded('a@{( * 3}b@{\\x00 * 1}'), b'a(((b\x00')

    def test_what_must_come_back(self):
        runner = hostile_runner()
        hostile = runner.Hostile(HERE / 'hostile/cases/time_loop.lua')
        self.assertIsNone(hostile.judge(b'-ERR ended\r\n'))
        self.assertIsNotNone(hostile.judge(b':1\r\n'))
        hostile = runner.Hostile(HERE / 'hostile/cases/escape_globals.lua')
        self.assertIsNone(hostile.judge(b':0\r\n'))
        self.assertIsNotNone(hostile.judge(b':1\r\n'))
        self.assertIsNotNone(hostile.judge(b'-ERR x\r\n'))

    def test_every_case_has_its_head(self):
        runner = hostile_runner()
        found = [runner.Hostile(path) for path in runner.CASES.glob('*.lua')]
        self.assertGreaterEqual(len(found), 200)


if __name__ == '__main__':
    unittest.main()
