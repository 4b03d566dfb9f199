#include "net/commands/tracked_command.hpp"

#include <algorithm>

#include "semel/engine_host.hpp"

namespace semel::net {
namespace {

constexpr unsigned script_facts = fact_script_text | fact_script_digest | fact_function;

bool runs_script(const CommandRow& row) noexcept {
  return (row.facts.bits & script_facts) != 0;
}

/// Keys that have no place among the words: those of FLUSHALL, or of a whole namespace.
bool is_anywhere(const CommandRow& row, const UsedKeys& used) noexcept {
  return row.keys.count == 0 || used.is_all;
}

/// Whether a write whose changes cannot be compared has changed nothing. Other errors than ERR may
/// come behind a change.
bool changed_nothing(std::string_view reply) noexcept {
  return reply.starts_with("-ERR") || reply == ":0\r\n";
}

bool is_written(const UsedKey& key) noexcept {
  return (key.flags & key_read_only) == 0;
}

void note_all_changed(Call& call, std::string_view reply) {
  if (!call.row->has(fact_libraries) && !changed_nothing(reply)) {
    call.services.tracking.all_changed();
  }
}

void note_changed(Call& call, std::string_view key) {
  call.services.tracking.changed(call.client.handle->origin.id, key);
}

}  // namespace

std::vector<std::string_view> keys_read(const CommandRow& row,
                                        std::span<const std::string_view> words) {
  std::vector<std::string_view> found;
  if (row.is(flag_write) || row.is(flag_pubsub)) return found;
  if (!row.is(flag_readonly) && !runs_script(row)) return found;
  const UsedKeys used = used_keys(row.keys, words);
  for (const UsedKey& key : used.keys) {
    const bool is_composed =
        std::any_of(used.composed.begin(), used.composed.end(),
                    [&](const std::string& text) { return text.data() == key.name.data(); });
    if (!is_composed) found.push_back(key.name);
  }
  return found;
}

TrackedCommand::TrackedCommand(Call& call) : call_(call) {
  const CommandRow& row = *call.row;
  if (call.client.tracker != nullptr && row.is(flag_readonly) && !runs_script(row)) begin_read();
  if (row.is(flag_write) && !call.context().is_trial()) begin_write();
}

void TrackedCommand::begin_read() {
  if (!call_.client.tracker->remembers()) return;
  const bool in_script = call_.context().is_script();
  if (in_script) {
    const auto& keys = call_.client.script_keys;
    read_.assign(keys.begin(), keys.end());
  } else {
    read_ = keys_read(*call_.row, call_.args);
  }
  if (read_.empty()) return;
  reader_ = call_.client.tracker;
  call_.services.tracking.remember(*reader_, read_);
  // A script may change what it has read: that is no other's change.
  if (in_script) read_.clear();
}

void TrackedCommand::begin_write() {
  write_.emplace(call_.services.tracking.writes());
  used_ = used_keys(call_.row->keys, call_.args);
  if (is_anywhere(*call_.row, used_)) return;
  written_.reserve(used_.keys.size());
  for (const UsedKey& key : used_.keys) {
    if (is_written(key)) written_.push_back({key.name, version_of(key.name)});
  }
}

std::optional<Version> TrackedCommand::version_of(std::string_view key) const {
  StoreOutcome found;
  call_.engine.host().apply({.verb = Verb::exists, .db = call_.client.db, .key = key}, found);
  if (found.error != ErrorCode::ok) return std::nullopt;
  return found.found ? found.version : 0;
}

bool TrackedCommand::has_changed(const Written& each) const {
  const std::optional<Version> now = version_of(each.key);
  if (!now || now != each.before) return true;
  return *now == 0 && !write_->is_alone();
}

void TrackedCommand::executed(std::string_view reply) {
  if (reader_ != nullptr) call_.services.tracking.confirm(*reader_, read_);
  if (!call_.row->is(flag_write) || call_.context().is_trial()) return;
  if (is_anywhere(*call_.row, used_)) return note_all_changed(call_, reply);
  // The versions are those of one database.
  const bool elsewhere = call_.row->has(fact_elsewhere) && !changed_nothing(reply);
  for (const Written& each : written_) {
    if (elsewhere || has_changed(each)) note_changed(call_, each.key);
  }
}

void TrackedCommand::executed_untracked(Call& call, std::string_view reply) {
  const UsedKeys used = used_keys(call.row->keys, call.args);
  if (is_anywhere(*call.row, used)) return note_all_changed(call, reply);
  for (const UsedKey& key : used.keys) {
    if (is_written(key)) note_changed(call, key.name);
  }
}

}  // namespace semel::net
