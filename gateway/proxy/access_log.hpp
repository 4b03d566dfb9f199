// The access log: a JSON line for each request, written by its own thread. A full queue drops lines
// rather than delaying requests; dropped lines are counted.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.hpp"
#include "gateway/rules/outcome.hpp"
#include "gateway/shared/counters.hpp"
#include "semel/result.hpp"

namespace semel::gateway {

/// The fields of a line. Texts are valid during the call. The query, which may contain secrets, is
/// omitted, and a key is shown by its digest.
struct AccessLine {
  std::int64_t unix_ms = 0;
  std::string_view client{};
  std::string_view method{};
  std::string_view path{};
  std::string_view route{};
  Outcome outcome = Outcome::passed;
  unsigned status = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t microseconds = 0;
  std::string_view key_digest{};  ///< empty: none
};

/// A call of the admin port, by an operator or by an unauthenticated client.
struct AuditLine {
  std::int64_t unix_ms = 0;
  std::string_view client{};
  std::string_view method{};
  std::string_view path{};
  std::string_view route{};  ///< of /resolve, as the next two members
  std::string_view key{};    ///< the line has its digest, the same as in the access log
  std::string_view as{};
  unsigned status = 0;
};

/// Without a line feed.
[[nodiscard]] std::string json_line(const AccessLine& line);
[[nodiscard]] std::string audit_json(const AuditLine& line);
/// The digest of a key as the log shows it: 16 digits of its SHA-256.
[[nodiscard]] std::string shown_digest(std::string_view key);

/// Thread-safe.
class AccessLog {
 public:
  /// `path` "-": standard output; empty: nothing is written. Errors: storage_failed.
  [[nodiscard]] static Result<std::unique_ptr<AccessLog>> open(const std::string& path,
                                                               Counters& counters);
  [[nodiscard]] static std::unique_ptr<AccessLog> to_standard_error(Counters& counters);
  /// Writes the queued lines.
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  [[nodiscard]] bool is_on() const noexcept { return is_on_; }
  /// Reopens the file by its name, for all later lines. Errors: storage_failed; the old file stays
  /// in use.
  [[nodiscard]] Status reopen();
  /// Does not wait for the file.
  void add(std::string line);

 private:
  AccessLog(std::FILE* file, std::string path, Counters& counters);
  void write_lines();

  std::FILE* file_;  // of the thread, once it runs
  const bool is_on_;
  const std::string path_;  // empty: a stream of the process
  Counters& counters_;
  base::Mutex mutex_;
  base::Condition woken_;
  std::deque<std::string> queue_ SEMEL_GUARDED_BY(mutex_);
  std::size_t queued_bytes_ SEMEL_GUARDED_BY(mutex_) = 0;  // also of lines that are being written
  std::FILE* next_file_ SEMEL_GUARDED_BY(mutex_) = nullptr;
  bool is_ending_ SEMEL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace semel::gateway
