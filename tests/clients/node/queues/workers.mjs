// Workers of a queue that are processes, so that one can be killed while it has a job. A suite's
// file has both sides: started with the word `worker` it takes jobs.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import Redis from 'ioredis';
import { host, port, until } from '../report.mjs';

export const isWorker = process.argv[2] === 'worker';
export const store = new Redis({ host, port });

/// A process that takes jobs. It ends with the suite.
export function startWorker() {
  const child = spawn(process.execPath, [process.argv[1], 'worker'],
    { stdio: ['pipe', 'ignore', 'inherit'] });
  const ended = new Promise((resolve) => { child.on('exit', resolve); });
  return { kill: () => { child.kill('SIGKILL'); return ended; } };
}

/// In a worker: it does not outlive the suite.
export function endWithSuite() {
  process.stdin.on('close', () => process.exit(0)).resume();
}

/// What a worker does with the job `name`: it does not end before it is let go.
export async function heldJob(name) {
  await store.incr(`${name}:started`);
  await until(async () => !(await store.exists(`${name}:held`)));
  await store.incr(`${name}:done`);
  return name;
}

/// Kills the worker that has the job; another one does it. `finish` is given what `enqueue` has
/// returned, while the other worker lives.
export async function survives(name, enqueue, finish) {
  await store.set(`${name}:held`, 1);
  const first = startWorker();
  const job = await enqueue(name);
  await until(() => store.exists(`${name}:started`));
  await first.kill();
  await store.del(`${name}:held`);
  assert.equal(await store.get(`${name}:done`), null);
  const second = startWorker();
  await until(() => store.exists(`${name}:done`));
  await finish(job);
  await second.kill();
  assert.equal(await store.get(`${name}:started`), '2');
  assert.equal(await store.get(`${name}:done`), '1');
}

export function pause(ms) {
  return new Promise((resolve) => { setTimeout(resolve, ms); });
}
