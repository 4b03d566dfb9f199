// Commands of one key and known scripts of a pipeline: planned one by one, applied together.
#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "engine/api/bounded_apply.hpp"
#include "net/commands/measure.hpp"
#include "net/commands/single_key_command.hpp"
#include "net/node/connection.hpp"
#include "net/resp/release_capacity.hpp"
#include "net/resp/text.hpp"
#include "net/scripts/script_host.hpp"

namespace semel::net {

bool Connection::may_wait(const CommandRow& row) {
  // The words of an inline command are gone when the next is read.
  if (!parser_.in_place() || client_.transaction != nullptr || client_.replies != Replies::on ||
      client_.subscribes() || node_.monitors.any() || node_.busy_scripts.any() ||
      !row.takes(parser_.arguments().size())) {
    return false;
  }
  // A user with rights to some things only is asked about in its turn.
  return node_.acl.refresh(client_.user) == AclChange::none && !client_.user.needs_auth() &&
         client_.user.user().is_unlimited();
}

bool Connection::enqueue_single(const CommandRow& row, RespWriter& reply) {
  SEMEL_ASSERT(row.single != nullptr && batch_.count_ < Batch::count_max);
  if (!may_wait(row)) return false;
  StoreOp& op = batch_.ops_[batch_.count_];
  op = StoreOp{.db = client_.db, .key = parser_.arguments()[1]};
  const Call call{node_.services(), node_.engine(), client_, parser_.arguments(), reply, &row};
  if (row.single->plan(call, op) != ArgumentError::none) return false;
  batch_.natives_[batch_.count_].shape = nullptr;
  batch_.rows_[batch_.count_++] = &row;
  return true;
}

bool Connection::enqueue_native(const CommandRow& row, RespWriter& reply) {
  const bool by_digest = row.has(fact_script_digest);
  if ((!by_digest && !row.has(fact_script_text)) || row.is(flag_readonly) || !may_wait(row) ||
      node_.scripts.policy() == ScriptPolicy::off) {
    return false;
  }
  const std::string_view word = parser_.arguments()[1];
  const SharedScript& script =
      client_.scripts->thread.find(by_digest ? word : std::string_view{sha1_hex(word)});
  if (script == nullptr || script->has_shebang ||
      script->shape.known == lua::KnownScript::unknown) {
    return false;
  }
  StoreOp& op = batch_.ops_[batch_.count_];
  op = StoreOp{.db = client_.db};
  const Call call{node_.services(), node_.engine(), client_, parser_.arguments(), reply, &row};
  NativePlan& plan = batch_.natives_[batch_.count_];
  if (plan_native(call, script->shape, script->sha, op, plan) != ArgumentError::none) return false;
  script->used(client_.lane->now());
  batch_.rows_[batch_.count_++] = &row;
  return true;
}

void Connection::flush(std::string& out) {
  const std::size_t planned = std::exchange(batch_.count_, 0);
  if (planned == 0) return;
  Engine& engine = node_.engine();
  std::size_t count = planned;
  if (count == 1) {
    engine.apply(batch_.ops_[0], batch_.outcomes_[0]);
  } else {
    count = engine::apply_bounded(engine, std::span{batch_.ops_}.first(count),
                                  std::span{batch_.outcomes_}.first(count), replies_bytes_max);
  }
  if (count < planned) {
    rewind_ = batch_.starts_[count];
    requests_ -= planned - count;
  }
  answer_batch(out, count);
  client_.last_command = &batch_.rows_[count - 1]->name;
  count_batch(count);
}

void Connection::answer_batch(std::string& out, std::size_t count) {
  SEMEL_ASSERT(count != 0 && count <= Batch::count_max);
  RespWriter reply{out, client_.dialect};
  if (large_.is_enabled()) reply.set_large(&large_);
  Call call{node_.services(), node_.engine(), client_, {}, reply};
  for (std::size_t i = 0; i < count; ++i) {
    call.row = batch_.rows_[i];
    const std::size_t before = out.size();
    const NativePlan& native = batch_.natives_[i];
    if (batch_.outcomes_[i].error == ErrorCode::section_held) [[unlikely]] {
      call.fail(ErrorCode::section_held);
    } else if (native.shape == nullptr) {
      answer_single(call, *call.row->single, batch_.ops_[i], batch_.outcomes_[i]);
    } else {
      answer_native(call, native, batch_.ops_[i], batch_.outcomes_[i]);
      node_.scripts.ran_native(*native.shape);
    }
    if (out[before] == '-') [[unlikely]]
      client_.lane->failed(index_of(*call.row), std::string_view{out}.substr(before));
    if (native.shape != nullptr || call.row->is(flag_write)) {
      node_.watches.touched(client_.db, batch_.ops_[i].key);
    }
    // The thread's, for good: room for small values is kept, not for the largest there ever was.
    constexpr std::size_t room_kept = std::size_t{64} << 10;
    if (batch_.outcomes_[i].value.capacity() > room_kept) [[unlikely]]
      give_back(batch_.outcomes_[i].value);
  }
}

/// Their time is shared out evenly, and those of one kind that follow each other counted at once.
void Connection::count_batch(std::size_t count) {
  const std::int64_t each = client_.lane->lap(node_.ticks()) / static_cast<std::int64_t>(count);
  std::string unused;
  RespWriter discarded{unused, client_.dialect};
  Call call{node_.services(), node_.engine(), client_, {}, discarded};
  bool has_natives = false;
  for (std::size_t first = 0; first < count;) {
    call.row = batch_.rows_[first];
    std::size_t end = first + 1;
    while (end < count && batch_.rows_[end] == call.row) ++end;
    measured_together(call, each, end - first, batch_.ops_[first].key);
    has_natives = has_natives || batch_.natives_[first].shape != nullptr;
    first = end;
  }
  if (has_natives) count_natives(count, each);
}

/// What the scripts would have sent counts as well. The name of a command lies in one place for
/// each script, so that comparing where it lies is enough to put most of them together.
void Connection::count_natives(std::size_t count, std::int64_t ns_each) {
  struct Tally {
    std::string_view name;
    std::uint64_t calls = 0;
  };
  std::array<Tally, 4> tallies{};
  const auto write_down = [&](Tally& tally) {
    const CommandRow* const row = tally.calls == 0 ? nullptr : find_command(tally.name);
    if (row != nullptr) client_.lane->called(index_of(*row), ns_each, tally.calls);
    tally = {};
  };
  std::size_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (batch_.natives_[i].shape == nullptr) continue;
    for (const std::string_view name : commands_of(batch_.natives_[i], batch_.outcomes_[i])) {
      if (name.empty()) continue;
      auto found = std::find_if(tallies.begin(), tallies.end(), [&](const Tally& tally) {
        return tally.name.data() == name.data();
      });
      if (found == tallies.end()) {
        found = tallies.begin() + static_cast<std::ptrdiff_t>(next++ % tallies.size());
        write_down(*found);
        found->name = name;
      }
      ++found->calls;
    }
  }
  for (Tally& tally : tallies) write_down(tally);
  client_.scripts->thread.forget_retired();
}

}  // namespace semel::net
