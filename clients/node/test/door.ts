// Plays the stories of tests/doors/stories.json; tests/doors/run.py starts it, between a node and
// what loses its replies. Prints a line a story: its name, a tab, its outcome.
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import * as semel from '../src/index.js';
import { Claims } from '../src/index.js';

const host = '127.0.0.1';
const namespace = process.env['SEMEL_TEST_NAMESPACE'] ?? '';
const redis = new Redis({ host, port: Number(process.env['SEMEL_TEST_PORT']), maxRetriesPerRequest: null });
const direct = new Redis({ host, port: Number(process.env['SEMEL_TEST_DIRECT_PORT']) });
redis.on('error', () => {}); // the proxy cuts connections on purpose
const calls = new Claims(redis, namespace, { patience: 1000 });

let runs = 0;
const tell = (story: string, outcome: string, with_runs = true): void => {
  console.log(`${story}\t${outcome}${with_runs ? `; runs ${runs}` : ''}`);
  runs = 0;
};
const work = (value: unknown = 'paid') => () => { runs += 1; return value; };
/** `expected` if the call rejects with the class. */
const rejects = async (call: () => unknown, kind: new (...all: never[]) => Error,
  expected: string): Promise<string> => {
  try {
    await call();
    return 'resolved';
  } catch (error) {
    return error instanceof kind ? expected : String(error);
  }
};
const advance = (): Promise<unknown> => direct.call('SEMEL.CLOCK', 'ADVANCE', '3600000');
const thenRan = (): string => (runs === 1 ? '; then ran' : '; then did not run');

