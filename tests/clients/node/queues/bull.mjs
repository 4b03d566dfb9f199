// Bull, BullMQ's elder: BRPOPLPUSH, events by PUBLISH.
import assert from 'node:assert/strict';
import Bull from 'bull';
import { check, end, host, port, until } from '../report.mjs';
import { endWithSuite, heldJob, isWorker, store, survives } from './workers.mjs';

const lost = { lockDuration: 1_000, stalledInterval: 500 };

function open(name, settings = {}) {
  return new Bull(name, { redis: { host, port }, ...settings });
}

function serve(queue) {
  queue.process('add', 4, async (job) => job.data.left + job.data.right);
  queue.process('third', async (job) => {
    if (job.attemptsMade < 2) throw new Error('again');
    return job.attemptsMade;
  });
  queue.process('fails', async () => { throw new Error('as it should'); });
  queue.process('held', (job) => heldJob(job.data.name));
}

async function suite() {
  const queue = open('usual');
  serve(queue);

  await check('jobs, and their results', async () => {
    const jobs = await queue.addBulk(Array.from({ length: 50 }, (_, n) => (
      { name: 'add', data: { left: n, right: n } })));
    assert.deepEqual(await Promise.all(jobs.map((job) => job.finished())),
      jobs.map((_, n) => 2 * n));
  });

  await check('retries, failure', async () => {
    const job = await queue.add('third', {}, { attempts: 3, backoff: 20 });
    assert.equal(await job.finished(), 2);
    const failing = await queue.add('fails');
    await assert.rejects(failing.finished(), /as it should/);
    assert.equal((await queue.getFailed())[0].id, failing.id);
  });

  await check('a job for later', async () => {
    const began = Date.now();
    const job = await queue.add('add', { left: 1, right: 2 }, { delay: 600 });
    assert.equal(await job.getState(), 'delayed');
    assert.equal(await job.finished(), 3);
    assert.ok(Date.now() - began >= 550);
  });

  await check('priorities', async () => {
    const waiting = open('priorities');
    for (const [name, priority] of [['low', 9], ['high', 1], ['low', 9], ['high', 1]]) {
      await waiting.add({ name }, { priority });
    }
    const seen = [];
    waiting.process(async (job) => { seen.push(job.data.name); });
    await until(() => seen.length === 4);
    assert.deepEqual(seen, ['high', 'high', 'low', 'low']);
    await waiting.close();
  });

  await check('limit of a queue', async () => {
    const limited = open('limited', { limiter: { max: 3, duration: 400 } });
    serve(limited);
    const began = Date.now();
    const jobs = await limited.addBulk(Array.from({ length: 9 }, () => (
      { name: 'add', data: { left: 1, right: 1 } })));
    await Promise.all(jobs.map((job) => job.finished()));
    assert.ok(Date.now() - began >= 700, `nine, three in 400 ms: ${Date.now() - began} ms`);
    await limited.close();
  });

  await check('a worker killed in the middle', async () => {
    const held = open('held', { settings: lost });
    await survives('held', (name) => held.add('held', { name }),
      async (job) => assert.equal(await job.finished(), 'held'));
  });

  await check('nothing is left of a queue', async () => {
    await queue.obliterate({ force: true });
    assert.deepEqual(await store.keys('bull:usual:*'), []);
  });
  end();
}

if (isWorker) {
  endWithSuite();
  serve(open('held', { settings: lost }));
} else {
  await suite();
}
