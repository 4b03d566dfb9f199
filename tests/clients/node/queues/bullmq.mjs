// BullMQ: all it does is scripts; events are a stream, and workers wait in BZPOPMIN.
import assert from 'node:assert/strict';
import { FlowProducer, Queue, QueueEvents, Worker } from 'bullmq';
import { check, end, host, port, until } from '../report.mjs';
import { endWithSuite, heldJob, isWorker, store, survives } from './workers.mjs';

const connection = { host, port, maxRetriesPerRequest: null };
const patience = 10_000;

const work = {
  add: async (job) => job.data.left + job.data.right,
  third: async (job) => {
    if (job.attemptsMade < 2) throw new Error('again');
    return job.attemptsMade;
  },
  fails: async () => { throw new Error('as it should'); },
  order: async (job) => { await store.rpush('order', job.data.name); },
  sum: async (job) => Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 0),
  held: (job) => heldJob(job.data.name),
};

function serve(name, options = {}) {
  const worker = new Worker(name, (job) => work[job.name](job),
    { connection, concurrency: 4, ...options });
  worker.on('error', (error) => console.error(error.message));
  return worker;
}

async function open(name) {
  const events = new QueueEvents(name, { connection });
  await events.waitUntilReady();
  const queue = new Queue(name, { connection });
  return { queue, result: (job) => job.waitUntilFinished(events, patience) };
}

async function suite() {
  const { queue, result } = await open('usual');
  let worker = serve('usual');

  await check('jobs, and their results', async () => {
    const jobs = await queue.addBulk(Array.from({ length: 100 }, (_, n) => (
      { name: 'add', data: { left: n, right: n } })));
    assert.deepEqual(await Promise.all(jobs.map(result)), jobs.map((_, n) => 2 * n));
    assert.equal((await queue.getJobCounts('completed')).completed, 100);
  });

  await check('retries, failure', async () => {
    const options = { attempts: 3, backoff: { type: 'fixed', delay: 20 } };
    assert.equal(await result(await queue.add('third', {}, options)), 2);
    const lost = await queue.add('fails', {});
    await assert.rejects(result(lost), /as it should/);
    assert.equal(await lost.getState(), 'failed');
  });

  await check('one job of an id', async () => {
    const first = await queue.add('add', { left: 1, right: 2 }, { jobId: 'one' });
    assert.equal(await result(first), 3);
    await queue.add('add', { left: 5, right: 5 }, { jobId: 'one' });
    assert.equal((await queue.getJob('one')).returnvalue, 3);
  });

  await check('a job for later', async () => {
    const began = Date.now();
    const job = await queue.add('add', { left: 1, right: 2 }, { delay: 600 });
    assert.equal(await job.getState(), 'delayed');
    assert.equal(await result(job), 3);
    assert.ok(Date.now() - began >= 550);
  });

  await check('a job that waits for others', async () => {
    const flow = new FlowProducer({ connection });
    const children = Array.from({ length: 5 }, (_, n) => (
      { name: 'add', queueName: 'usual', data: { left: n, right: 0 } }));
    const tree = await flow.add({ name: 'sum', queueName: 'usual', children });
    assert.equal(await result(tree.job), 10);
    await flow.close();
  });

  await check('a schedule', async () => {
    await queue.upsertJobScheduler('each', { every: 100 }, { name: 'order', data: { name: 't' } });
    await until(async () => (await store.llen('order')) >= 3);
    assert.equal(await queue.removeJobScheduler('each'), true);
    await store.del('order');
  });
  await worker.close();

  await check('priorities', async () => {
    await queue.drain(true);
    for (const [name, priority] of [['low', 9], ['high', 1], ['low', 9], ['high', 1]]) {
      await queue.add('order', { name }, { priority });
    }
    worker = serve('usual', { concurrency: 1 });
    await until(async () => (await store.llen('order')) === 4);
    assert.deepEqual(await store.lrange('order', 0, -1), ['high', 'high', 'low', 'low']);
    await worker.close();
  });

  await check('limit of a queue', async () => {
    const limited = await open('limited');
    worker = serve('limited', { limiter: { max: 3, duration: 400 } });
    const began = Date.now();
    const jobs = await limited.queue.addBulk(Array.from({ length: 9 }, () => (
      { name: 'add', data: { left: 1, right: 1 } })));
    await Promise.all(jobs.map(limited.result));
    assert.ok(Date.now() - began >= 700, `nine, three in 400 ms: ${Date.now() - began} ms`);
    await worker.close();
  });

  await check('a worker killed in the middle', async () => {
    const held = await open('held');
    await survives('held', (name) => held.queue.add('held', { name }),
      async (job) => assert.equal(await held.result(job), 'held'));
  });

  await check('nothing is left of a queue', async () => {
    await queue.obliterate({ force: true });
    assert.deepEqual(await store.keys('bull:usual:*'), []);
  });
  end();
}

if (isWorker) {
  endWithSuite();
  serve('held', { lockDuration: 1_000, stalledInterval: 500 });
} else {
  await suite();
}
