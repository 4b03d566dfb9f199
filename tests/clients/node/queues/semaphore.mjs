// redis-semaphore: sorted sets of holders by the time at which they end.
import assert from 'node:assert/strict';
import { Mutex, MultiSemaphore, Semaphore } from 'redis-semaphore';
import { check, end, until } from '../report.mjs';
import { endWithSuite, isWorker, pause, startWorker, store } from './workers.mjs';

const atOnce = { acquireAttemptsLimit: 1 };  // tryAcquire waits, otherwise
const short = { lockTimeout: 500, refreshInterval: 100 };

async function suite() {
  await check('a lock', async () => {
    const mine = new Mutex(store, 'lock', atOnce);
    const other = new Mutex(store, 'lock', atOnce);
    await mine.acquire();
    assert.equal(await other.tryAcquire(), false);
    await mine.release();
    assert.equal(await other.tryAcquire(), true);
    await other.release();
  });

  await check('limit hit: three places, ten that want one', async () => {
    const each = Array.from({ length: 10 }, () => new Semaphore(store, 'places', 3, atOnce));
    const got = await Promise.all(each.map((one) => one.tryAcquire()));
    assert.equal(got.filter(Boolean).length, 3);
    await each[got.indexOf(true)].release();
    const granted = await each[got.indexOf(false)].tryAcquire();
    assert.equal(granted, true);
    await Promise.all(each.map((one) => one.release()));
    assert.equal(await store.zcard('semaphore:places'), 0);
  });

  await check('several places at once', async () => {
    const mine = new MultiSemaphore(store, 'many', 5, 3, atOnce);
    const other = new MultiSemaphore(store, 'many', 5, 3, atOnce);
    assert.equal(await mine.tryAcquire(), true);
    assert.equal(await other.tryAcquire(), false);
    await mine.release();
    assert.equal(await other.tryAcquire(), true);
    await other.release();
  });

  await check('a holder that lives keeps its place', async () => {
    const mine = new Semaphore(store, 'kept', 1, short);
    await mine.acquire();
    await pause(1_000);
    assert.equal(await new Semaphore(store, 'kept', 1, { ...short, ...atOnce }).tryAcquire(), false);
    await mine.release();
  });

  await check('twenty at once, two places: never three', async () => {
    let now = 0;
    let most = 0;
    await Promise.all(Array.from({ length: 20 }, async () => {
      const one = new Semaphore(store, 'crowd', 2, { retryInterval: 5 });
      await one.acquire();
      now += 1;
      most = Math.max(most, now);
      await pause(3);
      now -= 1;
      await one.release();
    }));
    assert.ok(most <= 2, `${most}`);
  });

  await check('one killed in the middle: its place is free again', async () => {
    const worker = startWorker();
    await until(() => store.exists('held:started'));
    const other = new Semaphore(store, 'held', 1, { ...short, retryInterval: 20 });
    assert.equal(await new Semaphore(store, 'held', 1, atOnce).tryAcquire(), false);
    await worker.kill();
    await other.acquire();
    await other.release();
  });
  end();
}

if (isWorker) {
  endWithSuite();
  await new Semaphore(store, 'held', 1, short).acquire();
  await store.incr('held:started');
} else {
  await suite();
}
