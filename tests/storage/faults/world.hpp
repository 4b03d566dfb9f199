// One process of a storage under a proof, and the work that is done on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "semel/cold_directory.hpp"
#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "tests/proofs/random.hpp"
#include "tests/storage/faults/ledger.hpp"

namespace semel::faults {

/// Goes on with the machine's time, or stands still, and jumps forward when told to. Each boot
/// begins at its own zero; the wall clock goes on over boots.
class JumpingClock final : public Clock {
 public:
  enum class Between { goes_on, stands_still };  ///< jumps

  explicit JumpingClock(std::int64_t unix_ms = 1'700'000'000'000, Millis begins = Millis{1'000},
                        Between between = Between::goes_on)
      : start_(system_.now()), unix_ms_(unix_ms), begins_(begins), between_(between) {}
  [[nodiscard]] Timestamp now() const noexcept override { return Timestamp{begins_ + past()}; }
  [[nodiscard]] std::int64_t unix_ms() const noexcept override { return unix_ms_ + past().count(); }
  void jump(Millis by) noexcept {
    jumped_.fetch_add(by.count(), std::memory_order_relaxed);  // mo: relaxed: a time, not an order
  }

 private:
  [[nodiscard]] Millis past() const noexcept {
    // mo: relaxed: as in jump().
    const bool goes_on = between_ == Between::goes_on;
    return (goes_on ? system_.now() - start_ : Millis{0}) +
           Millis{jumped_.load(std::memory_order_relaxed)};
  }

  const SystemClock system_;
  const Timestamp start_;
  const std::int64_t unix_ms_;
  const Millis begins_;
  const Between between_;
  std::atomic<std::int64_t> jumped_{0};
};

/// The same time, and a wall clock that is set off from it.
class SteppedClock final : public Clock {
 public:
  SteppedClock(const Clock& time, Millis off) : time_(time), off_(off.count()) {}
  [[nodiscard]] Timestamp now() const noexcept override { return time_.now(); }
  [[nodiscard]] std::int64_t unix_ms() const noexcept override {
    return time_.unix_ms() + off_.load(std::memory_order_relaxed);  // mo: relaxed: a time
  }
  void set_off(Millis off) noexcept {
    off_.store(off.count(), std::memory_order_relaxed);  // mo: relaxed: as above
  }

 private:
  const Clock& time_;
  std::atomic<std::int64_t> off_;
};

inline constexpr const char* claims_name = "work";
/// Clocks of two lives meet within this, if they do not stand still.
inline constexpr Millis clock_slack{200};

/// Storage, engine and namespace, opened and recovered.
struct World {
  std::unique_ptr<Storage> storage;
  std::unique_ptr<ColdStore> cold;  // or none
  std::unique_ptr<Engine> engine;   // ends first
  RecoveryReport report;

  void close() {
    engine.reset();
    cold.reset();
    storage.reset();
  }
  [[nodiscard]] Claims claims() const { return *engine->claims(claims_name); }
};
enum class Joins { no, yes };  ///< yes: some claims are completed together with an effect
/// `cold`: the directory of its cold store, on the same disk; empty: none.
[[nodiscard]] Result<World> open_world(const StorageOptions& options, const Clock& clock,
                                       Durability level, Joins joins = Joins::no,
                                       const std::string& cold = {});
/// Of one with a cold store; also where none is possible now, and nothing was changed.
[[nodiscard]] Status spill(World& world);

/// Keys of `threads` workers, all absent.
[[nodiscard]] Ledger new_ledger(unsigned threads);
/// That somebody was given, by the newest states of the keys; 0: none.
[[nodiscard]] Epoch largest_epoch(const Ledger& ledger);

/// The state of `key` as the ledger calls it: "-", "s:VALUE", "h:EPOCH", "d:EPOCH:RESULT",
/// "l:NUMBER".
[[nodiscard]] Result<std::string> state_of(World& world, const std::string& key);

/// Of calls that complete with an effect.
struct JoinsTally {
  std::uint64_t drawn = 0;        ///< with effects drawn at random
  std::uint64_t in_sections = 0;  ///< on a thread inside a section over the claim
  std::uint64_t refused = 0;      ///< of both

