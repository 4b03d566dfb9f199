#include "replication/state/answer.hpp"

#include <type_traits>

#include "base/assert.hpp"
#include "replication/state/fields.hpp"
#include "semel/claim_fields.hpp"

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
  Found operator()(const NotApplied&) const noexcept { return std::nullopt; }
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

template <class Fields>
void error(Fields& fields, ErrorCode& code) {
  auto number = static_cast<std::uint64_t>(code);
  fields.number(number);
  code = static_cast<ErrorCode>(number);
}

/// In the replicated log and between nodes the first answer is 0. The zero of the enumeration,
/// which no call answers, has no number there.
template <class Fields, class Kind>
void answered(Fields& fields, Kind& answer, Kind last) {
  SEMEL_ASSERT(answer != Kind::unanswered || (std::is_same_v<Fields, FieldReader>));
  auto number = static_cast<std::uint8_t>(static_cast<std::uint8_t>(answer) - 1);
  fields.small(number, static_cast<std::uint8_t>(static_cast<std::uint8_t>(last) - 1));
  answer = static_cast<Kind>(number + 1);
}

void text(FieldWriter& fields, const std::string& value) {
  fields.bytes(value);
}
void text(FieldReader& fields, std::string& value) {
  Bytes found;
  fields.bytes(found);
  value = found;
}

// --- one description for both directions ------------------------------------------------------

template <class Fields>
void all(Fields& fields, PlainAnswer& answer) {
  error(fields, answer.error);
  fields.number(answer.number);
  text(fields, answer.text);
}

template <class Fields>
void all(Fields& fields, StoreOutcome& answer) {
  error(fields, answer.error);
  fields.flag(answer.found);
  fields.flag(answer.applied);
  fields.flag(answer.has_value);
  choice(fields, answer.kind, Kind::stream);
  fields.number(answer.number);
  fields.number(answer.second);
  std::int64_t due = answer.due.time_since_epoch().count();
  fields.number(due);
  answer.due = Timestamp{Millis{due}};
  fields.number(answer.version);
  text(fields, answer.value);
}

// The first answers had `takeover`, two flags and the attempts. A later row of
// semel/claim_fields.hpp has a bit in the byte of `takeover`, numbers from bit 1 up and flags from
// bit 7 down: an answer without it keeps the bytes that it had before.
constexpr std::size_t numbers_first = 1;
constexpr std::size_t flags_first = 2;
static_assert(claim_numbers.front().answered == &ClaimOutcome::attempt);
static_assert(claim_flags[0].answered == &ClaimOutcome::result_expired &&
              claim_flags[1].answered == &ClaimOutcome::poison);
static_assert(claim_numbers.size() + claim_flags.size() <= 8 - 1 + numbers_first + flags_first);

constexpr unsigned takeover_mark = 1;
[[nodiscard]] constexpr unsigned number_mark(std::size_t index) noexcept {
  return index < numbers_first ? 0 : 2U << (index - numbers_first);
}
[[nodiscard]] constexpr unsigned flag_mark(std::size_t index) noexcept {
  return index < flags_first ? 0 : 128U >> (index - flags_first);
}
constexpr unsigned marks_known = [] {
  unsigned marks = takeover_mark;
  for (std::size_t i = 0; i < claim_numbers.size(); ++i) marks |= number_mark(i);
  for (std::size_t i = 0; i < claim_flags.size(); ++i) marks |= flag_mark(i);
  return marks;
}();

/// `takeover`, the later flags, and whether each later number is there.
template <class Fields>
[[nodiscard]] unsigned marks_of(Fields& fields, ClaimOutcome& answer) {
  unsigned marks = answer.takeover ? takeover_mark : 0;
  each_row<claim_numbers>([&](auto number) {
    if (answer.*number.row.answered != 0) marks |= number_mark(number.index);
  });
  each_row<claim_flags>([&](auto flag) {
    if (answer.*flag.row.answered) marks |= flag_mark(flag.index);
  });
  auto byte = static_cast<std::uint8_t>(marks);
  fields.small(byte, static_cast<std::uint8_t>(marks_known));
  if ((byte & ~marks_known) != 0) fields.fail();
  answer.takeover = (byte & takeover_mark) != 0;
  each_row<claim_flags>([&](auto flag) {
    if constexpr (flag.index >= flags_first)
      answer.*flag.row.answered = (byte & flag_mark(flag.index)) != 0;
  });
  return byte;
}

