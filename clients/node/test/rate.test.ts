import assert from 'node:assert/strict';
import test from 'node:test';
import { KeyError, OptionError, RateLimiter, RefusedError, type RateTerms } from '../src/index.js';
import { driverOf } from '../src/drivers.js';
import { Node, kinds, skip } from './node.js';

const day = 24 * 3600 * 1000;

for (const kind of kinds) {
  test(`${kind}: a rate limit allows what its terms say`, { skip }, async (t) => {
    const node = await Node.start(t);
    const client = await node.client(kind);
    for (const terms of [{}, { kind: 'fixed' }, { kind: 'bucket', refill: 3 }] as const) {
      const limiter = new RateLimiter(client, { ...terms, limit: 3, period: day });
      const key = JSON.stringify(terms);
      assert.deepEqual(await limiter.look(key),
        { allowed: true, remaining: 3, retryAfter: 0, resetAfter: 0 });
      const first = await limiter.take(key, 2);
      assert.deepEqual([first.allowed, first.remaining, first.retryAfter], [true, 1, 0]);
      const refused = await limiter.take(key, 2);
      assert.deepEqual([refused.allowed, refused.remaining], [false, 1]);
      assert.ok(refused.retryAfter > day / 4 && refused.retryAfter <= refused.resetAfter);
      assert.equal((await limiter.take(Buffer.from([0, 255, 10]))).allowed, true);
    }
  });
}

test('rate limits: what is wrong takes nothing', { skip }, async (t) => {
  const node = await Node.start(t);
  const client = await node.client('ioredis, RESP3');
  const good = { limit: 3, period: 1000 };
  for (const wrong of [{ limit: 0 }, { limit: 1.5 }, { limit: NaN }, { limit: 1e9 }, { period: 0 },
    { period: 0.5 }, { period: 400 * day }, { refill: 1 }, { kind: 'bucket', refill: 0 },
    { kind: 'leaky' }, { patience: 0 }, { burst: 3 }]) {
    assert.throws(() => new RateLimiter(client, { ...good, ...wrong } as RateTerms), OptionError);
  }
  const limiter = new RateLimiter(client, good);
  for (const cost of [-1, 4, 0.5, NaN]) await assert.rejects(limiter.take('k', cost), OptionError);
  await assert.rejects(limiter.take(''), KeyError);
  await assert.rejects(limiter.take('k'.repeat(100_000)), KeyError);
  await assert.rejects(limiter.take('k', 1, { signal: AbortSignal.abort() }));
  assert.equal((await limiter.look('k')).remaining, 3);
  await driverOf(client).send(['SET', 'text', 'mine']);
  await assert.rejects(limiter.take('text'), RefusedError);
});

test('rate limits: callers at once get as much as there is', { skip }, async (t) => {
  const node = await Node.start(t);
  const limiter = new RateLimiter(await node.client('ioredis, RESP3'), { limit: 50, period: day });
  const all = await Promise.all(Array.from({ length: 120 }, () => limiter.take('k')));
  assert.equal(all.filter((one) => one.allowed).length, 50);
});
