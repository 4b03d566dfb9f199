import assert from 'node:assert/strict';
import test from 'node:test';
import { Claims, InFlightError, KeyError, LeaseLostError, OptionError, UnavailableError,
  type Observed } from '../src/index.js';
import { Node, kinds, skip, until } from './node.js';

const policy = { as: 'lock' } as const;

for (const kind of kinds) {
  test(`${kind}: locks of several keys are all or none`, { skip }, async (t) => {
    const node = await Node.start(t);
    const heard: Observed[] = [];
    const locks = new Claims(await node.client(kind), 'locks',
      { policy, observer: (seen) => heard.push(seen) });
    const both = await locks.lockAll(['b', Buffer.from('a'), 'b']);
    assert.ok(both.token('a') > 0n && both.token(Buffer.from('b')) > 0n);
    assert.equal(both.token('c'), 0n);
    await assert.rejects(locks.tryLockAll(['c', 'a', 'd']), InFlightError);
    await assert.rejects(locks.lockAll(['c', 'a'], { wait: 20 }), InFlightError);
    assert.deepEqual(heard.splice(0).map(({ event, key }) => [event, String(key)]),
      [['rejected', 'a'], ['rejected', 'a']]); // the key that is in the way
    await (await locks.tryLock('c')).unlock();
    await assert.rejects(locks.tryLock('b'), InFlightError);
    assert.equal(both.isLost, false);
    await both.unlock();
    await both.unlock();
    const binary = Buffer.from([0, 255, 10]);
    await using again = await locks.tryLockAll(['a', 'b', binary]);
    assert.ok(again.token(binary) > 0n);
  });
}

test('locks: what is wrong, lost or left', { skip }, async (t) => {
  const node = await Node.start(t);
  const client = await node.client('ioredis, RESP3');
  const locks = new Claims(client, 'locks', { policy });
  const many = Array.from({ length: 1025 }, (_, i) => String(i));
  for (const wrong of [[], many, 'ab', undefined]) {
    await assert.rejects(locks.tryLockAll(wrong as never), OptionError);
  }
  for (const wrong of [['a', ''], ['a', 'k'.repeat(70_000)]]) {
    await assert.rejects(locks.tryLockAll(wrong), KeyError);
  }
  await assert.rejects(locks.tryLockAll(['a', null as never]));
  await (await locks.tryLockAll(many.slice(0, 1024))).unlock();
  await new Claims(client, 'locks').once('done', () => 'paid');
  const held = await locks.tryLock('held');
  await assert.rejects(locks.lockAll(['held', 'done']), /finished work/);
  await held.unlock();

  const both = await locks.tryLockAll(['a', 'b'], { lease: 300 });
  await locks.driver.send(['SEMEL.FORGET', 'locks', 'b']);
  await until('the loss is noticed', () => both.signal.aborted);
  assert.ok(both.signal.reason instanceof LeaseLostError && both.isLost);
  const other = await locks.tryLock('b');
  await assert.rejects(both.unlock(), LeaseLostError);
  await assert.rejects(both.unlock(), LeaseLostError);
  await (await locks.tryLock('a')).unlock(); // the rest was given back, the next holder's was not
  const leaves = new AbortController();
  const waits = locks.lockAll(['a', 'b'], { signal: leaves.signal });
  leaves.abort(new Error('left'));
  await assert.rejects(waits, /left/);
  await other.unlock();
  await (await locks.lockAll(['a', 'b'], { wait: 20_000 })).unlock();
});

test('locks: callers who name the keys in all orders', { skip }, async (t) => {
  const node = await Node.start(t);
  const locks = new Claims(await node.client('ioredis, RESP3'), 'locks', { policy });
  const keys = ['a', 'b', 'c'];
  let inside = 0;
  await Promise.all(Array.from({ length: 8 }, async (_, i) => {
    for (let round = 0; round < 5; ++round) {
      const held = await locks.lockAll([...keys.slice(i % 3), ...keys.slice(0, i % 3)]);
      assert.equal(++inside, 1);
      await Promise.resolve();
      --inside;
      await Promise.all([held.unlock(), held.unlock()]); // two share it
    }
  }));
});

test('locks: a grant after the patience is given back', { skip }, async (t) => {
  const node = await Node.start(t);
  const locks = new Claims(await node.client('ioredis, RESP3'), 'locks', { policy });
  await (await locks.tryLockAll(['a', 'b'])).unlock();
  await node.stop();
  await assert.rejects(locks.tryLockAll(['a', 'b'], { patience: 100 }), UnavailableError);
  node.goOn();
  await (await locks.lockAll(['a', 'b'], { wait: 20_000 })).unlock();
});

for (const kind of kinds) {
  test(`${kind}: a grant whose reply was lost before the node was busy is given back`, { skip },
    async (t) => {
      const node = await Node.start(t);
      const proxy = await node.proxy();
      const locks = new Claims(await node.client(kind, proxy.port), 'locks', { policy });
      await locks.ready();
      proxy.cut('SEMEL.CLAIMALL', 1); // ioredis repeats it by itself
      proxy.rule('SEMEL.CLAIMALL', '-BUSY a script runs', 1_000_000);
      await assert.rejects(locks.tryLockAll(['a', 'b'], { patience: 300 }), UnavailableError);
      assert.equal(await node.state('locks', 'a'), 'held');
      proxy.clear();
      await until('they are given back', async () =>
        [await node.state('locks', 'a'), await node.state('locks', 'b')].every((each) => each === 'absent'));
    });
}
