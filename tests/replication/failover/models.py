"""What a key may answer: the first of two sets of models, written from docs/semantics.md and
docs/claims-on-the-wire.md. The other one is porcupine/models.go; neither is made from the other.

A model has `initial` and `step(state, words, reply, at)`: the states in which the key may be
afterwards if it takes these words in this state at a time up to `at` (ns) and gives this reply;
none: it cannot give it. The reply UNKNOWN is of a call of which it is not known what became of it:
any. What ends with time may be there for longer, but never for less.
"""

UNKNOWN = '?'
NEVER = float('inf')
# A group's time goes faster than a clock by at most a thousandth, and is in whole milliseconds.
SLACK_NS = 5_000_000


def ends_from(called, ms):
    """The earliest time at which what was granted by a call for so many ms may have ended."""
    return called + int(ms * 1e6 * 0.998) - SLACK_NS


UNCHANGED = ('in_flight', 'replay', 'kept_failure', 'unknown', 'stale_owner', 'not_owner',
             'conflict', 'refused')


def only_tells(words, reply):
    """Whether a call that got this reply changed nothing, whatever the state was."""
    if words[0] in ('get', 'getclaim'):
        return True
    if words[0] == 'setnxget':
        return reply is not None
    return isinstance(reply, dict) and reply['outcome'] in UNCHANGED


def fits(reply, answer):
    return reply == UNKNOWN or reply == answer


class Text:
    """A string that is set, read and removed: its value, and from when on it may have ended."""

    initial = (None, NEVER)

    @staticmethod
    def step(state, words, reply, at, called):
        found = []
        states = [state]
        if state[0] is not None and at >= state[1]:
            states.append(Text.initial)
        for value, end in states:
            answer, after = Text.answer(value, end, words, called)
            if fits(reply, answer):
                found.append(after)
        return found

    @staticmethod
    def answer(value, end, words, called):
        verb = words[0]
        if verb == 'get':
            return value, (value, end)
        if verb == 'getdel':
            return value, Text.initial
        if verb == 'del':
            return int(value is not None), Text.initial
        if verb == 'set':
            return 'OK', (words[1], NEVER)
        if verb == 'setnxget':  # with a time, perhaps
            if value is not None:
                return value, (value, end)
            until = ends_from(called, words[2]) if len(words) > 2 else NEVER
            return None, (words[1], until)
        raise ValueError(f'no model of {verb}')


class Counter:
    initial = 0

    @staticmethod
    def step(state, words, reply, at, called):  # pylint: disable=unused-argument
        verb = words[0]
        if verb == 'incr':
            answer, after = state + 1, state + 1
        elif verb == 'get':
            answer, after = (str(state) if state else None), state
        elif verb == 'del':
            answer, after = int(state != 0), 0
        else:
            raise ValueError(f'no model of {verb}')
        return [after] if fits(reply, answer) else []


