import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as semel from '../src/index.js';
import { Claims, Tokens } from '../src/index.js';
import { aborted, kinds, never, Node, skip, until } from './node.js';

const broken = new Error('the bank is slow');

for (const kind of kinds) {
  test(`a message is handled once, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const messages = new Claims(await n.client(kind), 'm',
      { policy: { as: 'message', attemptsMax: 2 } });
    let handled = 0;
    const handles = (): void => { ++handled; };
    const plain = { duplicate: false, unguarded: false, attempt: 1, retryAfter: 0 };
    assert.deepEqual(await messages.consumeOnce('m-1', handles), { ...plain, verdict: 'ack' });
    assert.deepEqual(await messages.consumeOnce('m-1', handles),
      { ...plain, verdict: 'ack', duplicate: true });
    assert.equal(handled, 1);
    const fails = (): never => { throw broken; };
    assert.deepEqual(await messages.consumeOnce('m-2', fails),
      { ...plain, verdict: 'retry', retryAfter: 1000, error: broken });
    assert.deepEqual(await messages.consumeOnce('m-2', fails),
      { ...plain, verdict: 'deadLetter', attempt: 2, error: broken });
    const third = await messages.consumeOnce('m-2', never);
    assert.equal(third.verdict, 'deadLetter');
    assert.ok(third.error instanceof semel.KeptFailureError);
    const rejects = async (): Promise<never> => { throw new semel.Rejected('no such address'); };
    assert.equal((await messages.consumeOnce('m-3', rejects)).verdict, 'deadLetter');
    for (const id of [undefined, null, '']) {
      assert.deepEqual(await messages.consumeOnce(id, handles),
        { ...plain, verdict: 'ack', unguarded: true });
    }
    await messages.consumeOnce('m-4', async () => {
      const meanwhile = await messages.consumeOnce('m-4', never);
      assert.equal(meanwhile.verdict, 'retry');
      assert.ok(meanwhile.error instanceof semel.InFlightError);
    });
    const lost = await messages.consumeOnce('m-5', async ({ signal }) => {
      await n.advance(3_600_000);
      assert.equal((await messages.consumeOnce('m-5', handles)).verdict, 'ack');
      await aborted(signal);
    }, { lease: 90 });
    assert.deepEqual([lost.verdict, lost.duplicate], ['ack', true]);
  });

  test(`a lock has a token that grows, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const locks = new Claims(await n.client(kind), 'locks', { policy: { as: 'lock' } });
    const first = await locks.tryLock('invoices');
    await assert.rejects(locks.tryLock('invoices'), semel.InFlightError);
    await assert.rejects(locks.lock('invoices', { wait: 20 }), semel.InFlightError);
    const signal = AbortSignal.timeout(20);
    await assert.rejects(locks.lock('invoices', { signal }), { name: 'TimeoutError' });
    const waiting = locks.lock('invoices');
    await until('it waits', async () => await n.waiters() === 1);
    await first.unlock();
    await first.unlock();
    {
      await using second = await waiting;
      assert.ok(second.token > first.token);
    }
    assert.equal(await n.state('locks', 'invoices'), 'absent');

    const begun = new AbortController();
    const lock = await locks.lock('k', { signal: begun.signal, lease: 150 });
    begun.abort();
    assert.equal(lock.isLost, false);
    await n.advance(3_600_000);
    const other = await locks.tryLock('k');
    await aborted(lock.signal);
    await assert.rejects(lock.unlock(), semel.LeaseLostError);
    await other.unlock();
  });

  test(`a token is used once, ${kind}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const tokens = new Tokens(await n.client(kind), 'tokens');
    const token = await tokens.issue(60_000);
    assert.match(token, /^[\w-]{32}$/);
    await tokens.consume(token);
    await assert.rejects(tokens.consume(token), semel.TokenUsedError);
    await assert.rejects(tokens.consume('forged'), semel.TokenUnknownError);
    await assert.rejects(tokens.consume(''), semel.KeyError);
    assert.notEqual(await tokens.issue(), token);
    assert.equal(await tokens.issueAs('coupon', 60_000), true);
    assert.equal(await tokens.issueAs('coupon', 60_000), false);
    await assert.rejects(tokens.redeem('coupon', () => { throw broken; }), broken);
    assert.equal((await tokens.redeem('coupon', () => 12)).value, 12);
    assert.deepEqual((await tokens.redeem('coupon', () => 13)).value, 12);
    await assert.rejects(tokens.consume('coupon'), semel.TokenUsedError);
    const short = await tokens.issue(1);
    await n.advance(1000);
    const over = Date.now() + 2;
    await until('it is over', () => Date.now() > over);
    await assert.rejects(tokens.consume(short), semel.TokenExpiredError);
    for (let round = 0; round < 10; ++round) {
      const one = await tokens.issue(60_000);
      const all = await Promise.allSettled(
        Array.from({ length: 8 }, () => tokens.consume(one, { wait: Infinity })));
      const refused = all.filter((each) => each.status === 'rejected');
      assert.equal(refused.length, 7);
      for (const each of refused) assert.ok(each.reason instanceof semel.TokenUsedError);
    }
  });
}
