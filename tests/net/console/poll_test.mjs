// The page's polls in Node.js, without a browser: node poll_test.mjs PAGE
//
// The page's script runs against nodes of a document that accept whatever is done to them. Polls
// that meet must ask once, and the same samples must not be drawn twice.
import assert from 'node:assert/strict';
import {mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';

const node = () => {
  const facts = {children: [], textContent: '', open: false};
  const any = new Proxy(function () {}, {
    get: (_, name) => {
      if (name === Symbol.iterator) return [][Symbol.iterator].bind([]);
      if (name === Symbol.toPrimitive) return () => '';
      if (name === 'value') return 'hour';
      if (name === 'clientWidth') return 400;
      if (name === 'children') return [node(), node(), node(), node()];
      return name in facts ? facts[name] : any;
    },
    set: (_, name, value) => { facts[name] = value; return true; },
    apply: () => any,
  });
  return any;
};

const listeners = {};
globalThis.document = {
  visibilityState: 'visible',
  getElementById: () => node(),
  querySelector: () => node(),
  querySelectorAll: () => [],
  createElement: () => node(),
  addEventListener: (name, listener) => { listeners[name] = listener; },
};
globalThis.addEventListener = () => {};
globalThis.location = {hash: '', origin: '', pathname: '/console/'};
globalThis.setInterval = () => 0;

const sample = (number) => ({number, unix_ms: number * 1000, commands: 1, p50_us: 1, p99_us: 1,
  used: 1, resident: 1, unsynced: 0, log_bytes: 0, lag: 0});
const status = {process: 1, port: 1, version: '', uptime_seconds: 1, ready: true, actions: false,
  memory: {used: 1, limit: 2}, commands: 1, records: 0, refused: 0, connections: 1,
  connections_max: 1, connections_blocked: 0, claims: [], hour_seconds: 60, storage: null,
  group: null};
const asked = [];
let isRude = false;  // the node answers with samples that the page has
const answers = [];  // those that wait to be given
globalThis.fetch = (path) => new Promise((resolve) => {
  asked.push(path);
  const after = isRude ? 0 : Number(/after=(\d+)/.exec(path)?.[1] ?? 0);
  const body = path.includes('history')
    ? {samples: [1, 2, 3].filter((number) => number > after).map(sample), samples_max: 360}
    : path.includes('status') ? status
      : path.includes('namespaces') ? {minutes: [], namespaces: []} : {user: null};
  answers.push(() => resolve({ok: true, status: 200, headers: {get: () => 'application/json'},
    json: async () => body}));
});
globalThis.drawn = [];
async function settle() {
  for (let i = 0; i < 50; ++i) {
    while (answers.length > 0) answers.shift()();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

// The page's modules by their paths in a folder, with a drawing that notes what it was to draw.
const folder = mkdtempSync(join(tmpdir(), 'semel-page-'));
process.on('exit', () => rmSync(folder, {recursive: true}));
for (const name of readdirSync(process.argv[2]).filter((file) => file.endsWith('.js'))) {
  const script = name !== 'plots.js' ? readFileSync(join(process.argv[2], name), 'utf8')
    : 'export const drawMark = () => "", drawPlot = (plot, samples) => '
      + '{ globalThis.drawn = samples.map(({number}) => number); return ""; };';
  writeFileSync(join(folder, name.replace('.js', '.mjs')),
    script.replace(/^(import .* from ')\/console\/(\w+)\.js';$/gm, "$1./$2.mjs';"));
}
await import(pathToFileURL(join(folder, 'console.mjs')));

listeners.visibilitychange();  // meets the poll of the start
listeners.visibilitychange();
assert.equal(asked.filter((path) => path.includes('history')).length, 1);
await settle();
assert.deepEqual(globalThis.drawn, [1, 2, 3]);

isRude = true;
listeners.visibilitychange();
await settle();
assert.equal(asked.filter((path) => path.includes('history')).length, 2);
assert.deepEqual(globalThis.drawn, [1, 2, 3]);
console.log('polls that meet ask once, and samples are drawn once');
process.exit(0);
