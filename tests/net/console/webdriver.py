"""Chromium without a window, by chromedriver's protocol over HTTP: no package of Python is needed.

Source: https://www.w3.org/TR/webdriver2/
"""

import base64
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'


def missing():
    """What is not there; empty: a browser can be started."""
    return [name for name in ('chromium', 'chromedriver') if shutil.which(name) is None]


class Browser:
    def __init__(self, folder, patience=30):
        self.patience = patience
        self.driver = subprocess.Popen(['chromedriver', '--port=0'], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, cwd=folder, text=True)
        self.port = None
        for line in self.driver.stdout:
            if 'started successfully on port ' in line:
                self.port = int(line.rpartition('on port ')[2].rstrip('.\n'))
                break
        if self.port is None:
            raise RuntimeError('chromedriver did not start')
        options = {'args': ['--headless=new', '--no-sandbox', '--disable-dev-shm-usage',
                            '--disable-gpu', '--hide-scrollbars', '--disable-component-update',
                            '--disable-background-networking', '--no-first-run',
                            f'--user-data-dir={folder}/profile'],
                   'perfLoggingPrefs': {'enableNetwork': True}}
        answer = self.call('POST', '/session', {'capabilities': {'alwaysMatch': {
            'browserName': 'chrome', 'goog:chromeOptions': options,
            'goog:loggingPrefs': {'browser': 'ALL', 'performance': 'ALL'}}}}, '')
        self.session = '/session/' + answer['sessionId']

    def call(self, method, path, body=None, session=None):
        prefix = self.session if session is None else session
        request = urllib.request.Request(
            f'http://127.0.0.1:{self.port}{prefix}{path}', method=method,
            data=json.dumps(body or {}).encode() if method == 'POST' else None,
            headers={'Content-Type': 'application/json'})
        try:
            with urllib.request.urlopen(request, timeout=self.patience) as answer:
                return json.load(answer)['value']
        except urllib.error.HTTPError as error:
            value = json.load(error)['value']
            raise AssertionError(f'{value["error"]}: {value["message"]}') from None

    def close(self):
        try:
            self.call('DELETE', '')
        finally:
            self.driver.terminate()
            self.driver.wait(timeout=self.patience)
            self.driver.stdout.close()

    def open(self, address):
        self.call('POST', '/url', {'url': address})

    def run(self, script, *arguments):
        return self.call('POST', '/execute/sync', {'script': script, 'args': list(arguments)})

    def devtools(self, command, **parameters):
        return self.call('POST', '/goog/cdp/execute', {'cmd': command, 'params': parameters})

    def find(self, selector):
        return self.call('POST', '/element', {'using': 'css selector', 'value': selector})[ELEMENT]

    def click(self, selector):
        self.call('POST', f'/element/{self.find(selector)}/click')

    def type(self, selector, text, clear=True):
        element = self.find(selector)
        if clear:
            self.call('POST', f'/element/{element}/clear')
        self.call('POST', f'/element/{element}/value', {'text': text})

    def keys(self, *names):
        """Presses keys, one after the other, wherever the focus is."""
        actions = [{'type': kind, 'value': name} for name in names for kind in ('keyDown', 'keyUp')]
        self.call('POST', '/actions', {'actions': [
            {'type': 'key', 'id': 'keyboard', 'actions': actions}]})

    def text(self, selector):
        return self.run('return document.querySelector(arguments[0])?.innerText ?? ""', selector)

    def until(self, script, what, *arguments):
        end = time.monotonic() + self.patience
        while time.monotonic() < end:
            value = self.run(script, *arguments)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f'{what} does not come')

    def log(self, kind):
        return self.call('POST', '/se/log', {'type': kind})

    def screenshot(self, path):
        shown = self.devtools('Page.captureScreenshot', captureBeyondViewport=True, format='png')
        path.write_bytes(base64.b64decode(shown['data']))

    def size(self, width, height, dark):
        self.devtools('Emulation.setDeviceMetricsOverride', width=width, height=height,
                      deviceScaleFactor=1, mobile=width < 600)
        self.devtools('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])
