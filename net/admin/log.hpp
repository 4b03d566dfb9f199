// The log of a node: one line for each event, to standard error or a file.
//
//   log.info("started", {{"port", 6379}, {"version", semel::version}});
//
// Goals: a line is written when the call returns; a burst does not fill the disk; no bytes of a
// client break a line or reveal a key.
// Non-goals: rotation (other programs rotate, and reopen() follows), a queue in front of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

#include "net/admin/log_line.hpp"
#include "semel/clock.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::net {

struct LogOptions {
  LogLevel level = LogLevel::notice;  ///< the lowest level that is written
  LogForm form = LogForm::logfmt;
  std::string file{};  ///< appended to, created with its directories; empty: standard error,
                       ///< or standard output in redis-server's form
  bool keys = false;   ///< write keys themselves, not their hashes
  /// How many lines of one event are written in a second. The rest of that second becomes one line:
  /// the last of them, with repeated=n. 1..1'000'000.
  std::uint64_t burst = 10;
  std::ostream* stream = nullptr;  ///< for tests, in place of file. Must outlive the log.
};

/// Safe from any thread. Progress: writing a line blocks on the file and on other lines; a line
/// below the level costs one load.
class Log {
 public:
  using Fields = std::initializer_list<LogField>;

  /// `clock` must outlive the log. The detail of an error is the whole text for the operator.
  [[nodiscard]] static Result<std::unique_ptr<Log>> open(const LogOptions& options,
                                                         const Clock& clock);
  /// Writes the lines that are held back.
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void debug(std::string_view event, Fields fields = {}) { add(LogLevel::debug, event, fields); }
  void verbose(std::string_view event, Fields fields = {}) {
    add(LogLevel::verbose, event, fields);
  }
  void info(std::string_view event, Fields fields = {}) { add(LogLevel::notice, event, fields); }
  void warning(std::string_view event, Fields fields = {}) {
    add(LogLevel::warning, event, fields);
  }
  void error(std::string_view event, Fields fields = {}) { add(LogLevel::error, event, fields); }
  /// `event` is a word of our own, never bytes of others: bursts are counted for each event.
  void add(LogLevel level, std::string_view event, Fields fields);

  /// key=..., or key_hash= and 16 hex digits of a hash with a secret of this log. Lines about one
  /// key have the same hash, which does not reveal the key unless an attacker both chooses keys and
  /// reads the log. The field is valid while `key` is.
  [[nodiscard]] LogField field_of_key(Bytes key) const;

  [[nodiscard]] bool writes(LogLevel level) const noexcept;
  void set_level(LogLevel level) noexcept;
  void set_keys(bool keys) noexcept;

  /// Must be called about once a second: writes the lines that were held back in past seconds.
  void tick();
  /// Continues in a new file of the same name, after the old one was renamed. On an error the old
  /// file stays in use. Does nothing on standard error.
  [[nodiscard]] Status reopen();
  /// How many lines could not be written, for example because the disk is full.
  [[nodiscard]] std::uint64_t lines_lost() const;

 private:
  class Impl;
  explicit Log(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel::net
