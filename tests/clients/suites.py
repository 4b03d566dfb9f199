"""The suites: what each needs, how it is built, how it is started.

prepare(folder) installs what is pinned into `folder`, builds, and returns the command. It is quick
where nothing has changed. Missing: the toolchain or a package cannot be had; Broken: anything else.
"""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CLIENTS = ROOT / 'clients'  # ours, each with its own tests
PREPARE_SECONDS = 1200

# What the package managers say without a network.
OUT_OF_REACH = re.compile(
    r'ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ERR_SOCKET_TIMEOUT|'
    r'name resolution|Name or service not known|no such host|Unknown host|UnknownHostException|'
    r'Network is unreachable|[Cc]onnection refused|Connection timed out|[Cc]onnect timed out|'
    r'NewConnectionError|i/o timeout|in offline mode|module lookup disabled|'
    r'from versions: none')  # all that pip says when it is to be quiet

TOO_OLD = re.compile(r'invalid go version|requires go >=|requires at least Go|'
                     r'EBADENGINE|Requires-Python|invalid target release|'
                     r'class file has wrong version')


class Missing(Exception):
    """Not here, and not to be had."""


class Broken(Exception):
    """There, but it does not build."""


def tool(*names):
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise Missing(f'{names[0]} is not installed')


def run(command, folder):
    try:
        done = subprocess.run([str(c) for c in command], cwd=folder, stdin=subprocess.DEVNULL,
                              text=True, errors='replace', capture_output=True, check=False,
                              timeout=PREPARE_SECONDS)
    except subprocess.TimeoutExpired:
        raise Missing(f'{Path(command[0]).name}: not ended after {PREPARE_SECONDS} s') from None
    if done.returncode == 0:
        return
    text = done.stdout + done.stderr
    if OUT_OF_REACH.search(text):
        raise Missing(f'{Path(command[0]).name}: the packages are out of reach')
    if TOO_OLD.search(text):
        raise Missing(f'{Path(command[0]).name}: too old for the packages')
    raise Broken(f'{" ".join(str(c) for c in command)}\n{text}')


def once(folder, sources, work, base=HERE):
    """Calls work() unless it was done for these very files. Copies them into `folder` before.

    They are named from `base`; those from ROOT keep their folders, others lose the first one.
    """
    digest = hashlib.sha256()
    for source in sources:
        digest.update(str(source).encode() + (base / source).read_bytes())
    stamp = folder / '.done'
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    stamp.unlink(missing_ok=True)
    for source in sources:
        own = Path(source).relative_to(Path(source).parts[0]) if base != ROOT else source
        place = folder / own
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(base / source, place)
    work()
    stamp.write_text(digest.hexdigest())


# What builds leave in a source tree.
BUILT = {'__pycache__', 'node_modules', 'dist', 'target'}


def files(folder, base=HERE):
    return sorted(p.relative_to(base) for p in (base / folder).rglob('*')
                  if p.is_file() and not BUILT & set(p.parts))


class Suite:
    """`folder` is shared by the suites of one toolchain."""

    nodes = None  # of a suite against a group: the options of its nodes
    needs_semel = False  # it is about commands that a redis-server does not know
    needs_scripts = False  # nothing of it works without them

    def __init__(self, name, folder):
        self.name = name
        self.folder = folder


