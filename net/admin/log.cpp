#include "net/admin/log.hpp"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <xxhash.h>

#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "base/assert.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"

namespace semel::net {
namespace {

constexpr Millis window_length{1'000};
// There are some dozens of events. If there were more, the rest would share one window.
constexpr std::size_t windows_max = 256;
constexpr std::uint64_t burst_max = 1'000'000;

using Secret = std::array<unsigned char, XXH3_SECRET_SIZE_MIN>;

Secret random_secret() {
  Secret secret;
  base::fill_random(secret);
  return secret;
}

spdlog::level::level_enum level_of(LogLevel level) noexcept {
  // Ours are five of the levels of spdlog, in the same order.
  return static_cast<spdlog::level::level_enum>(level);
}
static_assert(static_cast<int>(LogLevel::error) == SPDLOG_LEVEL_ERROR);

/// Throws spdlog_ex if the file cannot be opened.
spdlog::sink_ptr open_sink(const LogOptions& options) {
  if (options.stream != nullptr) {
    return std::make_shared<spdlog::sinks::ostream_sink_st>(*options.stream, true);
  }
  if (options.file.empty()) {
    if (options.form == LogForm::redis) return std::make_shared<spdlog::sinks::stdout_sink_st>();
    return std::make_shared<spdlog::sinks::stderr_sink_st>();
  }
  return std::make_shared<spdlog::sinks::basic_file_sink_st>(options.file);
}

}  // namespace

class Log::Impl {
 public:
  Impl(const LogOptions& options, const Clock& clock)
      : options_(options), clock_(clock), logger_("semel", open_sink(options)) {
    logger_.set_pattern("%v");
    logger_.set_level(spdlog::level::trace);  // add() has filtered by level already
    logger_.flush_on(spdlog::level::trace);
    // Called within write_locked(), which holds the mutex; a lambda cannot say so.
    logger_.set_error_handler([this](const std::string&)
                                  SEMEL_NO_THREAD_SAFETY_ANALYSIS { is_lost_ = true; });
    set_level(options.level);
    set_keys(options.keys);
  }

  void add(LogLevel level, std::string_view event, Fields fields);
  void tick();
  void end();
  [[nodiscard]] Status reopen();
  [[nodiscard]] LogField field_of_key(Bytes key) const;

  [[nodiscard]] bool writes(LogLevel level) const noexcept {
    return level >= level_.load(std::memory_order_relaxed);  // mo: relaxed: orders nothing
  }
  void set_level(LogLevel level) noexcept {
    level_.store(level, std::memory_order_relaxed);  // mo: relaxed: orders nothing
  }
  void set_keys(bool keys) noexcept {
    keys_.store(keys, std::memory_order_relaxed);  // mo: relaxed: orders nothing
  }
  [[nodiscard]] std::uint64_t lines_lost() const {
    const base::MutexLock lock{mutex_};
    return lines_lost_;
  }

 private:
  /// The lines of one event within a second.
  struct Window {
    Timestamp begin{};
    std::uint64_t written = 0;
    std::uint64_t held = 0;  // and of them the last:
    LogLevel level{};
    std::int64_t unix_ms = 0;
    std::string body{};
  };

  [[nodiscard]] bool is_over(const Window& window) const {
    return clock_.now() - window.begin >= window_length;
  }
  [[nodiscard]] Window& window_of_locked(std::string_view event) SEMEL_REQUIRES(mutex_);
  void write_held_locked(Window& window) SEMEL_REQUIRES(mutex_);
  void write_locked(LogLevel level, const std::string& line) SEMEL_REQUIRES(mutex_);

