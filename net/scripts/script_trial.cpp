#include "net/scripts/script_trial.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/assert.hpp"
#include "engine/object_api/hash_fields.hpp"
#include "engine/object_api/whole_record.hpp"
#include "net/events/pubsub.hpp"
#include "net/resp/reply_error.hpp"
#include "semel/engine_host.hpp"
#include "semel/limits.hpp"
#include "semel/store.hpp"

namespace semel::net {
namespace {

/// A command whose keys stand among its words as they are.
bool has_plain_keys(const CommandRow& row) {
  const auto specs = row.keys.all();
  return !specs.empty() && std::ranges::all_of(specs, [](const KeySpec& spec) {
    return spec.position == KeySpec::Position::range ||
           spec.position == KeySpec::Position::counted ||
           spec.position == KeySpec::Position::keyword ||
           spec.position == KeySpec::Position::streams;
  });
}

std::string ms_of(Timestamp time) {
  return std::to_string(time.time_since_epoch().count());
}

std::string text_of(std::string_view name, std::string_view why) {
  return "ERR in a group a script that Semel does not know may not call '" + std::string{name} +
         "': " + std::string{why} + "; nothing of it was carried out";
}

}  // namespace

ScriptTrial::~ScriptTrial() = default;

Status ScriptTrial::begin(Engine& real, Timestamp now) {
  if (copies_ == nullptr) {
    SEMEL_TRY(opened, Engine::open({.clock = &clock_,
                                    .memory_bytes = memory_bytes,
                                    .value_bytes_max = limits::value_bytes_max,
                                    .shard_count = 1,
                                    .background = std::nullopt}));
    copies_ = std::move(opened);
  }
  empty_copies();  // what a run has left that ended without end()
  real_ = &real;
  // The engine's time does not go back; that of a group that a node knows less of might.
  now_ = std::max({now, real.now(), clock_.now()});
  clock_.set(now_);
  // What timers and deleted records hold is given back now and then.
  constexpr unsigned runs_between = 256;
  if (++runs_ % runs_between == 0) copies_->advance();
  return Done{};
}

Error ScriptTrial::refuse(std::string why) {
  if (refusal_.empty()) refusal_ = why;
  return {ErrorCode::refused, std::move(why)};
}

Status ScriptTrial::admit(const Call& call) {
  const CommandRow& row = *call.row;
  if (!may_be_logged(call.services, row)) return refuse(log_error(call));
  if (row.has(fact_versions)) {
    return refuse(text_of(row.name, "its answer has a version that only the log gives"));
  }
  if (row.has(fact_publishes)) return Done{};
  if (!row.is(flag_write) && !row.is(flag_readonly)) return Done{};
  if (!has_plain_keys(row)) {
    using Position = KeySpec::Position;
    const bool is_claims = std::ranges::any_of(row.keys.all(), [](const KeySpec& spec) {
      return spec.position >= Position::claim && spec.position <= Position::space;
    });
    return refuse(text_of(row.name, is_claims ? "claims are decided by the log"
                                              : "it is about keys that its words do not name"));
  }
  const UsedKeys used = used_keys(row.keys, call.args);
  for (const UsedKey& key : used.keys) {
    if (!row.has(fact_elsewhere)) {
      SEMEL_CHECK(copy(call.client.db, key.name));
      continue;
    }
    for (std::uint8_t db = 0; db < limits::db_count; ++db) SEMEL_CHECK(copy(db, key.name));
  }
  return Done{};
}

Result<ScriptTrial::Record> ScriptTrial::look(Engine& engine, std::uint8_t db, Bytes key,
                                              Timestamp now) {
  const KeyRef ref{db, key};
  SEMEL_TRY(section, engine.section({&ref, 1}));
  Record record;
  StoreOutcome found;
  engine.host().apply({.verb = Verb::expire_time, .db = db, .key = key}, found);
  if (found.error != ErrorCode::ok) return Error{found.error, {}};
  if (!found.found || found.due <= now) return record;
  record.is_live = true;
  record.kind = found.kind;
  record.due = found.due;
  record.version = found.version;
  if (found.kind == semel::Kind::string) {
    engine.host().apply({.verb = Verb::get, .db = db, .key = key}, found);
    if (found.error != ErrorCode::ok) return Error{found.error, {}};
    record.value = std::move(found.value);
    return record;
  }
  if (found.kind == semel::Kind::hash) {
    SEMEL_TRY(has_ends, engine::has_field_ends(engine, ref));
    record.has_ends = has_ends;
    if (!has_ends) {
      SEMEL_TRY(fields, engine.hashes(db).hgetall(key));
      record.fields = std::move(fields);
      return record;
    }
  }
  if (!engine::is_carried(found.kind)) return record;
  SEMEL_TRY(whole, engine::read_whole(engine, ref));
  if (!whole) return Error{ErrorCode::storage_damaged, {}};  // the section holds it
  if (whole->due <= now) return Record{};                    // the last of its fields has ended
  record.due = whole->due;
  record.value = std::move(whole->value);
  return record;
}

Status ScriptTrial::copy(std::uint8_t db, Bytes key) {
  // No record can have such a key: the command itself replies with the error.
  if (key.empty() || key.size() > limits::key_bytes_max) return Done{};
  const Name name{db, std::string{key}};
  if (used_.contains(name)) return Done{};
  if (used_.size() == keys_max) {
    return refuse("ERR in a group a script that Semel does not know uses at most " +
                  std::to_string(keys_max) + " keys; nothing of it was carried out");
  }
  Result<Record> found = look(*real_, db, key, now_);
  if (!found.ok()) return refuse("ERR " + found.error().message());
  if (found->is_live && found->kind == semel::Kind::claim) {
    return refuse(
        "ERR in a group a script that Semel does not know may not use the key of a "
        "claim; nothing of it was carried out");
  }
  Copy& made = used_[name];
  made.before = *std::move(found);
  made.real = made.before.version;
  if (!made.before.is_live) return Done{};
  if (const Status done = put(db, key, made.before); !done) {
    return refuse("OOM what this script uses does not fit into the " +
                  std::to_string(memory_bytes) + " bytes that one may use in a group");
  }
  StoreOutcome copied;
  copies_->host().apply({.verb = Verb::exists, .db = db, .key = key}, copied);
  made.copied = copied.version;
  return Done{};
}

/// Within the section of the run.
Status ScriptTrial::put(std::uint8_t db, Bytes key, const Record& record) {
  const Expiry expiry = record.due == no_end ? Expiry::clear() : Expiry::at(record.due);
  StoreOutcome done;
  if (record.kind == semel::Kind::string) {
    copies_->host().apply(
        {.verb = Verb::set, .db = db, .expiry = expiry, .key = key, .value = record.value}, done);
    return done.error == ErrorCode::ok ? Status{Done{}} : Status{Error{done.error, {}}};
  }
  if (record.kind != semel::Kind::hash || record.has_ends) {
    return engine::replace_whole(*copies_, {db, key},
                                 {.kind = record.kind, .due = record.due, .value = record.value});
  }
  const std::vector<FieldValue> pairs{record.fields.begin(), record.fields.end()};
  const Result<std::int64_t> set = copies_->hashes(db).hset(key, pairs);
  if (!set.ok()) return set.error();
  if (record.due == no_end) return Done{};
  copies_->host().apply({.verb = Verb::expire, .db = db, .expiry = expiry, .key = key}, done);
  return done.error == ErrorCode::ok ? Status{Done{}} : Status{Error{done.error, {}}};
}

void ScriptTrial::publish(Call& call) {
  const bool is_shard = (call.row->keys.specs[0].flags & key_not_key) != 0;
  const Topic topic = is_shard ? Topic::shard : Topic::channel;
  const std::size_t count = call.services.pubsub.subscribers(topic, call.args[1]);
  published_.emplace_back(call.args.begin(), call.args.end());
  call.reply.integer(static_cast<std::int64_t>(count));
}

// --- the effect ----------------------------------------------------------------------------------

void ScriptTrial::add_hash(Outcome& outcome, const Name& name, const Record& before,
                           const Record& after) {
  std::map<Bytes, Bytes> left;
  if (before.is_live && before.kind == semel::Kind::hash) {
    for (const FieldValue& each : before.fields) left[each.field] = each.value;
  } else if (before.is_live) {
    outcome.effects.push_back({"DEL", name.second});
  }
  std::vector<std::string> set{"HSET", name.second};
  for (const FieldValue& each : after.fields) {
    const auto found = left.find(each.field);
    if (found == left.end() || found->second != each.value) {
      set.emplace_back(each.field);
      set.emplace_back(each.value);
    }
    if (found != left.end()) left.erase(found);
  }
  std::vector<std::string> erased{"HDEL", name.second};
  for (const auto& [field, value] : left) erased.emplace_back(field);
  // New fields first: a hash without fields would be gone, and its ttl with it.
  if (set.size() > 2) outcome.effects.push_back(std::move(set));
  if (erased.size() > 2) outcome.effects.push_back(std::move(erased));
  const Timestamp due = before.is_live && before.kind == semel::Kind::hash ? before.due : no_end;
  if (after.due == due) return;
  if (after.due == no_end) {
    outcome.effects.push_back({"PERSIST", name.second});
  } else {
    outcome.effects.push_back({"PEXPIREAT", name.second, ms_of(after.due)});
  }
}

/// The words of SEMEL.PUTRECORD.
void ScriptTrial::add_whole(Outcome& outcome, const Name& name, const Record& after) {
  outcome.effects.push_back({"SEMEL.PUTRECORD", name.second, std::string{name_of(after.kind)},
                             after.due == no_end ? "-1" : ms_of(after.due), after.value});
}

void ScriptTrial::add_effect(Outcome& outcome, const Name& name, const Copy& copy) {
  Result<Record> found = look(*copies_, name.first, name.second, now_);
  if (!found.ok()) {
    static_cast<void>(refuse("ERR " + found.error().message()));
    return;
  }
  const Record& after = *found;
  if (!after.is_live) {
    if (copy.before.is_live) outcome.effects.push_back({"DEL", name.second});
    return;
  }
  if (copy.before.is_live && after.version == copy.copied) return;
  outcome.grows = true;
  if (after.kind == semel::Kind::hash && !after.has_ends) {
    if (!copy.before.has_ends) return add_hash(outcome, name, copy.before, after);
    // HSET leaves no field with an end.
    outcome.effects.push_back({"DEL", name.second});
    return add_hash(outcome, name, {}, after);
  }
  if (after.kind != semel::Kind::string) return add_whole(outcome, name, after);
  std::vector<std::string> set{"SET", name.second, after.value};
  if (after.due != no_end) {
    set.emplace_back("PXAT");
    set.push_back(ms_of(after.due));
  }
  outcome.effects.push_back(std::move(set));
}

void ScriptTrial::add_effects(Outcome& outcome) {
  std::uint8_t db = 0;
  bool is_first = true;
  for (const auto& [name, copy] : used_) {  // in the order of databases
    const std::size_t before = outcome.effects.size();
    add_effect(outcome, name, copy);
    if (outcome.effects.size() == before) continue;
    if (std::exchange(is_first, false)) {
      outcome.db = name.first;
    } else if (db != name.first) {
      const auto place = outcome.effects.begin() + static_cast<std::ptrdiff_t>(before);
      outcome.effects.insert(place, {"SELECT", std::to_string(name.first)});
    }
    db = name.first;
  }
  for (std::vector<std::string>& each : published_) outcome.effects.push_back(std::move(each));
}

ScriptTrial::Outcome ScriptTrial::end(std::string reply) {
  Outcome outcome;
  outcome.reply = reply.empty() ? std::move(reply_) : std::move(reply);
  if (refusal_.empty() && discarded_.empty()) add_effects(outcome);
  outcome.refusal = refusal_.empty() ? std::string{discarded_} : std::move(refusal_);
  for (const auto& [name, copy] : used_) {
    outcome.read.push_back({name.first, name.second, copy.real});
  }
  empty_copies();
  return outcome;
}

void ScriptTrial::empty_copies() {
  if (copies_ == nullptr) return;
  for (const auto& [name, copy] : used_) {
    StoreOutcome ignored;
    copies_->host().apply({.verb = Verb::del, .db = name.first, .key = name.second}, ignored);
  }
  used_.clear();
  published_.clear();
  refusal_.clear();
  discarded_ = {};
  reply_.clear();
}

Result<bool> ScriptTrial::is_unchanged(Engine& real, Timestamp now, const std::vector<Read>& read) {
  std::vector<KeyRef> keys;
  for (const Read& each : read) keys.push_back({each.db, each.key});
  SEMEL_TRY(section, real.section(keys));
  for (const Read& each : read) {
    StoreOutcome found;
    real.host().apply({.verb = Verb::expire_time, .db = each.db, .key = each.key}, found);
    bool is_live = found.found && found.due > now;
    if (is_live && found.kind == semel::Kind::hash) {
      real.host().apply({.verb = Verb::exists, .db = each.db, .key = each.key}, found);
      // A field has ended since.
      is_live = found.second == 0 || Timestamp{Millis{found.second}} > now;
    }
    if ((is_live ? found.version : 0) != each.version) return false;
  }
  return true;
}

}  // namespace semel::net
