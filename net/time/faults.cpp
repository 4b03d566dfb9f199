#include "net/time/faults.hpp"

#include <algorithm>
#include <utility>

#include "semel/store.hpp"

namespace semel::net {
namespace {

bool fault_matches(const FaultTerms& fault, const FaultRequest& request) {
  if (fault.command.empty() ? request.needs_name : !glob_match(fault.command, request.command)) {
    return false;
  }
  return fault.key.empty() ||
         std::any_of(request.keys.begin(), request.keys.end(),
                     [&](std::string_view key) { return glob_match(fault.key, key); });
}

/// Whether it acts on the request that was counted last.
bool fault_acts(const PlantedFault& planted) {
  const FaultTerms& fault = planted.fault;
  if (planted.seen < fault.nth) return false;
  return fault.count == 0 || planted.seen - fault.nth < fault.count;
}

}  // namespace

std::string_view name_of(FaultAction action) noexcept {
  switch (action) {
    case FaultAction::delay:
      return "delay";
    case FaultAction::error:
      return "error";
    case FaultAction::drop:
      return "drop";
    case FaultAction::drop_reply:
      break;
  }
  return "drop-reply";
}

std::optional<std::uint64_t> Faults::add(FaultTerms fault) {
  const base::MutexLock lock{mutex_};
  if (faults_.size() == count_max) return std::nullopt;
  faults_.push_back({.id = last_id_ + 1, .fault = std::move(fault)});
  any_.store(true, std::memory_order_relaxed);  // mo: relaxed: see any()
  return ++last_id_;
}

std::size_t Faults::clear(std::uint64_t id) {
  const base::MutexLock lock{mutex_};
  const std::size_t removed =
      std::erase_if(faults_, [id](const auto& each) { return id == 0 || each.id == id; });
  any_.store(!faults_.empty(), std::memory_order_relaxed);  // mo: relaxed: see any()
  return removed;
}

std::vector<PlantedFault> Faults::all() const {
  const base::MutexLock lock{mutex_};
  return faults_;
}

std::optional<FaultTerms> Faults::next(const FaultRequest& request) {
  const base::MutexLock lock{mutex_};
  PlantedFault* acting = nullptr;
  for (PlantedFault& planted : faults_) {
    if (!fault_matches(planted.fault, request)) continue;
    ++planted.seen;
    if (acting == nullptr && fault_acts(planted)) acting = &planted;
  }
  if (acting == nullptr) return std::nullopt;
  ++acting->acted;
  return acting->fault;
}

}  // namespace semel::net