  JoinsTally& operator+=(const JoinsTally& other) noexcept {
    drawn += other.drawn;
    in_sections += other.in_sections;
    refused += other.refused;
    return *this;
  }
};

struct Tally {
  std::uint64_t acknowledged = 0;
  std::uint64_t confirmed = 0;  ///< Engine::confirm(synced) said so
  std::uint64_t unknown = 0;    ///< outcome_unknown
  std::uint64_t refused = 0;
  std::uint64_t looks = 0;    ///< at its own keys
  std::uint64_t wrong = 0;    ///< answers that contradict the ledger: a duplicate let in, ..
  std::vector<Epoch> epochs;  ///< that it was given
  JoinsTally joins;
  std::string first_wrong;
  std::string last_error;
};

/// Does random work on keys of its own and writes down what it asked and was told.
class Worker {
 public:
  struct Options {
    unsigned thread = 0;
    Durability level = Durability::synced;
    std::uint64_t seed = 0;
    std::string process;            ///< part of every value
    std::size_t value_bytes = 600;  ///< at most, of most values
    bool all_ends = false;          ///< what may leave memory lives for 3 s at most
    Joins joins = Joins::no;
    bool all_ttls = false;       ///< from a millisecond to more than a day
    Millis slack = clock_slack;  ///< as of compare()
  };
  Worker(World& world, Ledger& ledger, const Clock& clock, const Options& options);

  /// One operation. False: it was not acknowledged; tally().last_error says why.
  bool step();
  /// Looks at all its keys: a record is there until its time is over, and then it is not.
  void look_at_own();
  [[nodiscard]] const Tally& tally() const noexcept { return tally_; }
  /// How often it was told that something is on the disk.
  [[nodiscard]] std::uint64_t synced() const noexcept {
    return tally_.confirmed + (options_.level == Durability::synced ? tally_.acknowledged : 0);
  }
  [[nodiscard]] Durability level() const noexcept { return options_.level; }
  /// The names of its strings.
  [[nodiscard]] std::vector<std::string> strings() const;

 private:
  bool set_or_delete();
  bool change_list();
  bool set_pair();
  bool work_on_claim();
  bool ask_for_claim(History& history, const std::string& key);
  bool own_claim(History& history, const std::string& key);
  [[nodiscard]] std::optional<OwnerOutcome> complete(const OwnerCall& call);
  bool confirm();
  [[nodiscard]] std::string new_value(std::size_t longest);
  void wrong(const std::string& what);
  bool told(ErrorCode error, std::initializer_list<History*> histories);
  bool told_deleted(const Result<bool>& deleted, const std::string& key);

  World& world_;
  Claims claims_;
  Ledger& ledger_;
  const Clock& clock_;
  const SystemClock system_;
  const Options options_;
  proofs::Random random_;
  std::uint64_t number_ = 0;
  Tally tally_;
};

/// Reads keys of others, and remembers the last that it was shown of each.
class Observer {
 public:
  Observer(World& world, const Ledger& ledger, std::uint64_t seed);
  /// One look. False: it was not answered.
  bool step();
  /// From now on what was shown must be there. When the workers have ended.
  void hand_over(Ledger& ledger) const;

 private:
  World& world_;
  proofs::Random random_;
  std::vector<std::string> keys_;
  std::map<std::string, std::string> seen_;
};

/// What was found after a failure, compared with the ledger.
struct Found {
  std::uint64_t lost = 0;     ///< older than it may be
  std::uint64_t back = 0;     ///< of them, what was deleted or had ended
  std::uint64_t strange = 0;  ///< never asked for
  std::uint64_t parted = 0;   ///< one half of what was written in one step, or joined
  Timestamp oldest_lost{};    ///< of all that is gone, rightly or not, when it was acknowledged
  [[nodiscard]] bool right() const noexcept { return lost + strange + parted == 0; }
};
/// Keys that an earlier release has left (tests/storage/golden) have a '-', and are not looked at.
/// `say` is told each wrong key. `slack`: by which records may end at another time. Errors: those
/// of reading.
[[nodiscard]] Result<Found> compare(World& world, Ledger& ledger, const Clock& clock,
                                    Timestamp horizon,
                                    const std::function<void(const std::string&)>& say,
                                    Millis slack = clock_slack);

}  // namespace semel::faults
