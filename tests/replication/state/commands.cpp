#include "tests/replication/state/commands.hpp"

#include <algorithm>
#include <utility>

#include "replication/state/feature_level.hpp"

namespace semel::tests {
namespace {

using namespace replication;

constexpr std::uint64_t keys_max = 600;
constexpr std::size_t owned_max = 256;
constexpr std::size_t sessions_max = 24;
constexpr std::array<const char*, 4> names{"orders", "payments", "tokens", "short"};

Policy policy_of(Bytes name, FeatureLevel level, proofs::Random& random) {
  Policy policy;
  policy.lease = Millis{static_cast<std::int64_t>(random.between(200, 4'000))};
  policy.result_ttl = Millis{static_cast<std::int64_t>(random.between(100, 3'000))};
  policy.unique_ttl = Millis{static_cast<std::int64_t>(random.between(0, 1) * 9'000)};
  policy.attempts_max = random.chance(1, 3) ? 3 : 0;
  policy.attempts_ttl = Millis{5'000};
  if (name == "payments") {
    policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
    policy.window = Millis{20'000};
    policy.ahead = Millis{1'000};
  }
  if (name == "orders" && level >= feature_level_sliding) policy.sliding_max = Millis{12'000};
  if (name == "tokens") policy.issued = true;
  if (name == "short") policy.strict = policy.fair = true;
  return policy;
}

}  // namespace

Bytes Commands::key() {
  return keep("k" + std::to_string(random_.below(keys_max)));
}

Bytes Commands::value() {
  if (random_.chance(1, 3)) return keep(std::to_string(random_.below(1'000'000)));
  if (random_.chance(1, 8)) return keep(std::to_string(random_.below(100)) + ".25");
  return keep(std::string(random_.below(random_.chance(1, 10) ? 400 : 40),
                          static_cast<char>('a' + random_.below(26))));
}

std::uint8_t Commands::db() {
  return random_.chance(5, 6) ? 0 : static_cast<std::uint8_t>(random_.below(3));
}

Expiry Commands::expiry() {
  const auto ms =
      static_cast<std::int64_t>(random_.between(1, random_.chance(1, 4) ? 60'000 : 900));
  switch (random_.below(6)) {
    case 0:
      return Expiry::keep();
    case 1:
    case 2:
      return Expiry::in(Millis{ms});
    case 3:
      return Expiry::at(Timestamp{Millis{unix_ms_ + ms - 100}});
    default:
      return Expiry::clear();
  }
}

Bytes Commands::name() {
  return random_.chance(1, 50) ? Bytes{"unknown"} : Bytes{random_.pick(names)};
}

std::int64_t Commands::next_time() {
  unix_ms_ += static_cast<std::int64_t>(random_.below(20));
  if (random_.chance(1, 400)) unix_ms_ += static_cast<std::int64_t>(random_.below(600'000));
  return unix_ms_;
}

StoreCommand Commands::store() {
  constexpr std::array<Verb, 14> verbs{
      Verb::set,    Verb::set,      Verb::set,     Verb::getdel,  Verb::getex,
      Verb::append, Verb::setrange, Verb::incr_by, Verb::decr_by, Verb::incr_by_float,
      Verb::increx, Verb::del,      Verb::expire,  Verb::persist};
  StoreCommand command;
  StoreOp& op = command.op;
  op.verb = random_.chance(1, 12) ? Verb::delex : random_.pick(verbs);
  op.db = db();
  op.key = key();
  if (op.verb == Verb::set || op.verb == Verb::append || op.verb == Verb::setrange) {
    op.value = value();
  }
  if (op.verb == Verb::set || op.verb == Verb::delex) {
    op.condition = static_cast<Condition>(random_.below(8));
    if (op.verb == Verb::set && random_.chance(1, 2)) op.condition = Condition::always;
    op.operand = value();
    op.expected = random_.bits() & 0xffff'ffff;
    op.get = op.verb == Verb::set && random_.chance(1, 4);
  }
  if (op.verb == Verb::set || op.verb == Verb::getex || op.verb == Verb::increx) {
    op.expiry = expiry();
  }
  if (op.verb == Verb::expire) {
    op.expiry = Expiry::in(Millis{static_cast<std::int64_t>(random_.between(1, 5'000))});
    op.rule.only_later = random_.chance(1, 4);
    op.rule.only_without_ttl = !op.rule.only_later && random_.chance(1, 4);
  }
  op.amount = static_cast<std::int64_t>(random_.below(30));
  if (op.verb == Verb::incr_by_float || op.verb == Verb::increx) {
    Arithmetic& arithmetic = command.arithmetic.emplace();
    arithmetic.use_float = op.verb == Verb::incr_by_float || random_.chance(1, 2);
    arithmetic.by_float = static_cast<long double>(random_.below(1'000)) / 7;
    arithmetic.has_upper = op.verb == Verb::increx && random_.chance(1, 2);
    arithmetic.upper = 500;
    arithmetic.upper_float = 500;
    arithmetic.saturate = random_.chance(1, 2);
  }
  return command;
}

HashCommand Commands::hash() {
  HashCommand command;
  command.verb = static_cast<engine::HashVerb>(static_cast<std::uint64_t>(engine::HashVerb::set) +
                                               random_.below(5));
  command.db = db();
  command.key = keep("h" + std::to_string(random_.below(40)));
  if (random_.chance(1, 30)) command.key = key();
  const auto field = [&] { return keep("f" + std::to_string(random_.below(70))); };
  const std::size_t count = command.verb == engine::HashVerb::set ? random_.between(1, 30) : 1;
  if (command.verb == engine::HashVerb::del) {
    for (std::uint64_t i = random_.between(1, 10); i > 0; --i) command.fields.push_back(field());
    return command;
  }
  for (std::size_t i = 0; i < count; ++i) command.pairs.push_back({field(), value()});
  command.amount = static_cast<std::int64_t>(random_.below(100));
  command.by_float = static_cast<long double>(random_.below(100)) / 3;
  return command;
}

ClaimRequest Commands::request() {
  ClaimRequest request;
  request.key = keep("w" + std::to_string(random_.below(200)));
  if (random_.chance(1, 3)) {
    request.lease = Millis{static_cast<std::int64_t>(random_.between(1, 2'000))};
  }
  if (random_.chance(1, 4)) {
    request.fingerprint.algorithm = 1;
    request.fingerprint.digest[0] = static_cast<std::uint8_t>(random_.below(2));
  }
  if (random_.chance(1, 4)) {
    request.claim_id.emplace().fill(static_cast<std::uint8_t>(random_.below(6)));
  }
  if (random_.chance(1, 4)) {
    request.first_sent_unix_ms =
        unix_ms_ - static_cast<std::int64_t>(random_.below(30'000)) + 2'000;
  }
  if (random_.chance(1, 3)) request.owner = "an owner";
  if (!sessions_.empty() && random_.chance(1, 2)) {
    request.session = sessions_[random_.below(sessions_.size())];
  }
  return request;
}

ClaimCommand Commands::claim() {
  ClaimCommand command;
  command.name = name();
  command.what = static_cast<ClaimCommand::What>(random_.below(8) == 0);
  const std::uint64_t count = random_.chance(1, 4) ? random_.between(1, 20) : 1;
  for (std::uint64_t i = 0; i < count; ++i) command.requests.push_back(request());
  return command;
}

OwnerCommand Commands::owner() {
  OwnerCommand command;
  const std::uint64_t verb = random_.below(level_ < feature_level_memos ? 4 : 5);
  command.has_memos = verb == 4;
  command.verb =
      command.has_memos ? engine::OwnerVerb::complete : static_cast<engine::OwnerVerb>(verb);
  if (random_.chance(1, 2)) command = {};
  command.name = name();
  command.call.key = keep("w" + std::to_string(random_.below(200)));
  command.call.epoch = random_.bits() & 0xffff'ffff;
  if (!owned_.empty() && random_.chance(9, 10)) {
    const Owned& owned = owned_[random_.below(owned_.size())];
    command.name = keep(owned.name);
    command.call.key = keep(owned.key);
    command.call.epoch = owned.epoch;
  }
  const bool completes = command.verb == engine::OwnerVerb::complete;
  if (completes || command.verb == engine::OwnerVerb::fail) command.call.payload = value();
  if (completes) {
    command.call.keeping = static_cast<ResultKeeping>(random_.below(3));
  }
  if (command.verb == engine::OwnerVerb::renew && random_.chance(1, 2)) {
    command.call.lease = Millis{static_cast<std::int64_t>(random_.between(1, 3'000))};
  }
  if (command.verb == engine::OwnerVerb::fail && random_.chance(1, 2)) {
    command.call.on_failure = static_cast<Policy::OnFailure>(random_.below(3));
  }
  return command;
}

MemoCommand Commands::memo() {
  const OwnerCommand who = owner();
  return {.name = who.name,
          .key = who.call.key,
          .epoch = who.call.epoch,
          .step = keep(random_.chance(1, 30) ? std::string(random_.below(2) * 257, 's')
                                             : "step" + std::to_string(random_.below(4))),
          .bytes = value()};
}

OperatorCommand Commands::operate() {
  OperatorCommand command;
  command.what = static_cast<OperatorCommand::What>(random_.below(4));
  command.name = command.what == OperatorCommand::What::issue ? Bytes{"tokens"} : name();
  command.key = keep("w" + std::to_string(random_.below(200)));
  if (command.what == OperatorCommand::What::resolve_as_done) command.result = value();
  if (random_.chance(1, 2))
    command.ttl = Millis{static_cast<std::int64_t>(random_.between(1, 9'000))};
  return command;
}

NamespaceCommand Commands::name_space() {
  NamespaceCommand command;
  command.name = random_.chance(1, 4) ? keep("n" + std::to_string(random_.below(5)))
                                      : Bytes{random_.pick(names)};
  command.what = static_cast<NamespaceCommand::What>(random_.below(3));
  command.policy = policy_of(command.name, level_, random_);
  return command;
}

SessionCommand Commands::session() {
  SessionCommand command;
  const bool opens = sessions_.size() < sessions_max && random_.chance(1, 2);
  command.node = random_.below(4);
  command.life = random_.below(2);
  if (opens || sessions_.empty()) return command;
  if (random_.chance(1, 20)) {
    command.what = SessionCommand::What::close_former;
    return command;
  }
  command.what = SessionCommand::What::close;
  // One that was closed before is still named by claims.
  command.session = sessions_[random_.below(sessions_.size())];
  if (random_.chance(1, 3)) std::erase(sessions_, command.session);
  return command;
}

/// Of few names, so that they clash; functions in both cases of letters, which clash as well.
LibraryCommand Commands::libraries() {
  using What = LibraryChange::What;
  LibraryCommand command;
  command.what = static_cast<What>(random_.below(random_.chance(1, 6) ? 7 : 6));
  const auto name = [this] { return keep("lib" + std::to_string(random_.below(7))); };
  if (command.what == What::remove) command.name = name();
  if (command.what == What::remove || command.what == What::flush) return command;
  const bool is_load = command.what == What::load || command.what == What::load_and_replace;
  for (std::uint64_t i = is_load ? 1 : random_.below(4); i > 0; --i) {
    auto& library = command.libraries.emplace_back();
    library.name = name();
    library.code = value();
    library.body_begin = random_.below(library.code.size() + 1);
    for (std::uint64_t f = random_.below(3); f > 0; --f) {
      auto& function = library.functions.emplace_back();
      function.name = keep((random_.chance(1, 2) ? "f" : "F") + std::to_string(random_.below(20)));
      if (random_.chance(1, 3)) function.description = value();
      function.flags = static_cast<std::uint32_t>(random_.below(library_flags_end));
    }
  }
  return command;
}

Command Commands::whole() {
  DatabaseCommand command;
  command.what = random_.chance(1, 8)   ? DatabaseCommand::What::flush_all
                 : random_.chance(1, 2) ? DatabaseCommand::What::flush
                                        : DatabaseCommand::What::swap;
  command.one = db();
  command.other = static_cast<std::uint8_t>(random_.below(3));
  return {command};
}

Command Commands::one() {
  switch (random_.below(17)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return {store()};
    case 5: {
      SetManyCommand command{.db = db(), .expiry = expiry()};
      command.condition = static_cast<Condition>(random_.below(3));
      if (command.expiry.mode() == Expiry::Mode::keep) command.expiry = Expiry::clear();
      for (std::uint64_t i = random_.between(1, 8); i > 0; --i) {
        command.pairs.push_back({key(), value()});
      }
      return {std::move(command)};
    }
    case 6: {
      DeleteManyCommand command{.db = db()};
      for (std::uint64_t i = random_.between(1, 6); i > 0; --i) command.keys.push_back(key());
      return {std::move(command)};
    }
    case 7: {
      TransferCommand command{.db = db(), .to_db = db(), .from = key(), .to = key()};
      command.what = static_cast<TransferCommand::What>(random_.below(5));
      return {command};
    }
    case 8:
    case 9:
      return {hash()};
    case 10:
    case 11:
    case 12:
      return {claim()};
    case 13:
    case 14:
      return {owner()};
    case 15:
      if (level_ < feature_level_memos) return {store()};
      return {memo()};
    default:
      return random_.chance(1, 4) ? Command{session()} : Command{operate()};
  }
}

Command Commands::next() {
  if (random_.chance(1, 100)) return {name_space()};
  if (random_.chance(1, 3'000)) return whole();
  if (random_.chance(1, 200)) return {TimeCommand{}};
  if (random_.chance(1, 60)) return {libraries()};
  if (random_.chance(1, 2'000)) return {FeatureLevelCommand{level_}};
  if (!random_.chance(1, 25)) return one();
  SectionCommand section;
  for (std::uint64_t i = random_.between(1, 12); i > 0; --i) section.commands.push_back(one());
  return {std::move(section)};
}

void Commands::note(const Command& command, const Answer& answer) {
  if (const auto* section = std::get_if<SectionCommand>(&command.what)) {
    const auto* answers = std::get_if<std::vector<Answer>>(&answer.what);
    for (std::size_t i = 0; answers != nullptr && i < answers->size(); ++i) {
      note(section->commands[i], (*answers)[i]);
    }
    return;
  }
  if (const auto* opened = std::get_if<SessionCommand>(&command.what)) {
    const auto* plain = std::get_if<PlainAnswer>(&answer.what);
    if (opened->what == SessionCommand::What::open && plain != nullptr) {
      sessions_.push_back(static_cast<SessionId>(plain->number));
    }
    return;
  }
  const auto* claim = std::get_if<ClaimCommand>(&command.what);
  const auto* outcomes = std::get_if<std::vector<ClaimOutcome>>(&answer.what);
  if (claim == nullptr || outcomes == nullptr) return;
  for (std::size_t i = 0; i < outcomes->size(); ++i) {
    ++answered_[static_cast<std::size_t>((*outcomes)[i].answer)];
    if ((*outcomes)[i].epoch == 0) continue;
    owned_.push_back(
        {std::string{claim->name}, std::string{claim->requests[i].key}, (*outcomes)[i].epoch});
    if (owned_.size() > owned_max) owned_.pop_front();
  }
}

}  // namespace semel::tests
