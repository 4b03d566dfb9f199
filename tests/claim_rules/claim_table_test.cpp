// The claim rules against claim_table.txt: every combination of its dimensions, asked of the
// code's own pure functions. Words: as in the table.
#include "tests/claim_rules/claim_table.hpp"
#include "engine/rules/memo_list.hpp"

#include <algorithm>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "tests/engine/claim_bench.hpp"

using namespace semel;
using namespace semel::engine;
using namespace semel::tests;
using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;

/// What the table does not tell apart, because it must not matter.
struct Variant {
  bool bare = false;    ///< the owner gave no claim_id, where the combination does not need one
  bool beyond = false;  ///< more attempts than the limit, lease over for a while
  bool by_call = true;  ///< what becomes of a failure is said by the call, else by the policy
};

const std::string& name_of(ClaimAnswer answer) {
  static const Words names{"unanswered", "granted",      "regranted",  "in_flight",
                           "replay",     "kept_failure", "mismatch",   "in_doubt",
                           "too_old",    "busy",         "unprotected"};
  return names.at(static_cast<std::size_t>(answer));
}

const std::string& name_of(OwnerAnswer answer) {
  static const Words names{"unanswered", "ok",      "stale_owner", "conflict",
                           "not_owner",  "unknown", "refused"};
  return names.at(static_cast<std::size_t>(answer));
}

/// What a call did, in the table's words.
struct Seen {
  std::string answer = "-";
  Words flags;
  Words carries;
  std::string next;  ///< what is wrong with the stored record is appended, in brackets
};

std::string text_of(const Words& words) {
  if (words.empty()) return "-";
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ",") + word;
  return all;
}

std::string text_of(const Seen& seen) {
  return seen.answer + " " + text_of(seen.flags) + " " + text_of(seen.carries) + " " + seen.next;
}

std::string text_of(const TableRow& row) {
  return row.answer + " " + text_of(row.flags) + " " + text_of(row.carries) + " " + row.next;
}

/// A record as the combination has it, under its policy, and the call on it.
class Trial {
 public:
  Trial(const ClaimTable& table, const TableCall& call, const Combination& at, Variant variant)
      : table_(table), call_(call), at_(at), variant_(variant) {
    is_sound_ = build();
    is_sound_ = is_sound_ && set_policy();
  }

  [[nodiscard]] Seen run() {
    Seen seen;
    bytes_before_ = b_.value;
    due_before_ = b_.due;
    if (!b_.present || !decode(bytes_before_, before_)) before_ = {};
    b_.last = {};
    if (!is_sound_) {
      seen.answer = "(a value of the table that this test cannot set up)";
    } else if (call_.name == "claim") {
      claim(seen);
    } else if (call_.name == "wheel") {
      if (b_.present) b_.trim_now();
    } else if (call_.name == "forget") {
      seen.answer = b_.forget().found ? "found" : "none";
    } else if (call_.name == "resolve_done") {
      payload_ = "by hand";
      seen.answer = b_.resolve(Resolution::done, payload_).found ? "found" : "none";
    } else if (call_.name == "resolve_released") {
      seen.answer = b_.resolve(Resolution::released).found ? "found" : "none";
    } else if (call_.name == "end") {
      const bool was_there = b_.live().has_value();
      if (b_.due != no_end) b_.now = std::max(b_.now, b_.due);
      seen.next = b_.live().has_value() == was_there ? "=" : "absent";
      return seen;
    } else if (call_.name == "recall" || call_.name == "remember") {
      step_call(seen);
    } else {
      owner_call(seen);
    }
    seen.next = next();
    return seen;
  }

 private:
  struct Bench : ClaimBench {
    [[nodiscard]] ClaimRecord record_or_none() const {
      ClaimRecord read;
      return present && decode(value, read) ? read : ClaimRecord{};
    }
  };

  [[nodiscard]] const std::string& at(const char* dimension) const {
    return table_.value(at_, dimension);
  }
  [[nodiscard]] bool is(const char* dimension, const char* value) const {
    return at(dimension) == value;
  }

