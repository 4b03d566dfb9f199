/**
 * A Redis for tests: the program semel, with a clock that the test moves and faults that it plants.
 * Plain functions for any runner; no client library is needed.
 *
 *     const server = await startSemel();
 *     const redis = new Redis(server.url);
 *     await redis.set('cart:ada', 'tea', 'EX', 1800);
 *     await server.advance(1_800_000);
 *     await redis.exists('cart:ada');  // 0, and no time has passed
 *     await server.stop();
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

const patience = 20_000; // ms, for the start and for a reply

export type Reply = string | number | null | Reply[];

/** The server answered with an error. */
export class ReplyError extends Error {
  override name = 'ReplyError';
}

/** Which requests a fault acts on. */
export interface FaultScope {
  /** Glob, as `set` or `h*`; without it all but HELLO, AUTH, CLIENT, PING and their like. */
  command?: string;
  /** Glob that one of the command's keys matches. */
  key?: string;
  /** The first matching request that it acts on: 1. */
  nth?: number;
  /** How many in a row: 1. 0: all that follow. */
  count?: number;
}

/** What goes wrong: exactly one of these. */
export type FaultAction =
  /** The reply is this error, and the command does not run: `LOADING not yet`. */
  | { error: string }
  /** The command runs after this many ms of the server's clock, 60,000 at most. */
  | { delay: number }
  /** The connection is closed: before the command runs, or instead of its reply. */
  | { drop: 'request' | 'reply' };

export interface SemelOptions {
  /** The program; otherwise what SEMEL_BINARY names, or `semel` on the PATH. */
  binary?: string;
  /** Flags of redis-server: `['--requirepass', 'x']`. */
  flags?: readonly string[];
}

/** The program: what SEMEL_BINARY names, or `semel` on the PATH. Throws if there is none. */
export function findSemel(): string {
  const named = process.env['SEMEL_BINARY'];
  const places = named ? [named]
    : (process.env['PATH'] ?? '').split(delimiter).filter(Boolean).map((each) => join(each, 'semel'));
  for (const each of places) {
    try {
      accessSync(each, constants.X_OK);
      return each;
    } catch { /* the next one */ }
  }
  throw new Error(named ? `SEMEL_BINARY is ${named}, which is not a program`
    : 'no program semel: name it in SEMEL_BINARY, or put it on the PATH');
}

/** A parsed reply and the bytes that it took; undefined: it is not complete. */
function parse(data: Buffer, at = 0): { value: Reply | ReplyError; end: number } | undefined {
  const line = data.indexOf('\r\n', at);
  if (line < 0) return undefined;
  const kind = String.fromCharCode(data[at] as number);
  const text = data.toString('utf8', at + 1, line);
  const end = line + 2;
  if (kind === '+') return { value: text, end };
  if (kind === '-') return { value: new ReplyError(text), end };
  const number = Number(text);
  if (kind === ':') return { value: number, end };
  if (number < 0) return { value: null, end };
  if (kind === '$') {
    if (data.length < end + number + 2) return undefined;
    return { value: data.toString('utf8', end, end + number), end: end + number + 2 };
  }
  const items: Reply[] = [];
  let next = end;
  for (let i = 0; i < number; ++i) {
    const item = parse(data, next);
    if (item === undefined) return undefined;
    items.push(item.value instanceof ReplyError ? item.value.message : item.value);
    next = item.end;
  }
  return { value: items, end: next };
}

function request(words: readonly (string | number)[]): string {
  return `*${words.length}\r\n${words.map((each) => {
    const word = String(each);
    return `$${Buffer.byteLength(word)}\r\n${word}\r\n`;
  }).join('')}`;
}

const running = new Set<SemelServer>();
process.on('exit', () => { for (const each of running) each.kill(); });

/** A running server. Calls may overlap: they are sent one after another. */
export class SemelServer {
  readonly host = '127.0.0.1';
  readonly port: number;
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #folder: string;
  #socket: Socket | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** @internal */
  constructor(child: ChildProcess, folder: string, port: number) {
    this.#process = child;
    this.#folder = folder;
    this.port = port;
    this.url = `redis://${this.host}:${port}/0`;
    running.add(this);
  }

  /** One command on a connection of the server's own. Throws ReplyError for an error reply. */
  call(...words: (string | number)[]): Promise<Reply> {
    const done = this.#last.then(() => this.#send(words));
    this.#last = done.catch(() => {});
    return done;
  }

