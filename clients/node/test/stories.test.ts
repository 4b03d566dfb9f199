// Locks that are shared or lost, replies that are late, lost or transient, and calls that are left.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as semel from '../src/index.js';
import { Claims, Tokens } from '../src/index.js';
import { driverOf, type Driver } from '../src/drivers.js';
import { expected, kinds, never, Node, skip, until } from './node.js';

const why = new Error('the user left');
const strays: unknown[] = [];
process.on('unhandledRejection', (error) => strays.push(error));
process.on('uncaughtExceptionMonitor', (error) => strays.push(error));

for (const kind of kinds) {
  test(`once-again-12: a lock that two tasks share lets one in at a time, ${kind}`, { skip },
    async (t) => {
      const n = await Node.start(t);
      const locks = new Claims(await n.client(kind), 'locks', { policy: { as: 'lock' } });
      let inside = 0;
      await Promise.all(Array.from({ length: 8 }, async () => {
        const lock = await locks.lock('k');
        assert.equal(++inside, 1);
        await new Promise(setImmediate);
        --inside;
        await lock.unlock();
      }));
      // The owner is the acquisition: what is done with it twice, or with a copy, is nothing.
      const first = await locks.tryLock('k');
      await Promise.all([first.unlock(), first.unlock()]);
      const second = await locks.tryLock('k');
      await first.unlock();
      await first[Symbol.asyncDispose]();
      for (const copy of [{ ...first }, Object.create(second),
        structuredClone(second)] as semel.Lock[]) {
        await assert.rejects(async () => copy.unlock(), TypeError);
      }
      await assert.rejects(locks.tryLock('k'), semel.InFlightError);
      assert.equal(second.isLost, false);
      await second.unlock();
    });

  test(`once-again-26: unlock of a lock that was lost says so, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const proxy = await n.proxy();
    const locks = new Claims(await n.client(kind, proxy.port), 'locks', { policy: { as: 'lock' } });
    const lose = async (key: string): Promise<semel.Lock> => {
      const lost = await locks.tryLock(key);
      await n.advance(3_600_000); // no timer of the client has run
      const other = await locks.tryLock(key);
      assert.ok(other.token > lost.token);
      await other.unlock();
      return lost;
    };
    const gone = await lose('gone');
    await assert.rejects(gone.unlock(), semel.LeaseLostError);
    await assert.rejects(gone.unlock(), semel.LeaseLostError); // as the first call
    assert.ok(gone.isLost);
    await assert.rejects(async () => {
      await using lock = await lose('block');
      assert.ok(lock);
    }, semel.LeaseLostError);
    const forgotten = await locks.tryLock('forgotten');
    await n.call('SEMEL.FORGET', 'locks', 'forgotten');
    await assert.rejects(forgotten.unlock(), semel.LeaseLostError);
    // A release whose reply was lost is not a lost lock.
    const kept = await locks.tryLock('kept');
    proxy.cut('SEMEL.RELEASE', 1);
    await kept.unlock();
    assert.equal(await n.state('locks', 'kept'), 'absent');
  });

  test(`once-again-26: a loop that was blocked knows that its lock is lost, ${kind}`, { skip },
    async (t) => {
      const n = await Node.start(t);
      const locks = new Claims(await n.client(kind), 'locks', { lease: 60 });
      const lock = await locks.tryLock('k');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 90);
      assert.equal(lock.isLost, true); // before any timer
      await n.advance(3_600_000);
      await (await locks.tryLock('k')).unlock();
      await assert.rejects(lock.unlock(), semel.LeaseLostError);
    });
}

const transient = ['-BUSY a script runs', '+-TRYAGAIN not synced', '-LOADING', '-MASTERDOWN no link',
  '-CLUSTERDOWN', '-READONLY a replica', '-MOVED 1 127.0.0.1:1', '-ASK 1 127.0.0.1:1',
  '-OOM limit', '-MISCONF the disk'] as const;

for (const kind of ['ioredis, RESP2', 'node-redis, RESP3'] as const) {
  test(`once-again-26: transient errors are asked again, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const proxy = await n.proxy();
    const client = await n.client(kind, proxy.port);
    for (const [i, error] of transient.entries()) {
      const [name, token] = [`ns${i}`, `token${i}`];
      const claims = new Claims(client, name, { policy: { onException: 'keep' } });
      for (const word of ['SEMEL.NAMESPACE', 'SEMEL.CLAIM', 'SEMEL.COMPLETE']) {
        proxy.rule(word, error, 3);
        const key = word.slice('SEMEL.'.length); // the rule is not to meet the key
        const running = claims.once(key, () => 'paid');
        if (error === '-OOM limit' && word === 'SEMEL.COMPLETE') { // the mark is asked again
          await assert.rejects(running, semel.ResultNotKeptError);
        } else {
          const done = await running;
          assert.deepEqual([done.value, done.replayed, done.attempt], ['paid', false, 1]);
        }
        assert.equal(await n.state(name, key), 'done');
        assert.equal((await claims.consumeOnce(key, never)).duplicate, true);
      }
      proxy.rule('SEMEL.FAIL', error, 3);
      await assert.rejects(claims.once('fails', () => { throw why; }), why);
      assert.equal(await n.state(name, 'fails'), 'failed');
      const lock = await claims.tryLock('lock');
      proxy.rule('SEMEL.RELEASE', error, 3);
      await lock.unlock();
      assert.equal(await n.state(name, 'lock'), 'absent');
      const held = await claims.tryLock('waits');
      proxy.rule('SEMEL.WAIT', error.replace('+', '') as '-', 3);
      const waiting = claims.lock('waits', { wait: 20_000 });
      await until('it waits', async () => await n.waiters() === 1);
      await held.unlock();
      await (await waiting).unlock();
      const tokens = new Tokens(client, `tokens${i}`);
      proxy.rule('SEMEL.ISSUE', error.replace('+', '') as '-', 3);
      assert.equal(await tokens.issueAs(token, 60_000), true);
      await tokens.consume(token);
      proxy.clear();
    }
    // Without patience nothing ran and nothing is held.
    const claims = new Claims(client, 'ns0');
    await claims.once('before', () => 1);
    proxy.rule('SEMEL.CLAIM', '-BUSY a script runs', 1_000_000);
    const short = { patience: 100 };
    await assert.rejects(claims.once('k', never, short), (error: unknown) =>
      error instanceof semel.UnavailableError && !error.uncertain && /BUSY/.test(error.message));
    assert.equal((await claims.consumeOnce('k', never, short)).verdict, 'retry');
    proxy.clear();
    assert.equal(await n.state('ns0', 'k'), 'absent');
    proxy.rule('SEMEL.COMPLETE', '-BUSY a script runs', 1_000_000);
    await assert.rejects(claims.once('k', () => 'paid', { patience: 1000 }), (error: unknown) =>
      error instanceof semel.UnrecordedError && error.value === 'paid');
    proxy.clear();
    // What the node would say again is not.
    proxy.rule('SEMEL.CLAIM', '-BUSYKEY no', 1);
    await assert.rejects(claims.once('k2', never), /BUSYKEY/);
  });

  test(`once-again-26: a script that runs is waited for, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const orders = new Claims(await n.client(kind), 'orders');
    await orders.once('before', () => 1);
    await n.call('CONFIG', 'SET', 'busy-reply-threshold', '1');
    const script = n.second().call('EVAL', 'while true do end', '0');
    script.catch(() => {});
    await until('the node is busy', () => n.call('PING').then(() => false,
      (error: Error) => /^BUSY/.test(error.message)));
    const during = orders.once('k', () => 'paid');
    const sent = proxyless(during);
    await new Promise((resolve) => setTimeout(resolve, 30));
    assert.equal(sent.settled, false);
    await n.call('SCRIPT', 'KILL');
    assert.equal((await during).value, 'paid');
    assert.equal(await n.state('orders', 'k'), 'done');
  });
}

function proxyless(work: Promise<unknown>): { settled: boolean } {
  const seen = { settled: false };
  work.then(() => { seen.settled = true; }, () => { seen.settled = true; });
  return seen;
}

for (const kind of kinds) {
  test(`once-again-22: a call that is left rejects at once and holds nothing, ${kind}`, { skip },
    async (t) => {
      const n = await Node.start(t);
      const proxy = await n.proxy();
      const client = await n.client(kind, proxy.port);
      await n.call('SEMEL.NAMESPACE', 'orders', 'LEASE', '3600000');
      for (const [i, deed] of (['hold', 'cut', 'lose'] as const).entries()) {
        for (const word of ['SEMEL.NAMESPACE', 'SEMEL.CLAIM']) {
          const key = `${deed} ${word}`;
          const orders = new Claims(client, 'orders');
          const left = new AbortController();
          proxy.rule(word, deed, 1 + i);
          const already = proxy.done;
          const call = orders.once(key, never, { signal: left.signal });
          call.catch(() => {});
          await until('the node was asked', () => proxy.done > already);
          left.abort(why);
          const begun = performance.now();
          await assert.rejects(call, why);
          assert.ok(performance.now() - begun < 500, `${key}: it was left after a while`);
          proxy.clear();
          await until(`${key} is free`, async () => await n.state('orders', key) === 'absent');
        }
      }
      // The calls that follow are not disturbed.
      const orders = new Claims(client, 'orders');
      assert.equal((await orders.once('hold SEMEL.CLAIM', () => 'ran')).value, 'ran');
    });

  test(`once-again-22: a wait that is left holds nothing, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const proxy = await n.proxy();
    const as = { policy: { as: 'lock' } } as const;
    const locks = new Claims(await n.client(kind, proxy.port), 'locks', as);
    const direct = new Claims(await n.client(kind), 'locks', as);
    // HELLO or CLIENT: of the waiting connection, before it waits.
    for (const [word, deed] of [['CLIENT', 'hold'], ['CLIENT', 'lose'], ['ID', 'hold'],
      ['ID', 'cut'], ['SEMEL.WAIT', 'hold'], ['SEMEL.WAIT', 'cut'], ['SEMEL.WAIT', 'lose']] as const) {
      // A wait that was on its way when its caller left is granted, and given back in a moment.
      const lock = await direct.lock('k', { wait: 10_000 });
      const left = new AbortController();
      const already = proxy.done;
      proxy.rule(word, deed, 1);
      const call = locks.lock('k', { signal: left.signal, lease: 3_600_000 });
      call.catch(() => {});
      await until(`the rule was followed: ${word} ${deed}`, () => proxy.done > already);
      const unlocked = lock.unlock();
      left.abort(why);
      const begun = performance.now();
      await assert.rejects(call, why);
      assert.ok(performance.now() - begun < 500, `${word} ${deed}: it was left after a while`);
      await unlocked;
      proxy.clear();
      await until(`nobody holds it, ${word} ${deed}`,
        async () => await n.state('locks', 'k') === 'absent' && await n.waiters() === 0);
    }
    // Nor is a grant lost with its reply, if nobody left.
    const lock = await direct.tryLock('k');
    proxy.cut('SEMEL.WAIT', 1);
    const call = locks.lock('k', { lease: 3_600_000 });
    await until('it waits', async () => await n.waiters() === 1);
    await lock.unlock();
    await (await call).unlock();
  });

  test(`once-again-22: a reply that comes after the patience is given back, ${kind}`, { skip },
    async (t) => {
      const n = await Node.start(t);
      const proxy = await n.proxy();
      const payments = new Claims(await n.client(kind, proxy.port), 'payments',
        { policy: { as: 'payment', lease: 3_600_000 } });
      const firstSent = new Date();
      await payments.once('before', () => 1, { firstSent });
      for (const [deed, times] of [['hold', 1], ['cut', 1_000_000], ['lose', 1_000_000],
        ['+-TRYAGAIN not synced', 1_000_000]] as const) {
        proxy.rule('SEMEL.CLAIM', deed, times);
        const short = { firstSent, patience: 150 };
        await assert.rejects(payments.once(deed, never, short), (error: unknown) =>
          error instanceof semel.UnavailableError && error.uncertain);
        if (deed !== 'lose') assert.equal(await n.state('payments', deed), 'held');
        proxy.clear();
        await until(`${deed}: it is given back`,
          async () => await n.state('payments', deed) === 'absent');
        assert.equal((await payments.once(deed, () => 'paid', { firstSent })).value, 'paid');
      }
    });
}

