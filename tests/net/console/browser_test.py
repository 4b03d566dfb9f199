"""The console in headless Chromium.

browser_test.py PATH_OF_SEMEL [--quick | --shots FOLDER] [unittest ..]

Ends with 77 where there is no Chromium or chromedriver. --quick leaves out the tests that wait for
samples or for the page's own rhythm. With --shots the page is kept as pictures: wide and narrow,
light and dark.
"""

import base64
import json
import pathlib
import sys
import tempfile
import unittest

import webdriver
from console_node import ConsoleNode

SEMEL = ''
SHOTS = None
SKIPPED = 77
QUICK = ('test_a_doubt_is_found_and_resolved', 'test_bytes_of_clients_are_text',
         'test_doubts_are_resolved_in_bulk')
TAB, ENTER, ESCAPE = '\ue004', '\ue007', '\ue00c'
HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
# Contrast of text with what is behind it, of every element that has text of its own.
CONTRAST = """
const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
const back = (node) => {
  for (; node; node = node.parentElement) {
    const color = rgb(getComputedStyle(node).backgroundColor);
    if (color.length === 3 || color[3] === 1) return color;
  }
  return matchMedia('(prefers-color-scheme: dark)').matches ? [0, 0, 0] : [255, 255, 255];
};
return [...document.querySelectorAll('body *')].filter((node) => node.checkVisibility()
  && [...node.childNodes].some((c) => c.nodeType === 3 && c.data.trim())).map((node) => {
  const style = getComputedStyle(node);
  const color = rgb(node.namespaceURI.endsWith('svg') ? style.fill : style.color);
  const [a, b] = [light(color), light(back(node))].sort((x, y) => y - x);
  return [(a + 0.05) / (b + 0.05), node.tagName + ' ' + node.textContent.slice(0, 30)];
}).filter(([ratio]) => ratio < 4.5);
"""
NAMELESS = """
return [...document.querySelectorAll('button, input, select, [role=region], [role=img], dialog')]
  .filter((node) => !node.textContent.trim() && !node.getAttribute('aria-label')
    && !node.getAttribute('aria-labelledby') && !(node.labels && node.labels.length))
  .map((node) => node.outerHTML.slice(0, 80));
"""


