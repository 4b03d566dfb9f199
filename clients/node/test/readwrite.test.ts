import assert from 'node:assert/strict';
import test from 'node:test';
import { Claims, InFlightError, KeyError, LeaseLostError, UnavailableError } from '../src/index.js';
import { Node, kinds, skip, until } from './node.js';

const policy = { as: 'lock' } as const;

for (const kind of kinds) {
  test(`${kind}: a read/write lock has many readers or one writer`, { skip }, async (t) => {
    const node = await Node.start(t);
    const locks = new Claims(await node.client(kind), 'locks', { policy });
    const one = await locks.tryReadLock('k');
    const other = await locks.readLock('k');
    await assert.rejects(locks.tryWriteLock('k'), InFlightError);
    await assert.rejects(locks.writeLock('k', { wait: 20 }), InFlightError);
    const third = await locks.tryReadLock('k'); // the writer that gave up is not next any more
    for (const each of [one, other, third]) await each.release();
    await one.release();
    const writer = await locks.tryWriteLock('k');
    assert.ok(writer.token > other.token);
    await assert.rejects(locks.tryReadLock('k'), InFlightError);
    await assert.rejects(locks.tryWriteLock('k'), InFlightError);
    await writer.release();
    const last = await locks.tryReadLock('k');
    assert.ok(last.token >= writer.token);
    await last.release();
  });
}

test('read/write locks: who waits is not overtaken, what is wrong, lost or left', { skip },
  async (t) => {
    const node = await Node.start(t);
    const locks = new Claims(await node.client('ioredis, RESP3'), 'locks', { policy });
    await assert.rejects(locks.tryReadLock(''), KeyError);
    const reader = await locks.readLock('k');
    const waits = locks.writeLock('k');
    await until('the writer is next', async () => {
      const found = await locks.driver.send(['SEMEL.RWLOCKS', 'locks', 'k']);
      return Array.isArray(found) && found.length === 2;
    });
    await assert.rejects(locks.tryReadLock('k'), InFlightError);
    await reader.release();
    const writer = await waits;
    await locks.driver.send(['SEMEL.FORGET', 'locks', '{k}#write']);
    await assert.rejects(writer.release(), LeaseLostError);

    const other = await locks.tryReadLock('k');
    const leaves = new AbortController();
    const left = locks.writeLock('k', { signal: leaves.signal });
    leaves.abort(new Error('left'));
    await assert.rejects(left, /left/);
    await other.release();
    await (await locks.writeLock('k', { wait: 60_000 })).release();
    await until('nobody is in', async () => {
      const found = await locks.driver.send(['SEMEL.RWLOCKS', 'locks', 'k']);
      return Array.isArray(found) && found.length === 0;
    });
  });

for (const kind of kinds) {
  test(`${kind}: who leaves while he waits for a read/write lock stops nobody`, { skip }, async (t) => {
    const node = await Node.start(t);
    const proxy = await node.proxy();
    const direct = new Claims(await node.client(kind), 'locks', { policy });
    const locks = new Claims(await node.client(kind, proxy.port), 'locks', { policy });
    const reader = await direct.readLock('k');
    const held = async (): Promise<number> =>
      (await node.call('SEMEL.RWLOCKS', 'locks', 'k') as unknown[]).length;
    const leaves = async (): Promise<void> => {
      const leaving = new AbortController();
      const waits = locks.writeLock('k', { signal: leaving.signal });
      waits.catch(() => {});
      await until('the writer is next', async () => await held() === 2);
      leaving.abort(new Error('left'));
      await assert.rejects(waits, /left/);
    };
    const ways = {
      'between two attempts': leaves,
      'in the first attempt': () => {
        proxy.rule('SEMEL.RWLOCK', 'hold');
        return leaves();
      },
      'without an answer': async () => {
        proxy.rule('SEMEL.RWLOCK', '+-BUSY a script runs'); // the first call makes him next
        proxy.rule('SEMEL.RWLOCK', '-BUSY a script runs', 1_000_000);
        await assert.rejects(locks.writeLock('k', { patience: 100 }), UnavailableError);
        assert.equal(await held(), 2);
      },
    };
    await locks.ready();
    for (const [way, leave] of Object.entries(ways)) {
      const begun = performance.now();
      const times = 4;
      for (let i = 0; i < times; ++i) {
        await leave();
        proxy.clear();
        await until('nobody is next', async () => await held() === 1);
        await (await direct.tryReadLock('k')).release();
      }
      // The place in front ends by itself after a second.
      assert.ok(performance.now() - begun < times * 500, way);
    }
    await reader.release();
  });
}
