// What the interleavings proof explores: a real Table (engine/table/table.hpp) over stepped atomics
// with a small memory of its own, and the engine's loops around it.
//
// The loops are those of RecordStep::run, KeySpace::help_growth and expire_batch(), without
// journal, counters and timers: change them there, change them here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/table/table.hpp"
#include "tests/proofs/interleavings/scheduler.hpp"
#include "tests/proofs/interleavings/slot_calls.hpp"
#include "tests/proofs/interleavings/stepped_atomic.hpp"

namespace semel::proofs {

/// What key 0 (and key 1, where it takes part) is when a schedule begins.
enum class Start : std::uint8_t {
  absent,
  held,
  over,         ///< held, lease over: the next claim takes over
  dead,         ///< held, its time has ended
  ending,       ///< held, ends between the times of the calls
  done,         ///< completed
  buried,       ///< a tombstone
  nearly_full,  ///< absent, one slot left
  full,         ///< held, no slot left
  littered,     ///< held, no slot left for tombstones: growing only cleans
  halves,       ///< held, in a table that was split once
  far,          ///< held, one line after its home
  wrapped,      ///< held, in a line that is frozen before its home; key 1 behind it is dead
};
/// Where another thread stands still while it grows the table. It goes on when all have ended.
enum class Stalled : std::uint8_t {
  nowhere,
  before_key,   ///< the key's slot is not frozen yet, those before it are
  after_key,    ///< the key's slot is frozen, those behind it are not
  all_frozen,   ///< before the first half is published
  half_public,  ///< between the upper half and the lower half
  first_line,   ///< the first line is frozen, the others are not
};
/// How key 1 relates to key 0.
enum class Pair : std::uint8_t { alone, twin /* all hash bits equal */, sibling /* other half */ };

/// Planted: the explorer must find each.
enum class Bug : std::uint8_t {
  none,
  lost_exchange_succeeds,  ///< a failed compare-and-set of a slot says it was done
  freeze_without_bit,      ///< growth copies without stopping writers
  freeze_in_two_steps,     ///< the bit is set by load and store
  lower_half_first,        ///< a split is published the wrong way round
  bury_without_looking,    ///< a tombstone is stored, not exchanged
  segment_reused_at_once,  ///< retired memory is handed out while others read it
  floor_ignored,           ///< a new record does not ask for the tombstones' version
  stale_epoch_accepted,    ///< complete does not compare epochs
  decides_once,            ///< a claim that lost its race keeps its first decision
  helps_first_candidate    ///< expire looks for a frozen word at another record than its own
};
inline constexpr std::size_t bug_count = 10;
[[nodiscard]] const char* name_of(Bug bug) noexcept;

struct Step {
  Call call = Call::claim;
  std::uint8_t key = 0;
  bool own_epoch = false;  ///< of the claim before it in the same fiber
};

struct Scenario {
  std::string name;
  Start start = Start::absent;
  Stalled stalled = Stalled::nowhere;
  Pair pair = Pair::alone;
  std::vector<std::vector<Step>> fibers;
};

class SlotWorld final : public Subject, public Liar {
 public:
  using Word = SteppedAtomic<engine::SlotWord>;
  using SlotTable = engine::Table<SteppedSync, SlotWorld>;

  SlotWorld(const Scenario& scenario, std::uint64_t seed, Bug bug = Bug::none);
  ~SlotWorld() override;

  // Subject
  [[nodiscard]] std::span<const std::byte> memory() const override;
  [[nodiscard]] unsigned fiber_count() const override;
  [[nodiscard]] bool has_ghost() const override { return scenario_.stalled != Stalled::nowhere; }
  [[nodiscard]] bool ghost_stops(const void* address, Access kind) override;
  void reset() override;
  void run(unsigned fiber) override;
  [[nodiscard]] const char* wrote(const void* address, std::uint64_t old,
                                  std::uint64_t fresh) override;
  [[nodiscard]] std::string check(bool at_rest) override;
  [[nodiscard]] std::string describe(const void* address) const override;

  // Liar
  bool exchange(const void* address, std::uint64_t& value, std::uint64_t& expected,
                std::uint64_t desired, bool& done) override;
  bool set_bits(const void* address, std::uint64_t& value, std::uint64_t bits,
                std::uint64_t& before) override;