test('once-again-22: a function that is left at its end is recorded', { skip }, async (t) => {
  const n = await Node.start(t);
  const proxy = await n.proxy();
  const orders = new Claims(await n.client('node-redis, RESP3', proxy.port), 'orders');
  const left = new AbortController();
  proxy.rule('SEMEL.COMPLETE', 'hold');
  const call = orders.once('k', () => 'paid', { signal: left.signal });
  call.catch(() => {});
  await until('it ends', () => proxy.done === 1);
  left.abort(why);
  await assert.rejects(call, why); // after its second of grace
  proxy.clear();
  assert.equal(await n.state('orders', 'k'), 'done');
});

test('once-again-22: a claim whose node is killed is given back when it is here again', { skip },
  async (t) => {
    const n = await Node.start(t, '--storage-enabled', 'yes', '--durability', 'logged',
      '--dir', 'FOLDER/storage');
    for (const kind of kinds) {
      const proxy = await n.proxy();
      const orders = new Claims(await n.client(kind, proxy.port), 'orders',
        { lease: 3_600_000 });
      await orders.once(`before ${kind}`, () => 1);
      proxy.rule('SEMEL.CLAIM', 'hold', 1_000_000);
      const call = orders.once(kind, never, { patience: 300 });
      call.catch(() => {});
      await until('it is held', async () => await n.state('orders', kind) === 'held');
      await n.kill();
      await assert.rejects(call, semel.UnavailableError);
      proxy.clear();
      await n.run();
      await until('it is given back', async () => await n.state('orders', kind) === 'absent');
      assert.equal((await orders.once(kind, () => 'ran')).value, 'ran');
    }
  });

