// What all parts of the page use. Whatever comes from the node is put into text nodes only.

export const $ = (id) => document.getElementById(id);
export const KEY_SHOWN = 160;  // characters of a key in a list
export const page = {
  session: null,  // {user, csrf, actions}
  status: null,
  ended: () => {},  // called with a message when the node knows no session any more
  changed: () => {},  // called with a claim that an action has ended
};
const ANSWER_WITHIN = 60000;  // ms; the node answers or refuses long before

export function el(tag, properties = {}, ...children) {
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
export const count = (value) => Math.round(value).toLocaleString();
export function rate(value) {
  return value === 0 ? '0' : value < 10 ? value.toFixed(value < 0.1 ? 2 : 1) : count(value);
}
export function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; ++unit; }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
export function micros(value) {
  if (value === 0) return '0';
  if (value < 1000) return `${Math.round(value)} µs`;
  return value < 1e6 ? `${(value / 1000).toFixed(1)} ms` : `${(value / 1e6).toFixed(1)} s`;
}
export function duration(ms) {
  const seconds = Math.floor(ms / 1000);
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`;
}
export const instant = (ms) => new Date(ms).toLocaleString();
export const word = (text) => text.replaceAll('_', ' ');

export function keyText(text, max = Infinity) {
  if (text.length <= max) return el('bdi', {class: 'key'}, text);
  return el('bdi', {class: 'key'}, text.slice(0, max), ` … (${count(text.length)} characters)`);
}

// --- calls -----------------------------------------------------------------------------------
export async function ask(path, body) {
  const options = {credentials: 'same-origin', cache: 'no-store', redirect: 'error',
    signal: AbortSignal.timeout(ANSWER_WITHIN)};
  if (body !== undefined) {
    options.method = 'POST';
    options.headers = {'Content-Type': 'application/json'};
    if (page.session) options.headers['X-Semel-Csrf'] = page.session.csrf;
    options.body = JSON.stringify(body);
  }
  const response = await fetch(`/console/api/${path}`, options);
  const type = response.headers.get('Content-Type') ?? '';
  const answer = type.startsWith('application/json') ? await response.json()
    : {error: 'failed', message: (await response.text()).trim()};
  if (response.ok) return answer;
  if (response.status === 401 && path !== 'login') page.ended('The session has ended; log in again.');
  const leader = answer.error === 'not_leader'
    ? ` The leader ${answer.leader ? `serves clients at ${answer.leader}` : 'is not known now'}.` : '';
  throw Object.assign(new Error((answer.message || response.statusText) + leader), {word: answer.error});
}

export function table(caption, heads, rows, numbers = []) {
  const body = rows.map((row) => el('tr', {}, ...row.map((cell, i) => el(i === 0 ? 'th' : 'td',
    i === 0 ? {scope: 'row'} : {'data-label': heads[i], class: numbers.includes(i) ? 'number' : ''}, cell))));
  return el('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
    el('table', {class: 'cards'}, el('caption', {}, caption),
      el('thead', {}, el('tr', {}, ...heads.map((head, i) =>
        el('th', {scope: 'col', class: numbers.includes(i) ? 'number' : ''}, head)))),
      el('tbody', {}, ...body)));
}

export function keepScroll(parent, node) {
  const left = parent.firstElementChild?.scrollLeft ?? 0;
  const hadFocus = parent.firstElementChild === document.activeElement;
  parent.replaceChildren(node);
  node.scrollLeft = left;
  if (hadFocus) node.focus();
}
