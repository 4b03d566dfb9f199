"""pytest-redis starts the program that --redis-exec names, for its fixture redisdb."""


def test_it_serves(redisdb):
    redisdb.set('k', 'v', ex=60)
    assert redisdb.get('k') == b'v'
    assert redisdb.info('server')['server_name'] == 'semel'


def test_each_test_begins_with_nothing(redisdb):
    assert redisdb.dbsize() == 0


def test_scripts_run(redisdb):
    assert redisdb.eval('return redis.call("incr", KEYS[1])', 1, 'n') == 1


def test_time_is_the_tests(redisdb):
    redisdb.set('k', 'v', ex=60)
    redisdb.execute_command('SEMEL.CLOCK', 'ADVANCE', 60_000)
    assert redisdb.get('k') is None
