#include "tests/proofs/linearizability/history.hpp"

#include <array>

namespace semel::proofs {
namespace {

template <class Enum, std::size_t Count>
std::string name(const std::array<const char*, Count>& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < Count ? names[index] : std::to_string(index);
}

constexpr std::array verbs{"get",    "exists",   "type",    "strlen",  "getrange",
                           "digest", "ttl",      "set",     "getdel",  "getex",
                           "append", "setrange", "incr_by", "decr_by", "incr_by_float",
                           "increx", "del",      "delex",   "expire",  "persist"};
constexpr std::array conditions{"", " NX", " XX", " IFEQ", " IFNE", " IFDEQ", " IFDNE", " IFVER"};
constexpr std::array answers{"granted",      "regranted",   "in_flight", "replay",
                             "kept_failure", "mismatch",    "in_doubt",  "too_old",
                             "busy",         "unprotected", "too_new",   "unknown"};
constexpr std::array owner_verbs{"complete", "fail", "renew", "release"};
constexpr std::array owner_answers{"ok",        "stale_owner", "conflict",
                                   "not_owner", "unknown",     "refused"};

/// In quotes, printable, and never long.
std::string shorten(const std::string& text) {
  std::string shown = text.size() <= 24 ? text : text.substr(0, 16);
  for (char& c : shown) c = c >= ' ' && c <= '~' ? c : '.';
  if (text.size() <= 24) return "'" + shown + "'";
  return "'" + shown + "..' (" + std::to_string(text.size()) + " bytes)";
}

std::string describe_expiry(const Expiry& expiry) {
  switch (expiry.mode()) {
    case Expiry::Mode::clear:
      return "";
    case Expiry::Mode::keep:
      return " KEEPTTL";
    case Expiry::Mode::in:
      return " PX " + std::to_string(expiry.ttl().count());
    case Expiry::Mode::at:
      return " AT " + std::to_string(to_ms(expiry.when()));
  }
  return "";
}

std::string describe(const StoreStep& step) {
  const StoreOp& op = step.call.op;
  std::string text = name(verbs, op.verb) + " " + shorten(step.call.key);
  if (is_write(op.verb) && !step.call.value.empty()) text += " " + shorten(step.call.value);
  text += name(conditions, op.condition);
  if (!step.call.operand.empty()) text += " " + shorten(step.call.operand);
  text += describe_expiry(op.expiry);
  if (op.get) text += " GET";
  if (op.amount != 0) text += " amount " + std::to_string(op.amount);
  const StoreOutcome& seen = step.seen;
  text += " -> ";
  if (seen.error != ErrorCode::ok) return text + std::string{name_of(seen.error)};
  text += seen.found ? "found" : "none";
  if (seen.applied) text += " applied";
  if (seen.has_value) text += " " + shorten(seen.value);
  if (seen.number != 0) text += " number " + std::to_string(seen.number);
  return text + " version " + std::to_string(seen.version);
}

std::string describe(const ClaimStep& step) {
  std::string text = "claim " + shorten(step.call.key);
  if (step.call.request.lease) {
    text += " lease " + std::to_string(step.call.request.lease->count());
  }
  if (step.call.request.claim_id) {
    text += " id " + std::to_string((*step.call.request.claim_id)[0]);
  }
  text += " session " + std::to_string(step.call.session) + " -> ";
  const ClaimOutcome& seen = step.seen;
  if (seen.error != ErrorCode::ok) text += std::string{name_of(seen.error)} + " ";
  text += name(answers, seen.answer);
  if (seen.takeover) text += " takeover";
  if (seen.epoch != 0) text += " epoch " + std::to_string(seen.epoch);
  if (seen.attempt != 0) text += " attempt " + std::to_string(seen.attempt);
  if (!seen.result.empty()) text.append(" result ").append(shorten(seen.result));
  return text + " version " + std::to_string(seen.version);
}

std::string describe(const OwnerStep& step) {
  std::string text = name(owner_verbs, step.call.verb) + " " + shorten(step.call.key) + " epoch " +
                     std::to_string(step.call.call.epoch);
  if (!step.call.payload.empty()) text.append(" ").append(shorten(step.call.payload));
  text += " -> " + name(owner_answers, step.seen.answer);
  if (step.seen.error != ErrorCode::ok) text += " " + std::string{name_of(step.seen.error)};
  if (step.seen.late) text += " late";
  return text + " version " + std::to_string(step.seen.version);
}

std::string describe(const CloseSession& step) {
  return "close session " + std::to_string(step.session);
}

std::string describe(const Shown& step) {
  if (!step.present) return "snapshot shows nothing";
  return "snapshot shows version " + std::to_string(step.version) + " " + shorten(step.value);
}

}  // namespace

std::string describe(const Step& step) {
  return "key " + std::to_string(step.key) + ": " +
         std::visit([](const auto& what) { return describe(what); }, step.what);
}

std::string describe(const Call& call) {
  std::string text = "[" + std::to_string(call.invoked) + ".." + std::to_string(call.returned) +
                     ", clock " + std::to_string(call.clock_before) + ".." +
                     std::to_string(call.clock_after) + ", thread " + std::to_string(call.thread) +
                     "]";
  for (const Step& step : call.steps) text += " " + describe(step) + ";";
  return text;
}

}  // namespace semel::proofs
