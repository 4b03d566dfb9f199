// What counts as having run, and what a repeat gets.
import assert from 'node:assert/strict';
import { Readable, Writable } from 'node:stream';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import * as semel from '../src/index.js';
import { bytes, Claims, json, Tokens, typed, type Codec } from '../src/index.js';
import { never, Node, skip } from './node.js';

const generators = [function* (): Generator { never(); },
  async function* (): AsyncGenerator { never(); },
  { * method(): Generator { never(); } }.method] as unknown as (() => string)[];

test('once-again-7: a generator function is refused before the claim', { skip }, async (t) => {
  const n = await Node.start(t);
  const orders = new Claims(await n.client('ioredis, RESP3'), 'orders');
  const tokens = new Tokens(await n.client('ioredis, RESP3'), 'tokens');
  await tokens.issueAs('t', 60_000);
  for (const fn of generators) {
    await assert.rejects(orders.once('k', fn), semel.LazyError);
    await assert.rejects(tokens.redeem('t', fn), semel.LazyError);
    for (const id of ['k', null]) {
      const seen = await orders.consumeOnce(id, fn);
      assert.ok(seen.verdict === 'retry' && seen.error instanceof semel.LazyError);
    }
  }
  for (const fn of [undefined, null, 'fn', {}] as unknown as (() => string)[]) {
    await assert.rejects(orders.once('k', fn), TypeError);
    await assert.rejects(tokens.redeem('t', fn), TypeError);
    assert.equal((await orders.consumeOnce('k', fn)).verdict, 'retry');
  }
  assert.equal(await n.state('orders', 'k'), 'absent');
  await tokens.consume('t');
});

class Result {
  constructor(readonly sent: unknown) {}
}

const lazies: Record<string, () => unknown> = {
  generator: () => (function* () { never(); })(),
  'async generator': () => (async function* () { never(); })(),
  'generator through bind': generators[0]?.bind(null) as () => unknown,
  function: () => () => 'later',
  'async function in a promise': async () => async () => 'later',
  class: () => class {},
  iterator: () => new Map([[1, 2]]).entries(),
  'own iterator': () => ({ next: () => ({ done: true, value: 1 }) }),
  stream: () => Readable.from(['x']),
  'writable stream': () => new Writable(),
  'web stream': () => new ReadableStream(),
  'asynchronous iterable': () => ({ async* [Symbol.asyncIterator]() { yield 1; } }),
  observable: () => ({ subscribe: () => {} }),
  'array of promises': () => [1, 2].map(async (each) => each),
  'array of rejections': () => [Promise.reject(new Error('later'))],
  'promise in an object': () => ({ deep: [{ receipt: Promise.resolve(1) }] }),
  'promise in a map': () => new Map([['k', new Set([Promise.resolve(1)])]]),
  'thenable in an object': () => ({ query: { then: () => {} } }),
  'promise in an instance': () => new Result(Promise.resolve(1)),
  'rejection in an instance': () => new Result(Promise.reject(new Error('later'))),
  'promise in a list of instances': () => [new Result(new Result([Promise.resolve(1)]))],
  'promise in a named element': () => Object.assign([1, 2], { sent: Promise.resolve(1) }),
  'promise in a sparse array': () => { const many: unknown[] = []; many[1e6] = Promise.resolve(1); return many; },
  'promise by a symbol': () => ({ [Symbol('sent')]: Promise.resolve(1) }),
  'promise as a cause': () => new Error('x', { cause: Promise.resolve(1) }),
  'promise of a map': () => Object.assign(new Map(), { sent: Promise.resolve(1) }),
  'promise that is not enumerable': () => Object.defineProperty({}, 'sent', { value: Promise.resolve(1) }),
  'promise beside a cycle': () => { const self: object = Object.assign(new Result(0), { sent: Promise.resolve(1) });
    return Object.assign(self, { self }); },
  'generator in an object': () => ({ rows: (function* () { yield 1; })() }),
};

test('once-again-7: a result that is work still to be done has not run', { skip }, async (t) => {
  const n = await Node.start(t);
  const client = await n.client('node-redis, RESP3');
  const orders = new Claims(client, 'orders');
  const payments = new Claims(client, 'payments', { policy: { as: 'payment' } });
  const open = new Claims(client, 'open', { policy: { as: 'message' } });
  for (const [name, gives] of Object.entries(lazies)) {
    await assert.rejects(orders.once(name, gives), semel.LazyError, name);
    assert.equal(await n.state('orders', name), 'absent', name);
    const firstSent = new Date();
    await assert.rejects(payments.once(name, gives, { firstSent }), semel.LazyError, name);
    assert.equal(await n.state('payments', name), 'in_doubt', name); // as ON-EXCEPTION says
    for (const id of [name, null]) {
      const seen = await open.consumeOnce(id, gives);
      assert.ok(seen.verdict === 'retry' && seen.error instanceof semel.LazyError, name);
    }
  }
  const query = { then: (fulfil: (value: string) => unknown) => fulfil('ran') } as unknown as PromiseLike<string>;
  assert.equal((await orders.once('thenable', () => query)).value, 'ran');
  const nested = async (): Promise<Promise<string>> => Promise.resolve('ran');
  assert.equal((await orders.once('nested promise', nested)).value, 'ran');
});