  // Source of the table
  void* allocate_segment(std::size_t bytes);
  void release_segment(void* segment);
  void retire_segment(void* segment);

 private:
  static constexpr unsigned owners = Explorer::fibers_max + 1;  // the last: set-up
  static constexpr unsigned lines_max = 2;
  static constexpr unsigned words_max = lines_max * engine::slots_per_line;
  static constexpr unsigned segments_per_owner = 4;
  static constexpr unsigned segment_count = owners * segments_per_owner;
  static constexpr unsigned records_per_owner = 24;
  // A split publishes two segments, so the directory is never deeper than 7.
  static constexpr int published_max = 14;
  static constexpr unsigned directory_size = 1U << 7;
  static constexpr unsigned calls_max = 12;
  static constexpr std::uint8_t filler_first = 2;

  struct alignas(64) SegmentMemory {
    std::array<std::byte, 64> header;
    std::array<Word, words_max> words;
  };
  struct Versions {
    Version next = 0;
    Version end = 0;
  };
  /// All that changes in a schedule, but for the table's own counters.
  struct State {
    std::array<SegmentMemory, segment_count> segments;
    std::array<Word, directory_size> directory;
    std::array<SlotRecord, owners * records_per_owner> records;
    std::array<unsigned, owners> record_counts{};
    std::array<Versions, owners> versions{};
    Word versions_end;
    std::uint32_t taken = 0;      // a bit per segment
    std::uint32_t published = 0;  // likewise
    std::uint32_t retired = 0;
    std::array<CallRecord, calls_max> calls;
    unsigned call_count = 0;
  };

  // The engine's loops.
  void perform(unsigned fiber, const Step& step, Version& own_epoch);
  void update(unsigned fiber, CallRecord& call);
  void expire(std::uint8_t key, std::int64_t now);
  void grow(std::uint8_t key);
  void after_lost_race(std::uint8_t key, const SlotTable::Probe& probe);
  void help_growth(std::uint8_t key, engine::Handle stuck);
  [[nodiscard]] SlotTable::Probe find(std::uint8_t key) const;
  [[nodiscard]] Version candidate(unsigned fiber, Version floor);

  // Set-up.
  void build();
  void build_keys();
  void note_published();
  void choose_hashes(std::uint64_t seed);
  void put(const SlotRecord& record);
  void bury(std::uint8_t key, Version version);
  void fill(unsigned count, unsigned buried);
  [[nodiscard]] SlotRecord record_of_start(std::uint8_t key, Start start) const;
  [[nodiscard]] bool has_two_lines() const noexcept;

  // Checks.
  [[nodiscard]] std::string check_key(std::uint8_t key) const;
  [[nodiscard]] std::string check_fillers() const;
  [[nodiscard]] std::string check_segments(bool at_rest) const;
  [[nodiscard]] std::string check_segment(unsigned number, unsigned index, bool at_rest,
                                          std::uint64_t& keys) const;
  [[nodiscard]] std::string check_retired() const;
  [[nodiscard]] std::string history() const;

  [[nodiscard]] unsigned new_record(unsigned owner, const SlotRecord& record);
  [[nodiscard]] const SlotRecord& record(engine::Handle handle) const;
  [[nodiscard]] unsigned owner() const;
  [[nodiscard]] unsigned segment_of(const void* address) const;
  [[nodiscard]] bool is_slot(const void* address) const;
  [[nodiscard]] bool is_directory(const void* address) const;
  [[noreturn]] static void fail(const char* what);

  const Scenario& scenario_;
  const Bug bug_;
  std::uint32_t line_count_ = 1;
  std::array<engine::HashBits, 64> hashes_{};
  std::array<KeyState, 64> start_{};
  std::array<Version, 2> known_epoch_{};
  unsigned keys_ = 1;
  unsigned fillers_ = 0;
  unsigned ghost_count_ = 0;
  bool setting_up_ = true;
  // Bug::lower_half_first: the upper half that waits, a fiber each.
  std::array<std::pair<std::uint64_t*, std::uint64_t>, owners> withheld_{};

  State state_;
  std::optional<SlotTable> table_;
  State start_state_;
  std::optional<SlotTable> start_table_;
};

}  // namespace semel::proofs
