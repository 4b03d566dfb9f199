#include "net/node/batch.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"
#include "engine/api/bounded_apply.hpp"
#include "net/commands/measure.hpp"
#include "net/commands/single_key_command.hpp"
#include "net/resp/release_capacity.hpp"
#include "net/resp/text.hpp"
#include "net/scripts/script_host.hpp"
#include "semel/engine_host.hpp"

namespace semel::net {

Batch::Batch()
    : ops_(count_max),
      outcomes_(count_max),
      rows_(count_max),
      natives_(count_max),
      starts_(count_max) {}
Batch::~Batch() = default;

const std::shared_ptr<ScriptHost>& Batch::scripts(Node& node) {
  if (scripts_ == nullptr || &scripts_->thread.scripts() != &node.scripts) {
    scripts_ = std::make_shared<ScriptHost>(node.scripts);
  }
  return scripts_;
}

bool Batch::add(const Call& call, const char* start) {
  SEMEL_ASSERT(takes(*call.row) && count_ < count_max);
  StoreOp& op = ops_[count_];
  if (call.row->single != nullptr) {
    op = StoreOp{.db = call.client.db, .key = call.args[1]};
    if (call.row->single->plan(call, op) != ArgumentError::none) return false;
    natives_[count_].shape = nullptr;
  } else if (!plan_script(call)) {
    return false;
  }
  starts_[count_] = start;
  rows_[count_++] = call.row;
  return true;
}

bool Batch::plan_script(const Call& call) {
  const bool by_digest = call.row->has(fact_script_digest);
  const std::string_view word = call.args[1];
  const SharedScript& script =
      call.client.scripts->thread.find(by_digest ? word : std::string_view{sha1_hex(word)});
  if (script == nullptr || script->has_shebang ||
      script->shape.known == lua::KnownScript::unknown) {
    return false;
  }
  StoreOp& op = ops_[count_];
  op = StoreOp{.db = call.client.db};
  NativePlan& plan = natives_[count_];
  if (plan_native(call, script->shape, script->sha, op, plan) != ArgumentError::none) return false;
  script->used(call.client.lane->now());
  return true;
}

Batch::Rest Batch::apply(Node& node, ClientState& client, std::string& out, std::size_t bytes_max) {
  const std::size_t planned = std::exchange(count_, 0);
  SEMEL_ASSERT(planned != 0 && planned <= count_max);
  Engine& engine = node.engine();
  std::size_t count = planned;
  if (count == 1) {
    engine.host().apply(ops_[0], outcomes_[0]);
  } else {
    count = engine::apply_bounded(engine, std::span{ops_}.first(count),
                                  std::span{outcomes_}.first(count), bytes_max);
  }
  answer(node, client, count, out);
  client.last_command = &rows_[count - 1]->name;
  count_calls(node, client, count);
  return {.count = planned - count, .start = count < planned ? starts_[count] : nullptr};
}

void Batch::answer(Node& node, ClientState& client, std::size_t count, std::string& out) {
  SEMEL_ASSERT(count != 0 && count <= Batch::count_max);
  RespWriter reply{out, client.dialect};
  if (client.large->is_enabled()) reply.set_large(client.large);
  Call call{node.services(), node.engine(), client, {}, reply};
  for (std::size_t i = 0; i < count; ++i) {
    call.row = rows_[i];
    const std::size_t before = out.size();
    const NativePlan& native = natives_[i];
    if (outcomes_[i].error == ErrorCode::section_held) [[unlikely]] {
      call.fail(ErrorCode::section_held);
    } else if (native.shape == nullptr) {
      answer_single(call, *call.row->single, ops_[i], outcomes_[i]);
    } else {
      answer_native(call, native, ops_[i], outcomes_[i]);
      node.scripts.ran_native(*native.shape);
    }
    if (out[before] == '-') [[unlikely]]
      client.lane->failed(index_of(*call.row), std::string_view{out}.substr(before));
    if (native.shape != nullptr || call.row->is(flag_write)) {
      node.watches.touched(client.db, ops_[i].key);
    }
    // The buffer lives as long as the thread: keep the capacity for small values only.
    constexpr std::size_t room_kept = std::size_t{64} << 10;
    if (outcomes_[i].value.capacity() > room_kept) [[unlikely]]
      give_back(outcomes_[i].value);
  }
}

/// Splits the time of the batch evenly, and counts consecutive requests of one command together.
void Batch::count_calls(Node& node, ClientState& client, std::size_t count) {
  const std::int64_t each = client.lane->lap(node.ticks()) / static_cast<std::int64_t>(count);
  std::string unused;
  RespWriter discarded{unused, client.dialect};
  Call call{node.services(), node.engine(), client, {}, discarded};
  bool has_natives = false;
  for (std::size_t first = 0; first < count;) {
    call.row = rows_[first];
    std::size_t end = first + 1;
    while (end < count && rows_[end] == call.row) ++end;
    measured_together(call, each, end - first, ops_[first].key);
    has_natives = has_natives || natives_[first].shape != nullptr;
    first = end;
  }
  if (has_natives) count_scripts(client, count, each);
}

/// Counts the commands that the scripts would have called. Each script has the name of its command
/// at one address, so comparing addresses is enough to count most of them together.
void Batch::count_scripts(ClientState& client, std::size_t count, std::int64_t ns_each) {
  struct Tally {
    std::string_view name;
    std::uint64_t calls = 0;
  };
  std::array<Tally, 4> tallies{};
  const auto write_down = [&](Tally& tally) {
    const CommandRow* const row = tally.calls == 0 ? nullptr : find_command(tally.name);
    if (row != nullptr) client.lane->called(index_of(*row), ns_each, tally.calls);
    tally = {};
  };
  std::size_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (natives_[i].shape == nullptr) continue;
    for (const std::string_view name : commands_of(natives_[i], outcomes_[i])) {
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
  client.scripts->thread.forget_retired();
}

}  // namespace semel::net
