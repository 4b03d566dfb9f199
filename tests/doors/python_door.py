#!/usr/bin/env python3
"""The stories of stories.json by the package for Python: python_door.py [aio]. Prints a line a
story: its name, a tab, its outcome. The clock is the system's, so a lease that ends is a short one.
"""

import asyncio
import datetime
import sys
import threading
import time

import semel
from semel import aio

SHORT = 0.25  # seconds of a lease that is to end
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class Blocking:
    """The blocking face."""

    def once(self, claims, key, function, **options):
        return claims.once(key, function, **options)

    def step(self, work, name, function):
        return work.steps.run(name, function)

    def work(self, function):
        return function

    def lazy(self):
        async def lazy():
            raise AssertionError('it ran')
        return lazy

    def permits(self, locks):
        one, other = (locks.permit('permits-fewer', 2) for _ in range(2))
        fewer = locks.permit('permits-fewer', 1)
        held = one.take() and other.take() and one.give() and not fewer.take()
        return held, other.give() and fewer.take() and fewer.give()

    def readers(self, locks):
        one, other = (locks.read_lock('readers-writer') for _ in range(2))
        writer = locks.write_lock('readers-writer')
        both = one.take() and other.take()
        kept_out = one.give() and not writer.take() and other.give()
        alone = writer.take() and not one.take()
        return both, kept_out, alone, writer.give() and one.take() and one.give()

    def all_locks(self, locks):
        keys = ['locks-all', 'locks-all:other']
        both = locks.lock_all(keys)
        with locks.lock(keys[1]):
            held = not both.take()
            with locks.lock(keys[0]):
                free = True
        return held, free, both.take() and both.give()

    def lock_shared(self, locks):
        lock = locks.lock('lock-shared')
        inside, most = 0, 0
        guard = threading.Lock()

        def enter():
            nonlocal inside, most
            try:
                with lock:
                    with guard:
                        inside += 1
                        most = max(most, inside)
                    time.sleep(0.01)  # long enough for the other to come in as well
                    with guard:
                        inside -= 1
            except semel.Error:
                pass  # refused

        threads = [threading.Thread(target=enter) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return most

    def lock_lost(self, locks):
        lost = locks.lock('lock-lost', lease=SHORT, keep_lease=False)
        lost.take()
        time.sleep(2 * SHORT)
        with locks.lock('lock-lost'):
            pass
        lost.give()

    def wait_cancelled(self, calls):
        """A thread is not cancelled: a signal's handler that raises ends the wait."""
        import signal

        def stop(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            calls.once('wait-cancelled', lambda: b'', wait=30)
        except KeyboardInterrupt:
            return True
        return False


class Aio(Blocking):
    """The asyncio face, a loop a call."""

    def once(self, claims, key, function, **options):
        return asyncio.run(aio.once(claims, key, function, **options))

    def step(self, work, name, function):
        return aio.step(work.steps, name, function)

    def work(self, function):
        if function.__code__.co_argcount == 0:
            async def run():
                return function()
            return run

        async def run_with(work):
            made = function(work)
            return await made if asyncio.iscoroutine(made) else made
        return run_with

    def lazy(self):
        def lazy():
            yield from ()
            raise AssertionError('it ran')
        return lazy

    def permits(self, locks):
        async def play():
            one, other = (aio.permit(locks, 'permits-fewer', 2) for _ in range(2))
            fewer = aio.permit(locks, 'permits-fewer', 1)
            held = (await one.take() and await other.take() and await one.give()
                    and not await fewer.take())
            return held, await other.give() and await fewer.take() and await fewer.give()

        return asyncio.run(play())

    def readers(self, locks):
        async def play():
            one, other = (aio.read_lock(locks, 'readers-writer') for _ in range(2))
            writer = aio.write_lock(locks, 'readers-writer')
            both = await one.take() and await other.take()
            kept_out = await one.give() and not await writer.take() and await other.give()
            alone = await writer.take() and not await one.take()
            after = await writer.give() and await one.take() and await one.give()
            return both, kept_out, alone, after

        return asyncio.run(play())

    def all_locks(self, locks):
        keys = ['locks-all', 'locks-all:other']

        async def play():
            both = aio.lock_all(locks, keys)
            async with aio.lock(locks, keys[1]):
                held = not await both.take()
                async with aio.lock(locks, keys[0]):
                    free = True
            return held, free, await both.take() and await both.give()

        return asyncio.run(play())

    def lock_shared(self, locks):
        lock = aio.lock(locks, 'lock-shared')
        inside, most = 0, 0

        async def enter():
            nonlocal inside, most
            try:
                async with lock:
                    inside += 1
                    most = max(most, inside)
                    await asyncio.sleep(0.01)
                    inside -= 1
            except semel.Error:
                pass

        async def all_of_them():
            await asyncio.gather(*(enter() for _ in range(4)))

        asyncio.run(all_of_them())
        return most

    def lock_lost(self, locks):
        async def lose():
            async with aio.lock(locks, 'lock-lost', lease=SHORT, keep_lease=False):
                await asyncio.sleep(2 * SHORT)
                async with aio.lock(locks, 'lock-lost'):
                    pass
        asyncio.run(lose())

    def wait_cancelled(self, calls):
        async def cancel():
            async def nothing():
                return b''
            task = asyncio.ensure_future(aio.once(calls, 'wait-cancelled', nothing, wait=30))
            await asyncio.sleep(0.1)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return True
            return False
        return asyncio.run(cancel())


class Stories:
    def __init__(self, face):
        self.face = face
        self.engine = semel.Engine()
        self.calls = self.engine.claims('doors', 'call')
        self.locks = self.engine.claims('locks', 'lock')
        self.count = 0

    def tell(self, story, outcome, runs=False):
        print(f"{story}\t{outcome}{f'; runs {self.count}' if runs else ''}", flush=True)
        self.count = 0

    def ran(self, value=b'paid'):
        self.count += 1
        return value

    def once(self, key, function=None, **options):
        function = function or (lambda: self.ran())
        return self.face.once(self.calls, key, self.face.work(function), **options)

    def result_equal(self):
        first, again = self.once('result-equal'), self.once('result-equal')
        self.tell('result-equal', 'equal' if first.value == again.value else 'other', True)

    def result_odd(self):
        def odd():
            return self.ran(object())  # no codec gives it back
        try:
            self.once('result-odd', odd, codec=semel.JSON)
            kept = True
        except semel.ResultNotKept:
            kept = False
        again = self.once('result-odd', odd, codec=semel.JSON)
        has = again.answer is not semel.OnceAnswer.EXPIRED
        self.tell('result-odd', f"{'kept' if kept else 'not kept'}; "
                                f"{'result' if has else 'no result'}", True)

    def lazy_work(self):
        try:
            self.face.once(self.calls, 'lazy-work', self.face.lazy())
            word = 'taken'
        except (semel.Error, TypeError):
            word = 'refused'
        self.once('lazy-work')
        self.tell('lazy-work', f"{word}; then {'ran' if self.count == 1 else 'did not run'}")

    def throws(self):
        def fail():
            raise RuntimeError('x')
        try:
            self.once('throws', fail)
            word = 'returned'
        except RuntimeError:
            word = 'thrown'
        self.once('throws')
        self.tell('throws', f"{word}; then {'ran' if self.count == 1 else 'did not run'}")

    def keys(self):
        for story, key in (('key-empty', ''), ('key-huge', 'k' * 70_000)):
            try:
                answer = self.once(key).answer
                word = str(answer)
            except semel.InvalidKey:
                word = 'key error'
            self.tell(story, word, True)

    def others(self):
        def declared(name):
            face, count = self.face, self

            def function(cents):
                return count.ran({'cents': cents})
            if isinstance(face, Aio):
                async def coroutine(cents):
                    return count.ran({'cents': cents})
                function = coroutine
            wrapped = semel.idempotent(self.calls, lambda cents: self.key, operation=name)(function)
            return (lambda cents: asyncio.run(wrapped(cents))) if isinstance(face, Aio) else wrapped

        for story, calls in (('payload-other', (('pay', 1), ('pay', 2))),
                             ('operation-other', (('pay', 1), ('refund', 1)))):
            self.key = story
            word = 'no mismatch'
            for name, cents in calls:
                try:
                    declared(name)(cents)
                except semel.Mismatch:
                    word = 'mismatch'
            self.tell(story, word, True)

    def times(self):
        try:
            self.once('lease-zero', lease=0)
            word = 'taken'
        except (semel.Error, ValueError):
            word = 'refused'
        self.tell('lease-zero', word, True)
        window = self.engine.claims('window', 'message', window=86_400)
        answer = self.face.once(window, 'first-sent-1970', self.face.work(lambda: self.ran()),
                                first_sent=EPOCH).answer
        self.tell('first-sent-1970', 'too old' if answer is semel.OnceAnswer.TOO_OLD
                  else str(answer), True)

    def lease_lost(self):
        """The other acts beside the loop, so both faces tell one story."""
        def late():
            time.sleep(2 * SHORT)
            self.calls.once('lease-lost', lambda: b'other')
            return b'mine'
        first = self.once('lease-lost', late, lease=SHORT, keep_lease=False)
        word = 'too late' if first.answer is semel.OnceAnswer.SUPERSEDED else str(first.answer)
        again = self.once('lease-lost', lambda: b'third')
        self.tell('lease-lost', f'{word}; repeat {again.value.decode()}')

    def step_stale(self):
        answer = []

        def charge():
            return self.ran('receipt')

        def stale(work):
            time.sleep(2 * SHORT)
            self.calls.once('step-stale', lambda other: other.steps.run('charge', charge) and b'')
            try:
                if isinstance(self.face, Aio):
                    return self.stale_step(work, charge, answer)
                self.face.step(work, 'charge', charge)
            except semel.Error as error:
                answer.append(error)
            return b''
        self.once('step-stale', stale, lease=SHORT, keep_lease=False)
        word = 'not owner' if answer and isinstance(answer[0], semel.StaleOwner) else str(answer)
        self.tell('step-stale', f'{word}; step runs {self.count}')

    async def stale_step(self, work, charge, answer):
        try:
            await self.face.step(work, 'charge', charge)
        except semel.Error as error:
            answer.append(error)
        return b''

    def lock_stories(self):
        most = self.face.lock_shared(self.locks)
        self.tell('lock-shared', 'one holder' if most == 1 else f'{most} holders')
        try:
            self.face.lock_lost(self.locks)
            word = 'given back'
        except semel.Error:
            word = 'lease lost'
        self.tell('lock-lost', word)
        held, free, granted = self.face.all_locks(self.locks)
        self.tell('locks-all', f"{'held' if held else 'taken'}, other "
                               f"{'free' if free else 'held'}; "
                               f"then {'granted' if granted else 'none'}")
        held, granted = self.face.permits(self.locks)
        self.tell('permits-fewer', f"{'held' if held else 'too many'}; "
                                   f"then {'granted' if granted else 'none'}")
        both, kept_out, alone, after = self.face.readers(self.locks)
        self.tell('readers-writer', f"{'two readers' if both else 'not two'}, "
                                    f"{'no writer' if kept_out else 'a writer'}; "
                                    f"then {'one writer' if alone else 'not alone'}; "
                                    f"then {'a reader' if after else 'none'}")

    def observed(self):
        heard = []

        def observer(seen):
            heard.append(seen.event.value)
            raise RuntimeError("the observer's own")
        calls = self.engine.claims('doors', observer=observer)
        work = self.face.work(lambda: self.ran())
        first, again, _ = (self.face.once(calls, 'observed', work, payload=payload)
                           for payload in (b'pay', b'pay', b'refund'))
        other = '' if first.value == again.value else 'other; '
        self.tell('observed', other + ', '.join(heard), True)

    def rate_limit(self):
        limiter = semel.RateLimiter(self.calls.engine, limit=3, period=86_400)

        def word(cost):
            taken = limiter.take('rate-limit', cost)
            return 'allowed' if taken.allowed else f'limited, {taken.remaining} left'
        word(2)
        self.tell('rate-limit', '; then '.join([word(2), word(1), word(1)]))

    def wait_cancelled(self):
        holder = self.calls.claim('wait-cancelled')
        cancelled = self.face.wait_cancelled(self.calls)
        self.calls.release('wait-cancelled', holder.epoch)
        free = self.calls.get('wait-cancelled').state is semel.State.ABSENT
        self.tell('wait-cancelled', 'cancelled' if cancelled and free else f'{cancelled} {free}',
                  True)

    def closed(self):
        self.engine.close()
        try:
            self.once('closed')
            word = 'taken'
        except semel.Closed:
            word = 'closed'
        self.tell('closed', word, True)


def main():
    stories = Stories(Aio() if sys.argv[1:] == ['aio'] else Blocking())
    for play in (stories.result_equal, stories.result_odd, stories.lazy_work, stories.throws,
                 stories.keys, stories.others, stories.times, stories.lease_lost,
                 stories.step_stale, stories.lock_stories, stories.observed,
                 stories.rate_limit, stories.wait_cancelled, stories.closed):
        try:
            play()
        except Exception as error:  # a story that breaks is one cell, not all
            print(f'{play.__name__}: {error!r}')


if __name__ == '__main__':
    main()
