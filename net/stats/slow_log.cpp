#include "net/stats/slow_log.hpp"

#include <algorithm>

namespace semel::net {
namespace {

std::string shortened(std::string_view word) {
  if (word.size() <= SlowLog::word_bytes_max) return std::string{word};
  const std::size_t more = word.size() - SlowLog::word_bytes_max;
  return std::string{word.substr(0, SlowLog::word_bytes_max)} + "... (" + std::to_string(more) +
         " more bytes)";
}

}  // namespace

void SlowLog::set_length(std::uint64_t count) {
  const base::MutexLock lock{mutex_};
  length_ = std::min(count, length_max);
  if (calls_.size() > length_) calls_.resize(length_);
}

void SlowLog::add(SlowCall call, std::span<const std::string_view> args) {
  const std::size_t kept = args.size() > args_max ? args_max - 1 : args.size();
  call.args.reserve(std::min(args.size(), args_max));
  for (const std::string_view word : args.first(kept)) call.args.push_back(shortened(word));
  if (kept < args.size()) {
    call.args.push_back("... (" + std::to_string(args.size() - kept) + " more arguments)");
  }
  const base::MutexLock lock{mutex_};
  call.id = next_id_++;
  calls_.push_front(std::move(call));
  if (calls_.size() > length_) calls_.pop_back();
}

std::vector<SlowCall> SlowLog::newest(std::size_t count) const {
  const base::MutexLock lock{mutex_};
  const auto end = calls_.begin() + static_cast<std::ptrdiff_t>(std::min(count, calls_.size()));
  return {calls_.begin(), end};
}

std::size_t SlowLog::size() const {
  const base::MutexLock lock{mutex_};
  return calls_.size();
}

void SlowLog::clear() {
  const base::MutexLock lock{mutex_};
  calls_.clear();
}

}  // namespace semel::net