class Browse(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.browser = webdriver.Browser(cls.folder.name)
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.node = ConsoleNode(self, SEMEL, '--console-actions', 'yes', '--requirepass', 'geheim')
        self.client = self.node.client()
        self.client('AUTH', 'geheim')
        self.client('SEMEL.NAMESPACE', 'payments', 'AS', 'payment')
        self.client('SEMEL.NAMESPACE', 'orders', 'AS', 'message', 'ATTEMPTS-MAX', '1')
        for number in range(6):
            self.client('SEMEL.CLAIM', 'payments', f'invoice-{number}', 'OWNER',
                        f'billing-{number % 2}')
        for number in range(40):
            self.client('SEMEL.CLAIM', 'orders', f'order-{number}', 'OWNER', 'worker-1')
        for key in ('doubtful', HOSTILE, b'\xff\x00', 'a\u202eb', 'x' * 60000):
            epoch = self.client('SEMEL.CLAIM', 'payments', key, 'OWNER', '<b>me</b>')[3]
            if key in ('doubtful', HOSTILE):
                self.client('SEMEL.FAIL', 'payments', key, epoch, 'IN-DOUBT')
        self.browser.size(1280, 900, False)
        self.browser.log('performance')
        self.browser.log('browser')
        self.browser.open(self.node.origin() + '/console/')
        self.browser.until('return document.querySelector("#claims table")', 'the claims')

    def tearDown(self):
        """Nothing was refused by the policy, nothing failed, nothing came from elsewhere."""
        outside = []
        for entry in self.browser.log('performance'):
            message = json.loads(entry['message'])['message']
            if message['method'] != 'Network.requestWillBeSent':
                continue
            address = message['params']['request']['url']
            if not address.startswith((self.node.origin() + '/console/', 'data:', 'about:')):
                outside.append(address)
        self.assertEqual(outside, [])
        bad = [entry['message'] for entry in self.browser.log('browser')
               if 'status of 401' not in entry['message']]
        self.assertEqual(bad, [])

    def log_in(self, password='geheim'):
        browser = self.browser
        browser.click('#login-open')
        browser.type('#login-password', password)
        browser.keys(ENTER)
        browser.until('return !document.querySelector("#logout").hidden', 'the login')

    def search(self):
        self.browser.click('#scan')
        self.browser.until('return document.querySelector("#work table")', 'the search')

    def look_up(self, namespace, key):
        self.browser.run('document.querySelector("#key-result").replaceChildren()')
        self.browser.type('#key-space', namespace)
        self.browser.run('document.querySelector("#key-key").value = arguments[0]', key)
        self.browser.click('#key-form button')
        self.browser.until('return document.querySelector("#key-result dl")', 'the key')

    def test_a_doubt_is_found_and_resolved(self):
        browser = self.browser
        self.assertNotIn('invoice-0', browser.text('body'))
        self.log_in()
        self.search()
        work = browser.text('#work')
        for text in ('invoice-0', 'doubtful', 'billing-1', '\\xff\\x00', 'a\\xe2\\x80\\xaeb'):
            self.assertIn(text, work)
        self.look_up('payments', 'doubtful')
        self.assertIn('in doubt', browser.text('#key-result'))
        self.assertIn('nothing was known about the key', browser.text('#key-result'))
        browser.click('#key-result button')
        self.assertIn('Resolve as done', browser.text('#confirm'))
        browser.click('#confirm-go')  # it wants to be told that we are sure
        self.assertEqual(self.client('SEMEL.GETCLAIM', 'payments', 'doubtful')[1], b'in_doubt')
        browser.type('#confirm-result', 'found in the ledger')
        browser.click('#confirm-sure')
        browser.click('#confirm-go')
        browser.until('return document.querySelector("#key-message").textContent.slice(0, 4)'
                      ' === "Done"', 'the end')
        self.assertIn('found in the ledger', browser.text('#key-result'))
        self.assertEqual(self.client('SEMEL.CLAIM', 'payments', 'doubtful')[1], b'replay')
        self.node.logged('action=resolve_done')

    def test_bytes_of_clients_are_text(self):
        self.log_in()
        self.search()
        self.look_up('payments', HOSTILE)
        self.assertIn(HOSTILE, self.browser.text('#key-result'))
        self.assertIn('<b>me</b>', self.browser.text('#key-result'))
        self.assertEqual(self.browser.run('return document.title'), 'Semel console')
        self.assertEqual(self.browser.run(
            'return document.querySelectorAll("main img, main script, main b").length'), 0)
        # The policy holds for what a fault would let in.
        self.assertFalse(self.browser.run('try { document.body.innerHTML = "x"; return true } '
                                          'catch { return false }'))
        self.browser.log('browser')  # which says so

    def browse(self, **fields):
        """Fills the form and shows the first page; a field of the form has the id browse-NAME."""
        browser = self.browser
        browser.run('document.querySelector("#browse").replaceChildren()')
        for name, value in fields.items():
            browser.run('document.querySelector(`#browse-${arguments[0]}`).value = arguments[1]',
                        name, value)
        browser.click('#browse-go')
        browser.until('return document.querySelector("#browse").children.length', 'the page')

    def keys_shown(self):
        return self.browser.run('return [...document.querySelectorAll("#browse tbody th")]'
                                '.map((node) => node.textContent)')

    def test_keys_are_browsed_page_by_page(self):
        browser = self.browser
        for number in range(400):
            self.client('SEMEL.CLAIM', 'jobs', f'job-{number}')
        self.log_in()
        self.browse(space='orders', prefix='order-1', state='held')
        self.assertEqual(sorted(self.keys_shown()),
                         sorted(f'order-{number}' for number in (1, *range(10, 20))))
        self.browse(space='payments', prefix='', state='in_doubt', owner='<b>')
        self.assertEqual(set(self.keys_shown()), {'doubtful', HOSTILE})
        self.browse(space='', state='done', owner='')
        self.assertIn('No key fits', browser.text('#browse'))
        self.browse(space='jobs', state='')
        first, seen = self.keys_shown(), set()
        for _ in range(10):
            page = browser.text('#browse caption')
            seen |= set(self.keys_shown())
            if browser.run('return document.querySelector("#browse p button:nth-of-type(2)")'
                           '.disabled'):
                break
            browser.click('#browse p button:nth-of-type(2)')
            browser.until('return document.querySelector("#browse caption").textContent'
                          ' !== arguments[0]', 'the next page', page)
        self.assertEqual(seen, {f'job-{number}' for number in range(400)})
        while not browser.run('return document.querySelector("#browse p button").disabled'):
            page = browser.text('#browse caption')
            browser.click('#browse p button')
            browser.until('return document.querySelector("#browse caption").textContent'
                          ' !== arguments[0]', 'the page before', page)
        self.assertEqual(self.keys_shown(), first)
        browser.click('#browse tbody th a')
        browser.until('return document.querySelector("#key-result dl")', 'the key')
        self.assertIn(first[0], browser.text('#key-result'))

    def test_recent_decisions(self):
        browser = self.browser
        self.client('SEMEL.CLAIM', 'payments', 'invoice-0')
        self.log_in()
        browser.click('#decisions-go')
        browser.until('return document.querySelector("#decisions table")', 'the decisions')
        shown = browser.text('#decisions')
        for text in ('invoice-0', 'in flight', 'granted', HOSTILE,
                     'nothing was known about the key'):
            self.assertIn(text, shown)
        browser.type('#decisions-space', 'orders')
        browser.click('#decisions-go')
        browser.until('return !document.querySelector("#decisions").innerText.includes("invoice")',
                      'those of one namespace')
        self.assertIn('order-7', browser.text('#decisions'))

    def test_a_link_to_a_key_waits_for_the_login(self):
        browser = self.browser
        browser.open(self.node.origin() + '/console/#key=payments:' + 'doubtful')
        browser.until('return document.querySelector("#claims table")', 'the claims')
        self.assertNotIn('in doubt: it runs', browser.text('body'))
        self.log_in()
        browser.until('return document.querySelector("#key-result dl")', 'the key')
        self.assertIn('in doubt: it runs', browser.text('#key-result'))
        browser.click('#logout')
        browser.until('return location.hash === ""', 'the end of the session')
        for hash_ in ('#key=payments', '#key=%', '#key=payments:%E0%A4%A', '#key=:',
                      '#key=payments:<img src=x onerror=alert(1)>', '#key=nowhere:x'):
            browser.run('location.hash = arguments[0]', hash_)
        self.assertEqual(browser.run('return document.title'), 'Semel console')

    def test_doubts_are_resolved_in_bulk(self):
        browser = self.browser
        late = []
        for number in range(7):
            epoch = self.client('SEMEL.CLAIM', 'payments', f'late-{number}', 'OWNER', 'gone')[3]
            self.client('SEMEL.FAIL', 'payments', f'late-{number}', epoch, 'IN-DOUBT')
            late.append(f'late-{number}')
        self.log_in()
        self.search()
        self.assertTrue(browser.run('return document.querySelector(".of-chosen").disabled'))
        browser.click('#work .controls button')  # all of them
        self.assertIn('9 chosen', browser.text('#chosen'))
        for name in (HOSTILE, 'late-6'):
            browser.run('document.querySelector(`input[aria-label="Choose payments ${'
                        'CSS.escape(arguments[0])}"]`).click()', name)
        self.assertIn('7 chosen', browser.text('#chosen'))
        # One of them is resolved by another operator meanwhile.
        self.client('SEMEL.RESOLVE', 'payments', 'late-3', 'RELEASED')
        browser.click('#work .of-chosen')
        self.assertIn('7 keys', browser.text('#confirm'))
        browser.click('#confirm-go')  # it wants to be told that we are sure
        self.assertEqual(self.client('SEMEL.GETCLAIM', 'payments', 'late-0')[1], b'in_doubt')
        browser.type('#confirm-result', 'by hand')
        browser.click('#confirm-sure')
        browser.click('#confirm-go')
        browser.until('return document.querySelector("#bulk-progress").textContent.includes('
                      '"6 of 7 resolved as done")', 'the end')
        self.assertEqual(self.client('SEMEL.CLAIM', 'payments', 'late-0')[1], b'replay')
        self.assertEqual(self.client('SEMEL.GETCLAIM', 'payments', 'late-3')[1], b'absent')
        self.assertEqual(self.client('SEMEL.GETCLAIM', 'payments', 'late-6')[1], b'in_doubt')
        self.assertIn('late-3: ', browser.text('#bulk-results'))
        work = browser.text('#work')
        self.assertIn('late-6', work)
        self.assertIn('late-3', work)  # it was not ended here, and stays until the next search
        self.assertNotIn('late-0', work)
        refused = [entry['message'] for entry in browser.log('browser')]
        self.assertEqual(['status of 409' in message for message in refused], [True])

    def test_what_was_seen_is_gone_after_the_session(self):
        self.log_in()
        self.search()
        self.browse()
        browser = self.browser
        browser.click('#decisions-go')
        browser.until('return document.querySelector("#decisions table")', 'the decisions')
        self.look_up('payments', 'doubtful')
        self.client('ACL', 'SETUSER', 'default', 'resetpass', '>another')
        self.browser.until('return document.querySelector("#login").open', 'the login')
        self.assertNotIn('invoice-0', self.browser.run('return document.documentElement.outerHTML'))
        self.assertIn('ended', self.browser.text('#login'))
        self.assertEqual(self.browser.run('return document.cookie'), '')
        self.assertEqual(self.browser.run('return localStorage.length + sessionStorage.length'), 0)

    def test_wrong_password(self):
        browser = self.browser
        browser.click('#login-open')
        browser.type('#login-password', 'wrong')
        browser.keys(ENTER)
        browser.until('return document.querySelector("#login-message").textContent', 'the refusal')
        self.assertIn('wrong user or password', browser.text('#login'))
        self.assertEqual(browser.run('return document.querySelector("#login-password").value'), '')

    def test_keyboard_alone(self):
        browser = self.browser
        browser.run('document.activeElement.blur()')
        for _ in range(10):
            browser.keys(TAB)
            if browser.run('return document.activeElement.id') == 'login-open':
                break
        has_focus = 'return document.activeElement.id === "login-password"'
        browser.keys(ENTER)
        browser.until(has_focus, 'the dialog')
        browser.keys(ESCAPE)
        self.assertFalse(browser.run('return document.querySelector("#login").open'))
        browser.keys(ENTER)
        browser.until(has_focus, 'the dialog')
        browser.keys(*'geheim', ENTER)
        browser.until('return !document.querySelector("#logout").hidden', 'the login')
        self.assertEqual(browser.run('return document.activeElement.id'), 'scan')
        browser.keys(ENTER)
        browser.until('return document.querySelector("#work table")', 'the search')

    def test_wide_and_narrow_light_and_dark(self):
        browser = self.browser
        self.log_in()
        self.search()
        browser.until('return document.querySelector("#plots svg")', 'the plots')
        if SHOTS:  # a minute passes before a course has a point, of claims since the first sample
            for number in range(300):
                self.client('SEMEL.CLAIM', 'payments', f'invoice-{number % 30}')
                self.client('SEMEL.CLAIM', 'orders', f'late-order-{number}')
            browser.patience, patience = 120, browser.patience
            browser.until('return document.querySelector("#courses svg")', 'the courses')
            browser.patience = patience
        self.browse(space='payments')
        browser.click('#decisions-go')
        browser.until('return document.querySelector("#decisions table")', 'the decisions')
        self.look_up('payments', 'doubtful')
        browser.click('#plots summary')
        self.assertEqual(browser.run(NAMELESS), [])
        for width, height in ((1280, 900), (360, 740)):
            for dark in (False, True):
                browser.size(width, height, dark)
                browser.until('return document.querySelector("#plots svg").clientWidth'
                              ' <= innerWidth', 'the plots')
                across = browser.run('return document.documentElement.scrollWidth')
                self.assertLessEqual(across, width)
                self.assertEqual(browser.run(CONTRAST), [], (width, dark))
                if SHOTS:
                    name = f'{"wide" if width > 600 else "narrow"}-{"dark" if dark else "light"}'
                    browser.screenshot(SHOTS / f'{name}.png')
                    browser.run('scrollTo(0, 0)')
                    shown = browser.call('GET', '/screenshot')
                    (SHOTS / f'{name}-top.png').write_bytes(base64.b64decode(shown))


def main():
    global SEMEL, SHOTS
    SEMEL = sys.argv.pop(1)
    if sys.argv[1:2] == ['--quick']:
        sys.argv[1:2] = [f'Browse.{name}' for name in QUICK]
    elif sys.argv[1:2] == ['--shots']:
        SHOTS = pathlib.Path(sys.argv[2])
        SHOTS.mkdir(parents=True, exist_ok=True)
        del sys.argv[1:3]
    missing = webdriver.missing()
    if missing:
        print(f'{" and ".join(missing)} not found (packages chromium, chromium-driver): the '
              'console is not tested in a browser')
        sys.exit(SKIPPED)
    unittest.main()


if __name__ == '__main__':
    main()
