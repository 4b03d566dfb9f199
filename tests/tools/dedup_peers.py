"""semel dedup beside awk '!seen[$0]++' and sort | uniq, on one generated stream.

dedup_peers.py SEMEL GENERATE_STREAM [--lines N] [--repeats PERCENT] [--seed N] [--memory SIZE]
               [--folder DIR]

Prints counts, time, rate and the largest resident memory of each; exits with 1 unless all counts
agree and semel's output is that of awk byte for byte. `sort | uniq` is the reference and is given
all processors; its time is printed, not judged. The short form (few lines) is a test.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time


def measured(command, stdin, stdout):
    """Seconds, seconds of CPU, largest resident bytes of the process and its children."""
    environment = dict(os.environ, LC_ALL="C")
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=stdin, stdout=stdout, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command}: exit code {process.returncode}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def count_lines(path):
    with open(path, "rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


def same_content(one, other):
    return subprocess.run(["cmp", "-s", one, other], check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("semel")
    parser.add_argument("generate")
    parser.add_argument("--lines", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=30, help="percent")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--memory", default="3GiB", help="semel's limit")
    parser.add_argument("--folder", help="for the stream and the outputs")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        stream = os.path.join(folder, "stream")
        with open(stream, "wb") as file:
            subprocess.run([options.generate, str(options.lines), str(options.repeats),
                            str(options.seed)], stdout=file, check=True)
        print(f"{options.lines:,} lines, {os.path.getsize(stream):,} bytes, "
              f"{options.repeats} % repeats, seed {options.seed}")
        peers = {
            "semel": [options.semel, "dedup", "--quiet", "--memory", options.memory],
            "awk": ["awk", "!seen[$0]++"],
            "sort|uniq": ["sh", "-c", "sort -S 25% | uniq"],
        }
        figures = {}
        for name, command in peers.items():
            out = os.path.join(folder, name.replace("|", "_"))
            with open(stream, "rb") as source, open(out, "wb") as sink:
                seconds, cpu, resident = measured(command, source, sink)
            first = count_lines(out)
            figures[name] = (first, seconds, cpu)
            print(f"{name:10} first {first:>12,}  duplicates {options.lines - first:>12,}  "
                  f"{seconds:8.2f} s  {cpu:8.2f} s CPU  "
                  f"{options.lines / seconds / 1e6:7.2f} M lines/s  "
                  f"{resident / 2**20:8.0f} MiB", flush=True)
        # On a busy machine only the second ratio means something.
        print(f"semel/awk  {figures['awk'][1] / figures['semel'][1]:.1f} times the rate, "
              f"{figures['awk'][2] / figures['semel'][2]:.1f} times by CPU")
        if len({first for first, _, _ in figures.values()}) != 1:
            sys.exit("the counts differ")
        if not same_content(os.path.join(folder, "semel"), os.path.join(folder, "awk")):
            sys.exit("semel and awk wrote different lines, or another order")


if __name__ == "__main__":
    main()