test('once-again-7: what platforms and getters hold is no work of the function', { skip }, async (t) => {
  const n = await Node.start(t);
  const orders = new Claims(await n.client('ioredis, RESP2'), 'orders');
  const pending = new Promise(() => {});
  const socket = Object.assign(new Writable(), { pending });
  const timer = Object.assign(setTimeout(() => {}, 60_000), { pending });
  let asked = 0;
  class Row {
    readonly own = Object.defineProperty({}, 'hidden', { get: () => { ++asked; return pending; } });

    get lazy(): unknown { ++asked; return pending; }
  }
  const values: Record<string, unknown> = { socket: { request: socket }, timer: { timer },
    response: { response: Object.assign(new Response('paid'), { pending }) }, signal: { signal: Object.assign(new AbortController().signal, { pending }) },
    row: new Row(), bytes: Object.assign(Buffer.from('x'), { pending }), url: new URL('http://a/'),
    request: [new Request('http://a/', { method: 'POST', body: 'x' })] };
  for (const [name, value] of Object.entries(values)) {
    await assert.rejects(orders.once(name, () => value), semel.ResultNotKeptError, name);
    assert.equal((await orders.consumeOnce(`m-${name}`, () => value)).verdict, 'ack', name);
  }
  clearTimeout(timer);
  assert.equal(asked, 0);
});

class Money {
  constructor(readonly amount: number) {}
}

const sparse: unknown[] = [1, , 3]; // eslint-disable-line no-sparse-arrays
const cycle: { self?: unknown } = {};
cycle.self = cycle;
const read = Readable.from(['x']);

const odd: Record<string, unknown> = {
  response: new Response('paid', { status: 201 }), blob: new Blob(['x']), map: new Map([['a', 1]]),
  set: new Set([1]), nan: NaN, infinity: -Infinity, 'minus zero': -0, 'nan inside': { n: [NaN] },
  date: new Date(0), 'date inside': { at: new Date(0) }, bigint: 1n, 'bigint inside': [1n],
  instance: new Money(1), 'instance inside': { money: new Money(1) }, error: new Error('x'),
  'undefined member': { a: 1, b: undefined }, 'undefined element': [undefined], sparse,
  buffer: Buffer.from('x'), 'buffer inside': { b: Buffer.from('x') }, uint8: new Uint8Array([1]),
  'own toJSON': { toJSON: () => ({ a: 1 }) }, regexp: /x/g, symbol: Symbol('s'), cycle,
  'symbol name': { [Symbol('s')]: 1 }, 'function inside': { id: 1, save() {} },
  boxed: new String('x'), headers: new Headers({ a: 'b' }),
  'no prototype': Object.assign(Object.create(null) as object, { a: 1 }),
  'named element': Object.assign([1], { total: 1 }), 'stream that was read': read,
  'socket inside': { status: 200, request: new Writable() }, $set: { $set: [1, 2] },
  $$: { $$a: { $date: 1 } }, 'a lone surrogate': '\ud800',
  proto: JSON.parse('{"__proto__":{"a":1}}'), nothing: undefined, null: null, empty: '', zero: 0,
  false: false, array: [], object: {}, 'map of maps': new Map([[{ a: 1 }, new Map()]]),
  'invalid date': new Date(NaN), deep: { a: [new Set([new Date(1), 2n]), { $a: undefined }] },
};
/** What repeats get as it was, by codec. */
const plain = ['$set', '$$', 'a lone surrogate', 'proto', 'nothing', 'null', 'empty', 'zero', 'false',
  'array', 'object'];
const kept = new Map<Codec, string[]>([
  [json, plain],
  [typed, [...plain, 'map', 'set', 'nan', 'infinity', 'minus zero', 'nan inside', 'date',
    'date inside', 'bigint', 'bigint inside', 'undefined member', 'undefined element', 'buffer', 'buffer inside',
    'map of maps', 'deep']],
  [bytes, ['buffer']],
]);

