// Options at their edges: nothing stands for "none" by chance, and no long wait becomes a short one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as semel from '../src/index.js';
import { Claims, Tokens } from '../src/index.js';
import { expected, kinds, never, Node, skip, until } from './node.js';

const wrongTimes = [NaN, -1, -Infinity, 1e-10, 0.5, '5', null, 5n, {}, true];
const wrong = {
  lease: [...wrongTimes, 0, Infinity, -0], wait: wrongTimes, patience: [...wrongTimes, 0],
  runMax: [...wrongTimes, 0], owner: ['', null, 7],
  firstSent: [NaN, -1, Infinity, new Date(NaN), '0', null],
  onFailure: ['', 'Keep', null, 0], codec: [null, {}, 'json'], signal: [null, {}, true],
  leaseMs: [5], ttl: [5], Lease: [5],
};

test('once-again-11: an option that cannot be kept is refused with its name', { skip }, async (t) => {
  const n = await Node.start(t);
  const client = await n.client('ioredis, RESP3');
  const orders = new Claims(client, 'orders');
  for (const [name, values] of Object.entries(wrong)) {
    for (const value of values as unknown[]) {
      const options = { [name]: value } as semel.CallOptions;
      const named = new RegExp(`^OptionError.*${name}`);
      await assert.rejects(orders.once('k', never, options), named);
      await assert.rejects(orders.lock('k', options), named);
      const seen = await orders.consumeOnce('k', never, options);
      assert.ok(seen.verdict === 'retry' && named.test(String(seen.error)), seen.verdict);
      assert.throws(() => new Claims(client, 'orders', options), named);
    }
  }
  for (const ttl of [...wrongTimes, 0, -0, Infinity] as number[]) {
    const tokens = new Tokens(client, 'tokens');
    await assert.rejects(tokens.issue(ttl), /ttl/);
    await assert.rejects(tokens.issueAs('t', ttl), /ttl/);
    for (const term of ['lease', 'resultTtl', 'uniqueTtl', 'window'] as const) {
      if (Object.is(ttl, 0) || Object.is(ttl, -0)) continue;
      assert.throws(() => new Claims(client, 'x', { policy: { [term]: ttl } }), /Error/);
    }
  }
  for (const policy of [{ attemptsMax: NaN }, { attemptsMax: -1 }, { attemptsMax: 1.5 },
    { resultTTL: 1 }]) {
    const named = new RegExp(Object.keys(policy)[0] as string);
    assert.throws(() => new Claims(client, 'x', { policy }), named);
  }
  for (const name of ['', undefined, null, 7, ['x']] as unknown as string[]) {
    assert.throws(() => new Claims(client, name), semel.OptionError);
    assert.throws(() => new Tokens(client, name), semel.OptionError);
  }
  // 0 goes to the node, which refuses it, and does not become a default.
  await assert.rejects(new Claims(client, 'zero', { policy: { resultTtl: 0 } }).once('k', never),
    /RESULT-TTL must be 1/);
  assert.equal(await n.state('orders', 'k'), 'absent');
});