  const LogOptions options_;
  const Clock& clock_;
  const Secret secret_ = random_secret();
  std::atomic<LogLevel> level_{};
  std::atomic<bool> keys_{};
  mutable base::Mutex mutex_;
  spdlog::logger logger_ SEMEL_GUARDED_BY(mutex_);
  std::map<std::string, Window, std::less<>> windows_ SEMEL_GUARDED_BY(mutex_);
  bool is_lost_ SEMEL_GUARDED_BY(mutex_) = false;  // set by the error handler within a write
  std::uint64_t lines_lost_ SEMEL_GUARDED_BY(mutex_) = 0;
};

void Log::Impl::add(LogLevel level, std::string_view event, Fields fields) {
  if (!writes(level)) return;
  std::string body = log_body(options_.form, level, event, {fields.begin(), fields.size()});
  const std::int64_t unix_ms = clock_.unix_ms();
  const base::MutexLock lock{mutex_};
  Window& window = window_of_locked(event);
  if (is_over(window)) {
    write_held_locked(window);
    window = Window{.begin = clock_.now()};
  }
  if (window.written < options_.burst) {
    ++window.written;
    write_locked(level, log_line(options_.form, unix_ms, body));
    return;
  }
  SEMEL_ASSERT(window.written == options_.burst);
  ++window.held;
  window.level = level;
  window.unix_ms = unix_ms;
  window.body = std::move(body);
}

Log::Impl::Window& Log::Impl::window_of_locked(std::string_view event) {
  if (const auto known = windows_.find(event); known != windows_.end()) return known->second;
  const std::string_view name = windows_.size() < windows_max ? event : std::string_view{};
  return windows_.try_emplace(std::string{name}, Window{.begin = clock_.now()}).first->second;
}

void Log::Impl::write_held_locked(Window& window) {
  if (window.held == 0) return;
  write_locked(window.level, log_line(options_.form, window.unix_ms, window.body, window.held));
  window.held = 0;
}

void Log::Impl::write_locked(LogLevel level, const std::string& line) {
  is_lost_ = false;
  logger_.log(level_of(level), spdlog::string_view_t{line});  // no format: braces stay
  if (is_lost_) ++lines_lost_;
}

void Log::Impl::tick() {
  const base::MutexLock lock{mutex_};
  for (auto named = windows_.begin(); named != windows_.end();) {
    if (!is_over(named->second)) {
      ++named;
      continue;
    }
    write_held_locked(named->second);
    named = windows_.erase(named);
  }
}

void Log::Impl::end() {
  const base::MutexLock lock{mutex_};
  for (auto& [event, window] : windows_) write_held_locked(window);
}

Status Log::Impl::reopen() {
  if (options_.file.empty() || options_.stream != nullptr) return Done{};
  try {
    spdlog::sink_ptr sink = open_sink(options_);
    const base::MutexLock lock{mutex_};
    logger_.sinks() = {std::move(sink)};
    logger_.set_pattern("%v");
  } catch (const spdlog::spdlog_ex& failed) {
    return Error{ErrorCode::bad_option, failed.what()};
  }
  return Done{};
}

LogField Log::Impl::field_of_key(Bytes key) const {
  // mo: relaxed: orders nothing
  if (keys_.load(std::memory_order_relaxed)) return LogField{"key", key};
  const XXH64_hash_t hash =
      XXH3_64bits_withSecret(key.data(), key.size(), secret_.data(), secret_.size());
  return LogField::owning("key_hash", fmt::format("{:016x}", hash));
}

Result<std::unique_ptr<Log>> Log::open(const LogOptions& options, const Clock& clock) {
  if (options.burst < 1 || options.burst > burst_max) {
    return Error{ErrorCode::bad_option, fmt::format("log: burst is {}; it must be from 1 to {}",
                                                    options.burst, burst_max)};
  }
  try {
    auto impl = std::make_unique<Impl>(options, clock);
    return std::unique_ptr<Log>{new Log{std::move(impl)}};
  } catch (const spdlog::spdlog_ex& failed) {
    return Error{ErrorCode::bad_option, std::string{"log: "} + failed.what()};
  }
}

Log::Log(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Log::~Log() {
  impl_->end();
}

void Log::add(LogLevel level, std::string_view event, Fields fields) {
  impl_->add(level, event, fields);
}
LogField Log::field_of_key(Bytes key) const {
  return impl_->field_of_key(key);
}
bool Log::writes(LogLevel level) const noexcept {
  return impl_->writes(level);
}
void Log::set_level(LogLevel level) noexcept {
  impl_->set_level(level);
}
void Log::set_keys(bool keys) noexcept {
  impl_->set_keys(keys);
}
void Log::tick() {
  impl_->tick();
}
Status Log::reopen() {
  return impl_->reopen();
}
std::uint64_t Log::lines_lost() const {
  return impl_->lines_lost();
}

}  // namespace semel::net
