"""As a stranger's project uses it: a small service over redis-py, and its tests."""

import time
from datetime import timedelta

import pytest

redis = pytest.importorskip('redis', reason='redis-py is not installed')
retry = pytest.importorskip('redis.retry')
backoff = pytest.importorskip('redis.backoff')


class Carts:
    """A cart that is forgotten after half an hour."""

    def __init__(self, client, tries=3):
        self.client = client
        self.tries = tries

    def put(self, user, thing):
        for left in reversed(range(self.tries)):
            try:
                self.client.set(f'cart:{user}', thing, ex=1800)
                return
            except redis.RedisError:
                if left == 0:
                    raise

    def get(self, user):
        return self.client.get(f'cart:{user}')


@pytest.fixture
def carts(semel_redis):
    return Carts(semel_redis.client)


def test_a_cart_is_forgotten_without_waiting(carts, semel_redis):
    carts.put('ada', 'tea')
    semel_redis.clock.advance(timedelta(minutes=30) - timedelta(milliseconds=500))
    assert carts.get('ada') == 'tea'
    semel_redis.clock.advance(1)
    assert carts.get('ada') is None


def test_a_write_that_fails_once_is_tried_again(carts, semel_redis):
    fault = semel_redis.faults.error('LOADING not yet', command='set')
    carts.put('ada', 'tea')
    assert carts.get('ada') == 'tea'
    planted, = semel_redis.faults.list()
    assert (planted['id'], planted['acted']) == (fault, 1)


def test_a_write_that_fails_always_is_an_error(carts, semel_redis):
    semel_redis.faults.error('ERR no', command='set', key='cart:*', count=0)
    with pytest.raises(redis.ResponseError):
        carts.put('ada', 'tea')
    assert carts.get('ada') is None


def never():
    """How redis-py is told not to try again."""
    return retry.Retry(backoff.NoBackoff(), 0)


def test_a_reply_that_is_lost_has_its_effect(semel_redis):
    client = redis.Redis.from_url(semel_redis.url, retry=never(), decode_responses=True)
    semel_redis.faults.drop_reply(command='incrby')  # which is what redis-py sends
    with pytest.raises(redis.ConnectionError):
        client.incr('n')
    assert client.get('n') == '1'
    semel_redis.faults.drop(command='incrby')  # which is what redis-py sends
    with pytest.raises(redis.ConnectionError):
        client.incr('n')
    assert client.get('n') == '1'


def test_a_reply_that_comes_late_is_a_timeout(semel_redis):
    client = redis.Redis.from_url(semel_redis.url, socket_timeout=0.05, retry=never())
    semel_redis.faults.delay(30, command='get')
    with pytest.raises(redis.TimeoutError):
        client.get('k')


def test_each_test_begins_with_nothing(semel_redis):
    assert semel_redis.client.dbsize() == 0
    assert not semel_redis.faults.list()


def test_the_clock_stands_still(semel_redis):
    semel_redis.clock.freeze()
    before = semel_redis.clock.now()
    time.sleep(0.002)
    assert semel_redis.clock.now() == before
    semel_redis.clock.advance(60)
    assert semel_redis.clock.now() == before + 60


@pytest.mark.parametrize('number', range(8))
def test_workers_do_not_see_each_other(semel_redis, number):
    semel_redis.client.set('whose', number)
    time.sleep(0.01)
    assert semel_redis.client.get('whose') == str(number)


def test_a_url_is_enough(semel_redis):
    assert redis.Redis.from_url(semel_redis.url).ping()
