// The page of the console. Whatever comes from the node is put into text nodes only.
import {drawMark, drawPlot} from '/console/plots.js';

const $ = (id) => document.getElementById(id);
const OUTCOMES = ['granted', 'takeover', 'replay', 'in_flight', 'mismatch', 'in_doubt', 'too_old',
  'poison', 'busy', 'other'];
const ALARMING = new Set(['takeover', 'in_doubt', 'poison', 'busy', 'mismatch']);
const SHOWN_MAX = 100;  // rows of each list of claims
const ANSWER_WITHIN = 60000;  // ms; the node answers or refuses long before
const KEY_SHOWN = 160;  // characters of a key in a list
let session = null;  // {user, csrf, actions}
let status = null;
let samples = [];
let scanNumber = 0;  // of the search that is under way
let found = null;
let scanned = '';

function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'class') node.className = value;
    else if (name === 'on') node.addEventListener('click', value);
    else if (value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// --- numbers ---------------------------------------------------------------------------------
const count = (value) => Math.round(value).toLocaleString();
function rate(value) {
  return value === 0 ? '0' : value < 10 ? value.toFixed(value < 0.1 ? 2 : 1) : count(value);
}
function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; ++unit; }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
function micros(value) {
  if (value === 0) return '0';
  if (value < 1000) return `${Math.round(value)} µs`;
  return value < 1e6 ? `${(value / 1000).toFixed(1)} ms` : `${(value / 1e6).toFixed(1)} s`;
}
function duration(ms) {
  const seconds = Math.floor(ms / 1000);
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`;
}
const instant = (ms) => new Date(ms).toLocaleString();
const word = (text) => text.replaceAll('_', ' ');

function keyText(text, max = Infinity) {
  if (text.length <= max) return el('bdi', {class: 'key'}, text);
  return el('bdi', {class: 'key'}, text.slice(0, max), ` … (${count(text.length)} characters)`);
}

// --- calls -----------------------------------------------------------------------------------
async function ask(path, body) {
  const options = {credentials: 'same-origin', cache: 'no-store', redirect: 'error',
    signal: AbortSignal.timeout(ANSWER_WITHIN)};
  if (body !== undefined) {
    options.method = 'POST';
    options.headers = {'Content-Type': 'application/json'};
    if (session) options.headers['X-Semel-Csrf'] = session.csrf;
    options.body = JSON.stringify(body);
  }
  const response = await fetch(`/console/api/${path}`, options);
  const type = response.headers.get('Content-Type') ?? '';
  const answer = type.startsWith('application/json') ? await response.json()
    : {error: 'failed', message: (await response.text()).trim()};
  if (response.ok) return answer;
  if (response.status === 401 && path !== 'login') setSession(null, 'The session has ended; log in again.');
  const leader = answer.error === 'not_leader'
    ? ` The leader ${answer.leader ? `serves clients at ${answer.leader}` : 'is not known now'}.` : '';
  throw Object.assign(new Error((answer.message || response.statusText) + leader), {word: answer.error});
}

// --- what everybody sees ---------------------------------------------------------------------
function tile(name, value, more, kind) {
  return el('div', {}, el('dt', {}, name), el('dd', {class: kind}, value, more ? el('small', {}, more) : null));
}

function showStatus() {
  const last = samples[samples.length - 1];
  $('node').textContent = `port ${status.port} · version ${status.version} · up ${duration(status.uptime_seconds * 1000)}`;
  const badges = [el('span', {class: `badge ${status.ready ? 'good' : 'bad'}`},
    status.ready ? 'ready' : `not ready: ${status.not_ready}`)];
  if (status.group) {
    badges.push(el('span', {class: 'badge'}, status.group.leads ? 'leader' : status.group.votes ? 'follower' : 'standby'));
  }
  badges.push(el('span', {class: 'badge'}, status.actions ? 'actions allowed' : 'read-only'));
  $('badges').replaceChildren(...badges);
  const memory = status.memory;
  const share = memory.used / memory.limit;
  const tiles = [
    tile('Commands a second', last ? rate(last.commands) : '–', `${count(status.commands)} in all`),
    tile('99 % answered within', last ? micros(last.p99_us) : '–', last ? `half within ${micros(last.p50_us)}` : ''),
    tile('Memory', bytes(memory.used), `${Math.round(100 * share)} % of ${bytes(memory.limit)}`, share > 0.9 ? 'bad' : share > 0.75 ? 'warn' : ''),
    tile('Records', count(status.records), status.refused ? `${count(status.refused)} refused for memory` : ''),
    tile('Clients', count(status.connections), `of ${count(status.connections_max)}; ${count(status.connections_blocked)} wait`),
  ];
  if (status.storage) {
    const storage = status.storage;
    tiles.push(tile('Not synced', bytes(storage.bytes_unsynced),
      storage.accepting ? `${bytes(storage.bytes_log)} of log` : `accepts no writes: ${storage.trouble}`,
      storage.accepting ? '' : 'bad'));
  } else {
    tiles.push(tile('Storage', 'none', 'memory only'));
  }
  $('tiles').replaceChildren(...tiles);
}

function showGroup() {
  const group = status.group;
  $('group-section').hidden = !group;
  if (!group) return;
  const facts = el('dl', {class: 'facts'});
  const fact = (name, value) => facts.append(el('dt', {}, name), el('dd', {}, value));
  fact('This node', group.leads ? 'leads the group' : 'follows; changes are made at the leader');
  if (!group.leads) fact('Leader', status.leader ? `node ${group.leader}, clients at ${status.leader}` : 'not known now');
  fact('Term', count(group.term));
  fact('Entries', `${count(group.applied)} applied of ${count(group.commit)} committed; ${count(group.lag)} behind`);
  fact('Log', bytes(group.log_bytes) + (group.disk_full ? '; the disk is full' : ''));
  if (group.fetches_snapshot) fact('Snapshot', 'one is being fetched');
  const rows = group.members.map((member) => [`node ${member.id}`, member.votes ? 'voter' : 'standby',
    member.connected ? 'connected' : el('span', {class: 'bad'}, 'not connected'),
    group.leads ? count(member.lag) : '–']);
  $('group').replaceChildren(facts, table('Other nodes', ['Node', 'Role', 'Connection', 'Entries behind'], rows));
}

function table(caption, heads, rows, numbers = []) {
  const body = rows.map((row) => el('tr', {}, ...row.map((cell, i) => el(i === 0 ? 'th' : 'td',
    i === 0 ? {scope: 'row'} : {'data-label': heads[i], class: numbers.includes(i) ? 'number' : ''}, cell))));
  return el('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
    el('table', {class: 'cards'}, el('caption', {}, caption),
      el('thead', {}, el('tr', {}, ...heads.map((head, i) =>
        el('th', {scope: 'col', class: numbers.includes(i) ? 'number' : ''}, head)))),
      el('tbody', {}, ...body)));
}

function showClaims() {
  const span = document.querySelector('input[name=span]:checked').value;
  const seconds = status.hour_seconds;
  $('hour-label').textContent = seconds >= 3540 ? 'last hour' : `last ${duration(seconds * 1000)}`;
  const show = span === 'per_second' ? rate : count;
  const shown = OUTCOMES.filter((outcome) => status.claims.some((each) => each.total[outcome]));
  if (shown.length === 0) {
    $('claims').replaceChildren(el('p', {class: 'quiet'}, 'No claims yet.'));
    return;
  }
  const rows = status.claims.map((each) => [each.name || '(all others)', ...shown.map((outcome) => {
    const value = each[span][outcome] ?? 0;
    return el('span', {class: value === 0 ? 'quiet' : ALARMING.has(outcome) ? 'warn' : ''}, show(value));
  })]);
  keepScroll($('claims'), table('Answers to claims', ['Namespace', ...shown.map(word)], rows, shown.map((_, i) => i + 1)));
  const names = status.claims.map((each) => each.name).filter((name) => name);
  $('spaces').replaceChildren(...names.map((name) => el('option', {value: name})));
}

function keepScroll(parent, node) {
  const left = parent.firstElementChild?.scrollLeft ?? 0;
  const hadFocus = parent.firstElementChild === document.activeElement;
  parent.replaceChildren(node);
  node.scrollLeft = left;
  if (hadFocus) node.focus();
}

const PLOTS = [
  {title: 'Latency of commands', format: micros, series: [{name: '99 % within', field: 'p99_us'}, {name: 'half within', field: 'p50_us'}]},
  {title: 'Commands a second', format: rate, series: [{name: 'commands', field: 'commands'}]},
  {title: 'Memory', format: bytes, isBytes: true, series: [{name: 'of the engine', field: 'used'}, {name: 'of the process', field: 'resident'}]},
  {title: 'Durability: bytes not synced', format: bytes, isBytes: true, needs: 'storage', series: [{name: 'a power cut would take', field: 'unsynced'}, {name: 'written a second', field: 'log_bytes'}]},
  {title: 'Replication: entries behind', format: count, needs: 'group', series: [{name: 'committed and not applied here', field: 'lag'}]},
];

function plotTable(plot) {
  const step = Math.max(1, Math.floor(samples.length / 30));
  const chosen = samples.filter((_, i) => (samples.length - 1 - i) % step === 0).reverse();
  const rows = chosen.map((sample) => [new Date(sample.unix_ms).toLocaleTimeString(),
    ...plot.series.map(({field}) => plot.format(sample[field]))]);
  return table(plot.title, ['Time', ...plot.series.map(({name}) => name)], rows, plot.series.map((_, i) => i + 1));
}

function showPlots() {
  $('plots-wait').hidden = samples.length > 0;
  if (samples.length === 0 || !status) return;
  const shown = PLOTS.filter((plot) => !plot.needs || status[plot.needs]);
  for (const plot of shown) {
    const id = `plot-${plot.series[0].field}`;
    let figure = $(id);
    if (!figure) {
      figure = el('figure', {id}, el('h3', {}, plot.title), el('div', {}), el('ul', {class: 'legend'}),
        el('details', {}, el('summary', {}, 'As a table'), el('div', {})));
      $('plots').append(figure);
      figure.querySelector('details').addEventListener('toggle', showPlots);
    }
    const [, holder, legend, details] = figure.children;
    holder.replaceChildren(drawPlot(plot, samples, Math.max(280, holder.clientWidth)));
    const last = samples[samples.length - 1];
    legend.replaceChildren(...plot.series.map(({name, field}, index) =>
      el('li', {}, drawMark(index), `${name}: ${plot.format(last[field])}`)));
    if (details.open) keepScroll(details.lastElementChild, plotTable(plot));
  }
}

// --- session ---------------------------------------------------------------------------------
function setSession(next, message = '') {
  const ended = session && !next;
  session = next;
  for (const node of document.querySelectorAll('.with-login')) node.hidden = !session;
  for (const node of document.querySelectorAll('.needs-login')) node.hidden = Boolean(session);
  $('login-open').hidden = Boolean(session);
  $('logout').hidden = !session;
  $('user').replaceChildren(session ? keyText(session.user, 40) : '');
  if (!session) {  // nothing of what only a user may see stays
    ++scanNumber;
    found = null;
    $('work').replaceChildren();
    $('key-result').replaceChildren();
    $('key-message').textContent = '';
    $('scan-progress').textContent = '';
    $('key-form').reset();
    if ($('confirm').open) $('confirm').close();
  }
  if (ended && message) {
    $('login-message').textContent = message;
    $('login').showModal();
  }
}

$('login-open').addEventListener('click', async () => {
  $('login-message').textContent = '';
  let known = {};
  try { known = await ask('session'); } catch { /* refresh() says it */ }
  $('login-open-to-default').hidden = !known.default_has_no_password;
  $('login').showModal();
  $('login-password').focus();
});
$('login-cancel').addEventListener('click', () => $('login').close());
$('login-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const password = $('login-password').value;
  $('login-password').value = '';
  try {
    setSession(await ask('login', {user: $('login-user').value, password}));
    $('login').close();
    $('scan').focus();
  } catch (error) {
    $('login-message').textContent = error.message;
    $('login-password').focus();
  }
});
$('logout').addEventListener('click', async () => {
  try { await ask('logout', {}); } catch { /* it has ended already */ }
  setSession(null);
  $('login-open').focus();
});

// --- claims that people should see -----------------------------------------------------------
const LISTS = [
  {state: 'held', title: 'In flight, those whose lease ends first', remaining: 'Lease left'},
  {state: 'over', title: 'Lease over: the next caller takes the work over', remaining: 'Lease left'},
  {state: 'in_doubt', title: 'In doubt: run again only when resolved', remaining: 'Lease left'},
  {state: 'poison', title: 'Poisoned: the limit of attempts was reached', remaining: 'Kept for'},
];

function showWork() {
  const lists = LISTS.map(({state, title, remaining}) => {
    const all = found[state];
    const rows = [...all.values()].sort((a, b) => a.remaining_ms - b.remaining_ms).slice(0, SHOWN_MAX);
    if (rows.length === 0) return el('p', {class: 'quiet'}, `${title}: none.`);
    const more = found.more[state] ? `, first ${count(rows.length)}` : '';
    return table(`${title} (${count(rows.length)}${more})`, ['Key', 'Namespace', 'Owner', 'Attempts', remaining],
      rows.map((row) => [
        el('button', {class: 'link', type: 'button', on: () => lookUp(row.namespace, row.key)}, keyText(row.key, KEY_SHOWN)),
        row.namespace, row.owner ? keyText(row.owner) : '–', count(row.attempts),
        row.remaining_ms > 0 ? duration(row.remaining_ms) : 'over']));
  });
  $('work').replaceChildren(...lists);
}

function keep(row) {
  const list = found[row.state];
  if (!list) return;
  list.set(`${row.namespace}:${row.key}`, row);
  if (list.size <= 2 * SHOWN_MAX) return;
  const best = [...list].sort(([, a], [, b]) => a.remaining_ms - b.remaining_ms).slice(0, SHOWN_MAX);
  found[row.state] = new Map(best);
  found.more[row.state] = true;
}

$('scan-stop').addEventListener('click', () => { ++scanNumber; });
$('scan').addEventListener('click', async () => {
  const number = ++scanNumber;
  const began = performance.now();
  found = {more: {}};
  for (const {state} of LISTS) found[state] = new Map();
  let cursor = '0';
  let slices = 0;
  $('scan').disabled = true;
  $('scan-stop').hidden = false;
  try {
    do {
      let slice;
      try {
        slice = await ask('scan', {cursor});
      } catch (error) {
        if (error.word !== 'busy') throw error;
        await new Promise((resolve) => setTimeout(resolve, 200));
        continue;
      }
      if (number !== scanNumber) break;
      slice.found.forEach(keep);
      for (const {state} of LISTS) if (slice.left_out > 0 || found[state].size > SHOWN_MAX) found.more[state] = true;
      cursor = slice.cursor;
      if (++slices % 8 === 0) $('scan-progress').textContent = `searching, ${slices} slices`;
    } while (cursor !== '0');
    scanned = cursor === '0' ? `searched in ${duration(performance.now() - began)}, at ${new Date().toLocaleTimeString()}` : 'stopped: the lists are not complete';
  } catch (error) {
    scanned = error.message;
  }
  $('scan').disabled = false;
  $('scan-stop').hidden = true;
  if (!session) return;
  $('scan-progress').textContent = scanned;
  showWork();
});

// --- one key ---------------------------------------------------------------------------------
$('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  lookUp($('key-space').value, $('key-key').value);
});

async function lookUp(namespace, key, message = '') {
  $('key-space').value = namespace;
  $('key-key').value = key;
  $('key-message').textContent = 'looking up';
  $('key-message').className = '';
  try {
    const answer = await ask('key', {namespace, key});
    $('key-message').textContent = message;
    showKey(answer);
    $('key-title').scrollIntoView({block: 'start'});
  } catch (error) {
    $('key-result').replaceChildren();
    $('key-message').textContent = error.message;
    $('key-message').className = 'bad';
  }
}

const STATES = {
  absent: 'absent: nothing is known of it, and it may run',
  issued: 'issued: it may be claimed',
  held: 'held: its owner is at work',
  in_doubt: 'in doubt: it runs again only when resolved',
  done: 'done: duplicates get the result',
  failed: 'failed for good: duplicates get the failure',
};
const NOT_FACTS = ['state', 'algorithm'];
// What has no title here is shown behind these under its own name.
const FACTS = {
  epoch: 'Epoch', attempts: 'Attempts', owner: 'Owner', lease_remaining_ms: 'Lease left',
  remaining_ms: 'Kept for', unique_remaining_ms: 'Key stays taken for', result_remaining_ms: 'Result kept for',
  failure_remaining_ms: 'Failure kept for', poison: 'Poisoned', result: 'Result', failure: 'Failure',
  fingerprint: 'Fingerprint',
};

function factValue(name, value) {
  if (name.endsWith('_ms')) return value > 0 ? duration(value) : 'over';
  if (value === null) return name === 'fingerprint' ? 'none was given' : 'no longer kept';
  if (typeof value === 'boolean') return value ? 'yes: the limit of attempts was reached' : 'no';
  if (typeof value === 'object') {
    const size = value.cut ? ` … (${bytes(value.bytes)} in all)` : '';
    return value.bytes === 0 ? 'empty' : el('span', {class: 'tall'}, keyText(value.text), size);
  }
  return name === 'owner' && value !== '' ? keyText(value) : String(value) || '–';
}

function showKey(answer) {
  const claim = answer.claim;
  const facts = el('dl', {class: 'facts'});
  const fact = (name, value) => facts.append(el('dt', {}, name), el('dd', {}, value));
  fact('Key', el('span', {class: 'tall'}, keyText(answer.key)));
  fact('State', STATES[claim.state] ?? claim.state);
  const others = Object.keys(claim).filter((name) => !(name in FACTS) && !NOT_FACTS.includes(name));
  for (const name of [...Object.keys(FACTS), ...others]) {
    if (claim[name] !== undefined) fact(FACTS[name] ?? word(name), factValue(name, claim[name]));
  }
  if (answer.policy) {
    const policy = answer.policy;
    fact('Namespace', `${answer.namespace}: lease ${duration(policy.lease_ms)}, result kept for ${duration(policy.result_ttl_ms)}, `
      + (policy.on_lease_end === 'retry' ? 'taken over after the lease' : 'in doubt after the lease'));
  }
  const parts = [facts];
  if (session.actions && claim.state !== 'absent') parts.push(actionButtons(answer));
  parts.push(decisions(answer));
  $('key-result').replaceChildren(...parts);
}

function decisions(answer) {
  if (!answer.decisions) return el('p', {class: 'quiet'}, answer.decisions_error);
  if (answer.decisions.length === 0) return el('p', {class: 'quiet'}, 'This node remembers no decision about it.');
  const rows = [...answer.decisions].reverse().map((each) => [
    instant(each.last_unix_ms) + (each.times > 1 ? ` (${count(each.times)} times)` : ''),
    word(each.outcome), each.call === 'none' ? '–' : each.call, each.epoch === '0' ? '–' : each.epoch,
    each.owner ? keyText(each.owner) : '–', each.client ? keyText(each.client) : '–', each.why]);
  return table('Last decisions, newest first', ['Time', 'Outcome', 'Call', 'Epoch', 'Owner', 'Client', 'Why'], rows);
}

const ACTIONS = {
  done: {title: 'Resolve as done', sure: 'I have checked that the work is done.', go: 'Resolve as done', hasResult: true,
    text: 'Duplicates get the result below and never run. Its owner can no longer complete it.'},
  released: {title: 'Release', sure: 'I have checked that the work may run again.', go: 'Release',
    text: 'The claim ends as if it had never been granted: the next caller runs the work. If its owner is still at work, it runs twice.'},
  forget: {title: 'Forget', sure: 'I know that the work may run again.', go: 'Forget',
    text: 'The record is removed, whatever its state, with its result and its attempts: the next caller runs the work again.'},
};

function actionButtons(answer) {
  const open = answer.claim.state === 'held' || answer.claim.state === 'in_doubt';
  const names = open ? ['done', 'released', 'forget'] : ['forget'];
  return el('p', {class: 'controls'}, ...names.map((name) =>
    el('button', {type: 'button', on: () => confirm(name, answer)}, `${ACTIONS[name].title} …`)));
}

let confirmed = null;
function confirm(name, answer) {
  const action = ACTIONS[name];
  confirmed = {name, answer};
  $('confirm-form').reset();
  $('confirm-title').textContent = action.title;
  $('confirm-text').textContent = action.text;
  $('confirm-sure-text').textContent = action.sure;
  $('confirm-go').textContent = action.go;
  $('confirm-message').textContent = '';
  $('confirm-result-label').hidden = !action.hasResult;
  const facts = [['Namespace', answer.namespace], ['Key', el('span', {class: 'tall'}, keyText(answer.key, 1000))],
    ['State', word(answer.claim.state)]];
  if (answer.claim.owner) facts.push(['Owner', keyText(answer.claim.owner)]);
  $('confirm-facts').replaceChildren(...facts.flatMap(([title, value]) => [el('dt', {}, title), el('dd', {}, value)]));
  $('confirm').showModal();
  $('confirm-cancel').focus();
}
$('confirm-cancel').addEventListener('click', () => $('confirm').close());
$('confirm-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const {name, answer} = confirmed;
  $('confirm-go').disabled = true;
  try {
    await ask(name === 'forget' ? 'forget' : 'resolve', {namespace: answer.namespace, key: answer.key,
      state: answer.claim.state, epoch: answer.claim.epoch ?? '0', as: name, result: $('confirm-result').value});
    $('confirm').close();
    for (const list of found ? Object.values(found) : []) if (list instanceof Map) list.delete(`${answer.namespace}:${answer.key}`);
    if (found) showWork();
    await lookUp(answer.namespace, answer.key, `Done: ${ACTIONS[name].title.toLowerCase()}.`);
  } catch (error) {
    $('confirm-message').textContent = error.message;
  }
  $('confirm-go').disabled = false;
});

// --- time goes on ----------------------------------------------------------------------------
const lastNumber = () => (samples.length ? samples[samples.length - 1].number : 0);
let refreshing = false;

async function refresh() {
  // The timer and a page that is shown again ask at the same moment; a slow answer may take longer
  // than the interval.
  if (document.visibilityState !== 'visible' || refreshing) return;
  refreshing = true;
  try {
    await refreshOnce();
  } finally {
    refreshing = false;
  }
}

async function refreshOnce() {
  try {
    const history = await ask(`history?after=${lastNumber()}`);
    const fresh = history.samples.filter((sample) => sample.number > lastNumber());
    samples = [...samples, ...fresh].slice(-history.samples_max);
    const next = await ask('status');
    // Another node, or the same one anew: its samples count from 1 again.
    if (status && next.process !== status.process) { samples = []; $('plots').replaceChildren(); }
    status = next;
    $('connection').hidden = true;
    showStatus();
    showGroup();
    showClaims();
    showPlots();
    if (session) {
      const known = await ask('session');
      if (!known.user) setSession(null, 'The session has ended; log in again.');
    }
  } catch (error) {
    $('connection').textContent = `No answer from the node: ${error.message}`;
    $('connection').hidden = false;
  }
}

document.querySelectorAll('input[name=span]').forEach((input) => input.addEventListener('change', () => status && showClaims()));
document.addEventListener('visibilitychange', refresh);
let resized = 0;
addEventListener('resize', () => { clearTimeout(resized); resized = setTimeout(showPlots, 100); });
setInterval(refresh, 5000);
(async () => {
  await refresh();
  try {
    const known = await ask('session');
    if (known.user) setSession(known);
  } catch { /* refresh() says it */ }
})();
