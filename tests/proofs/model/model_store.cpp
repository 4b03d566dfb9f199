// The store's operations in the model proof.
#include <algorithm>
#include <set>

#include "semel/engine_host.hpp"
#include "tests/proofs/model/model_run.hpp"

namespace semel::proofs {
namespace {

constexpr std::array verbs{
    Verb::get,      Verb::get,     Verb::exists,      Verb::type,          Verb::strlen,
    Verb::getrange, Verb::digest,  Verb::expire_time, Verb::set,           Verb::set,
    Verb::set,      Verb::set,     Verb::getdel,      Verb::getex,         Verb::append,
    Verb::setrange, Verb::incr_by, Verb::decr_by,     Verb::incr_by_float, Verb::increx,
    Verb::del,      Verb::delex,   Verb::expire,      Verb::expire,        Verb::persist};

constexpr std::array conditions{Condition::if_absent,       Condition::if_present,
                                Condition::if_equal,        Condition::if_not_equal,
                                Condition::if_digest_equal, Condition::if_digest_not_equal,
                                Condition::if_version};

constexpr std::int64_t counter_edge = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::string ModelRun::some_key() {
  // Skewed, so that some keys are busy and others are left alone for long.
  const std::size_t range =
      random_.chance(1, 2) ? std::min<std::size_t>(keys_.size(), 4) : keys_.size();
  if (random_.chance(1, 12)) {
    return table_key(random_.below(namespace_count), keys_[random_.below(range)]);
  }
  return keys_[random_.below(range)];
}

std::string ModelRun::some_value() {
  switch (random_.below(12)) {
    case 0:
      return {};
    case 1:
    case 2:
    case 3:
    case 4:
      return std::to_string(static_cast<std::int64_t>(random_.below(20)) - 5);
    case 5:
      return std::to_string(counter_edge - static_cast<std::int64_t>(random_.below(3)));
    case 6:
      return "1.5";
    case 7:
      return std::string(random_.between(240, 270), static_cast<char>(random_.below(256)));
    case 8: {
      if (!random_.chance(1, 20)) return " 7";
      const std::size_t size = random_.below(profile_.value_bytes_max + 2);
      return std::string(size, static_cast<char>(random_.below(256)));
    }
    default:
      return "v" + std::to_string(random_.below(1000));
  }
}

Expiry ModelRun::some_expiry() {
  switch (random_.below(8)) {
    case 0:
    case 1:
      return Expiry::clear();
    case 2:
      return Expiry::keep();
    case 3:
      return Expiry::at(to_timestamp(now() + random_.duration(limits::ttl_max.count()) - 8));
    case 4:
      if (random_.chance(1, 10)) return Expiry::in(Millis{0});
      if (random_.chance(1, 10)) return Expiry::in(limits::ttl_max + Millis{1});
      [[fallthrough]];
    default:
      return Expiry::in(Millis{random_.duration(limits::ttl_max.count())});
  }
}

std::string ModelRun::some_operand(const StoreCall& call) {
  const bool digest = call.op.condition == Condition::if_digest_equal ||
                      call.op.condition == Condition::if_digest_not_equal;
  const KeyState& here = state(call.op.db, call.key);
  const std::string value = random_.chance(3, 4) ? here.value : some_value();
  if (!digest) return value;
  if (random_.chance(1, 20)) return "0123456789abcdeg";
  std::string text = digest_text(value);
  if (random_.chance(1, 2)) {
    for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'f' ? c - 32 : c);
  }
  return text;
}

/// Mostly the record's own; at times that of another, or none.
Version ModelRun::some_version(const StoreCall& call) {
  const KeyState& here = state(call.op.db, call.key);
  if (random_.chance(1, 8)) return here.version + 1;
  return here.present && random_.chance(7, 8) ? here.version : 0;
}

/// What the condition compares with.
void ModelRun::add_operand(StoreCall& call) {
  StoreOp& op = call.op;
  if (op.verb == Verb::delex && op.condition == Condition::if_absent) {
    op.condition = Condition::always;
  }
  call.operand = some_operand(call);
  op.expected = some_version(call);
  // A version that is not known yet cannot be asked for.
  if (op.condition == Condition::if_version && op.expected == 0 && state(op.db, call.key).present) {
    op.condition = Condition::always;
  }
}

void ModelRun::add_write_details(StoreCall& call) {
  StoreOp& op = call.op;
  switch (op.verb) {
    case Verb::set:
      call.value = some_value();
      op.expiry = some_expiry();
      op.get = random_.chance(1, 3);
      [[fallthrough]];
    case Verb::delex:
      if (random_.chance(1, 2)) op.condition = random_.pick(conditions);
      add_operand(call);
      return;
    case Verb::getex:
      op.expiry = some_expiry();
      return;
    case Verb::append:
      call.value = some_value();
      return;
    case Verb::setrange:
      op.amount = static_cast<std::int64_t>(random_.below(300)) - 2;
      call.value = some_value();
      return;
    case Verb::incr_by:
    case Verb::decr_by:
      op.amount = static_cast<std::int64_t>(random_.below(9)) - 4;
      if (random_.chance(1, 20))
        op.amount = random_.chance(1, 2) ? counter_edge : -counter_edge - 1;
      return;
    case Verb::incr_by_float:
      call.has_arithmetic = true;
      call.arithmetic.by_float = static_cast<long double>(random_.below(64)) / 8 - 3;
      return;
    case Verb::increx: {
      call.has_arithmetic = true;
      Arithmetic& arithmetic = call.arithmetic;
      op.amount = static_cast<std::int64_t>(random_.below(9)) - 4;
      arithmetic.has_lower = random_.chance(1, 2);
      arithmetic.lower = -static_cast<std::int64_t>(random_.below(8));
      arithmetic.has_upper = random_.chance(1, 2);
      arithmetic.upper = static_cast<std::int64_t>(random_.below(8));
      arithmetic.saturate = random_.chance(1, 2);
      op.expiry = some_expiry();
      arithmetic.expiry_only_without_ttl =
          op.expiry.mode() == Expiry::Mode::in && random_.chance(1, 2);
      return;
    }
    case Verb::expire:
      op.expiry = Expiry::in(Millis{random_.duration(limits::ttl_max.count())});
      if (random_.chance(1, 4)) {
        op.expiry = Expiry::at(to_timestamp(now() + static_cast<Ms>(random_.below(20)) - 10));
      }
      if (random_.chance(1, 2)) {
        op.rule = {.only_without_ttl = random_.chance(1, 4),
                   .only_with_ttl = random_.chance(1, 4),
                   .only_later = random_.chance(1, 3),
                   .only_earlier = random_.chance(1, 3)};
      }
      return;
    default:
      return;
  }
}

StoreCall ModelRun::some_store_call() {
  StoreCall call;
  call.op.verb = random_.pick(verbs);
  call.op.db = static_cast<std::uint8_t>(random_.chance(3, 4) ? 0 : random_.below(db_count));
  call.key = some_key();
  if (call.op.verb == Verb::getrange) {
    call.op.amount = static_cast<std::int64_t>(random_.below(40)) - 20;
    call.op.end = static_cast<std::int64_t>(random_.below(40)) - 20;
  }
  add_write_details(call);
  return call;
}

void ModelRun::judge_store(const StoreCall& call, const StoreOutcome& seen) {
  note(Step{0, StoreStep{call, seen}});
  KeyState& key = state(call.op.db, call.key);
  judge("store", step(key, call.view(), seen, moment()));
}

void ModelRun::do_store() {
  const StoreCall call = some_store_call();
  StoreOutcome outcome;
  engine_->host().apply(call.view(), outcome);
  judge_store(call, outcome);
}

void ModelRun::do_store_batch() {
  std::vector<StoreCall> calls(random_.between(1, 24));
  for (StoreCall& call : calls) call = some_store_call();
  std::vector<StoreOp> ops;
  for (const StoreCall& call : calls) ops.push_back(call.view());
  std::vector<StoreOutcome> outcomes(calls.size());
  if (random_.chance(1, 2)) {
    engine_->host().apply(ops, outcomes);
  } else {
    engine_->host().apply_at(ops, outcomes, clock_.now());
  }
  for (std::size_t i = 0; i < calls.size() && !failed_; ++i) judge_store(calls[i], outcomes[i]);
  operations_ += calls.size() - 1;
}

void ModelRun::do_section() {
  std::vector<StoreCall> calls(random_.between(1, 6));
  std::vector<KeyRef> keys;
  for (StoreCall& call : calls) call = some_store_call();
  for (const StoreCall& call : calls) keys.push_back({call.op.db, call.key});
  if (random_.chance(1, 8)) keys.clear();
  std::vector<StoreOutcome> outcomes(calls.size());
  {
    Result<Section> section = engine_->section(keys);
    expect(section.has_value(), "a section is refused");
    if (failed_) return;
    for (std::size_t i = 0; i < calls.size(); ++i) section->apply(calls[i].view(), outcomes[i]);
  }
  for (std::size_t i = 0; i < calls.size() && !failed_; ++i) judge_store(calls[i], outcomes[i]);
  operations_ += calls.size() - 1;
}

void ModelRun::do_multi_key() {
  const auto db = static_cast<std::uint8_t>(random_.chance(3, 4) ? 0 : random_.below(db_count));
  Store store = engine_->store(db);
  switch (random_.below(4)) {
    case 0:
      return do_multi_read(store, db);
    case 1:
      return do_multi_write(store, db);
    case 2:
      return do_rename(store, db);
    default:
      return do_copy(store, db);
  }
}

void ModelRun::do_multi_read(Store store, std::uint8_t db) {
  std::vector<std::string> names(random_.between(1, 6));
  for (std::string& name : names) name = some_key();
  const std::vector<Bytes> keys(names.begin(), names.end());
  std::int64_t there = 0;
  for (const std::string& name : names) there += is_there(db, name) ? 1 : 0;
  switch (random_.below(4)) {
    case 0: {
      note("mget of " + std::to_string(keys.size()));
      const auto values = store.mget(keys);
      if (!values) return fail("mget is refused");
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const KeyState& key = state(db, names[i]);
        const bool has = alive(key, now()) && key.kind == Kind::string;
        expect((*values)[i].has_value() == has, "mget: presence of " + names[i]);
        if (has && !failed_) expect(*(*values)[i] == key.value, "mget: value of " + names[i]);
      }
      return;
    }
    case 1: {
      note("exists of several");
      const auto count = store.exists(keys);
      return expect(count.ok() && *count == there, "exists counts wrongly");
    }
    case 2: {
      note("touch of several");
      const auto count = store.touch(keys);
      return expect(count.ok() && *count == there, "touch counts wrongly");
    }
    default: {
      note("del of several: " + names[0] + " ..");
      const std::set<std::string> different(names.begin(), names.end());
      std::int64_t gone = 0;
      for (const std::string& name : different) gone += is_there(db, name) ? 1 : 0;
      const auto count = store.del(keys);
      expect(count.ok() && *count == gone, "del counts wrongly");
      for (const std::string& name : different) {
        if (is_there(db, name)) remove(state(db, name));
      }
    }
  }
}

