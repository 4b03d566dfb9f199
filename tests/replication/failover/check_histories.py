#!/usr/bin/env python3
"""Whether recorded histories can be explained: for each key an order of its calls, each at an
instant between its call and its return, in which the model gives every reply that was seen. A call
of which nobody knows what became of it may have taken effect at any time since, or never.

The search is that of Wing and Gong, with the memory of Lowe: calls that are done and a state that
were met before are not followed again. `check_histories.py FILE` reads one history a line.
"""
import json
import sys

sys.dont_write_bytecode = True
from models import MODELS, NEVER, UNKNOWN, only_tells  # noqa: E402

VISITS_MAX = 300_000


class Undecided(Exception):
    """The search has grown beyond its bound."""


class Search:
    def __init__(self, history):
        self.model = MODELS[history['kind']]
        calls = sorted(history['calls'], key=lambda call: call['call'])
        self.known = [call for call in calls if call['return'] is not None]
        self.open = [call for call in calls if call['return'] is None]
        self.met = set()

    def candidates(self, done, first):
        """The known calls that may be next, soonest to return first, and up to when."""
        last = NEVER
        found = []
        for place in range(first, len(self.known)):
            call = self.known[place]
            if call['call'] > last:
                break
            if done >> place & 1:
                continue
            found.append(place)
            last = min(last, call['return'])
        found = [place for place in found if self.known[place]['call'] <= last]
        found.sort(key=lambda place: self.known[place]['return'])
        return found, last

    def followers(self, done, taken, state, first):
        """What each call that may be next leads to."""
        places, last = self.candidates(done, first)
        found = []
        for place in places:
            call = self.known[place]
            for after in self.model.step(state, call['words'], call['reply'], last, call['call']):
                step = (done | 1 << place, taken, after)
                if after == state and only_tells(call['words'], call['reply']):
                    return [step]  # as well as later
                found.append(step)
        for place, call in enumerate(self.open):
            if taken >> place & 1 or call['call'] > last:
                continue
            for after in self.model.step(state, call['words'], UNKNOWN, last, call['call']):
                if after != state:
                    found.append((done, taken | 1 << place, after))
        return found

    def run(self):
        """None, or the latest call that no order explains."""
        everything = (1 << len(self.known)) - 1
        stack = [(0, 0, self.model.initial)]
        best = 0
        while stack:
            here = stack.pop()
            if here in self.met:
                continue
            self.met.add(here)
            if len(self.met) > VISITS_MAX:
                raise Undecided()
            done, taken, state = here
            if done == everything:
                return None
            first = (~done & done + 1).bit_length() - 1
            best = max(best, first)
            stack.extend(reversed(self.followers(done, taken, state, first)))
        return self.known[best]


def explain(history):
    """None if it can be explained, otherwise what was found."""
    try:
        call = Search(history).run()
    except Undecided:
        return f'{history["kind"]} {history["key"]}: the search has not ended'
    if call is None:
        return None
    return (f'{history["kind"]} {history["key"]}: no order explains call {call["call"]}, '
            f'{call["words"]} -> {call["reply"]}')


def main():
    found = []
    count = 0
    with open(sys.argv[1], encoding='utf-8') as file:
        for line in file:
            count += 1
            what = explain(json.loads(line))
            if what is not None:
                found.append(what)
    for what in found[:10]:
        print(what)
    print(f'check_histories: {count} histories, {len(found)} refused')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
