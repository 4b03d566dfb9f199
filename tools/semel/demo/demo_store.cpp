// Chapter 5: the other face of the engine, bytes with a time to live, and the memory they return.
#include <fmt/format.h>

#include <string>

#include "semel/engine_host.hpp"
#include "semel/store.hpp"
#include "tools/semel/demo/demo.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {
namespace {

constexpr std::uint64_t key_count = 100'000;
constexpr Millis ttl{60'000};

void show_set_nx_get_px(Story& story, Store& store, ManualClock& clock) {
  SetOptions options;
  options.condition = Condition::if_absent;
  options.get = true;
  options.expiry = Expiry::in(ttl);
  const Result<SetResult> first = store.set("order:7", "CONSUMING", options);
  story.expect(
      first.ok() && first->stored && !first->previous,
      fmt::format("SET order:7 CONSUMING NX GET PX {}: stored, nothing was there", ttl.count()));
  const Result<SetResult> second = store.set("order:7", "CONSUMING", options);
  story.expect(second.ok() && !second->stored && second->previous == "CONSUMING",
               fmt::format("the same again: refused, the old value is '{}'",
                           second.ok() ? second->previous.value_or("") : ""));
  clock.advance(ttl - Millis{1});
  const Result<TtlResult> left = store.ttl("order:7");
  const Result<std::optional<std::string>> before = store.get("order:7");
  story.expect(left && left->remaining == Millis{1} && before.ok() && before->has_value(),
               fmt::format("{} ms later it is there, with {} ms to live", ttl.count() - 1,
                           left ? left->remaining.count() : 0));
  clock.advance(Millis{1});
  const Result<std::optional<std::string>> after = store.get("order:7");
  const Result<SetResult> third = store.set("order:7", "CONSUMING", options);
  story.expect(after.ok() && !after->has_value() && third.ok() && third->stored && !third->previous,
               "1 ms later it is gone to the millisecond, and the same SET stores again");
}

/// Removes all that has ended by now.
void sweep(Engine& engine) {
  while (engine.advance() == 0) {
  }
  engine.host().quiesce();
}

void show_expiry(Story& story, Engine& engine, Store& store, ManualClock& clock) {
  // Abandoned claims of earlier chapters are not counted here.
  sweep(engine);
  const Stats before = engine.stats();
  SetOptions options;
  options.expiry = Expiry::in(ttl);
  std::uint64_t stored = 0;
  for (std::uint64_t i = 0; i < key_count; ++i) {
    const Result<SetResult> result = store.set(fmt::format("session:{}", i), "online", options);
    if (result.ok() && result->stored) ++stored;
  }
  const Stats full = engine.stats();
  story.expect(stored == key_count && full.records == before.records + key_count,
               fmt::format("{} more keys, each for {} s: {} in records", format_count(stored),
                           ttl.count() / 1000, format_bytes(full.bytes_records)));
  clock.advance(ttl);
  sweep(engine);
  const Stats swept = engine.stats();
  // order:7 of the first half ends in the same millisecond.
  story.expect(
      swept.records + 1 == before.records && swept.bytes_records <= before.bytes_records &&
          swept.expired - before.expired == key_count + 1,
      fmt::format("{} s later: {} records ended, {} in records", ttl.count() / 1000,
                  format_count(swept.expired - before.expired), format_bytes(swept.bytes_records)));
}

}  // namespace

void show_store(Story& story, Engine& engine, ManualClock& clock) {
  story.chapter("SET NX GET PX, and the memory comes back");
  Store store = engine.store(0);
  show_set_nx_get_px(story, store, clock);
  show_expiry(story, engine, store, clock);
}

}  // namespace semel::tool
