// What a suite prints; see tests/clients/run.py.
import assert from 'node:assert/strict';

export const host = process.env.SEMEL_TEST_HOST;
export const port = Number(process.env.SEMEL_TEST_PORT);
export const scripts = process.env.SEMEL_TEST_SCRIPTS === 'yes';

/// `work` throws, or rejects, where something is wrong.
export async function check(name, work) {
  try {
    await work();
    console.log(`ok ${name}`);
  } catch (error) {
    const where = (error.stack ?? '').split('\n').find((line) => /\w\.mjs:/.test(line)) ?? '';
    console.log(`failed ${name}: ${error.message.replaceAll('\n', ' ')} ${where.trim()}`);
  }
}

export function skip(name, why = 'waits for scripts') {
  console.log(`skipped ${name}: ${why}`);
}

export async function checkScripts(name, work) {
  if (scripts) await check(name, work);
  else skip(name);
}

/// Waits for a condition.
export async function until(condition) {
  const end = Date.now() + 10_000;
  while (!(await condition())) {
    assert.ok(Date.now() < end, 'not so within 10 s');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/// A promise, with the function that fulfils it.
export function expected() {
  let fulfil;
  const promise = new Promise((resolve) => { fulfil = resolve; });
  return { promise, fulfil };
}

export function end() {
  console.log('end');
  process.exit(0);
}
