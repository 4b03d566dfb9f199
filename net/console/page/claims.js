// Lists of claims: those that people should see, with an inbox of doubts; all keys; recent decisions.
// Each comes in slices, and the node keeps nothing between them.
import {$, ask, count, duration, el, instant, keyText, page, table, word} from '/console/base.js';
import {act, confirm, keyLink} from '/console/key.js';

const SHOWN_MAX = 100;  // rows of each list of claims, and decisions
const PAGE_ROWS = 100;
const PACE = 210;  // ms between two actions: the node takes five in a second
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const idOf = ({namespace, key}) => `${namespace}:${key}`;
const fullOwner = (row) => (row.owner ? keyText(row.owner, 64) : '–');

/** What runs one at a time, with a button that stops it, until it is stopped or another one begins. */
class Run {
  constructor(start, stop, progress) {
    Object.assign(this, {start: start && $(start), stop: $(stop), progress: $(progress), number: 0});
    this.stop.addEventListener('click', () => this.end());
  }
  end() { ++this.number; }
  /** `work(isOn)` returns the message that stays. */
  async begin(work) {
    const number = ++this.number;
    if (this.start) this.start.disabled = true;
    this.stop.hidden = false;
    let message;
    try {
      message = await work(() => number === this.number && page.session !== null);
    } catch (error) {
      message = error.message;
    }
    if (this.start) this.start.disabled = false;
    this.stop.hidden = true;
    this.progress.textContent = page.session ? message : '';
  }
}

/** The slices of a walk from `cursor` on; `take(slice)` returns whether it needs more. Returns the
    cursor to go on from, '0' at the end. */
async function walk(path, fields, cursor, isOn, take) {
  for (;;) {
    let slice;
    try {
      slice = await ask(path, {...fields, cursor});
    } catch (error) {
      if (error.word !== 'busy' || !isOn()) throw error;
      await pause(200);
      continue;
    }
    if (!isOn()) return cursor;
    cursor = slice.cursor;
    if (!take(slice) || cursor === '0') return cursor;
  }
}

// --- claims that people should see -----------------------------------------------------------
const LISTS = [
  {state: 'in_doubt', title: 'Inbox, in doubt: run again only when resolved', remaining: 'Lease left'},
  {state: 'held', title: 'In flight, those whose lease ends first', remaining: 'Lease left'},
  {state: 'over', title: 'Lease over: the next caller takes the work over', remaining: 'Lease left'},
  {state: 'poison', title: 'Poisoned: the limit of attempts was reached', remaining: 'Kept for'},
];
const search = new Run('scan', 'scan-stop', 'scan-progress');
let found = null;
let chosen = new Map();  // doubts, by idOf

function rowsOf(state) {
  return [...found[state].values()].sort((a, b) => a.remaining_ms - b.remaining_ms).slice(0, SHOWN_MAX);
}

function showWork() {
  const lists = LISTS.map(({state, title, remaining}) => {
    const rows = rowsOf(state);
    if (rows.length === 0) return el('p', {class: 'quiet'}, `${title}: none.`);
    const more = found.more[state] ? `, first ${count(rows.length)}` : '';
    const acts = state === 'in_doubt' && page.session.actions;
    const list = table(`${title} (${count(rows.length)}${more})`, ['Key', 'Namespace', 'Owner', 'Attempts', remaining],
      rows.map((row) => [
        acts ? el('span', {class: 'pick'}, pickOf(row), keyLink(row.namespace, row.key)) : keyLink(row.namespace, row.key),
        row.namespace, fullOwner(row), count(row.attempts),
        row.remaining_ms > 0 ? duration(row.remaining_ms) : 'over']));
    return acts ? el('div', {}, list, bulkButtons(rows)) : list;
  });
  $('work').replaceChildren(...lists);
  showChosen();
}

function keep(row) {
  const list = found[row.state];
  if (!list) return;
  list.set(idOf(row), row);
  if (list.size <= 2 * SHOWN_MAX) return;
  const best = [...list].sort(([, a], [, b]) => a.remaining_ms - b.remaining_ms).slice(0, SHOWN_MAX);
  found[row.state] = new Map(best);
  found.more[row.state] = true;
}

