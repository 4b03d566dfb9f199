// rate-limiter-flexible on ioredis: consuming is a script, what is around it are transactions.
import assert from 'node:assert/strict';
import Redis from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { check, checkScripts, end, host, port, until } from './report.mjs';

const client = new Redis({ host, port });
const limiter = new RateLimiterRedis({ storeClient: client, points: 3, duration: 60 });

await check('handshake', async () => assert.equal(await client.ping(), 'PONG'));

await check('set and get', async () => {
  assert.equal(await limiter.get('nobody'), null);
  await limiter.set('one', 2, 60);
  const found = await limiter.get('one');
  assert.equal(found.consumedPoints, 2);
  assert.equal(found.remainingPoints, 1);
  assert.ok(found.msBeforeNext > 0 && found.msBeforeNext <= 60_000);
});

await check('block and delete', async () => {
  await limiter.block('two', 60);
  assert.ok((await limiter.get('two')).consumedPoints > 3);
  assert.equal(await limiter.delete('two'), true);
  assert.equal(await limiter.get('two'), null);
});

await checkScripts('consume, to the limit', async () => {
  for (let left = 2; left >= 0; --left) {
    assert.equal((await limiter.consume('three')).remainingPoints, left);
  }
  await assert.rejects(limiter.consume('three'), (limit) => limit.remainingPoints === 0);
  assert.equal((await limiter.consume('four', 3)).remainingPoints, 0);
});

await checkScripts('a hundred at once: as many as there are points', async () => {
  const crowd = new RateLimiterRedis({
    storeClient: client, points: 17, duration: 60, keyPrefix: 'crowd' });
  const got = await Promise.allSettled(Array.from({ length: 100 }, () => crowd.consume('all')));
  assert.equal(got.filter((each) => each.status === 'fulfilled').length, 17);
  assert.ok(got.every((each) => each.status === 'fulfilled' || each.reason.msBeforeNext > 0));
});

await checkScripts('blocked for longer than the window', async () => {
  const strict = new RateLimiterRedis({
    storeClient: client, points: 1, duration: 1, blockDuration: 600, keyPrefix: 'strict' });
  await strict.consume('one');
  await assert.rejects(strict.consume('one'), (limit) => limit.msBeforeNext > 500_000);
  await assert.rejects(strict.consume('one'), (limit) => limit.msBeforeNext > 500_000);
});

await checkScripts('a window that ends, and one that never does', async () => {
  const short = new RateLimiterRedis({
    storeClient: client, points: 1, duration: 1, keyPrefix: 'short' });
  await short.consume('one');
  await until(async () => (await client.exists('short:one')) === 0);
  assert.equal((await short.consume('one')).remainingPoints, 0);
  const ever = new RateLimiterRedis({
    storeClient: client, points: 5, duration: 0, keyPrefix: 'ever' });
  await ever.consume('one');
  assert.equal(await client.ttl('ever:one'), -1);
});

await checkScripts('its own increment, with and without a key that is there', async () => {
  const burst = new RateLimiterRedis({
    storeClient: client, points: 10, duration: 60, execEvenly: false, keyPrefix: 'burst' });
  for (let used = 1; used <= 4; ++used) {
    const found = await burst.consume('one', used);
    assert.equal(found.isFirstInDuration, used === 1);
    assert.equal(found.consumedPoints, (used * (used + 1)) / 2);
  }
});

await checkScripts('penalty and reward', async () => {
  assert.equal((await limiter.penalty('five', 2)).consumedPoints, 2);
  assert.equal((await limiter.reward('five', 1)).consumedPoints, 1);
});

end();
