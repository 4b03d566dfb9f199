// Every call of redlock 4 is a script.
import assert from 'node:assert/strict';
import Redis from 'ioredis';
import Redlock from 'redlock';
import { check, checkScripts, end, host, port, scripts } from './report.mjs';

const client = new Redis({ host, port });
const redlock = new Redlock([client], { retryCount: 0 });
redlock.on('clientError', () => {});  // they are in what a lock rejects with

await check('handshake', async () => assert.equal(await client.ping(), 'PONG'));

await checkScripts('lock, contended, released', async () => {
  const lock = await redlock.lock('lock', 60_000);
  await assert.rejects(redlock.lock('lock', 60_000), Redlock.LockError);
  await lock.unlock();
  assert.equal(await client.exists('lock'), 0);
  await (await redlock.lock('lock', 60_000)).unlock();
});

await checkScripts('extension', async () => {
  const lock = await redlock.lock('long', 1_000);
  await lock.extend(60_000);
  assert.ok((await client.pttl('long')) > 1_000);
  await lock.unlock();
});

await checkScripts('several keys', async () => {
  const lock = await redlock.lock(['a', 'b'], 60_000);
  await assert.rejects(redlock.lock(['b', 'c'], 60_000), Redlock.LockError);
  assert.equal(await client.exists('c'), 0);
  await lock.unlock();
});

await checkScripts('one that has ended is another\'s, and is not given back', async () => {
  const lost = await redlock.lock('ends', 30);
  const patient = new Redlock([client], { retryCount: 500, retryDelay: 5, retryJitter: 2 });
  const held = await patient.lock('ends', 60_000);
  await assert.rejects(lost.unlock(), Redlock.LockError);
  await assert.rejects(lost.extend(1_000), Redlock.LockError);
  assert.equal(await client.get('ends'), held.value);
  await held.unlock();
});

await checkScripts('twenty at once: one at a time', async () => {
  const patient = new Redlock([client], { retryCount: 2_000, retryDelay: 3, retryJitter: 3 });
  const other = new Redis({ host, port });
  await Promise.all(Array.from({ length: 20 }, async () => {
    const lock = await patient.lock('crowd', 60_000);
    const seen = Number((await other.get('crowded')) ?? 0);
    await other.set('crowded', seen + 1);
    await lock.unlock();
  }));
  assert.equal(await client.get('crowded'), '20');
});

await checkScripts('disposer, and a script that the server has forgotten', async () => {
  await client.script('FLUSH');
  const lock = await redlock.lock('forgotten', 60_000);
  await client.script('FLUSH');
  await lock.unlock();
  assert.equal(await client.exists('forgotten'), 0);
});

if (!scripts) {
  await check('without scripts it has no lock, and leaves nothing', async () => {
    await assert.rejects(redlock.lock('lock', 60_000), Redlock.LockError);
    assert.equal(await client.exists('lock'), 0);
  });
}

end();
