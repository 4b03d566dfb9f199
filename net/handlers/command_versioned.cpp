// A value with its version, and a change that is made only if nothing else has changed it since.
#include "net/claims/claim_reply.hpp"
#include "net/commands/expiry_words.hpp"
#include "net/commands/handlers.hpp"
#include "net/commands/single_key_command.hpp"
#include "net/resp/text.hpp"

namespace semel::net {
namespace {

ArgumentError plan_versioned_get(const Call&, StoreOp& op) {
  op.verb = Verb::get;
  return ArgumentError::none;
}

/// SEMEL.CAS key version value [EX s | PX ms | EXAT s | PXAT ms | PERSIST]; without: the ttl stays.
ArgumentError plan_compare_and_set(const Call& call, StoreOp& op) {
  const auto version = integer_of(call.args[2]);
  if (!version || *version < 0) return ArgumentError::integer;
  op.verb = Verb::set;
  op.condition = Condition::if_version;
  op.expected = static_cast<Version>(*version);
  op.get = true;
  op.value = call.args[3];
  op.expiry = Expiry::keep();
  if (call.args.size() == 4) return ArgumentError::none;
  const std::string_view word = call.args[4];
  if (call.args.size() == 5 && is_word(word, "persist")) {
    op.expiry = Expiry::clear();
    return ArgumentError::none;
  }
  const auto unit = expiry_unit_of(word);
  if (!unit || call.args.size() != 6) return ArgumentError::syntax;
  return read_expiry(call, *unit, call.args[5], op.expiry);
}

void write_version(Call& call, const StoreOutcome& found) {
  call.reply.bulk("version");
  write_number(call.reply, static_cast<std::int64_t>(found.version));
}

void answer_versioned_get(Call& call, const StoreOp&, const StoreOutcome& found) {
  if (!found.has_value) return call.reply.null();
  call.reply.map(2);
  write_version(call, found);
  call.reply.bulk("value");
  call.reply.bulk(found.value);
}

void answer_compare_and_set(Call& call, const StoreOp&, const StoreOutcome& found) {
  const bool shows = !found.applied && found.has_value;
  call.reply.map(shows ? 3 : 2);
  call.reply.bulk("outcome");
  call.reply.bulk(found.applied ? "stored" : "changed");
  write_version(call, found);
  if (!shows) return;
  call.reply.bulk("value");
  call.reply.bulk(found.value);
}

}  // namespace

namespace singles {

const Single semel_cas_single{plan_compare_and_set, answer_compare_and_set};
const Single semel_get_single{plan_versioned_get, answer_versioned_get};

}  // namespace singles

namespace handlers {
namespace {

void run(Call& call, const Single& single) {
  ArgumentError error = ArgumentError::none;
  if (!run_single(call, single, error)) call.fail(error);
}

}  // namespace

void semel_cas(Call& call) {
  run(call, singles::semel_cas_single);
}
void semel_get(Call& call) {
  run(call, singles::semel_get_single);
}

}  // namespace handlers
}  // namespace semel::net
