// rate-limiter-flexible on ioredis: consuming is a script, what is around it are transactions.
import assert from 'node:assert/strict';
import Redis from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { check, checkScripts, end, host, port } from './report.mjs';

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

await checkScripts('penalty and reward', async () => {
  assert.equal((await limiter.penalty('five', 2)).consumedPoints, 2);
  assert.equal((await limiter.reward('five', 1)).consumedPoints, 1);
});

end();
