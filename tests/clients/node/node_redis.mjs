import assert from 'node:assert/strict';
import { createClient, defineScript, WatchError } from 'redis';
import { check, checkScripts, end, expected, host, port, until } from './report.mjs';

const connect = (RESP, options = {}) =>
  createClient({ socket: { host, port, reconnectStrategy: false }, RESP, ...options })
    .on('error', (error) => console.log(`failed connection: ${error.message}`)).connect();

async function dialogue(RESP) {
  const one = await connect(RESP);
  const two = await connect(RESP, { name: 'second' });
  const key = (name) => `${RESP}:${name}`;
  const claim = { condition: 'NX', GET: true, expiration: { type: 'PX', value: 60_000 } };
  const lock = { condition: 'NX', expiration: { type: 'PX', value: 60_000 } };

  await check(`handshake, RESP${RESP}`, async () => {
    assert.equal(await one.ping(), 'PONG');
    assert.equal(await two.clientGetName(), 'second');
    const fourth = await connect(RESP, { database: 4 });
    await fourth.set(key('here'), '4');
    assert.equal(await one.get(key('here')), null);
    await fourth.close();
  });

  await check(`claim, RESP${RESP}`, async () => {
    assert.equal(await one.set(key('claim'), 'CONSUMING', claim), null);
    assert.equal(await two.set(key('claim'), 'CONSUMING', claim), 'CONSUMING');
  });

  await check(`lock, released under WATCH, RESP${RESP}`, async () => {
    assert.equal(await one.set(key('lock'), 'mine', lock), 'OK');
    assert.equal(await two.set(key('lock'), 'theirs', lock), null);
    await one.watch(key('lock'));
    assert.equal(await one.get(key('lock')), 'mine');
    assert.deepEqual(await one.multi().del(key('lock')).exec(), [1]);
    assert.equal(await two.set(key('lock'), 'theirs', lock), 'OK');
  });

  await checkScripts(`lock, released by a script, RESP${RESP}`, async () => {
    const release = "if redis.call('get', KEYS[1]) == ARGV[1] then "
      + "return redis.call('del', KEYS[1]) end return 0";
    await one.set(key('scripted'), 'mine');
    const wrong = { keys: [key('scripted')], arguments: ['theirs'] };
    assert.equal(await one.eval(release, wrong), 0);
    assert.equal(await one.eval(release, { ...wrong, arguments: ['mine'] }), 1);
  });

  await checkScripts(`defined scripts, NOSCRIPT, functions, RESP${RESP}`, async () => {
    const claim = defineScript({
      NUMBER_OF_KEYS: 1,
      SCRIPT: "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'GET', 'PX', ARGV[2])",
      parseCommand(parser, job, value) {
        parser.pushKey(job);
        parser.push(value, '60000');
      },
      transformReply: (reply) => reply,
    });
    const third = await connect(RESP, { scripts: { claim } });
    assert.equal(await third.claim(key('job'), 'CONSUMING'), null);
    await third.scriptFlush();
    assert.equal(await third.claim(key('job'), 'CONSUMING'), 'CONSUMING');
    await assert.rejects(third.evalSha('f'.repeat(40)), /^Error: NOSCRIPT No matching script/);
    const sha = await third.scriptLoad('return {KEYS, ARGV}');
    assert.deepEqual(await third.scriptExists([sha, 'f'.repeat(40)]), [1, 0]);
    assert.deepEqual(await third.evalShaRo(sha, { keys: ['k'], arguments: ['a'] }), [['k'], ['a']]);
    const code = `#!lua name=js${RESP}\nredis.register_function('js${RESP}', `
      + 'function(k, a) return a[1] * 2 end)';
    assert.equal(await third.functionLoad(code, { REPLACE: true }), `js${RESP}`);
    assert.equal(await third.fCall(`js${RESP}`, { keys: [], arguments: ['21'] }), 42);
    assert.equal(await third.functionDelete(`js${RESP}`), 'OK');
    await third.close();
  });

  await check(`expiry, RESP${RESP}`, async () => {
    await one.set(key('short'), '1', { expiration: { type: 'PX', value: 30 } });
    await until(async () => (await two.exists(key('short'))) === 0);
    assert.equal(await two.ttl(key('short')), -2);
    await one.setEx(key('long'), 100, '1');
    assert.equal(await two.ttl(key('long')), 100);
  });

  await check(`pub/sub, RESP${RESP}`, async () => {
    const listener = await connect(RESP);
    const message = expected();
    const matched = expected();
    await listener.subscribe(key('news'), (text, channel) => message.fulfil([text, channel]));
    await listener.pSubscribe(key('n*'), (text, channel) => matched.fulfil([text, channel]));
    assert.equal(await one.publish(key('news'), 'text'), 2);
    assert.deepEqual(await message.promise, ['text', key('news')]);
    assert.deepEqual(await matched.promise, ['text', key('news')]);
    await listener.unsubscribe();
    await listener.pUnsubscribe();
    assert.equal(String(await listener.ping()), 'PONG');
    await listener.close();
  });

  await check(`pipeline, RESP${RESP}`, async () => {
    const replies = await Promise.all(Array.from({ length: 500 }, () => one.incr(key('count'))));
    assert.deepEqual(replies, Array.from({ length: 500 }, (_, i) => i + 1));
  });

  await check(`transaction, RESP${RESP}`, async () => {
    await one.watch(key('t'));
    await two.set(key('t'), 'theirs');
    await assert.rejects(one.multi().set(key('t'), 'mine').exec(), WatchError);
    assert.deepEqual(await one.multi().set(key('t'), '1').incr(key('t')).exec(), ['OK', 2]);
  });

  await check(`errors, RESP${RESP}`, async () => {
    await one.set(key('text'), 'abc');
    await assert.rejects(one.incr(key('text')), /ERR value is not an integer or out of range/);
  });

  await check(`hashes, RESP${RESP}`, async () => {
    assert.equal(await one.hSet(key('hash'), { a: '1', b: '2' }), 2);
    assert.deepEqual({ ...await two.hGetAll(key('hash')) }, { a: '1', b: '2' });
  });

  await one.close();
  await two.close();
}

await dialogue(2);
await dialogue(3);
end();
