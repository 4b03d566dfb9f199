#include "net/claims/claim_reply.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <string_view>

#include "base/hex.hpp"
#include "net/resp/digits.hpp"
#include "semel/claim_fields.hpp"

namespace semel::net {
namespace {

// --- bytes that are made at compile time ------------------------------------------------------

/// A text that can be an argument of a template.
template <std::size_t size>
struct Literal {
  char bytes[size]{};
  consteval Literal(const char (&text)[size]) {  // NOLINT: meant to convert
    for (std::size_t i = 0; i < size; ++i) bytes[i] = text[i];
  }
  consteval explicit Literal(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) bytes[i] = text[i];
  }
  [[nodiscard]] constexpr std::size_t length() const noexcept { return size - 1; }
};

/// "$5\r\nepoch\r\n" of "epoch".
template <Literal text>
consteval auto make_bulk() {
  static_assert(text.length() < 100);
  constexpr std::size_t digits = text.length() < 10 ? 1 : 2;
  std::array<char, 1 + digits + 2 + text.length() + 2> bytes{};
  std::size_t at = 0;
  bytes[at++] = '$';
  if (digits == 2) bytes[at++] = static_cast<char>('0' + text.length() / 10);
  bytes[at++] = static_cast<char>('0' + text.length() % 10);
  bytes[at++] = '\r';
  bytes[at++] = '\n';
  for (std::size_t i = 0; i < text.length(); ++i) bytes[at++] = text.bytes[i];
  bytes[at++] = '\r';
  bytes[at++] = '\n';
  return bytes;
}
template <Literal text>
inline constexpr auto bulk_bytes = make_bulk<text>();

/// Two of them, one behind the other.
template <Literal first, Literal second>
consteval auto make_pair() {
  std::array<char, bulk_bytes<first>.size() + bulk_bytes<second>.size()> bytes{};
  std::size_t at = 0;
  for (const char c : bulk_bytes<first>) bytes[at++] = c;
  for (const char c : bulk_bytes<second>) bytes[at++] = c;
  return bytes;
}
template <Literal first, Literal second>
inline constexpr auto pair_bytes = make_pair<first, second>();

/// The fields of one map, gathered on the stack; fields of fixed size go out in one piece.
class Fields {
 public:
  Fields(RespWriter& reply, std::size_t pairs) : reply_(reply) {
    // Fewer than 50 pairs: two digits at most.
    const bool three = reply.dialect() == Resp::three;
    const std::size_t count = three ? pairs : 2 * pairs;
    *at_++ = three ? '%' : '*';
    if (count >= 10) *at_++ = static_cast<char>('0' + count / 10);
    *at_++ = static_cast<char>('0' + count % 10);
    end_line();
  }
  ~Fields() noexcept(false) {
    if (std::uncaught_exceptions() == 0) flush();  // else the reply is discarded
  }
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  template <Literal name, Literal value>
  Fields& word() {
    put(pair_bytes<name, value>);
    return *this;
  }
  template <Literal name>
  Fields& integer(std::int64_t number) {
    put(bulk_bytes<name>);
    if (reply_.dialect() == Resp::three) {
      *at_++ = ':';
      at_ = put_digits(at_, number);
      end_line();
      return *this;
    }
    // The digits are written behind the shortest head, and make room for a longer one.
    constexpr std::size_t head = 1 + 1 + 2;
    char* const begin = at_ + head;
    const auto length = static_cast<std::size_t>(put_digits(begin, number) - begin);
    *at_++ = '$';
    if (length >= 10) {
      std::memmove(begin + 1, begin, length);
      *at_++ = static_cast<char>('0' + length / 10);
    }
    *at_++ = static_cast<char>('0' + length % 10);
    end_line();
    at_ += length;
    end_line();
    return *this;
  }
  /// The numbers of a record, which have their names in claim_numbers.
  Fields& numbers(const ClaimOutcome& outcome) {
    each_row<claim_numbers>([&](auto number) {
      constexpr std::string_view name = decltype(number)::row.answer_name;
      integer<Literal<name.size() + 1>{name}>(outcome.*number.row.answered);
    });
    return *this;
  }
  Fields& numbers(const ClaimView& view) {
    each_row<claim_numbers>([&](auto number) {
      constexpr std::string_view name = decltype(number)::row.view_name;
      integer<Literal<name.size() + 1>{name}>(view.*number.row.seen);
    });
    return *this;
  }
  template <Literal name>
  Fields& epoch(Epoch number) {
    return integer<name>(static_cast<std::int64_t>(number));
  }
  template <Literal name>
  Fields& ms(Millis time) {
    return integer<name>(time.count());
  }
  template <Literal name>
  Fields& boolean(bool value) {
    if (reply_.dialect() == Resp::two) {
      value ? put(pair_bytes<name, "1">) : put(pair_bytes<name, "0">);
      return *this;
    }
    put(bulk_bytes<name>);
    *at_++ = '#';
    *at_++ = value ? 't' : 'f';
    end_line();
    return *this;
  }
  template <Literal name>
  Fields& bulk(std::string_view bytes) {
    put(bulk_bytes<name>);
    flush();
    reply_.bulk(bytes);
    return *this;
  }
  Fields& label(std::string_view name, std::string_view bytes) {
    flush();
    reply_.bulk(name);
    reply_.bulk(bytes);
    return *this;
  }
  template <Literal name>
  Fields& null() {
    put(bulk_bytes<name>);
    flush();
    reply_.null();
    return *this;
  }

