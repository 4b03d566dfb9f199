// With three nodes of a group, whose ports the runner of suites names; else there is nothing here.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as semel from '../src/index.js';
import { Claims, Tokens } from '../src/index.js';
import { clusters } from './node.js';

for (const [i, { name, open }] of clusters().entries()) {
  test(`once-again-25: a group, ${name}`, async () => {
    const [client, close] = await open();
    try {
      const orders = new Claims(client, `group-${i}`, { policy: { as: 'call' } });
      let ran = 0;
      await Promise.all(Array.from({ length: 8 }, async () => {
        for (let key = 0; key < 20; ++key) {
          await orders.once(`${key}`, () => ++ran, { wait: Infinity });
        }
      }));
      assert.equal(ran, 20);
      const lock = await orders.lock('lock');
      const waiting = orders.lock('lock', { wait: 20_000 });
      await assert.rejects(orders.tryLock('lock'), semel.InFlightError);
      await lock.unlock();
      await (await waiting).unlock();
      const tokens = new Tokens(client, `tokens-${i}`);
      const token = await tokens.issue(60_000);
      await tokens.consume(token);
      await assert.rejects(tokens.consume(token), semel.TokenUsedError);
    } finally {
      await close();
    }
  });
}