$('scan').addEventListener('click', () => search.begin(async (isOn) => {
  const began = performance.now();
  found = {more: {}};
  chosen = new Map();
  for (const {state} of LISTS) found[state] = new Map();
  let slices = 0;
  let message;
  try {
    const cursor = await walk('scan', {}, '0', isOn, (slice) => {
      slice.found.forEach(keep);
      for (const {state} of LISTS) if (slice.left_out > 0 || found[state].size > SHOWN_MAX) found.more[state] = true;
      if (++slices % 8 === 0) $('scan-progress').textContent = `searching, ${slices} slices`;
      return true;
    });
    message = cursor === '0' && slices > 0 && isOn()
      ? `searched in ${duration(performance.now() - began)}, at ${new Date().toLocaleTimeString()}`
      : 'stopped: the lists are not complete';
  } finally {
    if (page.session && found) showWork();
  }
  return message;
}));

page.changed = (claim) => {
  if (!found) return;
  for (const {state} of LISTS) found[state].delete(idOf(claim));
  chosen.delete(idOf(claim));
  showWork();
};

// --- the inbox -------------------------------------------------------------------------------
const bulk = new Run(null, 'bulk-stop', 'bulk-progress');

function pickOf(row) {
  const box = el('input', {type: 'checkbox', 'aria-label': `Choose ${row.namespace} ${row.key.slice(0, 160)}`});
  box.checked = chosen.has(idOf(row));
  box.addEventListener('change', () => {
    if (box.checked) chosen.set(idOf(row), row);
    else chosen.delete(idOf(row));
    showChosen();
  });
  return box;
}

function bulkButtons(rows) {
  const all = el('button', {type: 'button', on: () => {
    const some = rows.some((row) => !chosen.has(idOf(row)));
    for (const row of rows) {
      if (some) chosen.set(idOf(row), row);
      else chosen.delete(idOf(row));
    }
    for (const box of $('work').querySelectorAll('.pick input')) box.checked = some;
    showChosen();
  }}, 'Choose all or none');
  const begin = (name) => el('button', {type: 'button', class: 'of-chosen', on: () => {
    const rows = [...chosen.values()];
    confirm(name, rows, (result) => {
      $('confirm').close();
      bulk.begin((isOn) => resolveAll(name, rows, result, isOn));  // goes on behind the dialog
    });
  }}, name === 'done' ? 'Resolve as done …' : 'Release …');
  return el('p', {class: 'controls'}, all, begin('done'), begin('released'),
    el('span', {id: 'chosen', class: 'quiet', role: 'status'}));
}

function showChosen() {
  for (const button of $('work').querySelectorAll('.of-chosen')) button.disabled = chosen.size === 0;
  const label = $('work').querySelector('#chosen');
  if (label) label.textContent = `${count(chosen.size)} chosen`;
}

/** One after the other; each is compared with the state and the epoch that was shown. */
async function resolveAll(name, rows, result, isOn) {
  const results = [];
  const list = el('ul', {class: 'tall keys'});
  $('bulk').hidden = false;
  $('bulk-results').replaceChildren(list);
  let done = 0;
  const note = (row, text, kind) => list.append(el('li', {}, `${row.namespace} `,
    keyLink(row.namespace, row.key), ': ', el('span', {class: kind}, text)));
  for (const [index, row] of rows.entries()) {
    if (!isOn()) {
      note(row, 'not tried', 'quiet');
      continue;
    }
    $('bulk-progress').textContent = `${count(index + 1)} of ${count(rows.length)}`;
    const error = await tryOne(name, row, result, isOn);
    if (!page.session) return '';
    if (error) {
      note(row, error.message, 'bad');
    } else {
      ++done;
      results.push(row);
      note(row, name === 'done' ? 'done' : 'released', 'good');
    }
    if (index + 1 < rows.length) await pause(PACE);
  }
  for (const row of results) page.changed(row);
  return `${count(done)} of ${count(rows.length)} ${name === 'done' ? 'resolved as done' : 'released'}`;
}

async function tryOne(name, row, result, isOn) {
  for (;;) {
    try {
      await act(name, row, result);
      return null;
    } catch (error) {
      if (error.word !== 'too_many' || !isOn()) return error;
      await pause(PACE);
    }
  }
}

// --- all keys --------------------------------------------------------------------------------
const browsing = new Run('browse-go', 'browse-stop', 'browse-progress');
let filter = null;
let pages = [];  // cursors: of the first page to the one that is shown, and of the next
const MINUTES = 60000;

function filterOfForm() {
  const fields = {namespace: $('browse-space').value, prefix: $('browse-prefix').value,
    owner: $('browse-owner').value, state: $('browse-state').value};
  const age = Number($('browse-age').value);
  const left = Number($('browse-left').value);  // minutes; below 0: at most so many
  if (age > 0) fields.age_min_ms = String(age * MINUTES);
  if (left > 0) fields.left_min_ms = String(left * MINUTES);
  if (left < 0) fields.left_max_ms = String(-left * MINUTES);
  return fields;
}