 private:
  // One field: its name, and a number at most, which may have a head of its own.
  static constexpr std::size_t field_bytes_max = 100 + 8 + number_bytes_max + 3 + 5;
  static constexpr std::size_t room_bytes = 512;

  template <std::size_t size>
  void put(const std::array<char, size>& bytes) {
    static_assert(size <= field_bytes_max);
    if (room_.data() + room_.size() - at_ < static_cast<std::ptrdiff_t>(2 * field_bytes_max)) {
      flush();
    }
    std::memcpy(at_, bytes.data(), size);
    at_ += size;
  }
  void end_line() noexcept {
    *at_++ = '\r';
    *at_++ = '\n';
  }
  /// May throw bad_alloc, but not again from the destructor.
  void flush() {
    const auto gathered = static_cast<std::size_t>(at_ - room_.data());
    at_ = room_.data();
    reply_.prepared({room_.data(), gathered});
  }

  RespWriter& reply_;
  std::array<char, room_bytes> room_;
  char* at_ = room_.data();
};

/// Refusals in normal operation: the caller retries later.
[[nodiscard]] bool is_busy(ErrorCode code) noexcept {
  return code == ErrorCode::memory_full || code == ErrorCode::waiters_full ||
         code == ErrorCode::refused;
}

[[nodiscard]] bool is_outcome(const ClaimOutcome& outcome) noexcept {
  return outcome.error == ErrorCode::ok || outcome.error == ErrorCode::timed_out ||
         is_busy(outcome.error);
}

/// The fields of a claim; `more` of them follow.
void write_claim_fields(RespWriter& reply, const ClaimOutcome& outcome, std::size_t more) {
  constexpr std::size_t numbers = claim_numbers.size();
  const auto finish = [&](Fields& fields) {
    if (outcome.folded_onto) {
      fields.integer<"folded_onto">(static_cast<std::int64_t>(*outcome.folded_onto));
    }
  };
  const auto fields = [&](std::size_t pairs, auto&& write) {
    Fields all{reply, pairs + more};
    write(all);
    finish(all);
  };
  switch (outcome.answer) {
    case ClaimAnswer::granted:
      return fields(3 + numbers, [&](Fields& all) {
        all.word<"outcome", "granted">().epoch<"epoch">(outcome.epoch);
        all.numbers(outcome).boolean<"takeover">(outcome.takeover);
      });
    case ClaimAnswer::regranted:
      return fields(3 + numbers, [&](Fields& all) {
        all.word<"outcome", "regranted">().epoch<"epoch">(outcome.epoch);
        all.numbers(outcome).ms<"remaining_ms">(outcome.remaining);
      });
    case ClaimAnswer::in_flight:
      return fields(4 + numbers, [&](Fields& all) {
        all.word<"outcome", "in_flight">().ms<"remaining_ms">(outcome.remaining);
        all.ms<"retry_after_ms">(outcome.retry_after).numbers(outcome);
        all.bulk<"owner">(outcome.owner);
      });
    case ClaimAnswer::replay:
      return fields(3 + numbers, [&](Fields& all) {
        all.word<"outcome", "replay">().numbers(outcome);
        all.boolean<"result_expired">(outcome.result_expired);
        outcome.result_expired ? all.null<"result">() : all.bulk<"result">(outcome.result);
      });
    case ClaimAnswer::kept_failure:
      return fields(3 + numbers, [&](Fields& all) {
        all.word<"outcome", "kept_failure">().numbers(outcome);
        all.boolean<"poison">(outcome.poison).bulk<"failure">(outcome.result);
      });
    case ClaimAnswer::mismatch:
      return fields(1, [&](Fields& all) { all.word<"outcome", "mismatch">(); });
    case ClaimAnswer::in_doubt:
      return fields(2 + numbers, [&](Fields& all) {
        all.word<"outcome", "in_doubt">().numbers(outcome);
        all.bulk<"owner">(outcome.owner);
      });
    case ClaimAnswer::too_old:
      return fields(2, [&](Fields& all) {
        all.word<"outcome", "too_old">();
        all.integer<"window_start_ms">(outcome.window_start_unix_ms.value_or(0));
      });
    case ClaimAnswer::unanswered:
    case ClaimAnswer::busy:
      return fields(2, [&](Fields& all) {
        all.word<"outcome", "busy">().bulk<"reason">(name_of(outcome.error));
      });
    case ClaimAnswer::unprotected:
      return fields(1, [&](Fields& all) { all.word<"outcome", "unprotected">(); });
    case ClaimAnswer::too_new:
      return fields(2, [&](Fields& all) {
        all.word<"outcome", "too_new">();
        all.integer<"window_end_ms">(outcome.window_end_unix_ms.value_or(0));
      });
    case ClaimAnswer::unknown:
      return fields(1, [&](Fields& all) { all.word<"outcome", "unknown">(); });
  }
}

void write_owner_fields(RespWriter& reply, const OwnerOutcome& outcome) {
  switch (outcome.answer) {
    case OwnerAnswer::ok:
      Fields{reply, 2}.word<"outcome", "ok">().boolean<"late">(outcome.late);
      return;
    case OwnerAnswer::stale_owner: {
      Fields fields{reply, outcome.has_result ? 2U : 1U};
      fields.word<"outcome", "stale_owner">();
      if (outcome.has_result) fields.bulk<"result">(outcome.result);
      return;
    }
    case OwnerAnswer::conflict:
      Fields{reply, 1}.word<"outcome", "conflict">();
      return;
    case OwnerAnswer::not_owner:
      Fields{reply, 1}.word<"outcome", "not_owner">();
      return;
    case OwnerAnswer::unknown:
      Fields{reply, 1}.word<"outcome", "unknown">();
      return;
    case OwnerAnswer::unanswered:
    case OwnerAnswer::refused:
      Fields{reply, 1}.word<"outcome", "refused">();
      return;
  }
}

void write_error_of_many(RespWriter& reply, ErrorCode code) {
  Fields{reply, 2}.word<"outcome", "error">().bulk<"message">(error_text(code));
}

void write_held(Fields& fields, const ClaimView& view) {
  if (view.state == ClaimState::in_doubt) {
    fields.word<"state", "in_doubt">();
  } else {
    fields.word<"state", "held">();
  }
  fields.epoch<"epoch">(view.epoch).numbers(view);
  fields.ms<"lease_remaining_ms">(view.lease_remaining);
  for (const ClaimLabel& label : claim_labels) fields.label(label.name, view.*label.seen);
}

void write_fingerprint(Fields& fields, const Fingerprint& fingerprint) {
  fields.integer<"algorithm">(fingerprint.algorithm);
  if (fingerprint.algorithm == 0) {
    fields.null<"fingerprint">();
  } else {
    fields.bulk<"fingerprint">(base::hex_of(fingerprint.digest));
  }
}

constexpr std::size_t held_pairs = 3 + claim_numbers.size() + claim_labels.size();
constexpr std::size_t fingerprint_pairs = 2;

}  // namespace

