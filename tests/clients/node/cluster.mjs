// ioredis' Cluster against a group; see tests/clients/group_target.py.
import assert from 'node:assert/strict';
import Redis from 'ioredis';
import { deadPort, need, nodes, outages } from './outage.mjs';
import { check, end, expected, host, port, until } from './report.mjs';

const release = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) "
  + 'else return 0 end';
// A retry is asked for at once where a Redis Cluster needs seconds.
const delays = { retryDelayOnFailover: 20, retryDelayOnClusterDown: 20, retryDelayOnTryAgain: 20,
  clusterRetryStrategy: () => 20 };

function connect(ports, options = {}) {
  const cluster = new Redis.Cluster(ports.map((each) => ({ host, port: each })),
    { ...delays, ...options });
  cluster.on('error', () => {}); // calls fail as well
  return cluster;
}

const client = connect([port]);

await check('topology', async () => {
  const leader = Number(await need('leader'));
  await client.get('x');
  await until(() => client.nodes('slave').length === 2);
  assert.deepEqual(client.nodes('master').map((each) => each.options.port), [leader]);
  assert.deepEqual(new Set(client.nodes('all').map((each) => each.options.port)), new Set(nodes));
  const slots = await client.cluster('SLOTS');
  assert.deepEqual([slots.length, ...slots[0].slice(0, 2), slots[0][2][1]], [1, 0, 16383, leader]);
  const shards = await client.cluster('SHARDS');
  assert.deepEqual([shards.length, shards[0][1]], [1, [0, 16383]]);
  const text = await client.cluster('NODES');
  assert.deepEqual([text.match(/master/g).length, text.match(/slave/g).length], [1, 2]);
});

await check('claim', async () => {
  assert.equal(await client.set('claim', 'mine', 'PX', 60_000, 'NX', 'GET'), null);
  assert.equal(await client.set('claim', 'other', 'PX', 60_000, 'NX', 'GET'), 'mine');
  assert.equal(await client.get('claim'), 'mine');
});

await check('hash tags', async () => {
  assert.equal(await client.cluster('KEYSLOT', '{tag}a'), await client.cluster('KEYSLOT', '{tag}b'));
  assert.equal(await client.mset('{tag}a', '1', '{tag}b', '2'), 'OK');
  assert.deepEqual(await client.mget('{tag}a', '{tag}b', '{tag}c'), ['1', '2', null]);
});

await check('MSET and MGET across slots', async () => {
  const keys = Array.from({ length: 50 }, (_, i) => `across:${i}`);
  assert.equal(await client.mset(keys.flatMap((key, i) => [key, `${i}`])), 'OK');
  assert.deepEqual(await client.mget(keys), keys.map((_, i) => `${i}`));
  assert.equal(await client.del(keys), 50);
});

await check('pipeline', async () => {
  const pipeline = client.pipeline();
  for (let i = 0; i < 300; ++i) pipeline.set(`pipe:${i}`, i).get(`pipe:${i}`);
  const replies = await pipeline.exec();
  assert.deepEqual(replies.map(([, value]) => value),
    Array.from({ length: 600 }, (_, i) => (i % 2 ? `${(i - 1) / 2}` : 'OK')));
});

await check('transaction on one slot', async () => {
  assert.deepEqual(await client.multi().set('{t}a', 1).incr('{t}a').exec(),
    [[null, 'OK'], [null, 2]]);
});

await check('reads of replicas', async () => {
  await client.set('read', 'here');
  const reader = connect([port], { scaleReads: 'slave' });
  await until(async () => (await reader.get('read')) === 'here');
  await until(() => reader.nodes('slave').length === 2);
  const before = Number(await need('replica-calls', 'get'));
  for (let i = 0; i < 30; ++i) assert.equal(await reader.get('read'), 'here');
  assert.ok(Number(await need('replica-calls', 'get')) >= before + 30);
  reader.disconnect();
});

await check('script', async () => {
  client.defineCommand('release', { numberOfKeys: 1, lua: release });
  await client.set('lock', 'mine');
  assert.equal(await client.release('lock', 'other'), 0);
  assert.equal(await client.release('lock', 'mine'), 1);
});

await check('pub/sub over other nodes', async () => {
  for (const from of nodes) {
    const listener = new Redis({ host, port: from });
    const message = expected();
    await listener.subscribe('news');
    listener.on('message', (channel, text) => {
      // A node that does not lead may still come to what was published before.
      if (text === `to ${from}`) message.fulfil([channel, text]);
    });
    await client.publish('news', `to ${from}`);
    assert.deepEqual(await message.promise, ['news', `to ${from}`]);
    listener.disconnect();
  }
});

await check('a subscription of the cluster itself', async () => {
  const listener = connect([port]);
  const message = expected();
  listener.on('message', (channel, text) => message.fulfil([channel, text]));
  await listener.subscribe('more');
  await client.publish('more', 'text');
  assert.deepEqual(await message.promise, ['more', 'text']);
  listener.disconnect();
});

async function semel(command, ...words) {
  const found = await client.call(`SEMEL.${command}`, 'pay', 'order:1', ...words);
  return Object.fromEntries(found.flatMap((name, i) => (i % 2 ? [] : [[name, found[i + 1]]])));
}

await check('claims of Semel', async () => {
  const first = await semel('CLAIM', 'CLAIM-ID', 'a'.repeat(32));
  assert.equal(first.outcome, 'granted');
  assert.equal((await semel('CLAIM', 'CLAIM-ID', 'a'.repeat(32))).outcome, 'regranted');
  assert.equal((await semel('CLAIM')).outcome, 'in_flight');
  assert.equal((await semel('COMPLETE', first.epoch, 'paid')).outcome, 'ok');
  assert.ok(Object.values(await semel('CLAIM')).includes('paid'));
});

await check('seeds that are dead', async () => {
  const both = connect([deadPort, port]);
  assert.equal(await both.get('claim'), 'mine');
  both.disconnect();
  const none = connect([deadPort], { clusterRetryStrategy: (times) => (times < 5 ? 20 : null) });
  const began = performance.now();
  await assert.rejects(none.get('claim'));
  assert.ok(performance.now() - began < 10_000);
});

const seed = connect([Number(await need('leader'))]);
await outages((key, value) => seed.set(key, value, 'NX', 'GET'), (key) => seed.get(key), 'kept:');

end();