test('once-again-11: an option beyond a limit of the node is refused when the object is made', { skip },
  async (t) => {
    const n = await Node.start(t);
    const client = await n.client('node-redis, RESP3');
    const orders = new Claims(client, 'orders');
    const most = 3_162_240_000_000;
    const beyond: [semel.CallOptions, RegExp, (new (...all: never[]) => Error)?][] = [
      [{ owner: 'x'.repeat(65) }, /owner: 'x+\.\.' of 65 bytes; the limit is 64/],
      [{ owner: 'é'.repeat(33) }, /owner: 'é+' of 66 bytes; the limit is 64/],
      [{ lease: 1e13 }, /lease: 10000000000000; the most is 3162240000000 ms/],
      [{ lease: most + 0.5 }, /lease: 3162240000000.5; the most is 3162240000000 ms/],
      [{ lease: Infinity }, /lease: Infinity; the most is/], [{ lease: 1e300 }, /lease: 1e\+300/],
      [{ firstSent: 1e300 }, /firstSent: 1e\+300; a time is 0 to 9007199254740991/],
      [{ operation: 'x'.repeat(513) }, /operation is longer than 512 bytes/, semel.KeyError],
      [{ operation: '' }, /operation is empty/, semel.KeyError],
      [{ scope: {} }, /scope/, semel.KeyError],
    ];
    for (const [options, text, kind = semel.OptionError] of beyond) {
      const is = (error: unknown): boolean => error instanceof kind && text.test(String(error));
      assert.throws(() => new Claims(client, 'orders', options as object), is);
      assert.throws(() => new Tokens(client, 'tokens', options as object), is);
      await assert.rejects(orders.once('k', never, options), is);
      await assert.rejects(orders.tryLock('k', options), is);
      const seen = await orders.consumeOnce('k', never, options);
      // A wrong option is the consumer's fault, a wrong operation or scope the message's.
      assert.equal(seen.verdict, kind === semel.KeyError ? 'deadLetter' : 'retry');
      assert.ok(is(seen.error));
    }
    for (const name of ['bad name!', 'a/b', 'a:b', 'é', 'a\n', '\0', 'n'.repeat(65)]) {
      assert.throws(() => new Claims(client, name), (error: unknown) =>
        error instanceof semel.OptionError && error.message.includes(name.slice(0, 30))
        && error.message.endsWith('1 to 64 bytes of A-Za-z0-9_.-'));
    }
    for (const term of ['lease', 'resultTtl', 'uniqueTtl', 'failureTtl', 'attemptsTtl', 'window',
      'ahead', 'retryAfterMax', 'attemptsMax']) {
      assert.throws(() => new Claims(client, 'x', { policy: { [term]: most + 1 } }), semel.OptionError);
    }
    await assert.rejects(new Tokens(client, 'tokens').issueAs('t', most + 1), semel.OptionError);
    assert.equal(await n.state('orders', 'k'), 'absent');
    const longest = new Claims(client, `A-z_0.${'n'.repeat(58)}`,
      { owner: 'é'.repeat(32), lease: most, operation: 'x'.repeat(512), scope: { tenant: 'a' } });
    await longest.once('k', () => 1, { firstSent: Number.MAX_SAFE_INTEGER });
  });

test('once-again-11: an option that is undefined is not given', { skip }, async (t) => {
  const n = await Node.start(t);
  const orders = new Claims(await n.client('ioredis, RESP3'), 'orders',
    { lease: 5000, owner: 'me' });
  await orders.once('k', async () => {
    const record = await n.call('SEMEL.GETCLAIM', 'orders', 'k') as string[];
    assert.ok(Number(record[record.indexOf('lease_remaining_ms') + 1]) <= 5000);
    assert.equal(record[record.indexOf('owner') + 1], 'me');
  }, { lease: undefined, owner: undefined, codec: undefined, wait: undefined } as object);
});

test('once-again-11: 1970 is a time', { skip }, async (t) => {
  const n = await Node.start(t);
  const payments = new Claims(await n.client('node-redis, RESP3'), 'payments',
    { policy: { as: 'payment' } });
  for (const firstSent of [new Date(0), 0, 1, new Date(1)]) {
    await assert.rejects(payments.once('k', never, { firstSent }), (error: unknown) =>
      error instanceof semel.OutsideWindowError && error.outcome === 'too_old');
  }
  await payments.once('k', () => 1, { firstSent: Date.now() });
});

for (const kind of kinds) {
  test(`once-again-27: a wait without an end does not end, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const orders = new Claims(await n.client(kind), 'orders');
    const finish = expected<string>();
    const running = orders.once('k', () => finish.promise);
    await until('it runs', async () => await n.state('orders', 'k') === 'held');
    const waits = [2 ** 31 - 1, 2 ** 31, 2 ** 32 + 1, 3_162_240_000_001, Number.MAX_SAFE_INTEGER,
      Number.MAX_VALUE, Infinity];
    const waiting = waits.flatMap((wait) =>
      [orders.once('k', never, { wait }), orders.consumeOnce('k', never, { wait })]);
    const longest = { lease: 3_162_240_000_000, patience: Infinity, runMax: Infinity };
    const patient = orders.once('k', never, { ...longest, wait: Infinity });
    await until('all wait', async () => await n.waiters() === 2 * waits.length + 1);
    finish.fulfil('paid');
    for (const each of await Promise.all(waiting)) {
      assert.ok('value' in each ? each.value === 'paid' : each.duplicate);
    }
    assert.equal((await patient).replayed, true);
    await running;
    await orders.once('long', () => 1, longest);
  });
}
