#include "tests/replication/node/runner.hpp"

#include "semel/claims.hpp"
#include "semel/store.hpp"

namespace semel::tests {

replication::PlainAnswer WordsRunner::run(const replication::RequestCommand& command) {
  // mo: relaxed: the test waits for what follows from it
  if (fails_.exchange(false, std::memory_order_relaxed)) return {.error = ErrorCode::memory_full};
  runs_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a count
  std::string replies;
  for (const std::vector<Bytes>& words : command.requests) replies += reply(words) + " ";
  return {.text = std::move(replies)};
}

std::string WordsRunner::reply(const std::vector<Bytes>& words) {
  Engine& engine = *engine_.load(std::memory_order_acquire);  // mo: acquire [test.runner]
  Store store = engine.store();
  if (words[0] == "INCR") {
    const auto value = store.incr_by(words[1], 1);
    return value.ok() ? std::to_string(*value) : "error";
  }
  if (words[0] == "SETNX") {
    const auto set = store.set(words[1], words[2], {.condition = Condition::if_absent});
    return set.ok() && set->stored ? "taken" : "there";
  }
  Policy policy;
  policy.issued = true;
  auto tokens = engine.claims("tokens", policy);
  if (!tokens.ok()) return "error";
  if (words[0] == "ISSUE") {
    const auto issued = tokens->issue(words[1]);
    return issued.ok() && *issued ? "issued" : "not";
  }
  return tokens->claim({.key = words[1]}).answer == ClaimAnswer::granted ? "first" : "not";
}

}  // namespace semel::tests