async function results(): Promise<void> {
  const first = await calls.once('result-equal', work({ cents: 7 }));
  const again = await calls.once('result-equal', work({ cents: 8 }));
  tell('result-equal', JSON.stringify(first.value) === JSON.stringify(again.value) ? 'equal' : 'other');
  const odd = work(new (class { #hidden = 7; cents(): number { return this.#hidden; } })());
  const kept = await rejects(() => calls.once('result-odd', odd), semel.ResultNotKeptError, 'not kept');
  const has = await rejects(() => calls.once('result-odd', odd), semel.NoResultError, 'no result');
  tell('result-odd', `${kept}; ${has}`);
  const lazy = await rejects(() => calls.once('lazy-work', function* () { yield 1; }), semel.LazyError, 'refused');
  await calls.once('lazy-work', work());
  tell('lazy-work', lazy + thenRan(), false);
  const thrown = await rejects(() => calls.once('throws', () => { throw new RangeError('x'); }), RangeError, 'thrown');
  await calls.once('throws', work());
  tell('throws', thrown + thenRan(), false);
}

async function arguments_(): Promise<void> {
  for (const [story, key] of [['key-empty', ''], ['key-huge', 'k'.repeat(70_000)]] as const) {
    tell(story, await rejects(() => calls.once(key, work()), semel.KeyError, 'key error'));
  }
  const pay = { operation: 'pay', fingerprint: { cents: 1 } };
  for (const [story, other] of [['payload-other', { operation: 'pay', fingerprint: { cents: 2 } }],
    ['operation-other', { operation: 'refund', fingerprint: { cents: 1 } }]] as const) {
    await calls.once(story, work(), pay);
    tell(story, await rejects(() => calls.once(story, work(), other), semel.MismatchError, 'mismatch'));
  }
  tell('lease-zero', await rejects(() => calls.once('lease-zero', work(), { lease: 0 }), Error, 'refused'));
  const window = new Claims(redis, 'doors-node-window', { policy: { as: 'message', window: 86_400_000 } });
  tell('first-sent-1970', await rejects(() => window.once('first-sent-1970', work(), { firstSent: 0 }),
    semel.OutsideWindowError, 'too old'));
}

async function owners(): Promise<void> {
  const late = await rejects(() => calls.once('lease-lost', async () => {
    await advance();
    await calls.once('lease-lost', work('other'));
    return 'mine';
  }), semel.LeaseLostError, 'too late');
  const again = await calls.once('lease-lost', work('third'));
  tell('lease-lost', `${late}; repeat ${String(again.value)}`, false);

  const locks = new Claims(redis, 'doors-node-locks', { policy: { as: 'lock' } });
  let inside = 0;
  let most = 0;
  await Promise.all(Array.from({ length: 4 }, async () => {
    const lock = await locks.lock('lock-shared');
    most = Math.max(most, ++inside);
    await new Promise(setImmediate);
    inside -= 1;
    await lock.unlock();
  }));
  tell('lock-shared', most === 1 ? 'one holder' : `${most} holders`, false);
  const lost = await locks.tryLock('lock-lost');
  await advance();
  await (await locks.tryLock('lock-lost')).unlock();
  tell('lock-lost', await rejects(() => lost.unlock(), semel.LeaseLostError, 'lease lost'), false);
  const keys = ['locks-all', 'locks-all:other'];
  const whole = await locks.tryLock('locks-all:other');
  const refused = await rejects(() => locks.tryLockAll(keys), semel.InFlightError, 'held');
  await (await locks.tryLock('locks-all')).unlock();
  await whole.unlock();
  await (await locks.tryLockAll(keys)).unlock();
  tell('locks-all', `${refused}, other free; then granted`, false);
  const one = await locks.tryPermit('permits-fewer', 2);
  const other = await locks.tryPermit('permits-fewer', 2);
  await one.release();
  const held = await rejects(() => locks.tryPermit('permits-fewer', 1), semel.InFlightError, 'held');
  await other.release();
  await (await locks.tryPermit('permits-fewer', 1)).release();
  tell('permits-fewer', `${held}; then granted`, false);
  const reader = await locks.tryReadLock('readers-writer');
  const beside = await locks.tryReadLock('readers-writer');
  await reader.release();
  const early = await rejects(() => locks.tryWriteLock('readers-writer'), semel.InFlightError,
    'no writer');
  await beside.release();
  const writer = await locks.tryWriteLock('readers-writer');
  const alone = await rejects(() => locks.tryReadLock('readers-writer'), semel.InFlightError,
    'one writer');
  await writer.release();
  await (await locks.tryReadLock('readers-writer')).release();
  tell('readers-writer', `two readers, ${early}; then ${alone}; then a reader`, false);
  const limiter = new semel.RateLimiter(redis, { limit: 3, period: 86_400_000 });
  const rate = async (cost: number): Promise<string> => {
    const taken = await limiter.take(`${namespace}:rate-limit`, cost);
    return taken.allowed ? 'allowed' : `limited, ${taken.remaining} left`;
  };
  const heard: string[] = [];
  const seen = new Claims(redis, namespace, { patience: 1000, observer: ({ event }) => {
    heard.push(event);
    throw new Error('the observer\'s own');
  } });
  const ran = await seen.once('observed', work(), { operation: 'pay' });
  const repeat = await seen.once('observed', work(), { operation: 'pay' });
  await rejects(() => seen.once('observed', work(), { operation: 'refund' }), semel.MismatchError, '');
  tell('observed', (ran.value === repeat.value ? '' : 'other; ') + heard.join(', '));
  await rate(2);
  tell('rate-limit', `${await rate(2)}; then ${await rate(1)}; then ${await rate(1)}`, false);

  let begin = (): void => {};
  let goOn = (): void => {};
  const begun = new Promise<void>((resolve) => { begin = resolve; });
  const holder = calls.once('wait-cancelled', async () => {
    begin();
    await new Promise<void>((resolve) => { goOn = resolve; });
    throw new semel.Failure('no');
  }).catch(() => {});
  await begun;
  const outcome = await rejects(() => calls.once('wait-cancelled', work(),
    { wait: Infinity, signal: AbortSignal.timeout(100) }), Error, 'cancelled');
  goOn();
  await holder;
  tell('wait-cancelled', outcome);
}

async function wire(): Promise<void> {
  for (const story of ['lost-claim', 'lost-complete', 'busy-claim', 'busy-complete',
    'tryagain-claim', 'tryagain-complete', 'restart']) {
    const outcome = await calls.once(story, work()).then(() => 'ran', String);
    tell(story, outcome);
  }
  const kept = await rejects(() => calls.once('oom-complete', work()), semel.ResultNotKeptError, 'not kept');
  const has = await rejects(() => calls.once('oom-complete', work()), semel.NoResultError, 'no result');
  tell('oom-complete', `${kept}; ${has}`);
  tell('late-claim', await rejects(() => calls.once('late-claim', work()), semel.UnavailableError, 'unavailable'));
  for (const end = Date.now() + 15_000; Date.now() < end;) {
    if ((await direct.call('SEMEL.INFLIGHT', namespace) as unknown[]).length === 0) break;
    await sleep(10); // a poll interval: the door lives until the late grant is given back
  }
  const refused = (): unknown => new Claims(new Redis({ host, lazyConnect: true, keyPrefix: 'p:' }), 'x');
  const option = await rejects(async () => refused(), Error, 'thrown');
  const named = await Promise.resolve().then(refused).catch((error: unknown) => String(error));
  tell('option-refused', option === 'thrown' && String(named).includes('keyPrefix')
    ? 'refused by name' : String(named), false);
  redis.disconnect();
  tell('closed', await rejects(() => calls.once('closed', work()), semel.SemelError, 'closed'));
}

for (const play of [results, arguments_, owners, wire]) {
  await play().catch((error: unknown) => console.log(`${play.name}: ${String(error)}`));
}
redis.disconnect();
direct.disconnect();
