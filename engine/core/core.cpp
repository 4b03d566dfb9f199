#include "engine/core/core.hpp"

#include <algorithm>
#include <string>

#include "engine/kinds/kinds.hpp"
#include "engine/rules/claim_rules.hpp"

namespace semel::engine {

Core::Core(const Options& options, const Clock& clock)
    : options_(options),
      clock_(clock),
      reserved_(region_.reserve(options.memory_bytes, options.memory_room_bytes)),
      arena_(region_),
      keys_(region_, options_),
      cold_(options_, keys_, region_),
      versions_(options.first_version, options.replicated),
      threads_(arena_, keys_) {}

Core::~Core() = default;

Status Core::start() {
  const std::string limit = std::to_string(options_.memory_bytes) + " bytes";
  if (!reserved_ || !arena_.is_ready()) return Error{ErrorCode::out_of_address_space, limit};
  SEMEL_CHECK(keys_.start(region_, threads_));
  SEMEL_CHECK(insight_.start(options_, region_));
  return options_.cold == nullptr ? Status{Done{}} : cold_.attach(versions_);
}

namespace {

/// What a record adds to the figures.
struct Weight {
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;
  std::uint64_t timed = 0;
};

Weight weight_of(const Entry& entry) noexcept {
  Timestamp due = entry.due();
  const bool is_marker = due == Timestamp{};
  SEMEL_ASSERT_SLOW(is_marker == entry.is_delete_marker());
  // A hash of which a field ends: an idle group tells its time while there are timed records.
  if (entry.kind() == Kind::hash && !is_marker) [[unlikely]]
    due = wake_of(entry);
  return {.bytes = Arena::rounded(entry.bytes()),
          .records = is_marker ? 0U : 1U,
          .timed = is_marker || due == no_end ? 0U : 1U};
}

/// A record of a cache was made or replaced. `is_new`: there was none.
[[gnu::noinline]] void note_write(Core& core, const Entry& fresh, HashBits hash,
                                  bool is_new) noexcept {
  const std::uint8_t db = core.databases().shown(fresh.db());
  if (fresh.is_delete_marker() || !core.uses().is_of(db)) return;
  core.uses().note(hash, now_of(core.clock()), is_new);
}

}  // namespace

void Core::committed(ThreadContext& context, HashBits hash, const Entry* old, bool old_was_live,
                     const Entry* fresh, Timestamp wake) noexcept {
  Timestamp old_wake = no_end;
  const bool has_early_timer = fresh != nullptr && fresh->has_early_timer();
  const Weight more = fresh != nullptr ? weight_of(*fresh) : Weight{};
  Weight less;
  if (old != nullptr) {
    less = weight_of(*old);
    old_wake = wake_of(*old);
    if (keys_.databases().is_flushed(*old)) [[unlikely]] {
      context.bump(Count::records_flushed, 0 - less.records);
      less.records = 0;  // the flush took it off the others
    } else if (!old_was_live && !old->is_delete_marker()) {
      insight_.note_expired(context, *old, keys_);
    }
    if (old_was_live && old_wake != no_end && old_wake != wake && !has_early_timer)
      context.bump(Count::ended_early);
  }
  // Counters wrap around: one thread adds, another takes away. Most replacements change none.
  if (more.bytes != less.bytes) context.bump(Count::bytes_records, more.bytes - less.bytes);
  if (more.timed != less.timed) context.bump(Count::records_with_ttl, more.timed - less.timed);
  if (more.records != less.records) {
    context.bump(Count::records, more.records - less.records);
    const std::uint8_t db = (fresh != nullptr ? fresh : old)->db();
    ThreadContext::add(context.db_records[db], more.records - less.records);
  }
  if (fresh != nullptr && uses_.any()) [[unlikely]]
    note_write(*this, *fresh, hash, !old_was_live);
  const bool keeps_timer =
      old != nullptr && old_was_live && wake == old_wake && !old->has_early_timer();
  if (wake != no_end && !has_early_timer && !keeps_timer) {
    context.bump(Count::timers_logged);
    if (context.timers.push({hash.bits, wake})) context.drain_due = true;
  }
  if (old == nullptr) return;
  if (snapshot_cut_.preserve(old->version(), region_.handle_of(old))) return;
  large_records_.retire(context, *old, less.bytes);
}

}  // namespace semel::engine