function showPage(rows, leftOut) {
  const list = rows.length === 0 ? el('p', {class: 'quiet'}, 'No key fits.')
    : table(`Keys, page ${count(pages.length - 1)}`, ['Key', 'Namespace', 'State', 'Owner', 'Age', 'Time left', 'Attempts'],
      rows.map((row) => [keyLink(row.namespace, row.key), row.namespace, word(row.state), fullOwner(row),
        row.age_ms === null ? '–' : duration(row.age_ms),
        row.remaining_ms > 0 ? duration(row.remaining_ms) : 'over', count(row.attempts)]));
  const turn = (text, enabled, to) => {
    const button = el('button', {type: 'button', on: to}, text);
    button.disabled = !enabled;
    return button;
  };
  const next = pages[pages.length - 1];
  $('browse').replaceChildren(list, el('p', {class: 'controls'},
    turn('Previous page', pages.length > 2, () => { pages = pages.slice(0, -2); showPageAt(); }),
    turn('Next page', next !== '0', showPageAt),
    leftOut > 0 ? el('span', {class: 'warn'}, `${count(leftOut)} long keys have no room here: narrow the filter`) : null));
}

/** The page that begins at the last of `pages`. */
function showPageAt() {
  const cursor = pages[pages.length - 1];
  return browsing.begin(async (isOn) => {
    const rows = new Map();
    let leftOut = 0;
    let slices = 0;
    const next = await walk('keys', filter, cursor, isOn, (slice) => {
      for (const row of slice.rows) rows.set(idOf(row), row);
      leftOut += slice.left_out;
      if (++slices % 8 === 0) $('browse-progress').textContent = `looking, ${slices} slices`;
      return rows.size < PAGE_ROWS;
    });
    if (!page.session) return '';
    const stopped = !isOn();
    pages.push(next);
    showPage([...rows.values()], leftOut);
    return stopped ? 'stopped: the next page goes on from here' : next === '0' ? 'these are the last' : '';
  });
}

$('browse-form').addEventListener('submit', (event) => {
  event.preventDefault();
  filter = filterOfForm();
  pages = ['0'];
  showPageAt();
});

// --- recent decisions ------------------------------------------------------------------------
const looking = new Run('decisions-go', 'decisions-stop', 'decisions-progress');

function showDecisions(all) {
  $('decisions').replaceChildren(all.length === 0 ? el('p', {class: 'quiet'}, 'This node remembers none.')
    : table(`Decisions, newest first (${count(all.length)})`, ['Time', 'Key', 'Namespace', 'Outcome', 'Call', 'Owner', 'Client', 'Why'],
      all.map((each) => [instant(each.last_unix_ms) + (each.times > 1 ? ` (${count(each.times)} times)` : ''),
        keyLink(each.namespace, each.key), each.namespace, word(each.outcome), each.call === 'none' ? '–' : each.call,
        fullOwner(each), each.client ? keyText(each.client) : '–', each.why])));
}

$('decisions-form').addEventListener('submit', (event) => {
  event.preventDefault();
  looking.begin(async (isOn) => {
    let all = [];
    let slices = 0;
    const cursor = await walk('decisions', {namespace: $('decisions-space').value}, '0', isOn, (slice) => {
      // A record that moves in the table may come twice.
      const known = new Map([...all, ...slice.decisions].map((each) =>
        [[idOf(each), each.last_unix_ms, each.outcome, each.call, each.epoch].join('\n'), each]));
      all = [...known.values()].sort((a, b) => b.last_unix_ms - a.last_unix_ms).slice(0, SHOWN_MAX);
      if (++slices % 8 === 0) $('decisions-progress').textContent = `looking, ${slices} slices`;
      return true;
    });
    if (!page.session) return '';
    showDecisions(all);
    return cursor === '0' && isOn() ? `as of ${new Date().toLocaleTimeString()}` : 'stopped: newer ones may be missing';
  });
});

/** Nothing of what only a user may see stays. */
export function clearClaims() {
  for (const run of [search, bulk, browsing, looking]) {
    run.end();
    run.progress.textContent = '';
  }
  found = null;
  filter = null;
  pages = [];
  chosen = new Map();
  $('bulk').hidden = true;
  for (const id of ['work', 'bulk-results', 'browse', 'decisions']) $(id).replaceChildren();
  $('browse-form').reset();
  $('decisions-form').reset();
}
