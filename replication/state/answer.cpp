#include "replication/state/answer.hpp"

#include "replication/state/fields.hpp"

namespace semel::replication {
namespace {

[[nodiscard]] bool is_local(ErrorCode error) noexcept {
  switch (error) {
    case ErrorCode::memory_full:
    case ErrorCode::waiters_full:
    case ErrorCode::snapshot_running:
    case ErrorCode::timed_out:
    case ErrorCode::closing:
    case ErrorCode::section_held:
    case ErrorCode::forked:
    case ErrorCode::callback_threw:
    case ErrorCode::no_thread:
    case ErrorCode::out_of_address_space:
    case ErrorCode::outcome_unknown:
    case ErrorCode::refused:
    case ErrorCode::storage_failed:
    case ErrorCode::storage_damaged:
    case ErrorCode::storage_in_use:
    case ErrorCode::storage_newer:
      return true;
    default:
      return false;
  }
}

using Found = std::optional<ErrorCode>;

Found local(ErrorCode error) noexcept {
  return is_local(error) ? Found{error} : std::nullopt;
}

struct Local {
  Found operator()(const PlainAnswer& answer) const noexcept { return local(answer.error); }
  Found operator()(const StoreOutcome& answer) const noexcept { return local(answer.error); }
  Found operator()(const OwnerOutcome& answer) const noexcept {
    const Found found = local(answer.error);
    return found ? found : local(answer.dropped);
  }
  Found operator()(const std::vector<ClaimOutcome>& answers) const noexcept {
    for (const ClaimOutcome& answer : answers) {
      if (const Found found = local(answer.error)) return found;
      if (answer.answer == ClaimAnswer::unprotected) return ErrorCode::memory_full;
    }
    return std::nullopt;
  }
  Found operator()(const std::vector<Answer>& answers) const noexcept {
    for (const Answer& answer : answers) {
      if (const Found found = local_error(answer)) return found;
    }
    return std::nullopt;
  }
};

void put(FieldWriter& to, const std::optional<std::int64_t>& value) {
  to.flag(value.has_value());
  if (value) to.number(*value);
}

struct Encode {
  void error(ErrorCode code) const { to.number(static_cast<std::uint64_t>(code)); }

  void operator()(const PlainAnswer& answer) const {
    error(answer.error);
    to.number(answer.number);
    to.bytes(answer.text);
  }
  void operator()(const StoreOutcome& answer) const {
    error(answer.error);
    to.flag(answer.found);
    to.flag(answer.applied);
    to.flag(answer.has_value);
    to.small(static_cast<std::uint8_t>(answer.kind), 255);
    to.number(answer.number);
    to.number(answer.second);
    to.number(std::int64_t{answer.due.time_since_epoch().count()});
    to.number(answer.version);
    to.bytes(answer.value);
  }
  void operator()(const ClaimOutcome& answer) const {
    to.small(static_cast<std::uint8_t>(answer.answer), 255);
    error(answer.error);
    to.flag(answer.takeover);
    to.flag(answer.result_expired);
    to.flag(answer.poison);
    to.number(std::uint64_t{answer.attempt});
    to.number(answer.epoch);
    to.number(std::int64_t{answer.remaining.count()});
    to.number(std::int64_t{answer.retry_after.count()});
    to.number(std::uint64_t{answer.folded_onto ? *answer.folded_onto + 1 : 0});
    put(to, answer.window_start_unix_ms);
    put(to, answer.window_end_unix_ms);
    to.number(answer.version);
    to.bytes(answer.owner);
    to.bytes(answer.result);
  }
  void operator()(const OwnerOutcome& answer) const {
    to.small(static_cast<std::uint8_t>(answer.answer), 255);
    error(answer.error);
    to.flag(answer.late);
    error(answer.dropped);
    to.flag(answer.has_result);
    to.number(answer.version);
    to.bytes(answer.result);
  }
  void operator()(const std::vector<ClaimOutcome>& answers) const {
    static_cast<void>(to.count(answers.size()));
    for (const ClaimOutcome& answer : answers) (*this)(answer);
  }
  void operator()(const std::vector<Answer>& answers) const {
    static_cast<void>(to.count(answers.size()));
    for (const Answer& answer : answers) whole(answer);
  }
  void whole(const Answer& answer) const {
    to.small(static_cast<std::uint8_t>(answer.what.index()), 255);
    std::visit(*this, answer.what);
  }

  FieldWriter& to;
};

}  // namespace

std::optional<ErrorCode> local_error(const Answer& answer) noexcept {
  return std::visit(Local{}, answer.what);
}

void encode(const Answer& answer, std::string& to) {
  FieldWriter fields{to};
  Encode{fields}.whole(answer);
}

}  // namespace semel::replication
