"""The server itself, without redis-py."""

import os
import subprocess
import sys

import pytest

import pytest_semel
from pytest_semel import ReplyError, SemelNotFound, SemelRedis, StartFailed


def test_without_a_client_library(semel_redis):
    assert semel_redis.call('SET', 'k', b'\xff', 'PX', 1000) == 'OK'
    assert semel_redis.call('GET', 'k') == b'\xff'
    semel_redis.clock.advance(1)
    assert semel_redis.call('GET', 'k') is None
    with pytest.raises(ReplyError, match='wrong number of arguments'):
        semel_redis.call('GET')


def test_a_cut_connection_is_made_anew(semel_redis):
    semel_redis.faults.drop(command='get')
    with pytest.raises(ConnectionError):
        semel_redis.call('GET', 'k')
    assert semel_redis.call('GET', 'k') is None


def test_flags_are_those_of_redis_server():
    with SemelRedis.start('--databases', '2') as redis:
        with pytest.raises(ReplyError, match='out of range'):
            redis.call('SELECT', 2)


def test_a_flag_that_is_wrong_is_reported():
    with pytest.raises(StartFailed, match='databases'):
        SemelRedis.start('--databases', 'many')


def test_nothing_is_left_behind():
    server = SemelRedis.start()
    folder, pid = server._folder, server._process.pid
    server.stop()
    server.stop()
    assert not os.path.exists(folder)
    assert not os.path.exists(f'/proc/{pid}')


def test_it_ends_with_the_process_that_started_it():
    text = ('import pytest_semel, os; server = pytest_semel.SemelRedis.start();'
            'print(server._process.pid, server._folder, flush=True); os._exit(1)')
    done = subprocess.run([sys.executable, '-c', text], stdout=subprocess.PIPE, text=True,
                          check=False)
    pid = done.stdout.split()[0]
    for _ in range(2000):
        try:
            with open(f'/proc/{pid}/stat', encoding='ascii') as file:
                if file.read().rpartition(')')[2].split()[0] in 'ZX':
                    return
        except (FileNotFoundError, ProcessLookupError):
            return
        os.sched_yield()
    raise AssertionError('it is still there')


def test_the_program_is_looked_for(monkeypatch, tmp_path):
    program = tmp_path / 'semel'
    program.write_text('#!/bin/sh\n')
    program.chmod(0o755)
    monkeypatch.setenv('SEMEL_BINARY', str(program))
    assert pytest_semel.find_binary() == str(program)
    monkeypatch.setenv('SEMEL_BINARY', str(tmp_path / 'none'))
    with pytest.raises(SemelNotFound, match='none'):
        pytest_semel.find_binary()
    monkeypatch.delenv('SEMEL_BINARY')
    monkeypatch.setenv('PATH', str(tmp_path))
    assert pytest_semel.find_binary() == str(program)
    monkeypatch.setenv('PATH', '')
    with pytest.raises(SemelNotFound, match='SEMEL_BINARY'):
        pytest_semel.find_binary()
