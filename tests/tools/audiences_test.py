#!/usr/bin/env python3
"""packaging/apt/audiences.py: what it reads from the pages, and that it notices what they break.

The commands are played here in a folder of this system, and only harmless ones.
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / 'packaging/apt'))

import audiences  # noqa: E402
import bare  # noqa: E402


class Here:
    """What audiences.check needs of a system."""
    name = 'here'


class PagesTest(unittest.TestCase):
    def test_each_page_installs_fetches_runs_alone_and_promises_words(self):
        for name, (page, headings, _) in audiences.PAGES.items():
            with self.subTest(name):
                steps = audiences.steps_of(page, headings)
                blocks = [step.text for step in steps if not step.name]
                self.assertTrue(blocks[0].startswith('apt-get install'), blocks[0])
                self.assertTrue(any(map(audiences.alone, blocks)))
                self.assertFalse([each for each in blocks if audiences.alone(each)
                                  and audiences.FETCHES.search(each)], 'it would have no network')
                words = [pair[1] for block in blocks for pair in audiences.promises(block)]
                self.assertGreater(sum(map(len, words)), 2)

    def test_a_file_has_the_name_in_front_of_it(self):
        names = {name: [step.name for step in audiences.steps_of(*audiences.PAGES[name][:2])
                        if step.name] for name in audiences.PAGES}
        self.assertEqual(names, {
            'go': ['main.go'], 'java': ['pom.xml', 'src/main/java/Example.java'],
            'node': ['example.mjs'], 'python': ['orders.py', 'worker.py']})


class PlayTest(unittest.TestCase):
    def play(self, *blocks):
        """Checks the last block."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / 'variables').touch()
            (folder / 'folder').write_text(f'{name}\n')
            for block in blocks:
                script = audiences.script_of(block).replace(audiences.STATE, name)
                done = subprocess.run(['bash', '-ec', script], capture_output=True, text=True,
                                      timeout=60, check=False)
            return audiences.check(Here, blocks[-1], done)

    def broken(self, *blocks):
        """What is reported of the last block."""
        bare.failures.clear()
        self.assertFalse(self.play(*blocks))
        found = bare.failures[:]
        bare.failures.clear()
        self.assertEqual(len(found), 1)
        return found[0]

    def test_folder_and_variables_are_kept_from_block_to_block(self):
        self.assertTrue(self.play('mkdir here && cd here\nkept="a b"\n',
                                  'test "$kept" = "a b"\ntest "$(basename "$PWD")" = here\n'))

    def test_promised_words_come_in_their_order(self):
        program = 'python3 a.py    # one two'
        for output, fits in (('one then two', True), ('two one', False), ('one', False)):
            with self.subTest(output):
                file = f"echo 'print(\"{output}\")' >a.py\n"
                if fits:
                    self.assertTrue(self.play(file + program))
                else:
                    self.assertIn('promises', self.broken(file + program))

    def test_a_command_may_end_its_output_without_a_newline(self):
        self.assertTrue(self.play('printf one\nprintf two\n'))

    def test_a_command_that_fails_ends_the_block(self):
        self.assertIn('ended with 3', self.broken('(exit 3)\ntouch behind\n'))
        self.assertIn('ended early', self.broken('exit 0\ntrue\n'))

    def test_a_registry_out_of_reach_is_a_skip_only_where_a_network_was(self):
        fetch = 'npm() { echo ENOTFOUND; return 1; }\nnpm install x\n'
        with self.assertRaises(bare.Skip):
            self.play(fetch)
        self.assertIn('ENOTFOUND', self.broken(fetch + 'true --port 1\n'))
        self.assertIn('no such option', self.broken(
            'npm() { echo no such option; return 1; }\nnpm install x\n'))

    def test_the_environment_that_is_passed_on_says_where_registries_are_and_no_more(self):
        for name in ('https_proxy', 'NO_PROXY', 'GOPROXY', 'PIP_INDEX_URL', 'npm_config_registry'):
            self.assertTrue(bare.PASSED.fullmatch(name), name)
        for name in ('PATH', 'GOFLAGS', 'PYTHONPATH', 'NPM_TOKEN', 'MY_HTTP_PROXY'):
            self.assertFalse(bare.PASSED.fullmatch(name), name)


if __name__ == '__main__':
    unittest.main()
