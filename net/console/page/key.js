// One key: its state, the decisions about it, the actions on it, and links to it.
import {$, ask, bytes, count, duration, el, instant, keyText, page, table, word, KEY_SHOWN} from '/console/base.js';

const LINK_SHOWN = 2000;  // characters; a longer link is of no use to people

// --- links -----------------------------------------------------------------------------------
/** "#key=NAMESPACE:KEY"; empty for a text that no address can have. */
export function hashOf(namespace, key) {
  try {
    return `#key=${encodeURIComponent(namespace)}:${encodeURIComponent(key)}`;
  } catch {
    return '';
  }
}

/** The key that the page's address names; null: none. */
function keyOfAddress() {
  const [, namespace, key] = /^#key=([^:]*):(.*)$/.exec(location.hash) ?? [];
  if (namespace === undefined) return null;
  try {
    return {namespace: decodeURIComponent(namespace), key: decodeURIComponent(key)};
  } catch {
    return null;
  }
}

export function keyLink(namespace, key) {
  const href = hashOf(namespace, key);
  return el('a', {href, on: () => { if (href === location.hash) followLink(); }}, keyText(key, KEY_SHOWN));
}

/** Looks up the key of the page's address, if it names one and there is a session. */
export function followLink() {
  const named = keyOfAddress();
  if (named && page.session) lookUp(named.namespace, named.key);
  return named !== null;
}
addEventListener('hashchange', followLink);

export function clearKey(forgetAddress) {
  $('key-result').replaceChildren();
  $('key-message').textContent = '';
  $('key-form').reset();
  if ($('confirm').open) $('confirm').close();
  if (forgetAddress && keyOfAddress()) history.replaceState(null, '', location.pathname);
}

// --- look up ---------------------------------------------------------------------------------
$('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  lookUp($('key-space').value, $('key-key').value);
});

let lookUps = 0;
async function lookUp(namespace, key, message = '') {
  const number = ++lookUps;
  $('key-space').value = namespace;
  $('key-key').value = key;
  $('key-message').textContent = 'looking up';
  $('key-message').className = '';
  try {
    const answer = await ask('key', {namespace, key});
    if (number !== lookUps || !page.session) return;
    history.replaceState(null, '', hashOf(answer.namespace, answer.key) || location.pathname);
    $('key-message').textContent = message;
    showKey(answer);
    $('key-title').scrollIntoView({block: 'start'});
  } catch (error) {
    if (number !== lookUps || !page.session) return;
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
  const link = hashOf(answer.namespace, answer.key);
  if (link && link.length < LINK_SHOWN) fact('Link', el('a', {href: link, class: 'key'}, location.origin + location.pathname + link));
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
  if (page.session.actions && claim.state !== 'absent') parts.push(actionButtons(answer));
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

// --- actions ---------------------------------------------------------------------------------
const ACTIONS = {
  done: {title: 'Resolve as done', sure: 'I have checked that the work is done.', sureOfAll: 'I have checked that the work of each of these keys is done.', go: 'Resolve as done', hasResult: true,
    text: 'Duplicates get the result below and never run. Its owner can no longer complete it.'},
  released: {title: 'Release', sure: 'I have checked that the work may run again.', sureOfAll: 'I have checked that the work of each of these keys may run again.', go: 'Release',
    text: 'The claim ends as if it had never been granted: the next caller runs the work. If its owner is still at work, it runs twice.'},
  forget: {title: 'Forget', sure: 'I know that the work may run again.', go: 'Forget',
    text: 'The record is removed, whatever its state, with its result and its attempts: the next caller runs the work again.'},
};

function actionButtons(answer) {
  const open = answer.claim.state === 'held' || answer.claim.state === 'in_doubt';
  const names = open ? ['done', 'released', 'forget'] : ['forget'];
  const item = {namespace: answer.namespace, key: answer.key, state: answer.claim.state,
    epoch: answer.claim.epoch ?? '0', owner: answer.claim.owner};
  return el('p', {class: 'controls'}, ...names.map((name) =>
    el('button', {type: 'button', on: () => confirm(name, [item], (result) => actOnOne(name, item, result))},
      `${ACTIONS[name].title} …`)));
}

/** The record must be the one that was shown: the node compares its state and epoch. */
export function act(name, {namespace, key, state, epoch}, result) {
  return ask(name === 'forget' ? 'forget' : 'resolve', {namespace, key, state, epoch, as: name, result});
}

async function actOnOne(name, item, result) {
  await act(name, item, result);
  $('confirm').close();
  page.changed(item);
  await lookUp(item.namespace, item.key, `Done: ${ACTIONS[name].title.toLowerCase()}.`);
}

let confirmed = null;
/** Asks once for all `items`; then `run(result)`, whose error the dialog shows. */
export function confirm(name, items, run) {
  const action = ACTIONS[name];
  const [first] = items;
  confirmed = run;
  $('confirm-form').reset();
  $('confirm-title').textContent = items.length > 1 ? `${action.title}: ${count(items.length)} keys` : action.title;
  $('confirm-text').textContent = action.text;
  $('confirm-sure-text').textContent = items.length > 1 ? action.sureOfAll : action.sure;
  $('confirm-go').textContent = items.length > 1 ? `${action.go} (${count(items.length)})` : action.go;
  $('confirm-message').textContent = '';
  $('confirm-result-label').hidden = !action.hasResult;
  const facts = items.length > 1
    ? [['Keys', el('ul', {class: 'tall keys'}, ...items.map((item) =>
      el('li', {}, `${item.namespace} `, keyText(item.key, KEY_SHOWN))))]]
    : [['Namespace', first.namespace], ['Key', el('span', {class: 'tall'}, keyText(first.key, 1000))],
      ['State', word(first.state)]];
  if (items.length === 1 && first.owner) facts.push(['Owner', keyText(first.owner)]);
  $('confirm-facts').replaceChildren(...facts.flatMap(([title, value]) => [el('dt', {}, title), el('dd', {}, value)]));
  $('confirm').showModal();
  $('confirm-cancel').focus();
}
$('confirm-cancel').addEventListener('click', () => $('confirm').close());
$('confirm-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  $('confirm-go').disabled = true;
  try {
    await confirmed($('confirm-result').value);
  } catch (error) {
    $('confirm-message').textContent = error.message;
  }
  $('confirm-go').disabled = false;
});
