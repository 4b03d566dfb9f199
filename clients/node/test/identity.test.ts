// The table of docs/identity.md, and what identifies a call in JavaScript.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as semel from '../src/index.js';
import { canonicalJson, canonicalOf, Claims, compositeKey, ExactNumber, formatKey,
  identityOf } from '../src/index.js';
import { never, Node, skip } from './node.js';

const path = fileURLToPath(new URL('../../../../tests/identity/cases.json', import.meta.url));
const table = JSON.parse(readFileSync(path, 'utf8')) as {
  cases: Case[]; values: Value[]; formats: Format[];
};

interface Case {
  name: string; kind: string; json?: string; operation?: string; arguments?: string;
  scope?: semel.Scope | null; canonical?: string; sha256?: string; key?: string; error?: string;
}
interface Value { name: string; type: string; value: unknown; json?: string; refused?: boolean }
interface Format { format: string; fields: Record<string, unknown>; key?: string; error?: string }

function reasonOf(error: unknown): string {
  if (error instanceof semel.NotCanonicalError) return 'syntax';
  return error instanceof semel.KeyError ? error.reason : `not of the package: ${String(error)}`;
}

function refusedAs(reason: string): (error: unknown) => true {
  return (error) => {
    assert.equal(reasonOf(error), reason);
    return true;
  };
}

for (const each of table.cases) {
  test(`once-again-24: identity, ${each.name.slice(0, 60)}`, () => {
    const { kind, error, canonical = '' } = each;
    assert.ok(['identity', 'json'].includes(kind), `an unknown kind, ${kind}`);
    const made = (): semel.Identity => {
      if (kind === 'identity') {
        // The arguments as text: values of JavaScript would round their numbers.
        const args = canonicalJson(each.arguments ?? '');
        return semel.identityOfText(each.operation ?? '', each.scope ?? null, args);
      }
      const text = canonicalJson(each.json ?? '');
      assert.equal(canonicalJson(Buffer.from(each.json ?? '')), text);
      return { canonical: text, key: '',
        fingerprint: createHash('sha256').update(text).digest('hex').slice(0, 32) };
    };
    if (error !== undefined) {
      assert.throws(made, refusedAs(error));
      return;
    }
    const found = made();
    assert.equal(found.canonical, canonical);
    assert.equal(found.fingerprint, each.sha256);
    if (kind === 'identity') assert.equal(found.key, each.key);
    assert.equal(canonicalJson(canonical), canonical);
  });
}

