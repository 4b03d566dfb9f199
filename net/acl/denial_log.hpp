// Recent refusals: the log behind ACL LOG. Bounded; of equal refusals in a row it keeps one with
// their number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "net/acl/acl_limits.hpp"
#include "semel/types.hpp"

namespace semel::net {

enum class DenialReason : std::uint8_t { auth, command, key, channel };
enum class DenialContext : std::uint8_t { toplevel, multi, lua };

[[nodiscard]] std::string_view name_of(DenialReason reason) noexcept;
[[nodiscard]] std::string_view name_of(DenialContext context) noexcept;

/// Texts are cut at logged_bytes_max: a refused client must not decide how much is kept.
struct Denial {
  DenialReason reason = DenialReason::command;
  DenialContext context = DenialContext::toplevel;
  std::string_view object{};    ///< the command's whole name, the key, the channel; AUTH or HELLO
  std::string_view username{};  ///< of AUTH: the one that was tried
  std::string_view client{};    ///< a line as CLIENT INFO has it
};

class DenialLog {
 public:
  struct Entry {
    std::uint64_t count = 1;
    DenialReason reason{};
    DenialContext context{};
    std::string object{};
    std::string username{};
    std::string client{};
    Timestamp at{};  ///< of the last of them
  };

  /// Safe from any thread. Progress: blocks on a mutex.
  void add(const Denial& denial, Timestamp now);
  /// The newest first, at most `count`.
  [[nodiscard]] std::vector<Entry> newest(std::size_t count) const;
  void clear();
  /// Keeps at most so many entries from now on.
  void set_length(std::size_t entries);

 private:
  mutable base::Mutex mutex_;
  std::size_t length_ SEMEL_GUARDED_BY(mutex_) = acl_limits::log_entries_usual;
  std::deque<Entry> entries_ SEMEL_GUARDED_BY(mutex_);  // the newest first
};

}  // namespace semel::net
