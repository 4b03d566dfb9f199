// One line of JSON for each request, written by a thread of its own. When the disk does not keep
// up, the oldest lines are lost and counted: no request waits for its line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "semel/result.hpp"

namespace semel::gateway {

struct AccessLine {
  std::int64_t unix_ms = 0;
  std::string_view client{};
  std::string_view method{};
  std::string_view path{};  ///< without the query, which may have secrets
  std::string_view route{};
  std::string_view outcome{};
  unsigned status = 0;
  std::int64_t took_ms = 0;
  std::uint32_t attempt = 0;
};

class AccessLog {
 public:
  /// `path`: appended to; "-": standard output; empty: none. Errors: storage_failed.
  [[nodiscard]] static Result<std::unique_ptr<AccessLog>> open(const std::string& path);
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  void write(const AccessLine& line);
  [[nodiscard]] std::uint64_t lost() const;

 private:
  class Inside;
  explicit AccessLog(std::unique_ptr<Inside> inside);
  const std::unique_ptr<Inside> inside_;
};

}  // namespace semel::gateway