std::string error_text(ErrorCode code) {
  std::string text{resp_prefix_of(code)};
  return text.append(" ").append(sentence_of(code));
}

void write_claim(RespWriter& reply, const ClaimOutcome& outcome) {
  static_cast<void>(write_claim_before(reply, outcome, 0));
}

bool write_claim_before(RespWriter& reply, const ClaimOutcome& outcome, std::size_t pairs) {
  if (is_outcome(outcome)) {
    write_claim_fields(reply, outcome, pairs);
    return true;
  }
  reply.error(error_text(outcome.error));
  return false;
}

void write_permit(RespWriter& reply, const PermitOutcome& found) {
  constexpr std::size_t pairs = 2;
  if (!write_claim_before(reply, found.claim, pairs)) return;
  reply.bulk("slot"), write_number(reply, found.slot);
  reply.bulk("key"), reply.bulk(found.key);
}

void write_access(RespWriter& reply, const AccessOutcome& found) {
  constexpr std::size_t pairs = 2;
  if (!is_outcome(found.claim)) return reply.error(error_text(found.claim.error));
  write_claim_fields(reply, found.claim, pairs);
  reply.bulk("token"), write_number(reply, static_cast<std::int64_t>(found.token));
  reply.bulk("key"), reply.bulk(found.key);
}

