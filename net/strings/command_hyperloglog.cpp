// HyperLogLogs: PFADD, PFCOUNT, PFMERGE, and PFDEBUG and PFSELFTEST for tests.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/types/hyperloglog.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"
#include "net/session/watches.hpp"
#include "net/strings/string_command.hpp"

namespace semel::net {
namespace {

using engine::HllChange;
using engine::HllRegisters;
using engine::StringEdit;

constexpr std::string_view not_a_hyperloglog =
    "WRONGTYPE Key is not a valid HyperLogLog string value.";
constexpr std::string_view damaged_hyperloglog = "INVALIDOBJ Corrupted HLL object detected";

std::size_t sparse_bytes_max(const Call& call) noexcept {
  constexpr std::size_t of_group = 3'000;
  return setting_of_writes(call, Setting::hll_sparse_max_bytes, of_group);
}

/// Why a string was refused: its head, or its registers. Empty: it was not.
using Refusal = std::string_view;

/// As change_string(), of a HyperLogLog; `change(StringEdit&) -> Refusal`.
template <class Change>
std::optional<engine::ObjectChange> change_hyperloglog(Call& call, Bytes key, Change&& change) {
  Refusal refusal;
  const auto done =
      engine::change_string(call.engine, {call.client.db, key}, [&](StringEdit& edit) {
        refusal = {};
        if (edit.was_there() && !engine::is_hyperloglog(edit.before())) {
          refusal = not_a_hyperloglog;
        } else {
          refusal = change(edit);
        }
        return refusal.empty() ? ErrorCode::ok : ErrorCode::wrong_type;
      });
  if (!done.ok()) {
    refusal.empty() ? fail_string(call, done.error()) : call.fail(refusal);
    return std::nullopt;
  }
  return *done;
}

/// As read_string(), of a HyperLogLog; `read(Bytes) -> Refusal`.
template <class Read>
bool read_hyperloglog(Call& call, Bytes key, Read&& read) {
  Refusal refusal;
  const bool is_read = read_string(call, key, [&](Bytes value) {
    refusal = engine::is_hyperloglog(value) ? read(value) : not_a_hyperloglog;
  });
  if (is_read && !refusal.empty()) call.fail(refusal);
  return is_read && refusal.empty();
}

/// The largest value of each register of several.
struct Union {
  HllRegisters registers{};
  bool has_dense = false;

