// Iteration: Engine::scan and a random key.
//
// The cursor is a position in the order of the table, not of memory: segments are visited in the
// order of their directory index with its bits reversed, so that a segment and the two it splits
// into cover the same stretch. Within a segment the cursor counts lines; as a rebuild moves records
// between lines, the cursor also names the segment (its birth). If another segment has replaced it,
// that stretch is visited again as a whole: records may come twice, none is missed.
//
//   cursor  bits 0..5 shard, bits 6..21 reversed index, bits 22..31 line, bits 32..62 birth,
//           all plus one, so that 0 can mean both start and end
//
// Behind the table comes the cold store, by rank: bit 63 and the rank without its lowest bit. A
// record that moves from the table into the store during the scan is visited in the store; one that
// moves the other way is visited at its copy: for each copy the table is looked up.
#include <array>
#include <string>

#include "base/random.hpp"
#include "engine/api/engine_impl.hpp"
#include "engine/core/operation.hpp"
#include "engine/kinds/kinds.hpp"
#include "engine/rules/claim_codec.hpp"
#include "engine/rules/claim_rules.hpp"
#include "engine/rules/hash_value.hpp"

namespace semel {

namespace {

using engine::Core;

constexpr std::uint64_t beyond_table = std::uint64_t{1} << 63;

struct Cursor {
  std::uint32_t shard = 0;
  std::uint32_t reversed_index = 0;  // reversed directory index, 16 bits
  std::uint32_t line = 0;
  std::uint32_t birth = 0;  // 0: not inside a segment yet

