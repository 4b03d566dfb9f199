// The page of the console. Whatever comes from the node is put into text nodes only.
import {$, ask, bytes, count, duration, el, keepScroll, keyText, micros, page, rate, table, word} from '/console/base.js';
import {clearClaims} from '/console/claims.js';
import {clearKey, followLink} from '/console/key.js';
import {drawMark, drawPlot} from '/console/plots.js';

const OUTCOMES = ['granted', 'takeover', 'replay', 'in_flight', 'mismatch', 'in_doubt', 'too_old',
  'poison', 'busy', 'other'];
const ALARMING = new Set(['takeover', 'in_doubt', 'poison', 'busy', 'mismatch']);
const COURSES_SHOWN = 6;  // charts of namespaces, before all are asked for
let status = null;
let samples = [];
let courses = null;
let coursesAsked = 0;
let showsAllCourses = false;

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
  const own = {id: status.node, votes: group.votes, isOwn: true};
  const members = [own, ...group.members].sort((a, b) => a.id - b.id);
  $('group').replaceChildren(facts);
  keepScroll($('group-members'), table('The group, as this node knows it',
    ['Node', 'Role', 'Term', 'Entries', 'Entries behind', 'Connection', 'Clients at'], members.map((member) => memberRow(group, member))));
}

/** Only the leader knows what the others have; of the leader each node knows what is committed. */
function memberRow(group, member) {
  const leads = member.id === group.leader;
  const role = leads ? 'leader' : member.votes ? 'follower' : 'standby';
  const address = status.addresses?.[member.id];
  const entries = member.isOwn ? `${count(group.applied)} applied` : group.leads ? `${count(member.match)} on its disk`
    : leads ? `${count(group.commit)} committed` : '–';
  return [`node ${member.id}${member.isOwn ? ' (this one)' : ''}`, role, member.isOwn || leads ? count(group.term) : '–', entries,
    member.isOwn ? count(group.lag) : group.leads ? count(member.lag) : '–',
    member.isOwn ? '–' : member.connected ? 'connected' : el('span', {class: 'bad'}, 'not connected'),
    address ? keyText(address, 64) : page.session ? 'not known' : 'log in'];
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

// --- charts of namespaces --------------------------------------------------------------------
const COURSE_SERIES = [{name: 'granted', field: 'granted'}, {name: 'duplicates', field: 'duplicates'},
  {name: 'refused', field: 'refused'}];

/** What was counted in each minute, as rates at its end. */
function courseSamples(course) {
  return courses.minutes.slice(1).map((unix_ms, i) => {
    const seconds = Math.max(1, (unix_ms - courses.minutes[i]) / 1000);
    return {unix_ms, granted: course.granted[i] / seconds, duplicates: course.duplicates[i] / seconds,
      refused: course.refused[i] / seconds};
  });
}

function showCourses() {
  const sum = (numbers) => numbers.reduce((all, each) => all + each, 0);
  const all = (courses?.namespaces ?? []).map((course) => ({course, name: course.name || '(all others)',
    claims: sum(course.granted) + sum(course.duplicates) + sum(course.refused)})).sort((a, b) => b.claims - a.claims);
  $('courses-wait').hidden = all.length > 0;
  $('courses-legend').hidden = all.length === 0;
  $('courses-legend').replaceChildren(...COURSE_SERIES.map(({name}, index) => el('li', {}, drawMark(index), name)));
  const shown = showsAllCourses ? all : all.slice(0, COURSES_SHOWN);
  $('courses-all').hidden = shown.length === all.length;
  $('courses-all').textContent = `Show all ${count(all.length)}`;
  const figures = shown.map(({name}) => el('figure', {class: 'small'}, el('h3', {}, name), el('div', {})));
  $('courses').replaceChildren(...figures);
  figures.forEach((figure, i) => {
    const {course, name, claims} = shown[i];
    const holder = figure.lastElementChild;
    const plot = {title: `Claims a second in ${name}`, format: rate, series: COURSE_SERIES, gap: 150000, height: 120};
    holder.replaceChildren(drawPlot(plot, courseSamples(course), Math.max(240, holder.clientWidth)));
    figure.append(el('p', {class: 'quiet'}, `${count(claims)} claims, ${count(sum(course.granted))} granted, `
      + `${count(sum(course.duplicates))} duplicates, ${count(sum(course.refused))} refused`));
  });
}
$('courses-all').addEventListener('click', () => { showsAllCourses = true; showCourses(); });

async function refreshCourses() {
  if (courses && performance.now() - coursesAsked < (courses.namespaces.length > 0 ? 60000 : 15000)) return;
  coursesAsked = performance.now();
  courses = await ask('namespaces');
  showCourses();
}

// --- session ---------------------------------------------------------------------------------
function setSession(next, message = '') {
  const {session: before} = page;
  page.session = next;
  for (const node of document.querySelectorAll('.with-login')) node.hidden = !next;
  for (const node of document.querySelectorAll('.needs-login')) node.hidden = Boolean(next);
  $('login-open').hidden = Boolean(next);
  $('logout').hidden = !next;
  $('user').replaceChildren(next ? keyText(next.user, 40) : '');
  if (!next) {  // nothing of what only a user may see stays; a link stays for the next login
    clearClaims();
    clearKey(!message);
    if (status) showGroup();
  }
  if (before && !next && message) {
    $('login-message').textContent = message;
    $('login').showModal();
  }
}
page.ended = (message) => setSession(null, message);

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
    if (!followLink()) $('scan').focus();
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
    if (status && next.process !== status.process) { samples = []; courses = null; $('plots').replaceChildren(); }
    status = next;
    $('connection').hidden = true;
    showStatus();
    showGroup();
    showClaims();
    showPlots();
    await refreshCourses();
    if (page.session) {
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
addEventListener('resize', () => { clearTimeout(resized); resized = setTimeout(() => { showPlots(); showCourses(); }, 100); });
setInterval(refresh, 5000);
(async () => {
  await refresh();
  try {
    const known = await ask('session');
    if (known.user) setSession(known);
    followLink();
  } catch { /* refresh() says it */ }
})();