  /// Two grants, so that there is an owner from before.
  [[nodiscard]] bool build() {
    b_.policy.unique_ttl = 9000ms;
    b_.policy.window = 60'000ms;
    b_.policy.attempts_max = 9;
    if (is("slides", "yes")) b_.policy.sliding_max = 60'000ms;
    ClaimRequest request{.owner = "owner"};
    if (!is("print", "unknown") || call_.name != "claim") request.fingerprint = print(1, 1);
    if (!variant_.bare || is("id", "same")) request.claim_id = id_of(1);
    older_ = b_.claim(request).epoch;
    static_cast<void>(b_.fail(older_));
    const bool is_poison = is("record", "poison");
    if (is("lapse", "in_doubt") && !is_poison) {
      b_.policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
    }
    same_ = b_.claim(request).epoch;
    if (is("memos", "kept") && b_.remember(same_, "step", "memo").error != ErrorCode::ok) {
      return false;
    }
    const std::string& record = at("record");
    if (record == "absent") return b_.forget().found;
    if (record == "vacant") return b_.fail(same_).answer == OwnerAnswer::ok;
    if (record == "held") return true;
    if (record == "over") {
      b_.now += b_.policy.lease + (variant_.beyond ? 500ms : 0ms);
      return true;
    }
    if (record == "closed") {
      b_.owner_dead = true;
      return true;
    }
    if (record == "failed") {
      stored_ = "failure";
      return b_.fail(same_, Policy::OnFailure::keep, stored_).answer == OwnerAnswer::ok;
    }
    if (record == "doubt") {
      stored_ = "what is known";
      return b_.fail(same_, Policy::OnFailure::in_doubt, stored_).answer == OwnerAnswer::ok;
    }
    if (is_poison) {
      b_.policy.attempts_max = 2;
      b_.now += b_.policy.lease;
      return b_.claim().poison;
    }
    return build_done(record);
  }

  [[nodiscard]] bool build_done(const std::string& record) {
    stored_ = "result";
    if (b_.complete(same_, stored_).answer != OwnerAnswer::ok) return false;
    if (is("slides", "yes")) b_.now += 1000ms;
    if (record == "done") return true;
    b_.now = b_.record().result_until;
    if (record == "spent") return true;
    b_.trim_now();
    return record == "digest";
  }

  [[nodiscard]] bool set_policy() {
    b_.policy.on_lease_end =
        is("lapse", "retry") ? Policy::OnLeaseEnd::retry : Policy::OnLeaseEnd::in_doubt;
    b_.policy.strict = is("strict", "yes");
    const std::uint32_t attempts = b_.record_or_none().attempts;
    b_.policy.attempts_max = 0;
    if (is("attempts", "below")) b_.policy.attempts_max = attempts + 1;
    if (is("attempts", "at")) b_.policy.attempts_max = attempts - (variant_.beyond ? 1 : 0);
    // A row with a value that is never set up would not be tested.
    const bool known_lapse = is("lapse", "retry") || is("lapse", "in_doubt");
    const bool known_attempts = is("attempts", "none") || b_.policy.attempts_max != 0;
    const bool known_slides = is("slides", "yes") || is("slides", "no");
    return known_lapse && known_attempts && known_slides &&
           (is("strict", "yes") || is("strict", "no"));
  }

