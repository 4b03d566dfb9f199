#include "gateway/proxy/access_log.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/rules/limits.hpp"
#include "gateway/rules/work_key.hpp"

namespace semel::gateway {
namespace {

constexpr std::size_t path_bytes_max = 512;

/// "2026-01-02T03:04:05.678Z", by the calendar of Gregory; days from 1970 on.
/// Source: Howard Hinnant, chrono-compatible low-level date algorithms, civil_from_days
std::string time_text(std::int64_t unix_ms) {
  constexpr std::int64_t day_ms = 86'400'000;
  const std::int64_t days = unix_ms / day_ms;
  const std::int64_t rest = unix_ms % day_ms;
  const std::int64_t shifted = days + 719'468;
  const std::int64_t era = shifted / 146'097;
  const std::int64_t day_of_era = shifted - era * 146'097;
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t shifted_month = (5 * day_of_year + 2) / 153;
  const std::int64_t day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
  const std::int64_t month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  const std::int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  std::array<char, 40> text{};
  const int size = std::snprintf(
      text.data(), text.size(), "%04lld-%02lld-%02lldT%02lld:%02lld:%02lld.%03lldZ",
      static_cast<long long>(year), static_cast<long long>(month), static_cast<long long>(day),
      static_cast<long long>(rest / 3'600'000), static_cast<long long>(rest / 60'000 % 60),
      static_cast<long long>(rest / 1'000 % 60), static_cast<long long>(rest % 1'000));
  return {text.data(), static_cast<std::size_t>(size)};
}

void append_text(std::string& line, const char* name, std::string_view text) {
  line.append(",\"").append(name).append("\":\"");
  append_json_text(line, text.substr(0, path_bytes_max));
  line += '"';
}

void append_number(std::string& line, const char* name, std::uint64_t number) {
  line.append(",\"").append(name).append("\":").append(std::to_string(number));
}

Result<std::FILE*> open_file(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "ae");
  if (file != nullptr) return file;
  return Error{ErrorCode::storage_failed, "access-log '" + path + "': " + std::strerror(errno)};
}

}  // namespace

std::string json_line(const AccessLine& line) {
  std::string text = "{\"ts\":\"" + time_text(line.unix_ms) + "\"";
  append_text(text, "client", line.client);
  append_text(text, "method", line.method);
  append_text(text, "path", line.path);
  append_text(text, "route", line.route);
  append_text(text, "outcome", name_of(line.outcome));
  append_number(text, "status", line.status);
  append_number(text, "bytes", line.bytes_sent);
  append_number(text, "us", line.microseconds);
  if (!line.key_digest.empty()) append_text(text, "key", line.key_digest);
  return text + "}";
}

std::string audit_json(const AuditLine& line) {
  std::string text = "{\"ts\":\"" + time_text(line.unix_ms) + "\"";
  append_text(text, "client", line.client);
  append_text(text, "method", line.method);
  append_text(text, "admin", line.path);
  if (!line.route.empty()) append_text(text, "route", line.route);
  if (!line.key.empty()) append_text(text, "key", shown_digest(line.key));
  if (!line.as.empty()) append_text(text, "as", line.as);
  append_number(text, "status", line.status);
  return text + "}";
}

std::string shown_digest(std::string_view key) {
  constexpr std::size_t shown_digits = 16;
  return sha256_hex(key).substr(0, shown_digits);
}

AccessLog::AccessLog(std::FILE* file, std::string path, Counters& counters)
    : file_(file), is_on_(file != nullptr), path_(std::move(path)), counters_(counters) {
  if (is_on_) thread_ = std::thread{[this] { write_lines(); }};
}

Result<std::unique_ptr<AccessLog>> AccessLog::open(const std::string& path, Counters& counters) {
  if (path.empty()) return std::unique_ptr<AccessLog>{new AccessLog{nullptr, {}, counters}};
  if (path == "-") return std::unique_ptr<AccessLog>{new AccessLog{stdout, {}, counters}};
  SEMEL_TRY(file, open_file(path));
  return std::unique_ptr<AccessLog>{new AccessLog{file, path, counters}};
}

std::unique_ptr<AccessLog> AccessLog::to_standard_error(Counters& counters) {
  return std::unique_ptr<AccessLog>{new AccessLog{stderr, {}, counters}};
}

AccessLog::~AccessLog() {
  {
    const base::MutexLock lock{mutex_};
    is_ending_ = true;
  }
  woken_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (next_file_ != nullptr) std::fclose(next_file_);
  if (!path_.empty()) std::fclose(file_);
}

Status AccessLog::reopen() {
  if (path_.empty()) return Done{};
  SEMEL_TRY(file, open_file(path_));
  {
    const base::MutexLock lock{mutex_};
    if (next_file_ != nullptr) std::fclose(next_file_);
    next_file_ = file;
  }
  woken_.notify_one();
  return Done{};
}

void AccessLog::add(std::string line) {
  if (!is_on_) return;
  line += '\n';
  {
    const base::MutexLock lock{mutex_};
    if (queue_.size() >= limits::log_queue_max ||
        queued_bytes_ + line.size() > limits::log_queue_bytes_max) {
      counters_.log_lines_lost.add();
      return;
    }
    queued_bytes_ += line.size();
    queue_.push_back(std::move(line));
  }
  woken_.notify_one();
}

void AccessLog::write_lines() {
  std::deque<std::string> lines;
  std::size_t written_bytes = 0;
  for (bool is_ending = false; !is_ending;) {
    {
      base::MutexLock lock{mutex_};
      queued_bytes_ -= std::exchange(written_bytes, 0);
      while (queue_.empty() && next_file_ == nullptr && !is_ending_) woken_.wait(lock);
      lines.swap(queue_);
      if (next_file_ != nullptr) {
        std::fclose(file_);
        file_ = std::exchange(next_file_, nullptr);
      }
      is_ending = is_ending_;
    }
    for (const std::string& line : lines) {
      written_bytes += line.size();
      if (std::fwrite(line.data(), 1, line.size(), file_) != line.size()) {
        counters_.log_lines_lost.add();
        std::clearerr(file_);
      }
    }
    std::fflush(file_);
    lines.clear();
  }
}

}  // namespace semel::gateway
