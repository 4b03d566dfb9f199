"""redis-cli as people call it: redis_cli.py PROGRAM"""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from report import HOST, PORT, SCRIPTS, check, skip, until  # noqa: E402

CLI = [sys.argv[1], '-h', HOST, '-p', str(PORT)]


def cli(*words, options=(), text=None):
    done = subprocess.run([*CLI, *options, *words], input=text, stdin=None if text else
                          subprocess.DEVNULL, text=True, capture_output=True, timeout=60,
                          check=False)
    assert not done.stderr.strip(), done.stderr
    return done.stdout.rstrip('\n')


def same(found, expected):
    assert found == expected, f'{found!r} instead of {expected!r}'


def handshake():
    same(cli('PING'), 'PONG')
    same(cli('PING', options=['-3']), 'PONG')
    same(cli('ECHO', 'two words'), 'two words')


def claim():
    words = ('SET', 'claim', 'one', 'NX', 'GET', 'PX', '60000')
    same(cli(*words), '')
    same(cli(*words), 'one')
    same(cli(*words, options=['-3']), 'one')
    assert 0 < int(cli('PTTL', 'claim')) <= 60_000


def lock():
    same(cli('SET', 'lock', 'mine', 'NX', 'PX', '60000'), 'OK')
    same(cli('SET', 'lock', 'theirs', 'NX', 'PX', '60000'), '')
    same(cli(text='WATCH lock\nGET lock\nMULTI\nDEL lock\nEXEC\n'), 'OK\nmine\nOK\nQUEUED\n1')
    same(cli('SET', 'lock', 'theirs', 'NX', 'PX', '60000'), 'OK')


def expiry():
    same(cli('SET', 'short', '1', 'PX', '30'), 'OK')
    until(lambda: cli('EXISTS', 'short') == '0')
    same(cli('TTL', 'short'), '-2')
    same(cli('GET', 'short', options=['--no-raw']), '(nil)')


def databases():
    same(cli('SET', 'here', '3', options=['-n', '3']), 'OK')
    same(cli('GET', 'here'), '')
    same(cli('GET', 'here', options=['-n', '3']), '3')
    same(cli('DBSIZE', options=['-n', '3', '-3', '--no-raw']), '(integer) 1')


def pubsub():
    with subprocess.Popen([*CLI, 'SUBSCRIBE', 'channel'], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE) as listener:
        try:
            heard = [listener.stdout.readline().strip() for _ in range(3)]
            same(heard, ['subscribe', 'channel', '1'])
            same(cli('PUBLISH', 'channel', 'news'), '1')
            heard = [listener.stdout.readline().strip() for _ in range(3)]
            same(heard, ['message', 'channel', 'news'])
        finally:
            listener.terminate()


def pipe():
    lines = ''.join(f'SET pipe:{i} {i}\r\n' for i in range(5_000))
    shown = cli(options=['--pipe'], text=lines)
    assert 'errors: 0, replies: 5000' in shown, shown
    same(cli('GET', 'pipe:4999'), '4999')


def transaction():
    same(cli(text='MULTI\nSET t 1\nINCR t\nEXEC\n'), 'OK\nQUEUED\nQUEUED\nOK\n2')
    same(cli(text='MULTI\nSET t\nEXEC\n').splitlines()[0], 'OK')
    assert 'EXECABORT' in cli(text='MULTI\nSET t\nEXEC\n')


def errors():
    assert cli('NOSUCH', 'a').startswith("ERR unknown command 'NOSUCH', with args beginning with:")
    same(cli('GET').strip(), "ERR wrong number of arguments for 'get' command")


def script():
    file = Path('release.lua')
    file.write_text("if redis.call('get', KEYS[1]) == ARGV[1] then "
                    "return redis.call('del', KEYS[1]) end return 0\n", encoding='ascii')
    cli('SET', 'scripted', 'mine')
    same(cli('--eval', str(file), 'scripted', ',', 'theirs'), '0')
    same(cli('--eval', str(file), 'scripted', ',', 'mine'), '1')


check('handshake', handshake)
check('claim with SET NX GET PX', claim)
check('lock, released under WATCH', lock)
check('expiry', expiry)
check('-n and -3', databases)
check('SUBSCRIBE', pubsub)
check('--pipe', pipe)
check('transaction', transaction)
check('errors', errors)
if SCRIPTS:
    check('--eval', script)
else:
    skip('--eval')
print('end')