  [[nodiscard]] std::uint64_t pack() const noexcept {
    return (std::uint64_t{shard} | (std::uint64_t{reversed_index} << 6) |
            (std::uint64_t{line} << 22) | (std::uint64_t{birth} << 32)) +
           1;
  }
  static Cursor unpack(std::uint64_t cursor) noexcept {
    if (cursor == 0) return {};
    --cursor;
    return {static_cast<std::uint32_t>(cursor & 63),
            static_cast<std::uint32_t>(cursor >> 6 & 0xffff),
            static_cast<std::uint32_t>(cursor >> 22 & 0x3ff),
            static_cast<std::uint32_t>(cursor >> 32 & 0x7fff'ffff)};
  }
};

std::uint32_t reverse_index(std::uint32_t value) noexcept {
  std::uint32_t reversed = 0;
  for (unsigned bit = 0; bit < engine::depth_max; ++bit) {
    reversed |= ((value >> bit) & 1U) << (engine::depth_max - 1 - bit);
  }
  return reversed;
}

/// A record copied out of the table, so that the visitor runs outside of any operation.
struct Copied {
  Kind kind;
  std::uint8_t db;
  Timestamp due;
  Version version;
  std::string key;
  std::string value;
};

class Scan {
 public:
  Scan(Engine::Impl& impl, const ScanOptions& options, Timestamp now)
      : impl_(impl), options_(options), now_(now) {}

  /// Visits about options.count slots' worth of records from `cursor`; false: at the end, or
  /// turned_away() by a section.
  bool step(Cursor& cursor, std::vector<Copied>& found, std::size_t& looked) {
    Core& core = impl_.core();
    engine::Shard& shard = core.keys().shards()[cursor.shard];
    engine::Operation operation{core, core.context()};
    turned_away_ = turned_away_ || !operation.try_admit(shard);
    if (turned_away_) return false;
    engine::HashBits bits{reverse_index(cursor.reversed_index)};
    engine::ShardTable::Segment& segment = *shard.table.locate(bits);
    const auto birth = static_cast<std::uint32_t>(segment.birth & 0x7fff'ffff);
    const std::uint32_t lines = shard.table.line_count();
    std::uint32_t first = 0;
    std::uint32_t last = lines;  // a segment met anew in the middle is visited as a whole
    if (cursor.birth == birth || cursor.birth == 0) {
      first = cursor.birth == 0 ? 0 : cursor.line;
      const auto wanted = static_cast<std::uint32_t>((options_.count + 3) / 4);
      last = std::min(lines, first + std::max(1U, wanted));
    }
    for (std::uint32_t i = first * engine::slots_per_line; i < last * engine::slots_per_line; ++i) {
      // mo: acquire [table.publish]: the record is read next.
      const engine::SlotWord word = segment.slots()[i].load(std::memory_order_acquire);
      if (!engine::slot::is_record(word & ~engine::slot::frozen)) continue;
      ++looked;
      take(core.keys().entry(word), found);
    }
    lines_ += last - first;
    if (last < lines) {
      cursor.line = last;
      cursor.birth = birth;
      return true;
    }
    // The next stretch begins where this segment's ends.
    const std::uint32_t width = 1U << (engine::depth_max - segment.depth);
    cursor.line = cursor.birth = 0;
    cursor.reversed_index = (cursor.reversed_index & ~(width - 1)) + width;
    if (cursor.reversed_index < (1U << engine::depth_max)) return true;
    cursor.reversed_index = 0;
    return ++cursor.shard < core.keys().shards().size();
  }

  /// The same in the cold store, from `rank` on; 0 afterwards: at the end.
  Result<std::uint64_t> step_beyond(std::uint64_t rank, std::vector<Copied>& found) {
    Core& core = impl_.core();
    const auto view = core.cold()->view();
    return core.cold()->scan(
        *view, rank, options_.count, [&](std::uint64_t, const ColdRecord& copy) {
          const Mutation& record = copy.record;
          engine::Operation operation{core, core.context()};
          const engine::HashBits hash = core.keys().hash_of(record.db, record.key);
          turned_away_ = turned_away_ || !operation.try_admit(core.keys().shard_of(hash));
          if (turned_away_) return;
          const engine::TableProbe probe = core.keys().shard_of(hash).table.find(
              hash, engine::Match{core.region(), record.db, record.key});
          if (probe.state == engine::TableProbe::State::found)
            return take(core.keys().entry(probe.seen), found);
          engine::Scratch scratch;
          take({record.kind, record.db, record.due, record.version, record.key,
                engine::value_of(record, scratch)},
               found);
        });
  }

  /// False: the visitor threw, and is not called again.
  [[nodiscard]] bool visit(const std::vector<Copied>& found,
                           const Function<void(const ScanItem&)>& visitor) const {
    return impl_.core().callbacks().run(Callback::visitor, [&] {
      for (const Copied& copied : found) visit(copied, visitor);
    });
  }

  void visit(const Copied& copied, const Function<void(const ScanItem&)>& visitor) const {
    ScanItem item{copied.kind, copied.db, copied.due, copied.version, copied.key, {}, nullptr};
    ClaimRecord claim;
    if (copied.kind == Kind::claim) {
      if (!engine::decode(copied.value, claim)) return;
      if (claim.state == ClaimState::vacant && !options_.vacant) return;
      if (!state_matches(copied.key, claim)) return;
      item.claim = &claim;
    } else {
      item.value = copied.value;
    }
    visitor(item);
  }

  /// The slot of the table that `random` means, if a record is in it: every slot of a segment is
  /// as likely, and every segment by the stretch of hashes it has.
  void pick(std::uint64_t random, std::vector<Copied>& found) {
    Core& core = impl_.core();
    engine::Shard& shard =
        core.keys().shards()[static_cast<std::size_t>(random % core.keys().shards().size())];
    engine::Operation operation{core, core.context()};
    turned_away_ = turned_away_ || !operation.try_admit(shard);
    if (turned_away_) return;
    const auto index = static_cast<std::uint32_t>(random >> 8 & 0xffff);
    engine::ShardTable::Segment& segment = *shard.table.locate(engine::HashBits{index});
    const std::uint64_t slots = std::uint64_t{shard.table.line_count()} * engine::slots_per_line;
    const auto slot = static_cast<std::size_t>((random >> 32) % slots);
    // mo: acquire [table.publish]: the record is read next.
    const engine::SlotWord word = segment.slots()[slot].load(std::memory_order_acquire);
    if (engine::slot::is_record(word & ~engine::slot::frozen)) take(core.keys().entry(word), found);
  }

  /// How many lines of the table were looked at.
  [[nodiscard]] std::size_t lines() const noexcept { return lines_; }

  /// A section takes long that this thread does not wait for.
  [[nodiscard]] bool turned_away() const noexcept { return turned_away_; }

 private:
  struct Seen {
    Kind kind;
    std::uint8_t stored_db;
    Timestamp due;
    Version version;
    Bytes key;
    Bytes value;
  };
  void take(const engine::Entry& entry, std::vector<Copied>& found) const {
    if (impl_.core().databases().is_flushed(entry)) return;
    take({entry.kind(), entry.db(), entry.due(), entry.version(), entry.key(), entry.value()},
         found);
  }
  void take(const Seen& seen, std::vector<Copied>& found) const {
    if (seen.due <= now_) return;
    // Given back, attempts remembered: absent to all but the next claim.
    if (!options_.vacant && !engine::is_visible(seen.kind, seen.value)) return;
    const std::uint8_t db = impl_.core().databases().shown(seen.stored_db);
    if (options_.db && *options_.db != db) return;
    if (options_.kind && *options_.kind != seen.kind) return;
    if (options_.state && seen.kind != Kind::claim) return;
    if (seen.key.substr(0, options_.prefix.size()) != options_.prefix) return;
    const bool is_shown = seen.kind == Kind::string || seen.kind == Kind::claim;
    const Timestamp end = engine::key_end_of(seen.kind, seen.value, seen.due);
    found.push_back({seen.kind, db, end, seen.version, std::string{seen.key},
                     std::string{is_shown ? seen.value : Bytes{}}});
  }
  [[nodiscard]] bool state_matches(Bytes key, const ClaimRecord& claim) const {
    if (!options_.state) return true;
    const engine::NamespaceHandle names = impl_.namespaces().find_by_key(key);
    const Policy policy = names ? names->policy() : Policy{};
    return engine::state_of(claim, policy, now_, impl_.sessions().is_closed(claim.session)) ==
           *options_.state;
  }

  Engine::Impl& impl_;
  const ScanOptions& options_;
  const Timestamp now_;
  std::size_t lines_ = 0;
  bool turned_away_ = false;
};

// Empty stretches cost a look at their lines and no more: a call passes over at most this many
// before it answers with a cursor. A table without records of 16 shards is done in one.
constexpr std::size_t empty_lines_max = 8192;

}  // namespace

Result<std::uint64_t> Engine::scan(std::uint64_t cursor, const ScanOptions& options,
                                   const Function<void(const ScanItem&)>& visit) {
  if (options.count < 1 || options.count > limits::scan_count_max) {
    return Error{ErrorCode::bad_option, "count = " + std::to_string(options.count) + ", range 1.." +
                                            std::to_string(limits::scan_count_max)};
  }
  if (options.db && *options.db >= limits::db_count) {
    return Error{ErrorCode::db_out_of_range, std::to_string(*options.db)};
  }
  if (const ErrorCode no = impl_->core().begin_call(); no != ErrorCode::ok) return Error{no, {}};
  ColdStore* const cold = impl_->core().cold();
  if (cursor >= beyond_table && cold != nullptr) {
    Scan scan{*impl_, options, impl_->now()};
    std::vector<Copied> found;
    SEMEL_TRY(next, scan.step_beyond(cursor << 1, found));
    if (scan.turned_away()) return Error{ErrorCode::section_held, {}};
    if (!scan.visit(found, visit)) return Error{ErrorCode::callback_threw, {}};
    return next == 0 ? 0 : beyond_table | next >> 1;
  }
  Cursor at = Cursor::unpack(cursor);
  if (cursor >= beyond_table || at.shard >= impl_->core().keys().shards().size()) {
    return Error{ErrorCode::bad_cursor, std::to_string(cursor)};
  }
  Scan scan{*impl_, options, impl_->now()};
  std::size_t looked = 0;
  bool more = true;
  // Lines are bounded as well as records.
  const std::size_t lines_max = std::max(options.count, empty_lines_max);
  while (more && looked < options.count && scan.lines() < lines_max) {
    std::vector<Copied> found;
    more = scan.step(at, found, looked);
    if (scan.turned_away()) return Error{ErrorCode::section_held, {}};
    if (!scan.visit(found, visit)) return Error{ErrorCode::callback_threw, {}};
  }
  if (more) return at.pack();
  return cold != nullptr ? beyond_table : 0;
}

std::optional<std::string> Engine::Impl::random_key(std::uint8_t db) {
  // Slots at random until a record is met: then each is as likely, but for the depths of segments,
  // of which one may be twice the other. Where records are few, one of those in a long stretch from
  // a random position on; a small table is such a stretch as a whole.
  static constinit thread_local std::uint64_t state = 0;  // differs from thread to thread
  if (core_.begin_call() != ErrorCode::ok) return std::nullopt;
  if (state == 0) state = reinterpret_cast<std::uintptr_t>(&state) ^ core_.versions().next();
  constexpr std::size_t picks_max = 128;
  constexpr std::size_t stretch_lines = 2 * empty_lines_max;
  constexpr std::size_t step_records = 64;
  const ScanOptions options{.db = db, .kind = {}, .state = {}, .prefix = {}, .count = step_records};
  Scan scan{*this, options, now()};
  std::vector<Copied> found;
  for (std::size_t i = 0; i < picks_max; ++i) {
    scan.pick(base::next_random(state), found);
    if (scan.turned_away()) return std::nullopt;
    if (!found.empty()) return found.front().key;
  }
  const std::uint64_t from = base::next_random(state);
  const Cursor start{static_cast<std::uint32_t>(from % core_.keys().shards().size()),
                     static_cast<std::uint32_t>(from >> 8 & 0xffff), 0, 0};
  std::optional<std::string> chosen;
  std::uint64_t met = 0;
  std::size_t looked = 0;
  Cursor at = start;
  for (bool wrapped = false; !chosen || scan.lines() < stretch_lines;) {
    found.clear();
    const bool more = scan.step(at, found, looked);
    if (scan.turned_away()) return std::nullopt;
    for (Copied& copied : found) {
      if (base::next_random(state) % ++met == 0) chosen = std::move(copied.key);
    }
    if (!more) {
      if (wrapped) break;
      wrapped = true;
      at = {};
    }
    if (wrapped && at.shard > start.shard) break;
  }
  if (chosen) return chosen;
  if (core_.cold() == nullptr) return std::nullopt;
  // Unreadable records are skipped here; a call for the key itself gets the error.
  std::uint64_t rank = state;
  for (bool wrapped = false;;) {
    found.clear();
    const Result<std::uint64_t> next = scan.step_beyond(rank, found);
    if (!found.empty()) return found[(state >> 8) % found.size()].key;
    if (!next.ok() || (*next == 0 && wrapped)) return std::nullopt;
    wrapped = wrapped || *next == 0;
    rank = *next;
  }
}

}  // namespace semel