class Claim:
    """A claim's record. State: (what, epoch, highest, identity, attempts, text, end).

    what: absent, issued, held, done, failed. `epoch` of what is held or finished; None: granted by
    a call whose reply is not known, so that nobody can know it. `highest`: no epoch up to it is
    granted again. `identity`: CLAIM-ID of the owner, which is its label as well. `text`: result or
    failure. `end`: from when on the lease may be over.
    """

    initial = ('absent', 0, 0, None, 0, None, NEVER)
    is_issued = False

    @classmethod
    def step(cls, state, words, reply, at, called):
        verb = words[0]
        if verb == 'claim':
            return cls.claim(state, words, reply, at, called)
        if verb == 'getclaim':
            return cls.getclaim(state, reply)
        if verb == 'issue':
            is_new = state[0] == 'absent'
            after = ('issued', 0, state[2], None, 0, None, NEVER) if is_new else state
            return [after] if fits(reply, int(is_new)) else []
        if verb == 'forget':
            # What is issued and not claimed is removed, and not counted.
            is_there = state[0] in ('held', 'done', 'failed')
            after = cls.initial[:2] + (state[2],) + cls.initial[3:]
            return [after] if fits(reply, int(is_there)) else []
        return cls.owner(state, words, reply, at, called)

    @classmethod
    def claim(cls, state, words, reply, at, called):
        what, epoch, _, identity, attempts, text, end = state
        asked, lease = words[1], words[2]
        found = []
        if what in ('absent', 'issued'):
            if cls.is_issued and what == 'absent':
                return [state] if reply == UNKNOWN or reply == {'outcome': 'unknown'} else []
            return cls.grant(state, attempts + 1, False, asked, lease, reply, called)
        if what == 'done':
            answer = {'outcome': 'replay', 'attempt': attempts, 'result_expired': 0,
                      'result': text}
            return [state] if fits(reply, answer) else []
        if what == 'failed':
            answer = {'outcome': 'kept_failure', 'attempt': attempts, 'poison': 0, 'failure': text}
            return [state] if fits(reply, answer) else []
        if at >= end:
            found += cls.grant(state, attempts + 1, True, asked, lease, reply, called)
        if reply == UNKNOWN:
            return [*found, state]
        if asked == identity:
            if reply['outcome'] == 'regranted' and reply['attempt'] == attempts:
                found += cls.learn(state, reply['epoch'])
        elif reply['outcome'] == 'in_flight':
            if reply['owner'] == identity and reply['attempt'] == attempts:
                found.append(state)
        return found

    @classmethod
    def grant(cls, state, attempt, takes_over, asked, lease, reply, called):
        highest = state[2]
        after = ('held', None, highest, asked, attempt, None, ends_from(called, lease))
        if reply == UNKNOWN:
            return [after]
        if (reply['outcome'] != 'granted' or reply['attempt'] != attempt or
                reply['takeover'] != int(takes_over)):
            return []
        return cls.learn(after, reply['epoch'])

    @staticmethod
    def learn(state, epoch):
        """It is seen that the owner has this epoch."""
        if state[1] is None:
            if epoch <= state[2]:
                return []
            return [(state[0], epoch, epoch, *state[3:])]
        return [state] if state[1] == epoch else []

    @staticmethod
    def getclaim(state, reply):
        what, _, _, identity, attempts, text, _ = state
        if reply == UNKNOWN:
            return [state]
        if reply['state'] != what:
            return []
        if what == 'absent':
            return [state]
        if reply['attempts'] != attempts:
            return []
        if what == 'issued':
            return [state]
        if what == 'held' and reply['owner'] != identity:
            return []
        if what == 'done' and reply['result'] != text:
            return []
        if what == 'failed' and (reply['failure'] != text or reply['poison']):
            return []
        return Claim.learn(state, reply['epoch'])

    @classmethod
    def owner(cls, state, words, reply, at, called):
        verb, called_epoch = words[0], words[1]
        what, epoch = state[0], state[1]
        if what in ('absent', 'issued'):
            return [state] if fits(reply, {'outcome': 'unknown'}) else []
        if epoch != called_epoch:
            return cls.other_owner(state, words, reply)
        if what != 'held':
            return [state] if fits(reply, cls.again(state, words)) else []
        found = []
        for is_late in (0, 1):
            if is_late and at < state[6]:
                continue
            if is_late and verb == 'renew':
                answer, after = {'outcome': 'refused'}, state
            else:
                answer, after = {'outcome': 'ok', 'late': is_late}, cls.ended(state, words, called)
            if fits(reply, answer) and after not in found:
                found.append(after)
        return found

    @staticmethod
    def other_owner(state, words, reply):
        """A call by an epoch that is not the record's. Epochs that were given are never later
        than the record's, except that it was given to a record that is gone."""
        what, epoch = state[0], state[1]
        is_newer = epoch is not None and words[1] > epoch
        if words[0] == 'release':
            answer = {'outcome': 'not_owner'}
        elif is_newer:
            answer = {'outcome': 'unknown'}
        elif words[0] == 'complete' and what == 'done':
            answer = {'outcome': 'stale_owner', 'result': state[5]}
        else:
            answer = {'outcome': 'stale_owner'}
        return [state] if fits(reply, answer) else []

    @staticmethod
    def again(state, words):
        """A call by the owner that has finished it."""
        what, text = state[0], state[5]
        if words[0] == 'release':
            return {'outcome': 'not_owner'}
        is_same = words[0] == {'done': 'complete', 'failed': 'fail'}[what] and words[2] == text
        return {'outcome': 'ok', 'late': 0} if is_same else {'outcome': 'conflict'}

    @classmethod
    def ended(cls, state, words, called):
        _, epoch, highest, identity, attempts, _, _ = state
        if words[0] == 'complete':
            return ('done', epoch, highest, None, attempts, words[2], NEVER)
        if words[0] == 'renew':
            return ('held', epoch, highest, identity, attempts, None, ends_from(called, words[2]))
        if words[0] == 'fail' and words[3] == 'keep':
            return ('failed', epoch, highest, None, attempts, words[2], NEVER)
        if not cls.is_issued:
            return ('absent', 0, highest, None, 0, None, NEVER)
        left = attempts - 1 if words[0] == 'release' else attempts
        return ('issued', 0, highest, None, left, None, NEVER)


class Token(Claim):
    """Only what was issued can be claimed, and what was given back can be claimed again."""

    is_issued = True


MODELS = {'text': Text, 'ending': Text, 'counter': Counter, 'claim': Claim, 'lease': Claim,
          'token': Token}