template <class Fields>
void all(Fields& fields, ClaimOutcome& answer) {
  answered(fields, answer.answer, ClaimAnswer::unknown);
  error(fields, answer.error);
  const unsigned marks = marks_of(fields, answer);
  fields.flag(answer.result_expired);
  fields.flag(answer.poison);
  each_row<claim_numbers>([&](auto number) {
    constexpr unsigned mark = number_mark(number.index);
    if (mark != 0 && (marks & mark) == 0) return;
    std::uint64_t count = answer.*number.row.answered;
    fields.number(count);
    answer.*number.row.answered = static_cast<std::uint32_t>(count);
    if (mark != 0 && answer.*number.row.answered == 0) fields.fail();  // 0 has no bit
  });
  fields.number(answer.epoch);
  millis(fields, answer.remaining);
  millis(fields, answer.retry_after);
  std::uint64_t folded = answer.folded_onto ? *answer.folded_onto + 1 : 0;
  fields.number(folded);
  answer.folded_onto = folded == 0 ? std::optional<std::size_t>{} : folded - 1;
  const auto time = [](auto& f, std::int64_t& value) { f.number(value); };
  perhaps(fields, answer.window_start_unix_ms, time);
  perhaps(fields, answer.window_end_unix_ms, time);
  fields.number(answer.version);
  text(fields, answer.owner);
  text(fields, answer.result);
}

template <class Fields>
void all(Fields& fields, OwnerOutcome& answer) {
  answered(fields, answer.answer, OwnerAnswer::refused);
  error(fields, answer.error);
  fields.flag(answer.late);
  error(fields, answer.dropped);
  fields.flag(answer.has_result);
  fields.number(answer.version);
  text(fields, answer.result);
}

template <class Fields>
void all(Fields& fields, NotApplied& answer) {
  choice(fields, answer.why, NotApplied::Why::no_life);
}

template <class Fields>
void all(Fields& fields, std::vector<ClaimOutcome>& answers) {
  list(fields, answers, [](auto& f, ClaimOutcome& item) { all(f, item); });
}

template <class Fields>
void whole(Fields& fields, Answer& answer, bool is_outermost);

template <class Fields>
void all(Fields& fields, std::vector<Answer>& answers) {
  list(fields, answers, [](auto& f, Answer& item) { whole(f, item, false); });
}

template <std::size_t Place = 0>
void make(FieldReader& fields, Answer& answer, std::size_t place) {
  if constexpr (Place < std::variant_size_v<decltype(Answer::what)>) {
    if (place != Place) return make<Place + 1>(fields, answer, place);
    answer.what.emplace<Place>();
  } else {
    fields.fail();
  }
}

constexpr std::size_t answers_place = std::variant_size_v<decltype(Answer::what)> - 1;

template <class Fields>
void whole(Fields& fields, Answer& answer, bool is_outermost) {
  auto place = static_cast<std::uint8_t>(answer.what.index());
  fields.small(place, answers_place);
  if constexpr (std::is_same_v<Fields, FieldReader>) {
    // Sections are not nested: a deeper one is damage.
    if (place == answers_place && !is_outermost) fields.fail();
    if (!fields.is_good()) return;
    make(fields, answer, place);
  }
  std::visit([&](auto& what) { all(fields, what); }, answer.what);
}

}  // namespace

std::optional<ErrorCode> local_error(const Answer& answer) noexcept {
  return std::visit(Local{}, answer.what);
}

void encode(const Answer& answer, std::string& to) {
  FieldWriter fields{to};
  // The description is one for both directions, and the writer changes nothing.
  whole(fields, const_cast<Answer&>(answer), true);
}

Result<Answer> decode_answer(Bytes from) {
  FieldReader fields{from};
  Answer answer;
  whole(fields, answer, true);
  if (fields.is_good() && fields.rest().empty()) return answer;
  return Error{ErrorCode::bad_encoding, "an answer of " + std::to_string(from.size()) + " bytes"};
}

}  // namespace semel::replication