  void claim(Seen& seen) {
    ClaimRequest request{.owner = "asker"};
    if (is("id", "same")) request.claim_id = id_of(1);
    if (is("id", "other")) request.claim_id = id_of(2);
    if (is("print", "same") || is("print", "unknown")) request.fingerprint = print(1, 1);
    if (is("print", "differs")) request.fingerprint = print(1, 2);
    if (is("print", "other")) request.fingerprint = print(2, 2);
    if (is("sent", "inside")) request.first_sent_unix_ms = unix_zero - 59'999;
    if (is("sent", "old")) request.first_sent_unix_ms = unix_zero - 60'000;
    const bool known = (is("sent", "none") || request.first_sent_unix_ms) &&
                       (is("id", "none") || request.claim_id) &&
                       (is("print", "not_given") || request.fingerprint.algorithm != 0);
    if (!known) return static_cast<void>(seen.answer = "(unknown to the test)");
    candidate_ = b_.version + 1;
    asked_ = request;
    const ClaimOutcome outcome = b_.claim(request);
    seen.answer = name_of(outcome.answer);
    if (outcome.error != ErrorCode::ok) seen.answer += "(error)";
    if (outcome.result_expired) seen.flags.push_back("expired");
    if (outcome.poison) seen.flags.push_back("poison");
    if (outcome.takeover) seen.flags.push_back("takeover");
    const bool granted = outcome.answer == ClaimAnswer::granted;
    const std::uint32_t attempts = before_.attempts + (granted ? 1 : 0);
    if (outcome.attempt != 0) carry(seen, "attempt", outcome.attempt == attempts);
    if (outcome.epoch != 0 && granted) carry(seen, "new_epoch", outcome.epoch == candidate_);
    if (outcome.epoch != 0 && !granted) carry(seen, "its_epoch", outcome.epoch == before_.epoch);
    if (!outcome.owner.empty()) carry(seen, "label", outcome.owner == "owner");
    if (outcome.remaining != 0ms) {
      carry(seen, "remaining", outcome.remaining == before_.lease_until - b_.now);
    }
    if (!outcome.result.empty()) carry(seen, "result", outcome.result == stored_);
    if (outcome.window_start_unix_ms) {
      carry(seen, "window", outcome.window_start_unix_ms == unix_zero - 60'000);
    }
    const bool in_flight = outcome.answer == ClaimAnswer::in_flight;
    const Millis hint = in_flight ? std::min(outcome.remaining, b_.policy.retry_after_max) : 0ms;
    if (outcome.retry_after != hint) carry(seen, "retry_after", false);
    std::sort(seen.carries.begin(), seen.carries.end());
  }

  void owner_call(Seen& seen) {
    payload_ = is("payload", "same") ? stored_ : "other";
    const Epoch epoch = is("epoch", "same") ? same_ : is("epoch", "older") ? older_ : same_ + 1;
    OwnerCall what{.epoch = epoch, .payload = payload_};
    OwnerVerb verb = OwnerVerb::complete;
    if (call_.name == "fail_doubt") {
      verb = OwnerVerb::fail;
      what.on_failure = Policy::OnFailure::in_doubt;
    } else if (call_.name == "fail_keep" || call_.name == "fail_release") {
      verb = OwnerVerb::fail;
      const bool keeps = call_.name == "fail_keep";
      const auto said = keeps ? Policy::OnFailure::keep : Policy::OnFailure::release;
      const auto opposite = keeps ? Policy::OnFailure::release : Policy::OnFailure::keep;
      if (variant_.by_call) what.on_failure = said;
      b_.policy.on_failure = variant_.by_call ? opposite : said;
    } else if (call_.name == "renew") {
      verb = OwnerVerb::renew;
      if (variant_.by_call) what.lease = b_.policy.lease;
    } else if (call_.name == "release") {
      verb = OwnerVerb::release;
    } else if (call_.name != "complete") {
      return static_cast<void>(seen.answer = "(a call that this test does not know)");
    }
    const OwnerOutcome outcome = b_.call(verb, what);
    seen.answer = name_of(outcome.answer);
    if (outcome.error != ErrorCode::ok) seen.answer += "(error)";
    if (outcome.late) seen.flags.push_back("late");
    if (outcome.has_result) carry(seen, "result", outcome.result == stored_);
    if (!outcome.has_result && !outcome.result.empty()) carry(seen, "payload", false);
  }

  void step_call(Seen& seen) {
    const Epoch epoch = is("epoch", "same") ? same_ : is("epoch", "older") ? older_ : same_ + 1;
    const bool recalls = call_.name == "recall";
    const MemoOutcome outcome =
        recalls ? b_.recall(epoch, "step") : b_.remember(epoch, "step", "new memo");
    seen.answer = outcome.error == ErrorCode::not_owner ? "not_owner" : "ok";
    if (outcome.error != ErrorCode::ok && outcome.error != ErrorCode::not_owner) {
      seen.answer += "(error)";
    }
    if (outcome.memo) carry(seen, "memo", outcome.memo == "memo");
  }

  static void carry(Seen& seen, const std::string& word, bool right) {
    seen.carries.push_back(right ? word : word + "(wrong)");
  }

  /// The record afterwards: its state, and whether each field is what that state asks for.
  [[nodiscard]] std::string next() const {
    if (!b_.changed()) return "=";
    if (!b_.present) return "absent";
    const ClaimRecord now = b_.record_or_none();
    switch (now.state) {
      case ClaimState::held:
        return right_held(now) ? "held" : "held(wrong)";
      case ClaimState::done:
        if (call_.name == "claim") return slid(now);
        if (now.result_expired) return right_digest(now) ? "digest" : "digest(wrong)";
        return right_done(now) ? "done" : "done(wrong)";
      case ClaimState::failed:
        if (now.poison) return right_failed(now, "") ? "poison" : "poison(wrong)";
        return right_failed(now, payload_) ? "failed" : "failed(wrong)";
      case ClaimState::in_doubt:
        return right_doubt(now) ? "doubt" : "doubt(wrong)";
      case ClaimState::vacant:
        return right_vacant(now) ? "vacant" : "vacant(wrong)";
      default:
        return "(no state)";
    }
  }
  [[nodiscard]] bool right_held(const ClaimRecord& now) const {
    const bool by_claim = call_.name == "claim";
    const bool due =
        b_.due == (is("lapse", "in_doubt") ? no_end : now.lease_until + b_.policy.attempts_ttl);
    const bool lease = now.lease_until == b_.now + b_.policy.lease;
    if (call_.name == "remember") {
      const bool due_stays = b_.due == due_before_;
      return due_stays && now.lease_until == before_.lease_until && now.epoch == before_.epoch &&
             now.attempts == before_.attempts && now.claim_id == before_.claim_id &&
             now.fingerprint == before_.fingerprint && now.owner == before_.owner &&
             now.session == before_.session &&
             find_memo(now.memos, now.fingerprint, "step") == "new memo";
    }
    if (now.memos != before_.memos) return false;
    if (!by_claim) {
      return due && lease && now.epoch == before_.epoch && now.attempts == before_.attempts &&
             now.claim_id == before_.claim_id && now.fingerprint == before_.fingerprint &&
             now.owner == before_.owner && now.session == before_.session;
    }
    const bool given = asked_.fingerprint.algorithm != 0;
    return due && lease && now.epoch == candidate_ && now.epoch > same_ &&
           now.attempts == before_.attempts + 1 && now.claim_id == asked_.claim_id &&
           now.fingerprint == (given ? asked_.fingerprint : before_.fingerprint) &&
           now.owner == "asker" && now.session == 7;
  }
  [[nodiscard]] bool is_kept(const ClaimRecord& now) const {
    return now.epoch == before_.epoch && now.attempts == before_.attempts &&
           now.fingerprint == before_.fingerprint && !now.claim_id && now.session == 0;
  }
  [[nodiscard]] bool right_done(const ClaimRecord& now) const {
    return is_kept(now) && now.memos.empty() && now.result == payload_ &&
           now.result_until == b_.now + result_ttl() &&
           now.unique_until == b_.now + (is("slides", "yes") ? 60'000ms : 9000ms) &&
           b_.due == b_.now + unique_ttl();
  }
  // In a sliding window the ends are a share of 1/16 later.
  [[nodiscard]] Millis result_ttl() const { return is("slides", "yes") ? 5312ms : 5000ms; }
  [[nodiscard]] Millis unique_ttl() const { return is("slides", "yes") ? 9562ms : 9000ms; }
  /// What a duplicate leaves of done work.
  [[nodiscard]] std::string slid(const ClaimRecord& now) const {
    const bool is_over = before_.result_expired || before_.result_until <= b_.now;
    const bool is_right =
        is_kept(now) && now.memos.empty() && now.result == before_.result &&
        now.result_digest == before_.result_digest && now.unique_until == before_.unique_until &&
        now.result_until == (is_over ? before_.result_until : b_.now + result_ttl()) &&
        b_.due == b_.now + unique_ttl();
    const std::string word = now.result_expired ? "digest" : is_over ? "spent" : "done";
    return is_right ? word : word + "(wrong)";
  }
  [[nodiscard]] bool right_digest(const ClaimRecord& now) const {
    return is_kept(now) && now.result.empty() && now.unique_until == before_.unique_until &&
           b_.due == due_before_;
  }
  [[nodiscard]] bool right_failed(const ClaimRecord& now, const std::string& failure) const {
    return is_kept(now) && now.memos.empty() && now.result == failure && b_.due == b_.now + 3000ms;
  }
  [[nodiscard]] bool right_doubt(const ClaimRecord& now) const {
    return is_kept(now) && now.memos == before_.memos && now.result == payload_ &&
           now.owner == before_.owner && b_.due == no_end;
  }
  [[nodiscard]] bool right_vacant(const ClaimRecord& now) const {
    const bool takes_back = call_.name == "release" || call_.name == "resolve_released";
    return now.attempts + (takes_back ? 1U : 0U) == before_.attempts &&
           now.epoch == before_.epoch && now.memos == before_.memos && now.result.empty() &&
           b_.due == b_.now + 2000ms;
  }

  const ClaimTable& table_;
  const TableCall& call_;
  const Combination& at_;
  const Variant variant_;
  Bench b_;
  bool is_sound_ = false;
  Epoch older_ = 0;
  Epoch same_ = 0;
  std::string stored_;   ///< result or failure of the record
  std::string payload_;  ///< of the call
  std::string bytes_before_;
  Timestamp due_before_{};
  ClaimRecord before_;  ///< points into these bytes
  ClaimRequest asked_;
  Version candidate_ = 0;
};

/// How the code differs from the table, a line each, at most `most`.
Words differences(const ClaimTable& table, std::size_t most, std::size_t& trials) {
  Words all;
  for (const TableCall& call : table.calls()) {
    if (call.name == "restart") continue;  // tests/storage/claim_cases_test.cpp
    table.each(call, [&](const Combination& at) {
      const TableRow* row = ClaimTable::row(call, at);
      if (row == nullptr || all.size() >= most) return;
      for (unsigned bits = 0; bits < 8; ++bits) {
        const Variant variant{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
        const Seen seen = Trial{table, call, at, variant}.run();
        ++trials;
        if (text_of(seen) == text_of(*row)) continue;
        all.push_back("line " + std::to_string(row->line) + ": " + table.describe(call, at) +
                      " variant " + std::to_string(bits) + " is " + text_of(seen) + ", not " +
                      text_of(*row));
        return;
      }
    });
  }
  return all;
}

/// The text without, or with twice, the line `number`.
std::string with_line(const std::string& text, std::size_t number, int times) {
  std::string changed;
  std::size_t at = 1;
  for (std::size_t start = 0; start < text.size(); ++at) {
    const std::size_t end = text.find('\n', start) + 1;
    const std::string line = text.substr(start, end - start);
    for (int i = 0; i < (at == number ? times : 1); ++i) changed += line;
    start = end;
  }
  return changed;
}

}  // namespace

TEST_CASE("claim table: every combination of its dimensions has exactly one row",
          "[claim_rules][table]") {
  const ClaimTable table{ClaimTable::text()};
  for (const std::string& gap : table.gaps()) FAIL_CHECK(gap);
  CHECK(table.calls().size() == 15);
}

TEST_CASE("claim table: a row that is missing, doubled or not understood is noticed",
          "[claim_rules][table]") {
  const std::string text = ClaimTable::text();
  const ClaimTable table{text};
  for (const TableCall& call : table.calls()) {
    for (const TableRow& row : call.rows) {
      INFO("line " << row.line);
      CHECK_FALSE(ClaimTable{with_line(text, row.line, 0)}.gaps().empty());
      CHECK_FALSE(ClaimTable{with_line(text, row.line, 2)}.gaps().empty());
    }
  }
  CHECK_FALSE(ClaimTable{text + "call more nothing\n"}.gaps().empty());
  CHECK_FALSE(ClaimTable{text + "call more record\n  * -> ok - -\n"}.gaps().empty());
  CHECK_FALSE(ClaimTable{text + "call more record\n  lost -> ok - - =\n"}.gaps().empty());
  CHECK_FALSE(ClaimTable{text + "never record=absent lapse=retry\n"}.gaps().empty());
  CHECK_FALSE(ClaimTable{text + "never record=absent lapse=lost because\n"}.gaps().empty());
  CHECK(ClaimTable{text + "never record=absent lapse=retry because of that\n"}.gaps().empty());
  CHECK_FALSE(ClaimTable{""}.gaps().empty());
}

TEST_CASE("claim table: the code does in every combination what its row says",
          "[claim_rules][table]") {
  const ClaimTable table{ClaimTable::text()};
  std::size_t trials = 0;
  for (const std::string& difference : differences(table, 20, trials)) FAIL_CHECK(difference);
  CHECK(trials > 60'000);
}

TEST_CASE("claim table: a row that says something else than the code is noticed",
          "[claim_rules][table]") {
  const std::string text = ClaimTable::text();
  const auto changed = [&](const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    std::string made = text;
    made.replace(at, from.size(), to);
    std::size_t trials = 0;
    return differences(ClaimTable{made}, 1, trials).size();
  };
  CHECK(changed("granted takeover new_epoch,attempt held", "granted - new_epoch,attempt held") > 0);
  CHECK(changed("in_flight - attempt,remaining,label =", "in_flight - attempt,remaining =") > 0);
  CHECK(changed("ok late - done", "ok late - =") > 0);
  CHECK(changed("ok late - vacant", "ok late - absent") > 0);
  CHECK(changed("stale_owner - result =", "stale_owner - - =") > 0);
  CHECK(changed("replay - attempt,result done", "replay - attempt,result =") > 0);
  CHECK(changed("ok - memo =", "ok - - =") > 0);
  CHECK(changed("none  -> ok - - =", "none  -> not_owner - - =") > 0);
  CHECK(changed("kept  -> found - - vacant", "kept  -> found - - absent") > 0);
}
