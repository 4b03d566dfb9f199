import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as semel from '../src/index.js';
import { Claims } from '../src/index.js';
import { aborted, expected, kinds, never, Node, skip, until } from './node.js';

const why = new Error('the user left');

for (const kind of kinds) {
  test(`a signal that is aborted, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const orders = new Claims(await n.client(kind), 'orders');
    const gone = AbortSignal.abort(why);
    await assert.rejects(orders.once('k', never, { signal: gone }), why);
    await assert.rejects(orders.lock('k', { signal: gone }), why);
    assert.equal(await n.state('orders', 'k'), 'absent');

    const lock = await orders.tryLock('k');
    const waits = new AbortController();
    const waiting = orders.once('k', never, { signal: waits.signal, wait: Infinity });
    waiting.catch(() => {});
    await until('it waits', async () => await n.waiters() === 1);
    waits.abort(why);
    await assert.rejects(waiting, why);
    await until('nobody waits', async () => await n.waiters() === 0);
    await lock.unlock();

    const runs = new AbortController();
    await assert.rejects(orders.once('run', async ({ signal }) => {
      runs.abort(why);
      await aborted(signal);
      throw signal.reason;
    }, { signal: runs.signal }), why);
    assert.equal(await n.state('orders', 'run'), 'absent');
    const finishes = new AbortController();
    await orders.once('run', () => finishes.abort(why), { signal: finishes.signal });
    assert.equal(await n.state('orders', 'run'), 'done');

    // One that ignores its signal is not waited for.
    const ignores = new AbortController();
    const finish = expected();
    const ignoring = orders.once('ignores', () => {
      ignores.abort(why);
      return finish.promise;
    }, { signal: ignores.signal });
    await assert.rejects(ignoring, why);
    assert.equal(await n.state('orders', 'ignores'), 'held');
    finish.fulfil();
    await until('it is recorded', async () => await n.state('orders', 'ignores') === 'done');
  });

  test(`a waiter that left holds nothing, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    for (const as of ['lock', 'fair-lock'] as const) {
      const locks = new Claims(await n.client(kind), as, { policy: { as } });
      for (let round = 0; round < 15; ++round) {
        const held = await locks.tryLock('k');
        const waits = new AbortController();
        const waiting = locks.lock('k', { signal: waits.signal })
          .then((lock) => lock.unlock(), (error) => assert.equal(error, why));
        await until('it waits', async () => await n.waiters() === 1);
        const unlocked = held.unlock();
        if (round % 2) await Promise.resolve();
        waits.abort(why);
        await Promise.all([waiting, unlocked]);
        const next = await locks.lock('k', { wait: 5000 });
        await next.unlock();
      }
    }
  });

  test(`lost replies are asked again, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const proxy = await n.proxy();
    const orders = new Claims(await n.client(kind, proxy.port), 'orders');
    for (const word of ['SEMEL.NAMESPACE', 'SEMEL.CLAIM', 'SEMEL.COMPLETE']) {
      proxy.cut(word, 2);
      const done = await orders.once(word, () => 'x');
      assert.deepEqual([done.value, done.attempt, done.replayed], ['x', 1, false]);
      assert.equal(await n.state('orders', word), 'done');
    }
    proxy.cut('SEMEL.FAIL', 2);
    await assert.rejects(orders.once('f', () => { throw why; }), why);
    assert.equal(await n.state('orders', 'f'), 'absent');
    const lock = await orders.tryLock('l');
    proxy.cut('SEMEL.RELEASE', 1);
    await lock.unlock();
    assert.equal(await n.state('orders', 'l'), 'absent');
    const finish = expected();
    const running = orders.once('w', () => finish.promise);
    await until('it runs', async () => await n.state('orders', 'w') === 'held');
    proxy.cut('SEMEL.WAIT', 1);
    const waiting = orders.once('w', never, { wait: Infinity });
    await until('it waits', async () => await n.waiters() === 1);
    finish.fulfil();
    assert.equal((await waiting).replayed, true);
    await running;
  });

  test(`a lost lease aborts the signal, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const orders = new Claims(await n.client(kind), 'orders', { lease: 150 });
    const loses = async ({ signal }: semel.Work): Promise<string> => {
      await n.advance(3_600_000);
      await aborted(signal);
      assert.ok(signal.reason instanceof semel.LeaseLostError);
      return 'late';
    };
    assert.equal((await orders.once('late', loses)).late, true);
    await n.call('SEMEL.NAMESPACE', 'strict', 'STRICT');
    const strict = new Claims(await n.client(kind), 'strict', { lease: 150 });
    await assert.rejects(strict.once('k', loses), semel.LeaseLostError);
    await assert.rejects(orders.once('taken', async ({ signal, epoch }) => {
      await n.advance(3_600_000);
      const second = await orders.once('taken', () => 'second');
      assert.ok(second.epoch > epoch);
      await aborted(signal);
      return 'first';
    }), semel.LeaseLostError);
    assert.equal((await orders.once('taken', never)).value, 'second');
  });

  test(`a node that is killed, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const orders = new Claims(await n.client(kind), 'orders', { lease: 300, patience: 400 });
    await assert.rejects(orders.once('k', async ({ signal }) => {
      await n.kill();
      await aborted(signal);
      return 'paid';
    }), (error: unknown) => error instanceof semel.UnrecordedError && error.value === 'paid'
      && error.cause instanceof semel.UnavailableError);
    await assert.rejects(orders.once('k', never), semel.UnavailableError);
    await assert.rejects(orders.lock('k'), semel.UnavailableError);
    assert.equal((await orders.consumeOnce('k', never)).verdict, 'retry');
    await n.run();
    const again = new Claims(await n.client(kind), 'again', { lease: 300, patience: 400 });
    const lock = await again.lock('l');
    const waiting = again.lock('l');
    waiting.catch(() => {});
    await until('it waits', async () => await n.waiters() === 1);
    await n.kill();
    await assert.rejects(waiting, semel.UnavailableError);
    await aborted(lock.signal);
    assert.ok(lock.isLost);
    await assert.rejects(lock.unlock());
  });
}

test('the lease is renewed while the work runs', { skip }, async (t) => {
  const n = await Node.start(t);
  const orders = new Claims(await n.client('ioredis, RESP3'), 'orders');
  await orders.once('k', () => until('three renewals', async () => await n.renewals() >= 3),
    { lease: 100 });
  // Shorter than a round trip: it may be lost, but nothing hangs, and the error says so.
  await orders.once('short', () => 1, { lease: 1 })
    .catch((error) => assert.ok(error instanceof semel.LeaseLostError));
});

test('work that never ends is given up', { skip }, async (t) => {
  const n = await Node.start(t);
  const orders = new Claims(await n.client('node-redis, RESP3'), 'orders');
  await assert.rejects(orders.once('k', () => new Promise(() => {}), { lease: 60, runMax: 100 }),
    semel.LeaseLostError);
  const consumed = await orders.consumeOnce('m', () => new Promise(() => {}),
    { lease: 60, runMax: 100 });
  assert.equal(consumed.verdict, 'retry');
});

test('a node that is restarted while the work runs', { skip }, async (t) => {
  const n = await Node.start(t, '--storage-enabled', 'yes', '--durability', 'logged',
    '--dir', 'FOLDER/storage');
  for (const kind of kinds) {
    const orders = new Claims(await n.client(kind), 'orders');
    const done = await orders.once(kind, async () => {
      await n.kill();
      await n.run();
      return 'paid';
    });
    assert.equal(done.value, 'paid');
    assert.equal((await orders.once(kind, never)).value, 'paid');
  }
});

test('a node that forgets is not mistaken', { skip }, async (t) => {
  const n = await Node.start(t);
  const orders = new Claims(await n.client('ioredis, RESP3'), 'orders', { policy: { as: 'call' } });
  await assert.rejects(orders.once('k', async () => {
    await n.kill();
    await n.run();
    return 'paid';
  }), semel.UnrecordedError);
  assert.equal((await orders.once('k', () => 'again')).value, 'again');
});