  Refusal add(Bytes hll) {
    const auto more = engine::registers_of(hll);
    if (!more) return damaged_hyperloglog;
    has_dense = has_dense || engine::is_dense(hll);
    for (std::size_t i = 0; i < registers.size(); ++i) {
      registers[i] = std::max(registers[i], (*more)[i]);
    }
    return {};
  }
};

/// False: the error is the reply.
bool add_all(Call& call, std::span<const std::string_view> keys, Union& all) {
  return std::all_of(keys.begin(), keys.end(), [&](Bytes key) {
    return read_hyperloglog(call, key, [&](Bytes hll) { return all.add(hll); });
  });
}

/// PFCOUNT of several.
void count_union(Call& call) {
  const auto keys = call.args.subspan(1);
  auto section = section_of(call, keys);
  if (!section) return;
  const auto all = std::make_unique<Union>();
  if (!add_all(call, keys, *all)) return;
  if (const Status done = section->commit(); !done) return call.fail(done.error());
  call.reply.integer(static_cast<std::int64_t>(engine::estimate(all->registers)));
}

/// Stores `count` in the string, if its bytes are still `counted`. The reply does not depend on it:
/// a node that follows, or has no memory left, counts again the next time.
void keep_count(Call& call, Bytes key, const std::string& counted, std::uint64_t count) {
  const auto done =
      engine::change_string(call.engine, {call.client.db, key}, [&](StringEdit& edit) {
        if (edit.before() == counted) engine::keep_estimate(edit.value(), count);
        return ErrorCode::ok;
      });
  if (done.ok() && done->is_changed && !call.context().is_trial()) {
    call.services.watches.touched(call.client.db, key);
  }
}

/// What PFMERGE makes of the target.
Refusal merge_into(StringEdit& edit, const Union& all, std::size_t bytes_max) {
  std::string& hll = edit.value();
  if (!edit.was_there()) hll = engine::empty_hyperloglog();
  if (all.has_dense && !engine::make_dense(hll)) return damaged_hyperloglog;
  for (std::size_t i = 0; i < all.registers.size(); ++i) {
    if (all.registers[i] == 0) continue;
    const HllChange raised = engine::raise_register(hll, i, all.registers[i], bytes_max);
    if (raised == HllChange::damaged) return damaged_hyperloglog;
  }
  engine::drop_estimate(hll);
  return {};
}

/// Registers keep what they are raised to, sparse and dense, and their neighbours as well.
bool registers_hold() {
  constexpr std::size_t steps = 2'000;
  constexpr std::uint64_t stride = 2'654'435'761U;
  constexpr std::uint8_t sparse_max = 32;
  std::string hll = engine::empty_hyperloglog();
  HllRegisters expected{};
  for (std::size_t i = 0; i < steps; ++i) {
    const std::size_t index = i * stride % expected.size();
    const bool stays_sparse = i < steps / 4;
    const auto value =
        static_cast<std::uint8_t>(1 + i % (stays_sparse ? sparse_max : 2 * sparse_max - 1));
    expected[index] = std::max(expected[index], value);
    if (engine::raise_register(hll, index, value, engine::hll_register_count) ==
        HllChange::damaged) {
      return false;
    }
  }
  const auto registers = engine::registers_of(hll);
  return engine::is_dense(hll) && registers && *registers == expected;
}

/// Counts to 100,000 stay within four standard errors.
bool estimates_hold() {
  constexpr std::uint64_t elements = 100'000;
  constexpr double error_max = 4 * 1.04 / 128;  // 1.04 / sqrt(registers)
  std::string hll = engine::empty_hyperloglog();
  std::uint64_t next = 1;
  for (std::uint64_t i = 1; i <= elements; ++i) {
    constexpr std::size_t sparse_max = 3'000;
    const HllChange change = engine::add_to_hyperloglog(hll, std::to_string(i), sparse_max);
    if (change == HllChange::damaged) return false;
    if (i != next) continue;
    next *= 10;
    const auto registers = engine::registers_of(hll);
    if (!registers) return false;
    const auto count = static_cast<double>(engine::estimate(*registers));
    const auto exact = static_cast<double>(i);
    if (std::abs(count - exact) > std::max(1.0, exact * error_max)) return false;
  }
  return true;
}

}  // namespace

namespace handlers {

void pfadd(Call& call) {
  bool is_changed = false;
  const std::size_t bytes_max = sparse_bytes_max(call);
  const auto done = change_hyperloglog(call, call.key(), [&](StringEdit& edit) -> Refusal {
    is_changed = !edit.was_there();
    std::string& hll = edit.value();
    if (!edit.was_there()) hll = engine::empty_hyperloglog();
    for (const Bytes element : call.args.subspan(2)) {
      const HllChange added = engine::add_to_hyperloglog(hll, element, bytes_max);
      if (added == HllChange::damaged) return damaged_hyperloglog;
      is_changed = is_changed || added == HllChange::raised;
    }
    is_changed ? engine::drop_estimate(hll) : edit.keep();
    return {};
  });
  if (!done) return;
  if (done->is_new()) call.notify('n', "new", call.key());
  if (is_changed) call.notify('$', "pfadd", call.key());
  call.reply.integer(is_changed ? 1 : 0);
}

void pfcount(Call& call) {
  if (call.args.size() > 2) return count_union(call);
  std::string counted;  // what the count was not kept in
  std::uint64_t count = 0;
  const bool is_read = read_hyperloglog(call, call.key(), [&](Bytes hll) -> Refusal {
    if (const auto kept = engine::kept_estimate(hll)) {
      count = *kept;
      return {};
    }
    const auto registers = engine::registers_of(hll);
    if (!registers) return damaged_hyperloglog;
    count = engine::estimate(*registers);
    counted.assign(hll);
    return {};
  });
  if (!is_read) return;
  if (!counted.empty()) keep_count(call, call.key(), counted, count);
  call.reply.integer(static_cast<std::int64_t>(count));
}

void pfmerge(Call& call) {
  const auto keys = call.args.subspan(1);
  auto section = section_of(call, keys);
  if (!section) return;
  const auto all = std::make_unique<Union>();
  if (!add_all(call, keys, *all)) return;
  const std::size_t bytes_max = sparse_bytes_max(call);
  const auto done = change_hyperloglog(
      call, call.key(), [&](StringEdit& edit) { return merge_into(edit, *all, bytes_max); });
  if (!done) return;
  if (const Status ended = section->commit(); !ended) return call.fail(ended.error());
  if (done->is_new()) call.notify('n', "new", call.key());
  call.notify('$', "pfadd", call.key());
  call.reply.ok();
}

void pfselftest(Call& call) {
  if (!registers_hold()) return call.fail("ERR a register lost its value");
  if (!estimates_hold()) return call.fail("ERR an estimate is too far off");
  call.reply.ok();
}

void pfdebug(Call& call) {
  const std::string_view what = call.args[1];
  const Bytes key = call.args[2];
  const auto there = call.store().exists(key);
  if (!there.ok()) return call.fail(there.error());
  if (!*there) return call.fail("ERR The specified key does not exist");
  const bool shows_registers = is_word(what, "getreg");
  if (shows_registers || is_word(what, "todense")) {
    std::optional<HllRegisters> registers;
    bool was_dense = false;
    const auto done = change_hyperloglog(call, key, [&](StringEdit& edit) -> Refusal {
      if (!edit.was_there()) return {};
      was_dense = engine::is_dense(edit.before());
      if (!was_dense && !engine::make_dense(edit.value())) return damaged_hyperloglog;
      registers = engine::registers_of(was_dense ? edit.before() : Bytes{edit.value()});
      return {};
    });
    if (!done) return;
    if (!shows_registers) return call.reply.integer(was_dense ? 0 : 1);
    if (!registers) return call.fail("ERR The specified key does not exist");
    call.reply.array(registers->size());
    for (const std::uint8_t value : *registers) call.reply.integer(value);
    return;
  }
  std::string encoding;
  std::optional<std::string> runs;
  const bool is_read = read_hyperloglog(call, key, [&](Bytes hll) -> Refusal {
    encoding = engine::is_dense(hll) ? "dense" : "sparse";
    if (encoding == "sparse") runs = engine::runs_of(hll, call.reply.room());
    return {};
  });
  if (!is_read) return;
  if (is_word(what, "encoding")) return call.reply.simple(encoding);
  if (!is_word(what, "decode")) {
    return call.fail("ERR Unknown PFDEBUG subcommand '" + std::string{what} + "'");
  }
  if (encoding == "dense") return call.fail("ERR HLL encoding is not sparse");
  runs ? call.reply.bulk(*runs) : call.reply.cut();
}

}  // namespace handlers
}  // namespace semel::net
