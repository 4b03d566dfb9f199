"""Signals that ask for nothing end nothing; those that mean a crash are reported before they do."""

import pathlib
import signal

from node import Node, Skip, prove, until

HARMLESS = ("SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGPIPE", "SIGXFSZ",
            "SIGPWR", "SIGRTMIN", "SIGRTMAX", "SIGHUP")
FATAL = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGSYS")


def test(program):
    with Node(program) as node:
        client = node.client()
        for name in HARMLESS:
            node.signal(getattr(signal, name))
            assert client("PING") == "PONG", name
        until(lambda: node.log().count("event=signal_ignored") >= 9, "lines about signals")
        assert client("SET", "k", "v") == "OK"
        assert node.stop() == 0
    if any(word in pathlib.Path(program).read_bytes() for word in (b"__asan_init", b"__tsan_init")):
        raise Skip("a sanitizer reports crashes itself")
    for name in FATAL:
        number = getattr(signal, name)
        with Node(program, "--log-file", "{dir}/log") as node:
            node.signal(number)
            assert node.wait() == -number, (name, node.log())
            for text in (node.log(), (node.folder / "log").read_text(errors="replace")):
                assert f"event=crashed signal={number} name={name}" in text, (name, text)
                frames = text.partition("backtrace")[2].splitlines()
                assert len(frames) > 4 and "end of the report" in text, (name, text)
    # The end that is asked for still works, once and twice.
    with Node(program) as node:
        node.client().send("SHUTDOWN", "NOSAVE")
        assert node.wait() == 0


prove(9, "harmless signals end nothing, a crash leaves a report", test)
