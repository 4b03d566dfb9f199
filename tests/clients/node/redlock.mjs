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

if (!scripts) {
  await check('without scripts it has no lock, and leaves nothing', async () => {
    await assert.rejects(redlock.lock('lock', 60_000), Redlock.LockError);
    assert.equal(await client.exists('lock'), 0);
  });
}

end();