void write_owner(RespWriter& reply, const OwnerOutcome& outcome) {
  if (outcome.error != ErrorCode::ok) return reply.error(error_text(outcome.error));
  write_owner_fields(reply, outcome);
}

void write_claim_of_many(RespWriter& reply, const ClaimOutcome& outcome, bool free) {
  if (!is_outcome(outcome)) return write_error_of_many(reply, outcome.error);
  if (!free) return write_claim_fields(reply, outcome, outcome.folded_onto ? 1 : 0);
  Fields{reply, 1}.word<"outcome", "free">();
}

void write_owner_of_many(RespWriter& reply, const OwnerOutcome& outcome) {
  if (outcome.error != ErrorCode::ok) return write_error_of_many(reply, outcome.error);
  write_owner_fields(reply, outcome);
}

void write_view(RespWriter& reply, const ClaimView& view) {
  switch (view.state) {
    case ClaimState::absent:
      Fields{reply, 1}.word<"state", "absent">();
      return;
    case ClaimState::vacant: {
      Fields fields{reply, 2 + claim_numbers.size()};
      fields.word<"state", "issued">().numbers(view);
      fields.ms<"remaining_ms">(view.unique_remaining);
      return;
    }
    case ClaimState::held:
    case ClaimState::in_doubt: {
      Fields fields{reply, held_pairs + fingerprint_pairs};
      write_held(fields, view);
      return write_fingerprint(fields, view.fingerprint);
    }
    case ClaimState::done: {
      Fields fields{reply, 5 + claim_numbers.size() + fingerprint_pairs};
      fields.word<"state", "done">().epoch<"epoch">(view.epoch);
      fields.numbers(view).ms<"unique_remaining_ms">(view.unique_remaining);
      fields.ms<"result_remaining_ms">(view.result_remaining);
      view.result_expired ? fields.null<"result">() : fields.bulk<"result">(view.result);
      return write_fingerprint(fields, view.fingerprint);
    }
    case ClaimState::failed: {
      Fields fields{reply, 5 + claim_numbers.size() + fingerprint_pairs};
      fields.word<"state", "failed">().epoch<"epoch">(view.epoch);
      fields.numbers(view).ms<"failure_remaining_ms">(view.result_remaining);
      fields.boolean<"poison">(view.poison).bulk<"failure">(view.result);
      return write_fingerprint(fields, view.fingerprint);
    }
  }
}

