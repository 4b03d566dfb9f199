// startSemel(), as a stranger's project uses it: a small service, and its tests.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { Redis } from 'ioredis';
import { findSemel, ReplyError, startSemel, type SemelServer } from '../src/testing.js';
import { program, skip } from './node.js';

class Carts {
  constructor(readonly redis: Redis) {}

  async put(user: string, thing: string): Promise<void> {
    for (let left = 2; ; --left) {
      try {
        await this.redis.set(`cart:${user}`, thing, 'EX', 1800);
        return;
      } catch (error) {
        if (left === 0) throw error;
      }
    }
  }

  get(user: string): Promise<string | null> {
    return this.redis.get(`cart:${user}`);
  }
}

let server: SemelServer;
let carts: Carts;

before(async () => {
  if (skip) return;
  process.env['SEMEL_BINARY'] ??= program();
  server = await startSemel();
});
beforeEach(async () => {
  if (skip) return;
  await server.flush();
  const redis = new Redis(server.url, { maxRetriesPerRequest: 0, retryStrategy: () => 1 });
  redis.on('error', () => {});
  carts = new Carts(redis);
});
afterEach(() => carts?.redis.disconnect());
after(() => server?.stop());

test('a cart is forgotten, without waiting', { skip }, async () => {
  await carts.put('ada', 'tea');
  await server.advance(1_799_000);
  assert.equal(await carts.get('ada'), 'tea');
  await server.advance(1_000);
  assert.equal(await carts.get('ada'), null);
});

test('a write that fails once is tried again', { skip }, async () => {
  await server.fault({ error: 'LOADING not yet', command: 'set' });
  await carts.put('ada', 'tea');
  assert.equal(await carts.get('ada'), 'tea');
});

test('a write that fails always is an error', { skip }, async () => {
  const fault = await server.fault({ error: 'ERR no', key: 'cart:*', count: 0 });
  await assert.rejects(carts.put('ada', 'tea'), /ERR no/);
  assert.equal(await server.clearFaults(fault), 1);
  assert.equal(await carts.get('ada'), null);
});

test('a reply that is lost has its effect, a request that is lost has none', { skip }, async () => {
  await server.fault({ drop: 'reply', command: 'incr' });
  await assert.rejects(carts.redis.incr('n'));
  assert.equal(await server.call('GET', 'n'), '1');
  await server.fault({ drop: 'request', command: 'incr' });
  await assert.rejects(carts.redis.incr('n'));
  assert.equal(await server.call('GET', 'n'), '1');
});

test('a reply that comes late is a timeout', { skip }, async () => {
  const redis = new Redis(server.url, { commandTimeout: 50 });
  await server.fault({ delay: 30_000, command: 'get' });
  await assert.rejects(redis.get('k'), /timed out/);
  redis.disconnect();
});

test('the clock stands still, and never goes back', { skip }, async () => {
  await server.freeze();
  const before_ = await server.now();
  await server.advance(60_000);
  assert.equal(await server.now(), before_ + 60_000);
  await server.run();
  assert.ok(await server.now() >= before_ + 60_000);
});

test('calls need no client library', { skip }, async () => {
  assert.equal(await server.call('SET', 'k', 'é\r\n'), 'OK');
  const replies = await Promise.all([server.call('GET', 'k'), server.call('STRLEN', 'k'),
    server.call('GET', 'none'), server.call('MGET', 'k', 'none')]);
  assert.deepEqual(replies, ['é\r\n', 4, null, ['é\r\n', null]]);
  await assert.rejects(server.call('GET'), ReplyError);
  const large = 'x'.repeat(3_000_000);
  await server.call('SET', 'large', large);
  assert.equal(await server.call('GET', 'large'), large);
  await server.fault({ drop: 'request', command: 'get' });
  await assert.rejects(server.call('GET', 'k'), /closed/);
  assert.equal(await server.call('GET', 'none'), null);
});

test('flags are those of redis-server, and a wrong one is reported', { skip }, async () => {
  const other = await startSemel({ flags: ['--databases', '2'] });
  await assert.rejects(other.call('SELECT', 2), /out of range/);
  await other.stop();
  await other.stop();
  await assert.rejects(startSemel({ flags: ['--databases', 'many'] }), /databases/);
  await assert.rejects(startSemel({ binary: '/no/such/program' }), /did not start/);
});

test('the program is looked for', { skip }, () => {
  const { SEMEL_BINARY: named, PATH: path } = process.env;
  try {
    assert.equal(findSemel(), named);
    process.env['SEMEL_BINARY'] = '/no/such/program';
    assert.throws(findSemel, /no\/such/);
    delete process.env['SEMEL_BINARY'];
    process.env['PATH'] = '/no/such/folder';
    assert.throws(findSemel, /SEMEL_BINARY/);
  } finally {
    Object.assign(process.env, { SEMEL_BINARY: named, PATH: path });
  }
});
