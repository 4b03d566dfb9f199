// Stands between a client and a node, and does to single commands what a network or a node may do.
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/**
 * What becomes of a command:
 *   cut     it is passed on, and the connection is closed instead of passing the reply
 *   lose    the connection is closed, and it is not passed on
 *   hold    it is passed on, and its reply waits for release(), as all that come behind it
 *   -TEXT   it is not passed on, and answered with this error
 *   +-TEXT  it is passed on, and its reply is replaced by this error
 */
export type Deed = 'cut' | 'lose' | 'hold' | `-${string}` | `+-${string}`;

interface Rule { word: string; deed: Deed; left: number }

export class Proxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #rules: Rule[] = [];
  #held: (() => void)[] = [];
  /** How often a rule has been followed. */
  done = 0;

  constructor(port: number) {
    this.#server = createServer((client) => {
      const server = connect(port);
      let next: Deed | undefined; // for the reply that comes
      let waiting: Buffer[] | undefined;
      for (const each of [client, server]) {
        this.#sockets.add(each);
        each.on('error', () => {});
        each.on('close', () => {
          this.#sockets.delete(each);
          client.destroy();
          server.destroy();
        });
      }
      client.on('data', (data) => {
        const rule = this.#rule(data);
        if (rule === undefined) return void server.write(data);
        if (rule === 'lose') return void client.destroy();
        if (rule.startsWith('-')) return void client.write(`${rule}\r\n`);
        next = rule;
        if (rule === 'hold' && waiting === undefined) {
          const held: Buffer[] = [];
          waiting = held;
          this.#held.push(() => {
            waiting = undefined;
            for (const each of held) client.write(each);
          });
        }
        return void server.write(data);
      });
      server.on('data', (data) => {
        if (waiting !== undefined) waiting.push(data);
        else if (next === 'cut') client.destroy();
        else if (next?.startsWith('+')) client.write(`${next.slice(1)}\r\n`);
        else client.write(data);
        next = undefined;
      });
    });
  }

  #rule(data: Buffer): Deed | undefined {
    const text = data.toString('latin1').toUpperCase();
    const rule = this.#rules.find((each) => each.left > 0 && text.includes(`${each.word}\r\n`));
    if (rule === undefined) return undefined;
    --rule.left;
    ++this.done;
    return rule.deed;
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The next `times` commands with this word. */
  rule(word: string, deed: Deed, times = 1): void {
    this.#rules.push({ word, deed, left: times });
  }

  /** No rule counts any more. */
  clear(): void {
    this.#rules.length = 0;
    this.release();
  }

  cut(word: string, times: number): void {
    this.rule(word, 'cut', times);
  }

  /** Replies that were held are passed on. */
  release(): void {
    for (const each of this.#held.splice(0)) each();
  }

  close(): void {
    this.#server.close();
    for (const each of this.#sockets) each.destroy();
  }
}