class Cli(Suite):
    def __init__(self, name, script, program):
        super().__init__(name, 'cli')
        self.script = script
        self.program = program

    def prepare(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        return [sys.executable, HERE / 'cli' / self.script, tool(self.program)]


class Hiredis(Suite):
    def prepare(self, folder):
        if not Path('/usr/include/hiredis/hiredis.h').exists():
            raise Missing('libhiredis-dev is not installed')
        compiler = tool('gcc', 'cc')
        once(folder, files('c'), lambda: run(
            [compiler, '-std=c11', '-O1', '-Wall', '-Wextra', '-Werror', 'dialogue.c', '-o',
             'dialogue', '-lhiredis'], folder))
        return [folder / 'dialogue']


class DebianPython(Suite):
    """What Debian packages is for Debian's own interpreter."""

    def __init__(self, name, script, *words):
        super().__init__(name, 'debian')
        self.words = [HERE / 'python' / script, *words]

    def prepare(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        python = '/usr/bin/python3'
        if subprocess.run([python, '-c', 'import redis'], capture_output=True,
                          check=False).returncode != 0:
            raise Missing('python3-redis is not installed')
        return [python, *self.words]


class PipPython(Suite):
    def __init__(self, name, folder, requirements, script, *words):
        super().__init__(name, folder)
        self.requirements = requirements
        self.words = [HERE / 'python' / script, *words]

    def prepare(self, folder):
        python = folder / 'venv/bin/python'

        def install():
            run([sys.executable, '-m', 'venv', '--clear', 'venv'], folder)
            run([python, '-m', 'pip', 'install', '--disable-pip-version-check', '--quiet',
                 '--requirement', self.requirements], folder)

        folder.mkdir(parents=True, exist_ok=True)
        once(folder, [Path('python') / self.requirements], install)
        return [python, *self.words]


class Queue(PipPython):
    """A library of jobs, in the environment of all that take the newest redis-py, or in one that
    `its_own` names."""

    def __init__(self, name, script, its_own='queues'):
        super().__init__(name, f'python-{its_own}', f'{its_own}_requirements.txt',
                         f'queues/{script}')


class Node(Suite):
    def __init__(self, name, script):
        super().__init__(name, 'node')
        self.script = script

    def prepare(self, folder):
        program = tool('node', 'nodejs')
        npm = tool('npm')
        folder.mkdir(parents=True, exist_ok=True)
        once(folder, files('node'), lambda: run(
            [npm, 'ci', '--no-audit', '--no-fund', '--ignore-scripts'], folder))
        return [program, folder / self.script]


class Go(Suite):
    """`program`: the name of the module, or of the folder in it where the program is."""

    def __init__(self, name, program):
        super().__init__(name, 'go')
        self.program = program

    def prepare(self, folder):
        go = tool('go')
        folder.mkdir(parents=True, exist_ok=True)
        once(folder, files('go'), lambda: run(
            [go, 'build', '-mod=readonly', '-o', 'built/', './...'], folder))
        return [folder / 'built' / self.program]


class Semel(Suite):
    """One of our clients with its own tests, whose output native.py translates."""

    needs_semel = True


class SemelGo(Semel):
    """With the oldest driver that the package takes, or with what another `modfile` names."""

    def __init__(self, name, pattern, modfile='go.mod'):
        super().__init__(name, f'semel-{Path(modfile).stem}')
        self.pattern = pattern
        self.modfile = modfile

    def prepare(self, folder):
        go = tool('go')
        folder.mkdir(parents=True, exist_ok=True)

        def build():
            modules = f'-modfile={self.modfile}'
            run([go, 'vet', modules, './...'], folder)
            run([go, 'test', '-mod=readonly', modules, '-c', '-o', 'built/semel.test', '.'], folder)

        once(folder, files('go', CLIENTS), build, CLIENTS)
        return [sys.executable, HERE / 'native.py', 'go', folder / 'built/semel.test', '-test.v',
                f'-test.run={self.pattern}', '-test.timeout=200s']


class SemelNode(Semel):
    """Copied with the table of identity, in folders as they are in the project."""

    def __init__(self, name, *tests):
        super().__init__(name, 'semel-node')
        self.tests = tests

    def prepare(self, folder):
        program = tool('node', 'nodejs')
        npm = tool('npm')
        place = folder / 'clients/node'
        folder.mkdir(parents=True, exist_ok=True)

        def build():
            run([npm, 'ci', '--no-audit', '--no-fund', '--ignore-scripts'], place)
            run([program, 'node_modules/typescript/bin/tsc'], place)

        sources = files('clients/node', ROOT) + files('tests/identity', ROOT)
        once(folder, sources, build, ROOT)
        return [sys.executable, HERE / 'native.py', 'tap', program, '--test',
                '--test-reporter=tap', *[place / f'dist/test/{name}.test.js'
                                         for name in self.tests]]


class Java(Suite):
    def __init__(self, name, main):
        super().__init__(name, 'java')
        self.main = main

    def prepare(self, folder):
        program = tool('java')
        maven = tool('mvn')
        folder.mkdir(parents=True, exist_ok=True)
        once(folder, files('java'), lambda: run(
            [maven, '--batch-mode', '--no-transfer-progress', '--quiet', 'clean', 'compile',
             'dependency:copy-dependencies', '-DoutputDirectory=target/packages'], folder))
        return [program, '-XX:TieredStopAtLevel=1', '-cp', 'target/classes:target/packages/*',
                self.main]


class Starter(Suite):
    """clients/java and a program that uses it, built beside each other.

    Each module has a folder of its own: what one release of Spring needs may be out of reach.
    """

    def __init__(self, name, module, main, *words):
        super().__init__(name, f'starter/{module}')
        self.module = module
        self.words = [f'io.semel.tests.{main}', *words]

    def prepare(self, folder):
        program = tool('java')
        maven = tool('mvn')
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / 'tests/clients/starter'

        def build():
            run([maven, '--batch-mode', '--no-transfer-progress', '--quiet', '--projects',
                 self.module, '--also-make', 'clean', 'package',
                 'dependency:copy-dependencies', '-DoutputDirectory=target/packages'], place)

        sources = (files('clients/java', ROOT) + files('tests/clients/starter', ROOT)
                   + files('tests/identity', ROOT))
        once(folder, sources, build, ROOT)
        target = place / self.module / 'target'
        return [program, '-XX:TieredStopAtLevel=1', '-cp', f'{target}/classes:{target}/packages/*',
                *self.words]


class RabbitStarter(Starter):
    """With a RabbitMQ beside it."""

    def prepare(self, folder):
        if not Path('/usr/lib/rabbitmq/bin/rabbitmq-server').exists():
            raise Missing('rabbitmq-server is not installed')
        if subprocess.run(['/usr/bin/python3', '-c', 'import pika'], capture_output=True,
                          check=False).returncode != 0:
            raise Missing('python3-pika is not installed')
        return ['/usr/bin/python3', HERE / 'with_rabbit.py', *super().prepare(folder)]


def scripted(suite):
    suite.needs_scripts = True
    return suite


ALL = (
    Cli('redis-cli', 'redis_cli.py', 'redis-cli'),
    Cli('redis-benchmark', 'redis_benchmark.py', 'redis-benchmark'),
    Hiredis('hiredis', 'c'),
    DebianPython('python3-redis', 'dialogue.py', '2'),
    PipPython('redis-py', 'python', 'requirements.txt', 'dialogue.py', '2', '3'),
    Node('ioredis', 'ioredis.mjs'),
    Node('node-redis', 'node_redis.mjs'),
    Node('redlock', 'redlock.mjs'),
    Node('rate-limiter-flexible', 'rate_limiter.mjs'),
    Go('go-redis', 'clients'),
    scripted(Go('asynq', 'asynq')),
    scripted(Go('rueidis', 'rueidis')),
    Java('jedis', 'JedisSuite'),
    Java('lettuce', 'LettuceSuite'),
    Java('redisson', 'RedissonSuite'),
    Java('redisson-objects', 'RedissonObjectsSuite'),
    Java('spring-data-redis', 'SpringSuite'),
    Java('spring-session', 'SessionSuite'),
    scripted(Queue('celery', 'celery_suite.py')),
    scripted(Queue('rq', 'rq_suite.py')),
    scripted(Queue('dramatiq', 'dramatiq_suite.py')),
    scripted(Queue('huey', 'huey_suite.py')),
    scripted(Queue('sidekiq-like', 'sidekiq_suite.py')),
    scripted(Queue('arq', 'arq_suite.py', 'arq')),
    scripted(Node('bullmq', 'queues/bullmq.mjs')),
    scripted(Node('bull', 'queues/bull.mjs')),
    scripted(Node('bottleneck', 'queues/bottleneck.mjs')),
    scripted(Node('redis-semaphore', 'queues/semaphore.mjs')),
    SemelGo('semel-go', '^Test[^G]'),
    SemelGo('semel-go-newest', '^Test[^G]', 'newest.mod'),
    SemelNode('semel-node', 'once', 'identity', 'results', 'attack', 'patterns', 'permits',
              'locks', 'observer', 'rate'),
    SemelNode('semel-node-stories', 'options', 'stories'),
    SemelNode('semel-node-drivers', 'drivers'),
)


def in_group(suite, *options):
    suite.nodes = options
    return suite


FORWARD = ('--cluster-forward', 'yes')

# Our own library for Java: tools/prove java.
STARTER = (
    Starter('semel-core', 'core', 'CoreSuite'),
    Starter('semel-core-again', 'core', 'AgainSuite'),
    Starter('boot-2.7', 'boot2', 'WebSuite'),
    Starter('boot-3', 'boot3', 'WebSuite'),
    Starter('boot-4', 'boot4', 'WebSuite'),
    in_group(Starter('semel-core-group', 'core', 'GroupSuite', 'cluster')),
    in_group(Starter('semel-core-forward', 'core', 'GroupSuite', 'plain'), *FORWARD),
    in_group(Starter('boot-2.7-group', 'boot2', 'GroupWebSuite')),
    in_group(Starter('boot-3-group', 'boot3', 'GroupWebSuite')),
    in_group(Starter('boot-4-group', 'boot4', 'GroupWebSuite')),
    RabbitStarter('rabbitmq', 'brokers', 'BrokerSuite', 'rabbit'),
    Starter('kafka', 'brokers', 'BrokerSuite', 'kafka'),
    Starter('rocketmq', 'rocket', 'RocketSuite'),
)

# Against three nodes. Those with FORWARD know nothing of a cluster.
GROUP = (
    in_group(Cli('redis-cli', 'cluster_cli.py', 'redis-cli')),
    in_group(DebianPython('python3-redis', 'cluster.py')),
    in_group(PipPython('redis-py', 'python-cluster', 'cluster_requirements.txt', 'cluster.py')),
    in_group(PipPython('redis-py-8', 'python', 'requirements.txt', 'cluster.py')),
    in_group(Node('ioredis', 'cluster.mjs')),
    in_group(Go('go-redis', 'cluster')),
    in_group(Java('jedis', 'JedisClusterSuite')),
    in_group(Java('lettuce', 'LettuceClusterSuite')),
    in_group(Java('redisson', 'RedissonClusterSuite')),
    in_group(SemelGo('semel-go', '^TestGroup')),
    in_group(SemelNode('semel-node', 'group')),
    in_group(PipPython('redis-py-plain', 'python', 'requirements.txt', 'plain.py'), *FORWARD),
    in_group(Java('jedis-plain', 'PlainJedisSuite'), *FORWARD),
)
