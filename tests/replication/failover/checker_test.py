#!/usr/bin/env python3
"""Both checkers on histories that were written by hand: which can be explained, and which not."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import histories  # noqa: E402

MS = 1_000_000
LEASE = 100_000  # ms: longer than any history here


def call(begin, end, words, reply=None):
    """Times in ms; without an end nobody knows what became of it."""
    return {'words': words, 'call': begin * MS, 'return': None if end is None else end * MS,
            'reply': reply}


def claimed(begin, end, identity, outcome, lease=LEASE, **fields):
    return call(begin, end, ['claim', identity, lease], {'outcome': outcome, **fields})


def granted(begin, end, identity, epoch, attempt=1, takeover=0, lease=LEASE):
    return claimed(begin, end, identity, 'granted', lease, epoch=epoch, attempt=attempt,
                   takeover=takeover)


def refused(begin, end, identity, owner, attempt=1):
    return claimed(begin, end, identity, 'in_flight', owner=owner, attempt=attempt)


def owned(begin, end, words, outcome, **fields):
    return call(begin, end, words, {'outcome': outcome, **fields})


SET = call(0, 10, ['setnxget', 'a'])
CAN_BE = {
    'a read beside a write sees it or not': ('text', [
        SET, call(1, 2, ['get']), call(3, 4, ['get'], 'a')]),
    'a write of which nobody knows happens later': ('text', [
        call(0, None, ['setnxget', 'a']), call(1, 2, ['get']), call(50, 51, ['get'], 'a')]),
    'or never': ('text', [call(0, None, ['set', 'a']), call(50, 51, ['get'])]),
    'or between two reads that differ': ('text', [
        SET, call(5, None, ['del']), call(20, 21, ['get'], 'a'), call(22, 23, ['get'])]),
    'removed and set again': ('text', [
        SET, call(11, 12, ['del'], 1), call(13, 14, ['setnxget', 'b']),
        call(15, 16, ['getdel'], 'b'), call(17, 18, ['del'], 0)]),
    'its time is over': ('ending', [
        call(0, 1, ['setnxget', 'a', 100]), call(101, 102, ['get'])]),
    'or it lives a bit longer': ('ending', [
        call(0, 1, ['setnxget', 'a', 100]), call(300, 301, ['get'], 'a')]),
    'counted, once perhaps': ('counter', [
        call(0, 1, ['incr'], 1), call(2, None, ['incr']), call(3, 4, ['incr'], 3),
        call(5, 6, ['get'], '3')]),
    'granted, refused, finished, told': ('claim', [
        granted(0, 1, 'x', 7), refused(2, 3, 'y', 'x'),
        owned(4, 5, ['complete', 7, 'paid'], 'ok', late=0),
        owned(6, 7, ['complete', 7, 'paid'], 'ok', late=0),
        claimed(8, 9, 'y', 'replay', attempt=1, result_expired=0, result='paid')]),
    'a grant whose reply was lost is given again': ('claim', [
        call(0, None, ['claim', 'x', LEASE]), refused(2, 3, 'y', 'x'),
        claimed(4, 5, 'x', 'regranted', epoch=9, attempt=1),
        owned(6, 7, ['release', 9], 'ok', late=0), granted(8, 9, 'y', 12)]),
    'a lease that is over is taken over': ('lease', [
        granted(0, 1, 'x', 7, lease=50), granted(60, 61, 'y', 8, attempt=2, takeover=1, lease=50),
        owned(62, 63, ['complete', 7, 'late'], 'stale_owner')]),
    'a token is issued, given back and used': ('token', [
        claimed(0, 1, 'x', 'unknown'), call(2, 3, ['issue'], 1), call(4, 5, ['issue'], 0),
        granted(6, 7, 'x', 3), owned(8, 9, ['fail', 3, 'no', 'release'], 'ok', late=0),
        granted(10, 11, 'y', 4, attempt=2), owned(12, 13, ['complete', 4, 'ok'], 'ok', late=0),
        claimed(14, 15, 'x', 'replay', attempt=2, result_expired=0, result='ok')]),
    'what removes nothing may remove what was issued': ('token', [
        call(0, 30, ['issue'], 1), call(1, 31, ['forget'], 0), call(29, 32, ['issue'], 1)]),
}
CANNOT_BE = {
    'a read goes back': ('text', [
        SET, call(11, 12, ['get'], 'a'), call(13, 14, ['get'])]),
    'an acknowledged write is lost': ('text', [SET, call(20, 21, ['setnxget', 'b'])]),
    'a value of nobody': ('text', [SET, call(20, 21, ['get'], 'b')]),
    'a write that nobody knows of happens twice': ('text', [
        call(0, None, ['setnxget', 'a']), call(1, 2, ['get'], 'a'), call(3, 4, ['del'], 1),
        call(5, 6, ['get'], 'a')]),
    'taken twice': ('text', [SET, call(20, 30, ['getdel'], 'a'), call(20, 30, ['getdel'], 'a')]),
    'its time is over too early': ('ending', [
        call(0, 1, ['setnxget', 'a', 100]), call(80, 90, ['get'])]),
    'back again after its time': ('ending', [
        call(0, 1, ['setnxget', 'a', 100]), call(120, 121, ['get']), call(122, 123, ['get'], 'a')]),
    'counted twice': ('counter', [call(0, 1, ['incr'], 1), call(2, 3, ['incr'], 3)]),
    'two owners': ('claim', [granted(0, 1, 'x', 7), granted(2, 3, 'y', 8)]),
    'two owners, the second by a takeover': ('claim', [
        granted(0, 1, 'x', 7), granted(2, 3, 'y', 8, attempt=2, takeover=1)]),
    'a takeover before the lease is over': ('lease', [
        granted(0, 1, 'x', 7, lease=100), granted(60, 70, 'y', 8, attempt=2, takeover=1)]),
    'an epoch that was there before': ('claim', [
        granted(0, 1, 'x', 7), owned(2, 3, ['release', 7], 'ok', late=0), granted(4, 5, 'y', 7)]),
    'a finish that is forgotten': ('claim', [
        granted(0, 1, 'x', 7), owned(2, 3, ['complete', 7, 'paid'], 'ok', late=0),
        granted(4, 5, 'y', 8)]),
    'a result of another': ('claim', [
        granted(0, 1, 'x', 7), owned(2, 3, ['complete', 7, 'paid'], 'ok', late=0),
        claimed(4, 5, 'y', 'replay', attempt=1, result_expired=0, result='not paid')]),
    'an old owner finishes': ('lease', [
        granted(0, 1, 'x', 7, lease=50), granted(60, 61, 'y', 8, attempt=2, takeover=1),
        owned(62, 63, ['complete', 7, 'late'], 'ok', late=0)]),
    'a token that was never issued': ('token', [granted(0, 1, 'x', 3)]),
    'a token that is used twice': ('token', [
        call(0, 1, ['issue'], 1), granted(2, 3, 'x', 3),
        owned(4, 5, ['complete', 3, 'ok'], 'ok', late=0), granted(6, 7, 'y', 4)]),
    'an owner whom nobody knows': ('claim', [granted(0, 1, 'x', 7), refused(2, 3, 'y', 'z')]),
}


class Checkers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        cls.porcupine = histories.Porcupine(Path(cls.place.name))

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def whole(self, table):
        return [{'kind': kind, 'key': name.replace(' ', '-').replace(',', ''), 'calls': calls}
                for name, (kind, calls) in table.items()]

    def test_late_repeats_are_left_out(self):
        calls = [granted(0, 10, 'a', 7), owned(20, 30, ['complete', 7, 'r'], 'ok', late=0),
                 call(40, 50, ['forget'], 1),
                 claimed(45, 60, 'b', 'replay', result='r'),
                 claimed(140, 150, 'c', 'replay', result='r'),
                 claimed(140, 150, 'd', 'replay', result='other'),
                 claimed(151, 160, 'e', 'replay', result='r')]
        left = histories.without_late_repeats({'kind': 'token', 'key': 'k', 'calls': calls},
                                              100 * MS)['calls']
        self.assertEqual([*calls[:3], calls[5], calls[6]], left)

    def test_our_own(self):
        self.assertEqual(histories.refused_here(self.whole(CAN_BE)), {})
        wrong = self.whole(CANNOT_BE)
        self.assertEqual({history['key'] for history in wrong},
                         set(histories.refused_here(wrong)))

    def test_porcupine(self):
        if self.porcupine.missing:
            self.skipTest(self.porcupine.missing)
        self.assertEqual(self.porcupine.refused(self.whole(CAN_BE)), set())
        wrong = self.whole(CANNOT_BE)
        self.assertEqual({history['key'] for history in wrong}, self.porcupine.refused(wrong))


if __name__ == '__main__':
    unittest.main()
