#include "tools/semel/node/node_crash.hpp"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string_view>

#include "base/hex.hpp"
#include "semel/version.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEMEL_CRASHES_ARE_REPORTED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SEMEL_CRASHES_ARE_REPORTED 1
#endif
#endif

namespace semel::tool {
namespace {

struct Fatal {
  int number;
  std::string_view name;
};
constexpr std::array<Fatal, 6> fatal_signals = {{{SIGSEGV, "SIGSEGV"},
                                                 {SIGBUS, "SIGBUS"},
                                                 {SIGFPE, "SIGFPE"},
                                                 {SIGILL, "SIGILL"},
                                                 {SIGSYS, "SIGSYS"},
                                                 {SIGABRT, "SIGABRT"}}};

constexpr unsigned report_seconds_max = 10;  // a report that hangs must not keep the process
[[maybe_unused]] constexpr std::size_t stack_bytes = std::size_t{64} << 10;
constexpr int frames_max = 64;

// Written before the first crash can be, read by the handler.
std::array<char, 4097> log_path{};
// Which thread reports; 0: none yet.
std::atomic<pid_t> reporter{0};

/// A line, put together without a function that a signal's handler may not call.
class Line {
 public:
  Line& text(std::string_view more) noexcept {
    const std::size_t room = bytes_.size() - size_;
    const std::size_t count = std::min(more.size(), room);
    std::memcpy(bytes_.data() + size_, more.data(), count);
    size_ += count;
    return *this;
  }
  Line& number(std::uint64_t value, unsigned base = 10, std::size_t least = 1) noexcept {
    std::array<char, 24> digits{};
    std::size_t at = digits.size();
    do {
      digits[--at] = semel::base::hex_digits[value % base];
      value /= base;
    } while (value != 0 || digits.size() - at < least);
    return text({digits.data() + at, digits.size() - at});
  }
  Line& address(const void* place) noexcept {
    return text("0x").number(reinterpret_cast<std::uintptr_t>(place), 16);
  }
  void write_to(int file) const noexcept {
    std::size_t sent = 0;
    while (sent < size_) {
      const ssize_t count = ::write(file, bytes_.data() + sent, size_ - sent);
      if (count <= 0) return;
      sent += static_cast<std::size_t>(count);
    }
  }

 private:
  std::array<char, 512> bytes_{};
  std::size_t size_ = 0;
};

/// "2026-11-22T20:15:01.123Z", by arithmetic alone: gmtime takes a lock.
void append_time(Line& line) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  constexpr std::int64_t day_seconds = 86'400;
  const std::int64_t days = now.tv_sec / day_seconds;
  const auto rest = static_cast<std::uint64_t>(now.tv_sec % day_seconds);
  // Source: "chrono-Compatible Low-Level Date Algorithms", civil_from_days
  const std::int64_t shifted = days + 719'468;
  const std::int64_t era = shifted / 146'097;
  const std::int64_t of_era = shifted % 146'097;
  const std::int64_t year_of_era =
      (of_era - of_era / 1'460 + of_era / 36'524 - of_era / 146'096) / 365;
  const std::int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t mp = (5 * of_year + 2) / 153;
  const std::int64_t day = of_year - (153 * mp + 2) / 5 + 1;
  const std::int64_t month = mp < 10 ? mp + 3 : mp - 9;
  const std::int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  const auto put = [&](std::int64_t value, std::size_t width) {
    line.number(static_cast<std::uint64_t>(value), 10, width);
  };
  put(year, 4);
  line.text("-");
  put(month, 2);
  line.text("-");
  put(day, 2);
  line.text("T").number(rest / 3600, 10, 2).text(":").number(rest / 60 % 60, 10, 2).text(":");
  line.number(rest % 60, 10, 2).text(".");
  put(now.tv_nsec / 1'000'000, 3);
  line.text("Z");
}

const void* instruction_of(const void* context) noexcept {
  const auto* const user = static_cast<const ucontext_t*>(context);
  if (user == nullptr) return nullptr;
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(user->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(user->uc_mcontext.pc);
#else
  return nullptr;
#endif
}

void report(int file, int number, const siginfo_t& info, const void* context) noexcept {
  Line line;
  line.text("ts=");
  append_time(line);
  line.text(" level=error event=crashed signal=").number(static_cast<unsigned>(number));
  for (const Fatal& each : fatal_signals) {
    if (each.number == number) line.text(" name=").text(each.name);
  }
  if (info.si_code > 0) {
    line.text(" address=").address(info.si_addr);
  } else {
    line.text(" sent_by=").number(static_cast<std::uint64_t>(info.si_pid));
  }
  line.text(" instruction=").address(instruction_of(context));
  std::array<char, 16> thread{};
  prctl(PR_GET_NAME, thread.data());
  line.text(" thread=").text(thread.data()).text(" version=").text(version);
  line.text(" process=").number(static_cast<std::uint64_t>(getpid())).text("\n");
  line.write_to(file);
  std::array<void*, frames_max> frames{};
  const int count = backtrace(frames.data(), frames_max);
  Line{}.text("backtrace, for addr2line -e semel:\n").write_to(file);
  backtrace_symbols_fd(frames.data(), count, file);
  Line{}.text("end of the report\n").write_to(file);
}

/// Restores the default action and raises the signal again.
void give_up(int number) noexcept {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(number, &usual, nullptr);
  raise(number);
}

[[maybe_unused]] void handle(int number, siginfo_t* info, void* context) noexcept {
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  pid_t first = 0;
  // mo: relaxed: only which thread was first matters.
  if (!reporter.compare_exchange_strong(first, self, std::memory_order_relaxed)) {
    if (first == self) return give_up(number);  // the report itself has crashed
    for (;;) pause();                           // the first one's report ends the process
  }
  signal(SIGALRM, SIG_DFL);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr);
  alarm(report_seconds_max);
  report(STDERR_FILENO, number, *info, context);
  if (log_path[0] != '\0') {
    const int file = open(log_path.data(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file >= 0) report(file, number, *info, context);
  }
  give_up(number);
}

[[noreturn]] void end_of_exception() noexcept {
  Line line;
  line.text("semel: an uncaught exception");
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      line.text(": ").text(std::string_view{error.what()}.substr(0, 256));
    } catch (...) {
      line.text(" of an unknown type");
    }
  }
  line.text("\n").write_to(STDERR_FILENO);
  std::abort();
}

}  // namespace

void report_crashes(const std::string& log_file) {
  if (log_file.size() < log_path.size()) log_file.copy(log_path.data(), log_file.size());
  std::set_terminate(end_of_exception);
#ifndef SEMEL_CRASHES_ARE_REPORTED
  std::array<void*, 1> frame{};
  static_cast<void>(backtrace(frame.data(), 1));  // loads what it needs while it still can
  arm_thread();
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  for (const Fatal& each : fatal_signals) sigaction(each.number, &action, nullptr);
#endif
}

void arm_thread() {
#ifndef SEMEL_CRASHES_ARE_REPORTED
  struct OwnStack {
    OwnStack() {
      stack_t stack{};
      stack.ss_sp = bytes.get();
      stack.ss_size = stack_bytes;
      sigaltstack(&stack, nullptr);
    }
    ~OwnStack() {
      stack_t none{};
      none.ss_flags = SS_DISABLE;
      sigaltstack(&none, nullptr);
    }
    std::unique_ptr<char[]> bytes{new char[stack_bytes]};
  };
  thread_local const OwnStack stack;
  static_cast<void>(stack);
#endif
}

}  // namespace semel::tool
