// What a suite has its group do: the leader is killed again and again while one client claims one
// key after the other. See tests/clients/group_target.py.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { check, until } from './report.mjs';

export const nodes = process.env.SEMEL_TEST_NODES.split(' ').map(Number);
export const deadPort = Number(process.env.SEMEL_TEST_DEAD_PORT);
const kills = Number(process.env.SEMEL_TEST_KILLS);
const claimsEnough = 20; // so many show that a client goes on
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/// What the runner has done, or found.
export async function need(...words) {
  console.log('need', ...words);
  const { value } = await lines.next();
  assert.ok(value === 'done' || value.startsWith('done '), `${words.join(' ')}: ${value}`);
  return value.slice(5);
}

class Writer {
  constructor(claim, prefix) {
    this.claim = claim;
    this.prefix = prefix;
    this.times = []; // of acknowledgements, one for each key
    this.isOver = false;
    this.wrong = null;
  }

  pair(number) { return [`${this.prefix}${number}`, `value of ${number}`]; }

  async run() {
    try {
      while (!this.isOver) {
        await this.insist(...this.pair(this.times.length));
        await pause(1);
      }
    } catch (error) {
      this.wrong = error;
    }
  }

  /// Asked again with the same words, until there is an answer.
  async insist(key, value) {
    while (!this.isOver) {
      let owner;
      try {
        owner = await this.claim(key, value);
      } catch {
        await pause(5);
        continue;
      }
      assert.ok(owner === null || owner === value, `${key} is ${owner}, not ${value}`);
      this.times.push(performance.now());
      return;
    }
  }

  async goesOn() {
    const before = this.times.length;
    await until(() => {
      if (this.wrong) throw this.wrong;
      return this.times.length >= before + claimsEnough;
    });
  }

  async disturb(name, fault) {
    const began = performance.now();
    await fault();
    await this.goesOn();
    const gaps = this.times.slice(1).map((time, i) => [time, time - this.times[i]])
      .filter(([time]) => time > began).map(([, gap]) => gap);
    console.log(`figure ${name} ${Math.round(Math.max(...gaps))}`);
  }
}

/// What the key has, though the group may change its leader meanwhile.
async function patient(read, key) {
  const end = performance.now() + 10_000;
  for (;;) {
    try {
      return await read(key);
    } catch (error) {
      if (performance.now() > end) throw error;
      await pause(5);
    }
  }
}

/// `claim(key, value)` resolves to what the key had before, or null; `read(key)` to the value.
export async function outages(claim, read, prefix) {
  const writer = new Writer(claim, prefix);
  const running = writer.run();
  await check(`goes on when the leader is killed, ${kills} times`, async () => {
    await writer.goesOn();
    for (let i = 0; i < kills; ++i) {
      await writer.disturb('kill', () => need('kill-leader'));
      await need('restart');
      await writer.goesOn();
    }
  });
  await check('goes on when another node is made the leader',
    () => writer.disturb('transfer', () => need('transfer')));
  await check('has lost nothing that was acknowledged, and counts agree', async () => {
    writer.isOver = true;
    await Promise.race([running, pause(10_000).then(() => { throw new Error('does not return'); })]);
    const acknowledged = writer.times.length;
    for (let i = 0; i < acknowledged; ++i) {
      const [key, value] = writer.pair(i);
      assert.equal(await patient(read, key), value);
    }
    // The last one may have been asked for without an answer.
    const count = Number(await need('count', prefix));
    assert.ok(count === acknowledged || count === acknowledged + 1, `${count}, ${acknowledged}`);
    console.log(`figure acknowledged ${acknowledged}`);
  });
}
