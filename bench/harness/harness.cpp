#include "bench/harness/harness.hpp"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "semel/cached_clock.hpp"

namespace semel::bench {

namespace {

constexpr unsigned child_seconds_max = 600;

std::uint64_t read_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

double calibrate() {
  // 50 ms: the two clock calls at its ends are 1 part in 10^6 of it.
  const std::uint64_t begin_ns = read_ns(CLOCK_MONOTONIC_RAW);
  const std::uint64_t begin = __rdtsc();
  std::uint64_t end_ns = begin_ns;
  while (end_ns - begin_ns < 50'000'000) end_ns = read_ns(CLOCK_MONOTONIC_RAW);
  return static_cast<double>(__rdtsc() - begin) / static_cast<double>(end_ns - begin_ns);
}

}  // namespace

void fail(const char* sentence) {
  std::fprintf(stderr, "semel_bench: WRONG RESULT: %s\n", sentence);
  std::fflush(stderr);
  _exit(3);
}

void pin_to_core(unsigned core) {
  // A machine with fewer cores still gives figures, only not those of the goals.
  const auto cores = static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core % cores, &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

const Clock& bench_clock() {
  static const CachedClock clock;  // of the measuring process: first used after the fork
  return clock;
}

double ticks_per_ns() {
  static const double ticks = calibrate();
  return ticks;
}

std::uint64_t thread_cpu_ns() {
  return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

void pause_ns(std::uint64_t ns) {
  timespec time{.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
                .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &time) == EINTR) {
  }
}

Memory memory_of_process() {
  Memory memory;
  std::FILE* const file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return memory;
  char line[256];
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    double kib = 0;
    if (std::sscanf(line, "VmHWM: %lf", &kib) == 1) memory.peak = kib * 1024;
    if (std::sscanf(line, "VmRSS: %lf", &kib) == 1) memory.now = kib * 1024;
  }
  std::fclose(file);
  return memory;
}

Tail idle_tail(unsigned threads, double seconds) {
  std::vector<Histogram> seen(threads);
  const auto ticks = static_cast<std::uint64_t>(seconds * 1e9 * ticks_per_ns());
  run_lanes(threads, [&](Lane& lane) {
    Histogram& histogram = seen[lane.index()];
    lane.start();
    // From one reading to the next, so that no gap falls between two measured pieces.
    std::uint64_t last = lane.begin();
    for (const std::uint64_t end = last + ticks; last < end;) {
      const std::uint64_t now = ticks_after();
      histogram.add(now - last);
      last = now;
    }
    lane.stop();
  });
  for (unsigned i = 1; i < threads; ++i) seen[0].merge(seen[i]);
  return seen[0].tail(ticks_per_ns());
}

bool run_in_child(std::span<std::byte> result,
                  const std::function<void(std::span<std::byte>)>& work) {
  static_cast<void>(ticks_per_ns());  // measured once, inherited by every child
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) return false;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(child_seconds_max);
    work(result);
    const bool written =
        write(ends[1], result.data(), result.size()) == static_cast<ssize_t>(result.size());
    _exit(written ? 0 : 4);  // no destructors: the kernel is quicker with gigabytes
  }
  close(ends[1]);
  std::size_t got = 0;
  while (child > 0 && got < result.size()) {
    const ssize_t count = read(ends[0], result.data() + got, result.size() - got);
    if (count > 0) got += static_cast<std::size_t>(count);
    if (count == 0 || (count < 0 && errno != EINTR)) break;
  }
  close(ends[0]);
  int status = -1;
  if (child > 0) waitpid(child, &status, 0);
  if (status == 0 && got == result.size()) return true;
  if (child < 0) {
    std::fprintf(stderr, "semel_bench: fork: %s\n", std::strerror(errno));
  } else if (WIFSIGNALED(status)) {
    std::fprintf(stderr, "semel_bench: a measurement was ended by signal %d\n", WTERMSIG(status));
  }
  return false;
}

}  // namespace semel::bench
