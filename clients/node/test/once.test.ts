import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as semel from '../src/index.js';
import { Claims } from '../src/index.js';
import { expected, kinds, never, Node, skip, until } from './node.js';

for (const kind of kinds) {
  test(`once runs and replays, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const client = await n.client(kind);
    const orders = new Claims(client, 'orders', { policy: { as: 'call' } });
    for (const key of ['order-4711', 'ключ:鍵', Buffer.from([0, 255, 13, 10, 36]), 'a b']) {
      const first = await orders.once(key, () => ({ number: 12, text: 'crème' }));
      assert.deepEqual(first.value, { number: 12, text: 'crème' });
      assert.ok(!first.replayed && first.epoch > 0n && first.attempt === 1);
      const again = await orders.once(key, async () => ({ number: 13, text: '' }));
      assert.deepEqual(again.value, first.value);
      assert.equal(again.replayed, true);
    }
    assert.equal((await orders.once('nothing', () => {})).value, undefined);
    assert.deepEqual((await orders.once('nothing', () => {})).replayed, true);
    const other = new Claims(client, 'orders', { policy: { as: 'payment' } });
    await assert.rejects(other.once('k', never), (error: unknown) => error instanceof semel.SemelError
      && error.code === 'NAMESPACE' && /declared with other terms/.test(error.message)
      && /SEMEL\.NAMESPACE CHANGE/.test(error.message));
    const raw = { codec: semel.bytes };
    await orders.once('raw', () => Buffer.from([0]), raw);
    assert.deepEqual((await orders.once<Buffer>('raw', () => never() as never, raw)).value,
      Buffer.from([0]));
  });

  test(`many callers run once for each key, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const [keys, workers] = [kind.endsWith('3') ? 100 : 25, 16];
    const ran = new Array<number>(keys).fill(0);
    const clients = await Promise.all([n.client(kind), n.client(kind)]);
    await Promise.all(Array.from({ length: workers }, async (_, worker) => {
      const orders = new Claims(clients[worker % 2] as semel.AnyClient, 'orders');
      for (let key = 0; key < keys; ++key) {
        const { value } = await orders.once(String(key), async () => {
          ran[key] = (ran[key] ?? 0) + 1;
          await new Promise(setImmediate);
          return 10 * (ran[key] ?? 0);
        }, { wait: Infinity });
        assert.equal(value, 10);
      }
    }));
    assert.deepEqual(ran, new Array(keys).fill(1));
  });

  test(`in flight is an error, or a wait, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const orders = new Claims(await n.client(kind), 'orders', { owner: 'me' });
    const [begun, finish] = [expected(), expected<string>()];
    const running = orders.once('k', () => {
      begun.fulfil();
      return finish.promise;
    });
    await begun.promise;
    await assert.rejects(orders.once('k', never), (error: unknown) =>
      error instanceof semel.InFlightError && error.owner === 'me' && error.remaining > 0
      && error.retryAfter > 0 && error.code === 'IN_FLIGHT');
    await assert.rejects(orders.once('k', never, { wait: 1 }), semel.InFlightError);
    const waiting = Array.from({ length: 4 }, () => orders.once('k', never, { wait: Infinity }));
    await until('four wait', async () => await n.waiters() === 4);
    assert.equal((await orders.once('other', () => 'x')).value, 'x');
    finish.fulfil('paid');
    for (const each of await Promise.all(waiting)) {
      assert.deepEqual([each.value, each.replayed], ['paid', true]);
    }
    assert.equal((await running).value, 'paid');
  });
}

test('a failure gives the key back, or is kept', { skip }, async (t) => {
  const n = await Node.start(t);
  const orders = new Claims(await n.client('ioredis, RESP3'), 'orders');
  const broken = new Error('KEEP'); // also a word of the command
  for (const fails of [(): never => { throw broken; }, () => Promise.reject(broken)]) {
    await assert.rejects(orders.once('k', fails), broken);
    assert.equal(await n.state('orders', 'k'), 'absent');
  }
  await assert.rejects(orders.once('kept', () => Promise.reject(broken), { onFailure: 'keep' }));
  await assert.rejects(orders.once('kept', never), (error: unknown) =>
    error instanceof semel.KeptFailureError && error.failure === 'KEEP' && !error.poison);
  const long = new Error('é'.repeat(5000));
  await assert.rejects(orders.once('long', () => { throw long; }, { onFailure: 'keep' }), long);
  await assert.rejects(orders.once('long', never), (error: unknown) =>
    error instanceof semel.KeptFailureError && error.failure === 'é'.repeat(512));
  for (const odd of [undefined, null, 'text', Object.create(null)]) {
    await assert.rejects(orders.once('odd', () => { throw odd; }), (error) => error === odd);
    assert.equal(await n.state('orders', 'odd'), 'absent');
  }
});

test('the policy says what an exception means', { skip }, async (t) => {
  const n = await Node.start(t);
  const payments = new Claims(await n.client('node-redis, RESP3'), 'payments',
    { policy: { as: 'payment' } });
  const firstSent = new Date();
  await assert.rejects(payments.once('504', () => { throw new Error('504'); }, { firstSent }));
  assert.equal(await n.state('payments', '504'), 'in_doubt');
  await assert.rejects(payments.once('504', never, { firstSent }), semel.InDoubtError);
  await assert.rejects(
    payments.once('no', () => { throw new semel.Failure('no such card'); }, { firstSent }),
    semel.Failure);
  assert.equal(await n.state('payments', 'no'), 'absent');
  await assert.rejects(payments.once('old', never, { firstSent: new Date(1000) }),
    semel.OutsideWindowError);
});

test('a result that cannot be kept', { skip }, async (t) => {
  const n = await Node.start(t);
  for (const kind of ['ioredis, RESP2', 'node-redis, RESP3'] as const) {
    const orders = new Claims(await n.client(kind), kind.slice(0, 4));
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    for (const [key, value] of Object.entries({ cycle, big: 1n,
      huge: 'x'.repeat(17 << 20) })) {
      await assert.rejects(orders.once(key, () => value as unknown), (error: unknown) =>
        error instanceof semel.ResultNotKeptError && error.value === value);
      await assert.rejects(orders.once(key, never), semel.NoResultError);
    }
  }
});

test('keys and options that are wrong', { skip }, async (t) => {
  const n = await Node.start(t);
  const client = await n.client('node-redis, RESP2');
  const orders = new Claims(client, 'orders');
  for (const key of ['', Buffer.alloc(0), 'k'.repeat(70_000)]) {
    await assert.rejects(orders.once(key, never), semel.KeyError);
  }
  await assert.rejects(orders.once('k', never, { lease: 0 }), semel.OptionError);
  await assert.rejects(orders.once('k', never, { lease: NaN }), semel.OptionError);
  await assert.rejects(orders.once('k', never, { owner: 'o'.repeat(65) }), /owner/);
  await assert.rejects(orders.once('k', never, { fingerprint: () => 1 }), semel.NotCanonicalError);
  assert.throws(() => new Claims(client, 'no such'), /no such/);
  assert.throws(() => new Claims({} as semel.AnyClient, 'x'), TypeError);
  await orders.once('f', () => 1, { fingerprint: { b: [{ d: 1, c: 2 }], a: 1 } });
  const same = { fingerprint: { a: 1, b: [{ c: 2, d: 1 }] } };
  assert.equal((await orders.once('f', () => 2, same)).value, 1);
  await assert.rejects(orders.once('f', never, { fingerprint: { a: 2 } }), semel.MismatchError);
  await n.call('SET', 'orders:text', 'x');
  await assert.rejects(orders.once('text', never), /^.*WRONGTYPE/);
});