  /** Moves the clock on by ms. What has ended by then is gone when this resolves. */
  async advance(ms: number): Promise<void> { await this.call('SEMEL.CLOCK', 'ADVANCE', ms); }
  /** Stops the clock; advance() still moves it. */
  async freeze(): Promise<void> { await this.call('SEMEL.CLOCK', 'FREEZE'); }
  /** Lets the clock run on, ahead of the machine's by all that it was advanced. */
  async run(): Promise<void> { await this.call('SEMEL.CLOCK', 'REAL'); }
  /** Unix time in ms. */
  async now(): Promise<number> { return Number(await this.call('SEMEL.CLOCK', 'NOW')); }

  /** Plants a fault. Resolves to a number for clearFaults(). */
  async fault(fault: FaultAction & FaultScope): Promise<number> {
    const words: (string | number)[] = 'error' in fault ? ['ERROR', fault.error]
      : 'delay' in fault ? ['DELAY', fault.delay]
        : [fault.drop === 'reply' ? 'DROP-REPLY' : 'DROP'];
    for (const name of ['command', 'key', 'nth', 'count'] as const) {
      const value = fault[name];
      if (value !== undefined) words.push(name.toUpperCase(), value);
    }
    return Number(await this.call('SEMEL.FAULT', 'ADD', ...words));
  }

  /** Removes one fault, or all. Resolves to how many there were. */
  async clearFaults(fault?: number): Promise<number> {
    return Number(await this.call('SEMEL.FAULT', 'CLEAR', ...fault === undefined ? [] : [fault]));
  }

  /** Removes all keys, functions and faults, and lets the clock run. */
  async flush(): Promise<void> {
    await this.clearFaults();
    await this.run();
    await this.call('FLUSHALL');
    await this.call('FUNCTION', 'FLUSH');
  }

  /** Ends the process. May be called again. */
  async stop(): Promise<void> {
    const ended = this.#process.exitCode !== null || this.#process.signalCode !== null;
    const exit = ended ? undefined : once(this.#process, 'exit');
    this.#process.ref();
    this.kill();
    await exit;
  }

  /** @internal At once, without waiting for the end. */
  kill(): void {
    running.delete(this);
    this.#socket?.destroy();
    this.#process.kill('SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #send(words: readonly (string | number)[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const socket = this.#socket ?? connect({ host: this.host, port: this.port, noDelay: true });
      this.#socket = socket;
      socket.ref();
      let data = Buffer.alloc(0);
      const finish = (then: () => void): void => {
        clearTimeout(timer);
        socket.removeAllListeners();
        socket.on('error', () => {});
        socket.unref();
        then();
      };
      const fail = (error: Error): void => finish(() => {
        socket.destroy();
        this.#socket = undefined; // the next call has a new connection
        reject(error);
      });
      const timer = setTimeout(() => fail(new Error(`no reply within ${patience} ms`)), patience);
      socket.on('error', fail);
      socket.on('close', () => fail(new Error('the connection was closed')));
      socket.on('data', (bytes: Buffer) => {
        data = Buffer.concat([data, bytes]);
        const reply = parse(data);
        if (reply === undefined) return;
        const { value } = reply;
        finish(() => value instanceof ReplyError ? reject(value) : resolve(value));
      });
      socket.write(request(words));
    });
  }
}

/** Starts a server on a free port. It ends with stop(), or with this process. */
export async function startSemel(options: SemelOptions = {}): Promise<SemelServer> {
  const program = options.binary ?? findSemel();
  const folder = mkdtempSync(join(tmpdir(), 'semel-'));
  const ready = join(folder, 'ready');
  const child = spawn(program, ['redis-server', '--port', 'auto', '--bind', '127.0.0.1',
    '--dir', folder, '--ready-file', ready, '--exit-with-parent', 'yes', ...options.flags ?? []],
  { stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes) => { log = (log + String(bytes)).slice(-2000); });
    (stream as Socket).unref();
  }
  child.unref();
  let failed: Error | undefined;
  child.on('error', (error) => { failed = error; });
  for (const end = Date.now() + patience; !existsSync(ready);) {
    const ended = failed !== undefined || child.exitCode !== null || child.signalCode !== null;
    if (ended || Date.now() > end) {
      child.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
      throw new Error(`${program} did not start: ${failed?.message ?? log}`);
    }
    await new Promise((resolve) => { setTimeout(resolve, 1); });
  }
  const port = /^port=(\d+)$/m.exec(readFileSync(ready, 'utf8'));
  return new SemelServer(child, folder, Number(port?.[1]));
}