for (const [i, [codec, names]] of [...kept].entries()) {
  const name = ['json', 'typed', 'bytes'][i] as string;
  test(`once-again-8: a repeat gets the first caller's value, ${name}`, { skip }, async (t) => {
    const n = await Node.start(t);
    const orders = new Claims(await n.client(i % 2 ? 'ioredis, RESP3' : 'node-redis, RESP2'),
      'orders', { codec });
    for await (const each of read) assert.equal(each, 'x');
    for (const [key, value] of Object.entries(odd)) {
      let first: unknown;
      try {
        first = (await orders.once<unknown>(key, () => value)).value;
      } catch (error) {
        assert.ok(error instanceof semel.ResultNotKeptError, `${key}: ${String(error)}`);
        assert.equal(error.value, value);
        await assert.rejects(orders.once(key, never), semel.NoResultError, key);
        assert.ok(!names.includes(key), `${key}: ${error.message}`);
        continue;
      }
      assert.ok(names.includes(key), `${key} was kept`);
      assert.equal(first, value);
      const again = (await orders.once<unknown>(key, never)).value;
      assert.ok(isDeepStrictEqual(again, value), key);
    }
  });
}

test('once-again-8: the error names the place that would change', { skip }, async (t) => {
  const n = await Node.start(t);
  const orders = new Claims(await n.client('ioredis, RESP2'), 'orders');
  for (const [value, why] of [[{ items: [{ at: new Date(0) }] }, /\$\.items\[0\]\.at is a Date/],
    [{ a: undefined }, /\$\.a would be absent/], [new Money(1), /\$ is a Money/],
    [[NaN], /\$\[0\] is a number, and would be a null/]] as const) {
    await assert.rejects(orders.once<unknown>(String(why), () => value), why);
  }
});

test('once-again-23: marks of the store are not in the space of values', { skip }, async (t) => {
  const n = await Node.start(t);
  const client = await n.client('node-redis, RESP3');
  const raw = new Claims(client, 'raw', { codec: bytes });
  const own: Codec = { encode: (value) => value as Buffer, decode: (found) => found };
  const custom = new Claims(client, 'raw', { codec: own });
  for (const each of [raw, custom]) {
    for (const value of [[], [0], [1], [0, 0], [1, 0], [2], [0x7b, 0x7d]]) {
      const key = `${each === raw} ${value}`;
      const first = Buffer.from(value);
      await each.once(key, () => first);
      assert.deepEqual((await each.once(key, () => never() as never)).value, first);
    }
    await assert.rejects(each.once(`${each === raw} object`, () => ({ paid: 1 }) as never),
      semel.ResultNotKeptError);
    await assert.rejects(each.once(`${each === raw} object`, never), semel.NoResultError);
  }
  const result = async (key: string): Promise<string> => {
    const found = await n.call('SEMEL.GETCLAIM', 'raw', key) as string[];
    return found[found.indexOf('result') + 1] as string;
  };
  assert.equal(await result('true 2'), '\x01\x02');
  assert.equal(await result('false 2'), '\x02');
  assert.equal(await result('true object'), '\0');
});

test('once-again-23: records of earlier releases are read, or there is no result', { skip },
  async (t) => {
    const n = await Node.start(t);
    const client = await n.client('ioredis, RESP3');
    const reads = async (codec: Codec, stored: string): Promise<unknown> => {
      const claim = await n.call('SEMEL.CLAIM', 'old', `${stored}`) as string[];
      if (claim[1] === 'granted') {
        await n.call('SEMEL.COMPLETE', 'old', stored, claim[3] as string, stored);
      }
      return new Claims(client, 'old', { codec }).once(stored, never)
        .then(({ value }) => value, (error: unknown) => error);
    };
    assert.deepEqual(await reads(json, '{"a":[1]}'), { a: [1] });
    assert.deepEqual(await reads(typed, '{"a":[1]}'), { a: [1] });
    assert.deepEqual(await reads(bytes, 'paid'), Buffer.from('paid'));
    assert.deepEqual(await reads(bytes, '{"a":[1]}'), Buffer.from('{"a":[1]}'));
    // Numbers of other languages are not rounded; those of JavaScript are read.
    for (const codec of [json, typed]) {
      assert.deepEqual(await reads(codec, `[${2 ** 60},${2 ** 70},0.1,1234567890123456]`),
        [2 ** 60, 2 ** 70, 0.1, 1234567890123456]);
      assert.deepEqual(await reads(codec, '[1e2,1.50,5e-324,1.7976931348623157e308,0e999,-0.0,1E+2]'),
        [100, 1.5, 5e-324, Number.MAX_VALUE, 0, -0, 100]);
      for (const text of ['{"id":9007199254740993}', '[18446744073709551615]', '1e400', '-1e400',
        '1e-400', '[1.23456789012e-320]', '1e99999', '{"a":"\\\\","b":1e-99999}', '0.12345678901234567',
        '["\\"",9007199254740993]', '1e999999999999999999999', '2.5e-324']) {
        const found = await reads(codec, text);
        assert.ok(found instanceof TypeError && /which JavaScript would change/.test(found.message), text);
      }
      // Digits in a text are no number.
      const deep: unknown = JSON.parse('['.repeat(500) + '"1234567890123456"' + ']'.repeat(500));
      for (const value of [{ a: '\ud800', b: '1234567890123456' }, deep, { '1e999': '1e999' },
        ['\\', '\\"9007199254740993', '9007199254740993\\\\'], ['\\'.repeat(1e6) + '1e999'],
        { card: '4111111111111111111', n: 1234567890123456 }]) {
        const key = `${JSON.stringify(value).slice(0, 40)}`;
        const kept = new Claims(client, 'new', { codec });
        await kept.once(key, () => value);
        assert.deepEqual((await kept.once(key, () => never() as never)).value, value);
      }
    }
    for (const codec of [json, typed, bytes]) {
      assert.ok(await reads(codec, '\0') instanceof semel.NoResultError);
    }
  });

