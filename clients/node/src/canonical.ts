// The canonical text of docs/identity.md: RFC 8785 with exact numbers, $bytes, $set and $map.
import { NotCanonicalError } from './errors.js';

const textBytesMax = 16 << 20;
const levelsMax = 128;
const valuesMax = 1 << 20;
const placesMax = 10_000; // decimal places in front of the point and behind it

/** A number as its canonical text. */
export class Digits {
  constructor(readonly text: string) {}
}

/** Members in their order; names may occur twice until write() refuses that. */
export class Members {
  constructor(readonly all: [name: string, value: Tree][]) {}
}

/** A JSON value whose numbers are exact. */
export type Tree = null | boolean | string | Digits | Members | Tree[];

const literal = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** The text of a number's exact decimal value, placed as ECMAScript places digits. */
export function numberText(text: string, path = '$'): string {
  const found = literal.exec(text);
  if (found === null) throw new NotCanonicalError(path, `'${shown(text)}' is not a JSON number`);
  const [, sign, whole = '', fraction = '', exponent = '0'] = found;
  const digits = whole + fraction;
  let [from, to] = [0, digits.length]; // a pattern for zeros at the end takes quadratic time
  while (from < to && digits[from] === '0') ++from;
  while (from < to && digits[to - 1] === '0') --to;
  const bare = digits.slice(from, to);
  if (bare === '') return '0';
  const last = Number(exponent) - fraction.length + digits.length - to;
  const point = bare.length + last; // digits in front of the point
  if (!(point <= placesMax && last >= -placesMax)) {
    throw new NotCanonicalError(path, `a number beyond ${placesMax} decimal places`);
  }
  if (point > 0 && point <= 21) {
    return sign + (last >= 0 ? bare.padEnd(point, '0')
      : `${bare.slice(0, point)}.${bare.slice(point)}`);
  }
  if (point > -6 && point <= 0) return `${sign}0.${'0'.repeat(-point)}${bare}`;
  const mantissa = bare.length > 1 ? `${bare[0]}.${bare.slice(1)}` : bare;
  return `${sign}${mantissa}e${point > 0 ? '+' : '-'}${Math.abs(point - 1)}`;
}