void write_in_flight(RespWriter& reply, std::string_view key, const ClaimView& view) {
  Fields fields{reply, 1 + held_pairs};
  fields.bulk<"key">(key);
  write_held(fields, view);
}

void write_held_permit(RespWriter& reply, const PermitView& permit, std::string_view key) {
  Fields fields{reply, 2 + held_pairs};
  fields.bulk<"key">(key).integer<"slot">(permit.slot);
  write_held(fields, permit.claim);
}

void write_held_access(RespWriter& reply, const AccessView& held) {
  Fields fields{reply, 2 + held_pairs};
  fields.bulk<"key">(held.key);
  if (held.waits) {
    fields.word<"access", "next">();
  } else if (held.access == Access::write) {
    fields.word<"access", "write">();
  } else {
    fields.word<"access", "read">();
  }
  write_held(fields, held.claim);
}

void write_rate(RespWriter& reply, const RateOutcome& outcome) {
  Fields fields{reply, 4};
  outcome.allowed ? fields.word<"outcome", "allowed">() : fields.word<"outcome", "limited">();
  fields.integer<"remaining">(static_cast<std::int64_t>(outcome.remaining));
  fields.ms<"retry_after_ms">(outcome.retry_after).ms<"reset_after_ms">(outcome.reset_after);
}

void write_number(RespWriter& reply, std::int64_t number) {
  reply.dialect() == Resp::three ? reply.integer(number) : reply.bulk_of(number);
}

void write_flag(RespWriter& reply, bool value) {
  reply.dialect() == Resp::three ? reply.boolean(value) : reply.bulk(value ? "1" : "0");
}

void write_policy(RespWriter& reply, std::string_view name, const Policy& policy) {
  constexpr std::size_t pairs = 19;
  reply.map(pairs);
  const auto ms = [&](std::string_view field, Millis time) {
    reply.bulk(field);
    write_number(reply, time.count());
  };
  reply.bulk("name"), reply.bulk(name);
  reply.bulk("db"), write_number(reply, policy.db);
  ms("lease_ms", policy.lease);
  ms("result_ttl_ms", policy.result_ttl);
  ms("unique_ttl_ms", policy.unique_ttl);
  ms("failure_ttl_ms", policy.failure_ttl);
  ms("attempts_ttl_ms", policy.attempts_ttl);
  ms("window_ms", policy.window);
  ms("retry_after_max_ms", policy.retry_after_max);
  reply.bulk("attempts_max"), write_number(reply, policy.attempts_max);
  reply.bulk("on_lease_end");
  reply.bulk(policy.on_lease_end == Policy::OnLeaseEnd::retry ? "retry" : "in-doubt");
  reply.bulk("on_failure");
  reply.bulk(policy.on_failure == Policy::OnFailure::release ? "release" : "keep");
  reply.bulk("strict"), write_flag(reply, policy.strict);
  reply.bulk("fail_open"), write_flag(reply, policy.fail_open);
  ms("ahead_ms", policy.ahead);
  reply.bulk("issued"), write_flag(reply, policy.issued);
  reply.bulk("fair"), write_flag(reply, policy.fair);
  reply.bulk("on_exception");
  reply.bulk(policy.on_exception == Policy::OnFailure::in_doubt ? "in-doubt"
             : policy.on_exception == Policy::OnFailure::keep   ? "keep"
                                                                : "release");
  ms("sliding_max_ms", policy.sliding_max);
}

}  // namespace semel::net