test('once-again-27: a codec may be asynchronous, and one that fails leaves nothing in flight',
  { skip }, async (t) => {
    const n = await Node.start(t);
    const client = await n.client('node-redis, RESP2');
    const codecs: Record<string, Partial<Codec>> = {
      works: { encode: async (value) => json.encode(value),
        decode: async (found) => json.decode(found) },
      throws: { encode() { throw new Error('broken'); } },
      rejects: { encode: () => Promise.reject(new Error('broken')) },
      'gives no bytes': { encode: () => 'text' as never },
      'gives nothing': { encode: () => undefined as never },
      'throws nothing': { encode() { throw undefined; } },
      'decodes nothing': { decode() { throw new Error('broken'); } },
      'rejects decoding': { decode: () => Promise.reject(new Error('broken')) },
      'changes it': { decode: () => 'another' },
    };
    for (const [name, parts] of Object.entries(codecs)) {
      const orders = new Claims(client, 'orders', { codec: { ...json, ...parts } });
      if (name === 'works') {
        assert.deepEqual((await orders.once(name, () => ({ a: 1 }))).value, { a: 1 });
        assert.deepEqual((await orders.once<unknown>(name, never)).value, { a: 1 });
      } else {
        await assert.rejects(orders.once(name, () => 'paid'), (error: unknown) =>
          error instanceof semel.ResultNotKeptError && error.value === 'paid');
        await assert.rejects(orders.once(name, never), semel.NoResultError);
      }
      assert.equal(await n.state('orders', name), 'done');
    }
    for (const codec of [{}, { encode: json.encode }, 'json'] as unknown as Codec[]) {
      assert.throws(() => new Claims(client, 'orders', { codec }), semel.OptionError);
      await assert.rejects(new Claims(client, 'orders').once('none', never, { codec }), semel.OptionError);
    }
    assert.equal(await n.state('orders', 'none'), 'absent');
  });

/** Until the node takes no key of 1,000 bytes. */
async function fillMemory(n: Node): Promise<void> {
  for (const size of [100_000, 1000]) {
    const value = 'x'.repeat(size);
    const set = (i: number): Promise<boolean> =>
      n.call('SET', `filler${size}-${i}`, value).then(() => true, () => false);
    for (let i = 0; await set(i);) ++i;
  }
}

test('once-again-22: work whose result has no room is done, and runs once', { skip }, async (t) => {
  const n = await Node.start(t);
  const orders = new Claims(await n.client('ioredis, RESP3'), 'orders',
    { patience: 300, policy: { as: 'call', lease: 3000 } });
  await n.call('CONFIG', 'SET', 'maxmemory', '64mb');
  const result = 'y'.repeat(5_000_000);
  await assert.rejects(orders.once('k', async () => {
    await fillMemory(n);
    return result;
  }), (error: unknown) => error instanceof semel.ResultNotKeptError && error.value === result
    && /OOM/.test(error.message));
  assert.equal(await n.state('orders', 'k'), 'done');
  await n.advance(60_000);
  await assert.rejects(orders.once('k', never), semel.NoResultError);
});

test('once-again-22: a result that was kept is not called dropped', { skip }, async (t) => {
  const n = await Node.start(t);
  const proxy = await n.proxy();
  const orders = new Claims(await n.client('ioredis, RESP3', proxy.port), 'orders');
  proxy.cut('SEMEL.COMPLETE', 1); // it is recorded, and its reply is lost
  proxy.rule('SEMEL.COMPLETE', '-OOM memory limit reached');
  assert.equal((await orders.once('k', () => 'paid')).value, 'paid');
  assert.equal((await orders.once('k', never)).value, 'paid');
});