export function shown(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}..` : text;
}

/** Whether each surrogate of the text is half of a pair: only then the text has UTF-8 bytes. */
export function isWellFormed(text: string): boolean {
  return !/\p{Cs}/u.test(text);
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Writes one tree; refuses what has no canonical text. */
class Writer {
  #values = 0;

  text(tree: Tree, path: string, level: number): string {
    if (++this.#values > valuesMax) {
      throw new NotCanonicalError(path, `more than ${valuesMax} values`);
    }
    if (tree === null || typeof tree === 'boolean') return String(tree);
    if (typeof tree === 'string') return this.#string(tree, path);
    if (tree instanceof Digits) return tree.text;
    this.#enter(level, path);
    if (Array.isArray(tree)) return `[${this.#elements(tree, path, level)}]`;
    const [first] = tree.all;
    if (tree.all.length === 1 && first !== undefined && Array.isArray(first[1])) {
      if (first[0] === '$set') return this.#set(first[1], path, level);
      if (first[0] === '$map' && first[1].every(isPair)) {
        return this.#map(first[1] as [Tree, Tree][], path, level);
      }
    }
    return this.#object(tree, path, level);
  }

  /** Of an array or an object inside `level` others. */
  #enter(level: number, path: string): void {
    if (level >= levelsMax) throw new NotCanonicalError(path, `more than ${levelsMax} levels`);
  }

  #string(text: string, path: string): string {
    if (!isWellFormed(text)) throw new NotCanonicalError(path, 'a text with a lone surrogate');
    return JSON.stringify(text);
  }

  #elements(elements: Tree[], path: string, level: number): string[] {
    return elements.map((each, i) => this.text(each, `${path}[${i}]`, level + 1));
  }

  #set(elements: Tree[], path: string, level: number): string {
    this.#enter(level + 1, path);
    return `{"$set":[${this.#elements(elements, path, level + 1).sort(byBytes)}]}`;
  }

  #map(pairs: [Tree, Tree][], path: string, level: number): string {
    this.#enter(level + (pairs.length > 0 ? 2 : 1), path);
    const texts = pairs.map(([key, value], i) => [
      this.text(key, `${path} key ${i}`, level + 3),
      this.text(value, `${path} value ${i}`, level + 3)] as const);
    texts.sort(([a], [b]) => byBytes(a, b));
    texts.forEach(([key], i) => {
      if (i > 0 && texts[i - 1]?.[0] === key) {
        throw new NotCanonicalError(path, `the key ${shown(key)} twice`);
      }
    });
    return `{"$map":[${texts.map(([key, value]) => `[${key},${value}]`)}]}`;
  }

  #object({ all }: Members, path: string, level: number): string {
    const sorted = [...all].sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
    return `{${sorted.map(([name, value], i) => {
      const inside = `${path}.${name}`;
      if (sorted[i - 1]?.[0] === name) throw new NotCanonicalError(inside, 'a name twice');
      return `${this.#string(name, inside)}:${this.text(value, inside, level + 1)}`;
    })}}`;
  }
}

function isPair(value: Tree): boolean {
  return Array.isArray(value) && value.length === 2;
}

/** The canonical text of a tree. */
export function write(tree: Tree, path = '$'): string {
  const text = new Writer().text(tree, path, 0);
  if (text.length > textBytesMax || Buffer.byteLength(text) > textBytesMax) {
    throw new NotCanonicalError(path, `more than ${textBytesMax} bytes`);
  }
  return text;
}

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const blanks = /[ \t\n\r]*/y;

/** Reads JSON text; JSON.parse would round its numbers. */
class Parser {
  #at = 0;

  constructor(readonly text: string) {}

  all(): Tree {
    const tree = this.#value(0);
    if (this.#at < this.text.length) this.#refuse();
    return tree;
  }

  #refuse(): never {
    throw new NotCanonicalError(`at ${this.#at}`, 'not JSON');
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #skip(word: string): boolean {
    if (!this.text.startsWith(word, this.#at)) return false;
    this.#at += word.length;
    return true;
  }

  /** A value, and the blanks around it. */
  #value(level: number): Tree {
    this.#match(blanks);
    const tree = this.#bare(level);
    this.#match(blanks);
    return tree;
  }

  #bare(level: number): Tree {
    if (level > levelsMax) {
      throw new NotCanonicalError(`at ${this.#at}`, `more than ${levelsMax} levels`);
    }
    if (this.#skip('{')) return this.#object(level);
    if (this.#skip('[')) return this.#array(level);
    if (this.text[this.#at] === '"') return this.#string();
    if (this.#skip('null')) return null;
    if (this.#skip('true')) return true;
    if (this.#skip('false')) return false;
    const digits = this.#match(number);
    return digits === undefined ? this.#refuse() : new Digits(numberText(digits));
  }

  #string(): string {
    const from = this.#at;
    if (this.text[from] !== '"') this.#refuse();
    let end = from + 1;
    for (; this.text[end] !== '"'; end += this.text[end] === '\\' ? 2 : 1) {
      if (end >= this.text.length) this.#refuse();
    }
    this.#at = end + 1;
    try {
      return JSON.parse(this.text.slice(from, end + 1)) as string;
    } catch { // an escape or a control character
      return this.#refuse();
    }
  }

  #array(level: number): Tree[] {
    const elements: Tree[] = [];
    this.#match(blanks);
    if (this.#skip(']')) return elements;
    do elements.push(this.#value(level + 1)); while (this.#skip(','));
    return this.#skip(']') ? elements : this.#refuse();
  }

  #object(level: number): Members {
    const members: [string, Tree][] = [];
    this.#match(blanks);
    if (this.#skip('}')) return new Members(members);
    do {
      this.#match(blanks);
      const name = this.#string();
      this.#match(blanks);
      if (!this.#skip(':')) this.#refuse();
      members.push([name, this.#value(level + 1)]);
    } while (this.#skip(','));
    return this.#skip('}') ? new Members(members) : this.#refuse();
  }
}

/**
 * The canonical form of a JSON text. Its numbers are exact: they are never made a double.
 *
 * Throws a NotCanonicalError for what is no JSON, or has no canonical form.
 */
export function canonicalJson(text: string | Uint8Array): string {
  return write(parse(text));
}

export function parse(text: string | Uint8Array): Tree {
  let whole = text;
  if (typeof whole !== 'string') {
    try {
      whole = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(whole);
    } catch (error) {
      throw new NotCanonicalError('$', 'not UTF-8', { cause: error });
    }
  }
  if (whole.length > textBytesMax || Buffer.byteLength(whole) > textBytesMax) {
    throw new NotCanonicalError('$', `more than ${textBytesMax} bytes`);
  }
  return new Parser(whole).all();
}
