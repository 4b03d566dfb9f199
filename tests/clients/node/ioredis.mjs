import assert from 'node:assert/strict';
import Redis from 'ioredis';
import { check, checkScripts, end, expected, host, port, until } from './report.mjs';

const one = new Redis({ host, port });
const two = new Redis({ host, port, db: 0, connectionName: 'second' });

await check('handshake, with the ready check', async () => {
  assert.equal(await one.ping(), 'PONG');
  assert.equal(one.status, 'ready');
  assert.equal(await two.client('GETNAME'), 'second');
  const fourth = new Redis({ host, port, db: 4 });
  await fourth.set('here', '4');
  assert.equal(await one.get('here'), null);
  assert.equal(await fourth.get('here'), '4');
  await fourth.quit();
});

await check('claim', async () => {
  assert.equal(await one.set('claim', 'CONSUMING', 'PX', 60_000, 'NX', 'GET'), null);
  assert.equal(await two.set('claim', 'CONSUMING', 'PX', 60_000, 'NX', 'GET'), 'CONSUMING');
  const left = await two.pttl('claim');
  assert.ok(left > 0 && left <= 60_000);
});

await check('lock, released under WATCH', async () => {
  assert.equal(await one.set('lock', 'mine', 'PX', 60_000, 'NX'), 'OK');
  assert.equal(await two.set('lock', 'theirs', 'PX', 60_000, 'NX'), null);
  await one.watch('lock');
  assert.equal(await one.get('lock'), 'mine');
  assert.deepEqual(await one.multi().del('lock').exec(), [[null, 1]]);
  assert.equal(await two.set('lock', 'theirs', 'PX', 60_000, 'NX'), 'OK');
});

await checkScripts('lock, released by a script', async () => {
  one.defineCommand('release', {
    numberOfKeys: 1,
    lua: "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end "
      + 'return 0',
  });
  await one.set('scripted', 'mine', 'PX', 60_000);
  assert.equal(await one.release('scripted', 'theirs'), 0);
  assert.equal(await one.release('scripted', 'mine'), 1);
});

await checkScripts('defineCommand: keys by number, buffers, errors, pipelines', async () => {
  one.defineCommand('many', { lua: 'return {#KEYS, #ARGV, KEYS[2], ARGV[1]}' });
  assert.deepEqual(await one.many(2, 'a', 'b', 'c'), [2, 1, 'b', 'c']);
  one.defineCommand('bytes', { numberOfKeys: 0, lua: "return '\\255\\0'" });
  assert.deepEqual(await one.bytesBuffer(), Buffer.from([255, 0]));
  one.defineCommand('fails', { numberOfKeys: 1, lua: "return redis.call('INCR', KEYS[1])" });
  await one.set('word', 'abc');
  await assert.rejects(one.fails('word'), /^ReplyError: ERR value is not an integer/);
  one.defineCommand('count', { numberOfKeys: 1, lua: "return redis.call('INCRBY', KEYS[1], ARGV[1])" });
  await one.script('FLUSH');
  const replies = await one.pipeline().count('n1', 1).set('n2', 5).count('n2', 2).fails('word')
    .exec();
  assert.deepEqual(replies.slice(0, 3), [[null, 1], [null, 'OK'], [null, 7]]);
  assert.match(replies[3][0].message, /not an integer/);
  assert.deepEqual(await one.multi().count('n1', 1).count('n1', 1).exec(), [[null, 2], [null, 3]]);
});

await checkScripts('scripts given when connecting, NOSCRIPT, functions', async () => {
  const third = new Redis({ host, port, scripts: {
    claim: { numberOfKeys: 1,
      lua: "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'GET', 'PX', ARGV[2])" } } });
  assert.equal(await third.claim('job', 'CONSUMING', 60_000), null);
  await one.script('FLUSH');
  assert.equal(await third.claim('job', 'CONSUMING', 60_000), 'CONSUMING');
  await assert.rejects(third.evalsha('f'.repeat(40), 0), /^ReplyError: NOSCRIPT No matching script/);
  const code = "#!lua name=node\nredis.register_function('twice', function(k, a) return a[1] * 2 end)";
  assert.equal(await third.call('FUNCTION', 'LOAD', 'REPLACE', code), 'node');
  assert.equal(await third.fcall('twice', 0, 21), 42);
  await third.quit();
});

await check('expiry', async () => {
  await one.set('short', '1', 'PX', 30);
  await until(async () => (await two.exists('short')) === 0);
  assert.equal(await two.ttl('short'), -2);
  await one.set('long', '1');
  assert.equal(await one.expire('long', 100), 1);
  assert.equal(await two.ttl('long'), 100);
  assert.equal(await two.persist('long'), 1);
});

await check('pub/sub', async () => {
  const listener = new Redis({ host, port });
  const message = expected();
  const matched = expected();
  listener.on('message', (channel, text) => message.fulfil([channel, text]));
  listener.on('pmessage', (pattern, channel, text) => matched.fulfil([pattern, channel, text]));
  assert.equal(await listener.subscribe('news'), 1);
  assert.equal(await listener.psubscribe('n*'), 2);
  assert.equal(await one.publish('news', 'text'), 2);
  assert.deepEqual(await message.promise, ['news', 'text']);
  assert.deepEqual(await matched.promise, ['n*', 'news', 'text']);
  await listener.unsubscribe('news');
  await listener.punsubscribe('n*');
  assert.equal(await listener.get('long'), '1');
  await listener.quit();
});

await check('pipeline', async () => {
  const pipeline = one.pipeline();
  for (let i = 0; i < 500; ++i) pipeline.incr('count');
  const replies = await pipeline.exec();
  assert.deepEqual(replies.map(([, value]) => value), Array.from({ length: 500 }, (_, i) => i + 1));
});

await check('transaction', async () => {
  await one.watch('t');
  await two.set('t', 'theirs');
  assert.equal(await one.multi().set('t', 'mine').exec(), null);
  assert.deepEqual(await one.multi().set('t', '1').incr('t').exec(), [[null, 'OK'], [null, 2]]);
});

await check('errors', async () => {
  await one.set('text', 'abc');
  await assert.rejects(one.incr('text'), /^ReplyError: ERR value is not an integer or out of range/);
});

await check('hashes', async () => {
  assert.equal(await one.hset('hash', { a: '1', b: '2' }), 2);
  assert.deepEqual({ ...await two.hgetall('hash') }, { a: '1', b: '2' });
});

end();