void ModelRun::do_multi_write(Store store, std::uint8_t db) {
  std::vector<std::pair<std::string, std::string>> texts(random_.between(1, 5));
  for (auto& [key, value] : texts) {
    key = some_key();
    value = some_value();
    if (value.size() > profile_.value_bytes_max) value.clear();
  }
  std::vector<KeyValue> pairs;
  for (const auto& [key, value] : texts) pairs.push_back({key, value});
  const bool all = std::all_of(texts.begin(), texts.end(),
                               [&](const auto& pair) { return is_there(db, pair.first); });
  const bool any = std::any_of(texts.begin(), texts.end(),
                               [&](const auto& pair) { return is_there(db, pair.first); });
  Expiry expiry = Expiry::clear();
  bool stored = true;
  // The first key that decides: a claim is in the way of all, unless one before it says no.
  const auto meets_claim = [&](Condition condition) {
    for (const auto& pair : texts) {
      const bool there = is_there(db, pair.first);
      if (condition == Condition::if_absent && there) return false;
      if (condition == Condition::if_present && !there) return false;
      if (there && state(db, pair.first).kind == Kind::claim) return true;
    }
    return false;
  };
  const auto is_refused = [](const auto& result) {
    return !result.ok() && result.error().code == ErrorCode::wrong_type;
  };
  note("mset, msetnx or msetex of " + std::to_string(pairs.size()) + " from " + texts[0].first);
  switch (random_.below(3)) {
    case 0: {
      const Status status = store.mset(pairs);
      if (meets_claim(Condition::always)) return expect(is_refused(status), "mset onto a claim");
      expect(status.has_value(), "mset is refused");
      break;
    }
    case 1: {
      stored = !any;
      const auto result = store.msetnx(pairs);
      expect(result.ok() && *result == stored, "msetnx decides wrongly");
      break;
    }
    default: {
      constexpr std::array choices{Condition::always, Condition::if_absent, Condition::if_present};
      const Condition condition = random_.pick(choices);
      if (random_.chance(1, 2)) expiry = Expiry::in(Millis{random_.duration(100'000)});
      if (random_.chance(1, 4)) expiry = Expiry::keep();
      if (condition == Condition::if_absent) stored = !any;
      if (condition == Condition::if_present) stored = all;
      const auto result = store.msetex(pairs, condition, expiry);
      if (meets_claim(condition)) return expect(is_refused(result), "msetex onto a claim");
      expect(result.ok() && *result == stored, "msetex decides wrongly");
    }
  }
  if (!stored) return;
  for (const auto& [key, value] : texts) {
    KeyState& here = state(db, key);
    Ms due = never;
    if (expiry.mode() == Expiry::Mode::in) due = now() + expiry.ttl().count();
    // What is vacant is not there for a store, and has no end to be kept.
    if (expiry.mode() == Expiry::Mode::keep && is_there(db, key)) due = here.due;
    put_string(here, value, due);
  }
}

namespace {

/// The record with its ttl; what the target has shown before stays its floor.
void move_record(KeyState& from, KeyState& to, bool keeps_source) {
  const Version floor = to.floor;
  to = from;
  to.floor = floor;
  to.version = 0;
  if (!keeps_source) remove(from);
}

}  // namespace

void ModelRun::do_rename(Store store, std::uint8_t db) {
  const std::string from = some_key();
  const std::string to = some_key();
  const bool from_there = is_there(db, from);
  const bool to_there = is_there(db, to);
  const bool only_new = random_.chance(1, 2);
  const bool of_claim = from != to && from_there && state(db, from).kind == Kind::claim;
  const bool onto_claim = from != to && to_there && state(db, to).kind == Kind::claim;
  note((only_new ? "renamenx " : "rename ") + from + " " + to);
  bool moves = from_there && from != to;
  if (only_new) {
    const auto result = store.renamenx(from, to);
    moves = moves && !to_there;
    if (!from_there) {
      return expect(!result.ok() && result.error().code == ErrorCode::no_such_key,
                    "renamenx of none");
    }
    if (of_claim) {
      return expect(!result.ok() && result.error().code == ErrorCode::wrong_type,
                    "renamenx of a claim");
    }
    expect(result.ok() && *result == moves, "renamenx decides wrongly");
  } else {
    const Status status = store.rename(from, to);
    if (!from_there) {
      return expect(!status && status.error().code == ErrorCode::no_such_key, "rename of none");
    }
    if (of_claim || onto_claim) {
      return expect(!status && status.error().code == ErrorCode::wrong_type, "rename of a claim");
    }
    expect(status.has_value(), "rename is refused");
  }
  if (moves) move_record(state(db, from), state(db, to), false);
}

void ModelRun::do_copy(Store store, std::uint8_t db) {
  const auto to_db = static_cast<std::uint8_t>(random_.below(db_count));
  const std::string from = some_key();
  const bool copies = random_.chance(1, 2);
  const std::string to = copies ? some_key() : from;
  const bool replace = random_.chance(1, 2) && copies;
  const bool from_there = is_there(db, from);
  const bool to_there = is_there(to_db, to);
  note((copies ? "copy " : "move ") + from + " of " + std::to_string(db) + " to " + to + " of " +
       std::to_string(to_db) + (replace ? " replacing" : ""));
  const auto result = copies ? store.copy(from, to, to_db, replace) : store.move(from, to_db);
  if (to_db == db && from == to) {
    return expect(!result.ok() && result.error().code == ErrorCode::same_key, "copy onto itself");
  }
  const bool of_claim = from_there && state(db, from).kind == Kind::claim;
  const bool onto_claim = from_there && replace && to_there && state(to_db, to).kind == Kind::claim;
  if (of_claim || onto_claim) {
    return expect(!result.ok() && result.error().code == ErrorCode::wrong_type,
                  "copy or move of a claim");
  }
  const bool moves = from_there && (!to_there || replace);
  expect(result.ok() && *result == moves, "copy or move decides wrongly");
  if (moves) move_record(state(db, from), state(to_db, to), copies);
}

}  // namespace semel::proofs
