// bottleneck, a limit that processes share: scripts over hashes and sorted sets, news by PUBLISH.
import assert from 'node:assert/strict';
import Bottleneck from 'bottleneck';
import Redis from 'ioredis';
import { check, end, host, port, until } from '../report.mjs';
import { endWithSuite, isWorker, pause, startWorker, store } from './workers.mjs';

function open(id, settings) {
  return new Bottleneck({
    id, datastore: 'ioredis', Redis, clientOptions: { host, port }, ...settings,
  });
}

const heldSettings = { maxConcurrent: 1, heartbeatInterval: 100 };
const LOST_MS = 1_500;  // a job that has taken so long is no more counted

async function suite() {
  await check('jobs of two, one at a time', async () => {
    const sides = [0, 1].map(() => open('one', { maxConcurrent: 1 }));
    let now = 0;
    let most = 0;
    const done = await Promise.all(Array.from({ length: 20 }, (_, n) => sides[n % 2].schedule(
      async () => {
        now += 1;
        most = Math.max(most, now);
        await pause(2);
        now -= 1;
        return n;
      })));
    assert.deepEqual(done, Array.from({ length: 20 }, (_, n) => n));
    assert.equal(most, 1);
    await Promise.all(sides.map((side) => side.disconnect()));
  });

  await check('a reservoir that is filled again', async () => {
    const limiter = open('reservoir', {
      reservoir: 3, reservoirRefreshAmount: 3, reservoirRefreshInterval: 500,
      heartbeatInterval: 50,
    });
    await limiter.ready();
    const began = Date.now();
    const times = await Promise.all(Array.from({ length: 6 }, () => (
      limiter.schedule(async () => Date.now() - began))));
    assert.ok(times[2] < 450, times.join());
    assert.ok(times[5] - times[0] >= 300, times.join());
    await limiter.disconnect();
  });

  await check('limit hit: a job is refused', async () => {
    const limiter = open('refused', {
      maxConcurrent: 1, highWater: 0, strategy: Bottleneck.strategy.OVERFLOW,
    });
    const first = limiter.schedule(() => pause(200));
    await until(async () => (await limiter.running()) === 1);
    await assert.rejects(limiter.schedule(() => pause(1)), Bottleneck.BottleneckError);
    await first;
    await limiter.disconnect();
  });

  await check('the least time between two', async () => {
    const limiter = open('apart', { minTime: 100 });
    const began = Date.now();
    await Promise.all(Array.from({ length: 4 }, () => limiter.schedule(async () => 0)));
    assert.ok(Date.now() - began >= 290);
    await limiter.disconnect();
  });

  await check('one killed in the middle: its place is free again', async () => {
    const worker = startWorker();
    await until(() => store.exists('held:started'));
    await worker.kill();
    const limiter = open('held', heldSettings);
    await limiter.ready();
    assert.equal(await limiter.running(), 1);
    assert.equal(await limiter.schedule({ expiration: LOST_MS }, async () => 'mine'), 'mine');
    await limiter.disconnect();
  });
  end();
}

if (isWorker) {
  endWithSuite();
  await open('held', heldSettings).schedule({ expiration: LOST_MS }, async () => {
    await store.incr('held:started');
    await new Promise(() => {});
  });
} else {
  await suite();
}
