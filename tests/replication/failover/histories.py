"""Recorded histories, and what is made of them so that the checkers must refuse it."""
import copy
import json
import shutil
import subprocess
import time
from pathlib import Path

import check_histories

HERE = Path(__file__).resolve().parent


class Recorded:
    """The calls about one key."""

    def __init__(self, kind, key):
        self.kind = kind
        self.key = key
        self.calls = []
        self.unknown = 0

    def add(self, words, called, is_known, reply):
        returned = time.monotonic_ns() if is_known else None
        self.unknown += not is_known
        self.calls.append({'words': words, 'call': called, 'return': returned, 'reply': reply})

    def whole(self):
        return {'kind': self.kind, 'key': self.key, 'calls': list(self.calls)}


def without_late_repeats(history, most_ns):
    """A node that is cut off may repeat for so long what was made forgotten (docs/replication.md).
    Such repeats change nothing and are left out; what is repeated later than that stays."""
    forgotten = [call for call in history['calls'] if call['words'][0] == 'forget']
    completed = [call for call in history['calls'] if call['words'][0] == 'complete']

    def is_late(call):
        reply = call['reply']
        if call['words'][0] != 'claim' or not isinstance(reply, dict) or \
                reply.get('outcome') != 'replay':
            return False
        for forget in forgotten:
            is_near = forget['call'] < call['return'] and \
                call['call'] - most_ns < (forget['return'] or call['call'])
            if is_near and any(done['words'][2] == reply['result'] and
                               done['call'] < (forget['return'] or call['return'])
                               for done in completed):
                return True
        return False
    return {**history, 'calls': [call for call in history['calls'] if not is_late(call)]}


def write(histories, path):
    with open(path, 'w', encoding='utf-8') as file:
        for history in histories:
            file.write(json.dumps(history) + '\n')


def fetch_porcupine():
    """Where there is a network, before a process leaves it. What fails is said at the build."""
    go = shutil.which('go')
    if go is not None:
        subprocess.run([go, 'mod', 'download'], cwd=HERE / 'porcupine', capture_output=True,
                       check=False)


class Porcupine:
    """The second checker. `missing` says why it cannot be had."""

    def __init__(self, place):
        self.place = place
        self.program = place / 'porcupine'
        self.missing = None
        go = shutil.which('go')
        if go is None:
            self.missing = 'go is not installed'
            return
        built = subprocess.run([go, 'build', '-mod=readonly', '-o', self.program, '.'],
                               cwd=HERE / 'porcupine', capture_output=True, text=True, check=False)
        if built.returncode != 0:
            self.missing = f'porcupine cannot be built: {built.stderr.strip()[-300:]}'

    def refused(self, histories):
        """The keys of those that it refuses."""
        path = self.place / 'histories.jsonl'
        write(histories, path)
        done = subprocess.run([self.program, path], capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        if done.returncode not in (0, 1) or not lines[-1].startswith(
                f'porcupine: {len(histories)} histories, '):
            raise SystemExit(f'failover: porcupine failed: {done.stdout}{done.stderr}')
        return {line.split()[1].rstrip(':') for line in lines[:-1]}


def refused_here(histories):
    """By our own checker: what it says, by key."""
    found = {history['key']: check_histories.explain(history) for history in histories}
    return {key: what for key, what in found.items() if what is not None}


# --- what must be refused -------------------------------------------------------------------------

def at_places(history, fits):
    return [place for place, call in enumerate(history['calls'])
            if call['return'] is not None and fits(call)]


def swap_a_value(history, chance):
    """A read shows what nobody has written."""
    if history['kind'] not in ('text', 'ending'):
        return None
    places = at_places(history, lambda call: call['words'][0] in ('get', 'setnxget', 'getdel') and
                       call['reply'] is not None)
    return change(history, chance, places, lambda call: {**call, 'reply': 'of nobody'})


def writer_of(history, value):
    return [place for place, call in enumerate(history['calls'])
            if call['words'][0] in ('set', 'setnxget') and call['words'][1] == value]


def drop_a_write(history, chance):
    """What somebody has read was never written."""
    if history['kind'] != 'text':
        return None
    read = {call['reply'] for call in history['calls']
            if call['words'][0] in ('get', 'setnxget', 'getdel') and call['reply'] is not None}
    places = [place for value in sorted(read) for place in writer_of(history, value)]
    if not places:
        return None
    changed = copy.deepcopy(history)
    del changed['calls'][chance.choice(places)]
    return changed


def grant_twice(history, chance):
    """Who was told that another one is at it is granted it as well."""
    if history['kind'] not in ('claim', 'token'):
        return None
    epochs = [call['reply']['epoch'] for call in history['calls']
              if call['words'][0] == 'claim' and call['return'] is not None and
              'epoch' in call['reply']]
    places = at_places(history, lambda call: call['words'][0] == 'claim' and
                       call['reply']['outcome'] == 'in_flight')
    # While the one who has it is seen to have it afterwards, too.
    places = [place for place in places if is_still_held(history, place)]

    def also(call):
        return {**call, 'reply': {'outcome': 'granted', 'epoch': max(epochs, default=1) + 1,
                                  'attempt': call['reply']['attempt'], 'takeover': 0}}
    return change(history, chance, places, also)


def is_still_held(history, place):
    told = history['calls'][place]
    return any(call['words'][0] == 'claim' and call['return'] is not None and
               call['call'] > told['return'] and
               call['reply'].get('owner') == told['reply']['owner'] for call in history['calls'])


def move_a_read_back(history, chance):
    """A read is over before what it shows was written."""
    if history['kind'] != 'text':
        return None
    places = []
    for place in at_places(history, lambda call: call['words'][0] == 'get' and
                           call['reply'] is not None):
        writers = writer_of(history, history['calls'][place]['reply'])
        if writers and history['calls'][writers[0]]['call'] < history['calls'][place]['call']:
            places.append(place)

    def back(call):
        written = history['calls'][writer_of(history, call['reply'])[0]]['call']
        return {**call, 'call': written - 2, 'return': written - 1}
    return change(history, chance, places, back)


def change(history, chance, places, how):
    if not places:
        return None
    changed = copy.deepcopy(history)
    place = chance.choice(places)
    changed['calls'][place] = how(changed['calls'][place])
    return changed


MUTATIONS = (swap_a_value, drop_a_write, grant_twice, move_a_read_back)
OF_EACH = 10


def mutated(histories, chance):
    """Of each kind of change some, each in a history that was recorded."""
    found = []
    for mutate in MUTATIONS:
        count = 0
        for history in chance.sample(histories, len(histories)):
            changed = mutate(history, chance)
            if changed is None:
                continue
            changed['key'] = f'{mutate.__name__}/{history["key"]}'
            found.append(changed)
            count += 1
            if count == OF_EACH:
                break
    return found
