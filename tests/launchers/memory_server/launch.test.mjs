// redis-memory-server starts the program that REDISMS_SYSTEM_BINARY names.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Redis } from 'ioredis';
import { RedisMemoryServer } from 'redis-memory-server';

let server;
let redis;

before(async () => {
  server = await RedisMemoryServer.create();
  redis = new Redis({ host: await server.getHost(), port: await server.getPort() });
});
after(async () => {
  redis.disconnect();
  assert.equal(await server.stop(), true);
});

test('it serves', async () => {
  await redis.set('k', 'v', 'EX', 60);
  assert.equal(await redis.get('k'), 'v');
  assert.match(await redis.info('server'), /server_name:semel/);
});

test('scripts run', async () => {
  assert.equal(await redis.eval('return redis.call("incr", KEYS[1])', 1, 'n'), 1);
});

test('time is the test\'s', async () => {
  await redis.set('k', 'v', 'EX', 60);
  await redis.call('SEMEL.CLOCK', 'ADVANCE', 60_000);
  assert.equal(await redis.get('k'), null);
});