test('once-again-25: an epoch that the driver rounds is asked for again', { skip }, async (t) => {
  const n = await Node.start(t);
  const real = driverOf(await n.client('ioredis, RESP2'));
  let rounds = true;
  const rounding: Driver = {
    ...real,
    async send(words) {
      const reply = await real.send(words);
      if (!rounds || !Array.isArray(reply)) return reply;
      return reply.map((each, i) => (String(reply[i - 1]) === 'epoch' ? 2 ** 53 + 2 : each));
    },
  };
  const orders = new Claims(rounding, 'orders');
  const done = await orders.once('k', ({ epoch }) => String(epoch));
  assert.ok(done.epoch > 0n && done.epoch < 1000n);
  assert.equal(await n.state('orders', 'k'), 'done');
  await (await orders.tryLock('lock')).unlock();
  assert.equal(await n.state('orders', 'lock'), 'absent');
  const broken = new Claims({ ...rounding, open: () => Promise.reject(new Error('no connection')) },
    'orders');
  await assert.rejects(broken.once('broken', never), /no connection/);
  rounds = false;
  await until('it is given back', async () => await n.state('orders', 'broken') === 'absent');
});

for (const kind of kinds) {
  test(`a client that is closed runs nothing and hangs nothing, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const client = await n.client(kind) as unknown as {
      disconnect?: () => void; destroy?: () => void };
    const orders = new Claims(client as unknown as semel.AnyClient, 'orders', { patience: 100 });
    const finish = expected<string>();
    await orders.once('before', () => 1, { patience: 5000 }).catch(() => {});
    await until('the policy was read', () => orders.ready().then(() => true, () => false));
    let begun = false;
    const running = orders.once('k', () => { begun = true; return finish.promise; },
      { lease: 60_000, patience: 5000 });
    running.catch(() => {});
    await until('it runs', () => Promise.resolve(begun)); // the node's answer is here as well
    if (client.destroy) client.destroy(); else client.disconnect?.();
    await assert.rejects(orders.once('other', never), semel.UnavailableError);
    await assert.rejects(orders.lock('other'), semel.UnavailableError);
    assert.equal((await orders.consumeOnce('other', never)).verdict, 'retry');
    finish.fulfil('paid');
    await assert.rejects(running, (error: unknown) =>
      error instanceof semel.UnrecordedError && error.value === 'paid');
    assert.equal(await n.state('orders', 'other'), 'absent');
  });
}

test('nothing of all this was an unhandled rejection', () => {
  assert.deepEqual(strays, []);
});