class Opaque {
  readonly #state = 1;
  state(): number { return this.#state; }
}

function list(value: unknown): unknown[] {
  const words = value as unknown[];
  return Array.from({ length: words.length / 2 }, (_, i) =>
    made(words[2 * i] as string, words[2 * i + 1]));
}

/** The value of a type of the table; where JavaScript has no such type, what is nearest to it. */
function made(type: string, value: unknown): unknown {
  const text = String(value);
  switch (type) {
    case 'null': return null;
    case 'bool': case 'text': return value;
    case 'integer': case 'big_integer': return BigInt(text);
    // 1e21 and 1e23 are integers beyond 2^53 - 1, which a number may have rounded.
    case 'float': return /^1e2\d$/.test(text) ? new ExactNumber(text) : Number(text);
    case 'decimal': return new ExactNumber(text); // no such type
    case 'lone_surrogate': return String.fromCharCode(parseInt(text, 16));
    case 'bytes': return Buffer.from(text, 'hex');
    case 'enum': return text; // TypeScript's enums of texts are texts
    case 'uuid': return text.toLowerCase(); // a text, as crypto.randomUUID() gives it
    case 'date': return text; // no such type: the text
    case 'time': return text.replace(/0+$/, ''); // no such type: the text
    case 'datetime': return text; // no such type: the text
    case 'instant': return new Date(text);
    case 'duration': return `PT${text}S`; // no such type: the text
    case 'list': return list(value);
    case 'set': return new Set(list(value));
    case 'map': {
      const all = list(value);
      return new Map(all.filter((_, i) => i % 2 === 0).map((key, i) => [key, all[2 * i + 1]]));
    }
    case 'record': {
      const words = value as unknown[];
      return Object.fromEntries(Array.from({ length: words.length / 3 }, (_, i) =>
        [words[3 * i], made(words[3 * i + 1] as string, words[3 * i + 2])]));
    }
    case 'function': return () => 1;
    case 'stream': return Readable.from(['x']);
    case 'future': return Promise.resolve(1);
    case 'generator': return (function* () { yield 1; })();
    case 'cycle': {
      const cycle: unknown[] = [];
      cycle.push({ cycle });
      return cycle;
    }
    case 'opaque': return new Opaque();
    default: return assert.fail(`an unknown type, ${type}`);
  }
}

for (const { name, type, value, json, refused } of table.values) {
  test(`once-again-24: value, ${name}`, () => {
    if (refused) {
      assert.throws(() => canonicalOf(made(type, value)), semel.NotCanonicalError);
      assert.throws(() => identityOf('pay', null, { amount: made(type, value) }),
        (error) => error instanceof semel.NotCanonicalError
          && error.path.startsWith('arguments.amount'));
      return;
    }
    assert.equal(canonicalOf(made(type, value)), json);
  });
}

for (const { format, fields, key, error } of table.formats) {
  test(`once-again-24: format ${format}, ${JSON.stringify(fields)}`, () => {
    if (error === undefined) assert.equal(formatKey(format, fields), key);
    else assert.throws(() => formatKey(format, fields), refusedAs(error));
  });
}

test('once-again-24: values that only JavaScript has', () => {
  const form = new FormData();
  form.append('n', '1');
  form.append('a', '2');
  const money = { toJSON: () => ({ amount: 1n, of: new Set(['b', 'a']) }) };
  for (const [value, text] of [
    [undefined, 'null'], [[undefined, 1], '[null,1]'], [{ a: undefined, b: null }, '{"b":null}'],
    [new Uint16Array([1, 256]), '{"$bytes":"AQAAAQ=="}'],
    [new Uint8Array([1]).buffer, '{"$bytes":"AQ=="}'],
    [new DataView(new Uint8Array([0, 1, 2]).buffer, 1), '{"$bytes":"AQI="}'],
    [new URLSearchParams('n=1&a=2&n=3'), '[["n","1"],["a","2"],["n","3"]]'],
    [form, '[["n","1"],["a","2"]]'], [money, '{"amount":1,"of":{"$set":["a","b"]}}'],
    [Object.assign(Object.create(null) as object, { a: 1 }), '{"a":1}'],
    [2 ** 53 - 1, '9007199254740991'], [JSON.parse('{"__proto__":1}'), '{"__proto__":1}'],
    [new Map([['$a', 1]]), '{"$$a":1}'],
    [new URL('https://a.example/b'), '"https://a.example/b"'],
  ] as const) {
    assert.equal(canonicalOf(value), text);
  }
  const file = new FormData();
  file.append('f', new Blob(['x']), 'x.txt');
  const cyclic = new Map<string, unknown>();
  cyclic.set('self', cyclic);
  const symbol = { [Symbol('s')]: 1 };
  for (const value of [/x/, Symbol('s'), 2 ** 53, -(2 ** 53), new Response('x'),
    new Headers({ a: 'b' }), new Date(NaN), new Error('x'), new WeakMap(), new Opaque(), file,
    cyclic, symbol, new Map().entries(), new ReadableStream(), new Proxy(class {}, {}), 'ab\udbff',
    { '\ud800': 1 }, Object.assign([1], { x: 1 }),
    Object.assign(new Map(), { x: 1 }), new (class extends Set { more = 1; })(), new Number(1)]) {
    assert.throws(() => canonicalOf({ deep: [value] }),
      (error) => error instanceof semel.NotCanonicalError && error.path.startsWith('$.deep[0]')
        || assert.fail(`${String(value)}: ${String(error)}`));
  }
  const same = { a: 1 };
  assert.equal(canonicalOf([same, same]), '[{"a":1},{"a":1}]');
});

test('once-again-24: limits of the canonical text', () => {
  const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
  assert.equal(canonicalJson(nested(128)), nested(128));
  assert.throws(() => canonicalJson(nested(129)), semel.NotCanonicalError);
  assert.throws(() => canonicalJson(nested(1_000_000)), semel.NotCanonicalError);
  let value: unknown = [];
  for (let i = 1; i < 129; ++i) value = [value];
  assert.throws(() => canonicalOf(value), semel.NotCanonicalError);
  const many = (values: number): string => `[${'0,'.repeat(values - 2)}0]`;
  assert.equal(canonicalJson(many(1 << 20)).length, 2 * (1 << 20) - 1);
  assert.throws(() => canonicalJson(many((1 << 20) + 1)), semel.NotCanonicalError);
  assert.throws(() => canonicalOf(new Array(1e9)), semel.NotCanonicalError);
  assert.throws(() => canonicalJson(JSON.stringify('x'.repeat(16 << 20))), semel.NotCanonicalError);
  const zeros = '0'.repeat(1 << 20); // in linear time
  assert.equal(canonicalJson(`1.${zeros}`), '1');
  assert.throws(() => canonicalJson(`1${zeros}1`), semel.NotCanonicalError);
  assert.throws(() => canonicalJson(Buffer.from([0x22, 0xff, 0x22])), semel.NotCanonicalError);
});

test('once-again-24: composite keys of other fields are other keys', () => {
  assert.equal(compositeKey(['a|b', 'c\\']), 'a\\|b|c\\\\');
  assert.equal(compositeKey(['a', '']), 'a|');
  assert.equal(compositeKey(['']), '\\e');
  for (const fields of [[], [null], ['a', undefined], [1], ['\ud800']] as string[][]) {
    assert.throws(() => compositeKey(fields), semel.KeyError);
  }
  assert.equal(formatKey('o:{id}', { id: 12n }), 'o:12');
  for (const id of [undefined, true, ['1'], {}, NaN, 1.5, 2 ** 53, '\ud800', new String('1')]) {
    assert.throws(() => formatKey('o:{id}', { id }), /'id'/);
  }
  assert.throws(() => formatKey('o:{constructor}', {}), semel.KeyError);
});

test('once-again-24: a key is text or bytes, and nothing is converted', { skip }, async (t) => {
  const n = await Node.start(t);
  const orders = new Claims(await n.client('ioredis, RESP3'), 'orders');
  for (const key of [['order-1'], [], new Uint16Array([256]), new ArrayBuffer(1), 7, 7n, true, {},
    null, undefined, Symbol('s'), new String('x'), '\ud800', 'o\udbff',
    new Date()] as unknown as string[]) {
    await assert.rejects(orders.once(key, never), semel.KeyError);
    await assert.rejects(orders.tryLock(key), semel.KeyError);
    if (key === null || key === undefined) continue;
    const seen = await orders.consumeOnce(key, never);
    assert.ok(seen.verdict === 'deadLetter' && seen.error instanceof semel.KeyError);
  }
  await assert.rejects(orders.once(['a'] as unknown as string, never), /Array/);
  const words = new Uint16Array([1]) as unknown as string;
  await assert.rejects(orders.once(words, never), /Uint16Array/);
  const tokens = new semel.Tokens(await n.client('ioredis, RESP3'), 'tokens');
  for (const token of [['a'], 7, null, '', '\ud800'] as unknown as string[]) {
    await assert.rejects(tokens.issueAs(token, 1000), semel.KeyError);
    await assert.rejects(tokens.consume(token), semel.KeyError);
  }
});

test('once-again-24: another payload is a mismatch, whatever its type', { skip }, async (t) => {
  const n = await Node.start(t);
  const orders = new Claims(await n.client('node-redis, RESP3'), 'orders');
  const form = (value: number): FormData => {
    const made = new FormData();
    made.set('n', String(value));
    return made;
  };
  const makes: ((value: number) => unknown)[] = [
    (value) => new Map([['n', value]]), (value) => new Map([[value, 'n']]),
    (value) => new Set([value]), (value) => new URLSearchParams({ n: String(value) }),
    (value) => new ArrayBuffer(value), (value) => new Uint16Array([value]), form,
    (value) => new Date(value), (value) => BigInt(value), (value) => String(value),
    (value) => Buffer.from(String(value)), (value) => [undefined, value]];
  for (const [i, make] of makes.entries()) {
    await orders.once(`k${i}`, () => i, { fingerprint: make(1) });
    assert.equal((await orders.once(`k${i}`, never, { fingerprint: make(1) })).value as unknown, i);
    await assert.rejects(orders.once(`k${i}`, never, { fingerprint: make(1000) }),
      semel.MismatchError);
  }
  for (const fingerprint of [NaN, { n: NaN }, /x/, new Response('x'), Promise.resolve(1),
    2 ** 53]) {
    await assert.rejects(orders.once('refused', never, { fingerprint }), semel.NotCanonicalError);
    const seen = await orders.consumeOnce('refused', never, { fingerprint });
    assert.equal(seen.verdict, 'deadLetter');
  }
  assert.equal(await n.state('orders', 'refused'), 'absent');
});

test('once-again-24: the options give the fingerprints of the table', { skip }, async (t) => {
  const n = await Node.start(t);
  const orders = new Claims(await n.client('node-redis, RESP2'), 'orders');
  let played = 0;
  for (const { kind, error, name, operation = '', scope, arguments: args, sha256 } of table.cases) {
    if (kind !== 'identity' || error !== undefined || args !== '{}') continue;
    const options = { operation, ...(scope ? { scope } : {}) };
    for (const [i, each] of [options, { ...options, fingerprint: {} }].entries()) {
      await orders.once(`${name}${i}`, () => 1, each);
      const record = await n.call('SEMEL.GETCLAIM', 'orders', `${name}${i}`) as string[];
      assert.equal(record[record.indexOf('fingerprint') + 1], sha256, name);
      ++played;
    }
  }
  assert.ok(played >= 4);
});

test('once-again-24: another operation or scope under a key is a mismatch', { skip }, async (t) => {
  const n = await Node.start(t);
  const orders = new Claims(await n.client('ioredis, RESP2'), 'orders');
  const pay = { operation: 'pay', scope: { tenant: 'acme' }, fingerprint: { order: 4711 } };
  await orders.once('k', () => 1, pay);
  assert.equal((await orders.once('k', () => never() as never, { ...pay })).value, 1);
  for (const other of [{ operation: 'refund' }, { scope: { user: 'acme' } },
    { scope: { tenant: 'b' } }, { fingerprint: { order: 4712 } }, { fingerprint: {} }]) {
    await assert.rejects(orders.once('k', never, { ...pay, ...other }), semel.MismatchError);
  }
  const record = await n.call('SEMEL.GETCLAIM', 'orders', 'k') as string[];
  assert.equal(record[record.indexOf('algorithm') + 1], '9');
  assert.equal(record[record.indexOf('fingerprint') + 1],
    identityOf('pay', { tenant: 'acme' }, { order: 4711 }).fingerprint);
  for (const wrong of [{ operation: '' }, { operation: 'x'.repeat(513) }, { scope: { tenant: 'a' } },
    { operation: 'pay', scope: {} }, { operation: 'pay', scope: { tenant: '' } },
    { operation: 'pay', scope: { tenant: undefined } }, { operation: 'pay', scope: { shop: 'a' } },
    { operation: 7 }] as unknown as semel.CallOptions[]) {
    await assert.rejects(orders.once('wrong', never, wrong), semel.KeyError);
  }
  assert.equal(await n.state('orders', 'wrong'), 'absent');
});
