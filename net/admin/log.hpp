// What happens in the node, one line an event, to standard error or a file.
//
//   log.info("started", {{"port", 6379}, {"version", semel::version}});
//
// Goals: a line is written when the call returns; a burst does not fill the disk; nothing that a
// client sends breaks a line or shows a key that is not meant to be read.
// Non-goals: rotation (reopen() is for those who rotate), a queue between a caller and the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/admin/log_line.hpp"
#include "semel/clock.hpp"
#include "semel/types.hpp"

namespace semel::net {

struct LogOptions {
  LogLevel level = LogLevel::notice;  ///< the least that is written
  LogForm form = LogForm::logfmt;
  std::string file{};  ///< appended to, made with its directories; empty: standard error
  bool keys = false;   ///< keys are written as they are
  /// Lines of one event that are written in a second. The rest of that second is one line: the
  /// last of them, with repeated=n. 1..1'000'000.
  std::uint64_t burst = 10;
  std::ostream* stream = nullptr;  ///< tests: in place of file. Must outlive the log.
};

/// Safe from any thread. Progress: what is written blocks for the file and for other lines; what is
/// below the level is one load.
class Log {
 public:
  using Fields = std::initializer_list<LogField>;

  /// `clock` must outlive the log. None: `error` says why.
  [[nodiscard]] static std::unique_ptr<Log> open(const LogOptions& options, const Clock& clock,
                                                 std::string& error);
  /// Writes what is held back.
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
  /// `event` is a word of our own, never what others send: its bursts are counted by it.
  void add(LogLevel level, std::string_view event, Fields fields);

  /// key=..., or key_hash= and 16 hex digits of a hash with this log's own secret, so that lines
  /// about one key can be found by each other, but not the key by them. No shield against those
  /// who can both choose keys and read the log. Valid while `key` is.
  [[nodiscard]] LogField field_of_key(Bytes key) const;

  [[nodiscard]] bool writes(LogLevel level) const noexcept;
  void set_level(LogLevel level) noexcept;
  void set_keys(bool keys) noexcept;

  /// To be called about once a second: writes what is held back of seconds that are over.
  void tick();
  /// Goes on in a new file of the same name, after the old one was renamed. Or why not: then the
  /// old one stays. Does nothing on standard error.
  std::optional<std::string> reopen();
  /// Lines that could not be written, as to a full disk.
  [[nodiscard]] std::uint64_t lines_lost() const;

 private:
  class Impl;
  explicit Log(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel::net
