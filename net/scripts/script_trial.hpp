// A run of a script that changes nothing: in a group a script runs once, at the node that was
// asked, and every node applies its effect (docs/decisions/0044-scripts-by-effect.md).
//
// Its commands work in an engine of their own, into which each key is copied before a command first
// uses it. Records that are neither strings nor hashes are copied and put back as a whole. The
// copied keys, with their versions, are the read set; the differences of the copies at the end are
// the effect.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/commands/command.hpp"
#include "semel/clock.hpp"
#include "semel/engine.hpp"
#include "semel/hashes.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// Of one thread. Used again and again.
class ScriptTrial {
 public:
  static constexpr std::size_t keys_max = 4'096;  ///< that one script uses
  /// Of what a script uses and what it makes of it.
  static constexpr std::size_t memory_bytes = std::size_t{64} << 20;

  struct Read {
    std::uint8_t db;
    std::string key;
    Version version;  ///< 0: it was absent
  };
  struct Outcome {
    std::string reply{};    ///< of the script
    std::string refusal{};  ///< not empty: it cannot be carried out, and this is why
    std::vector<Read> read{};
    std::uint8_t db = 0;  ///< in which the effects begin
    /// Commands in the order in which they are to be carried out, as one step, if all that was read
    /// is as it was. Times are absolute.
    std::vector<std::vector<std::string>> effects{};
    bool grows = false;  ///< not all of them only free memory
  };

  ScriptTrial() = default;
  ~ScriptTrial();
  ScriptTrial(const ScriptTrial&) = delete;
  ScriptTrial& operator=(const ScriptTrial&) = delete;

  /// A run on what `real` has at `now`; the time stands still in it. Errors: those of Engine::open.
  [[nodiscard]] Status begin(Engine& real, Timestamp now);
  /// Its copies. Between begin() and end().
  [[nodiscard]] Engine& engine() noexcept { return *copies_; }
  /// Before a command of the script is carried out: its keys are there afterwards. The detail of an
  /// error is the whole reply; the script has no effect then, whatever it does next.
  [[nodiscard]] Status admit(const Call& call);
  /// Of a command that publishes, instead of carrying it out.
  void publish(Call& call);
  /// It was ended from outside: what it has done so far is nothing. `why` lives for ever.
  void discard(std::string_view why) noexcept { discarded_ = why; }
  void keep_reply(std::string reply) { reply_ = std::move(reply); }
  /// `reply`: of the script; empty: the one that was kept.
  [[nodiscard]] Outcome end(std::string reply);

  /// Whether all that was read is in `real` as it was, at `now`. Errors: those of Engine::section.
  [[nodiscard]] static Result<bool> is_unchanged(Engine& real, Timestamp now,
                                                 const std::vector<Read>& read);

 private:
  class FixedClock final : public Clock {
   public:
    [[nodiscard]] Timestamp now() const noexcept override { return Timestamp{Millis{unix_ms()}}; }
    [[nodiscard]] std::int64_t unix_ms() const noexcept override {
      return ms_.load(std::memory_order_relaxed);  // mo: relaxed: one thread uses it
    }
    [[nodiscard]] std::int64_t wall_offset_ms() const noexcept override { return 0; }
    void set(Timestamp now) noexcept {
      // mo: relaxed: as above
      ms_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    }

   private:
    std::atomic<std::int64_t> ms_{1};
  };
  struct Record {
    bool is_live = false;
    semel::Kind kind = semel::Kind::string;
    Timestamp due = no_end;
    Version version = 0;
    std::string value{};    // of a string; of a record that is carried whole, its bytes
    FieldValues fields{};   // of a hash
    bool has_ends = false;  // a field of the hash has an end: it is carried whole
  };
  using Name = std::pair<std::uint8_t, std::string>;
  struct Copy {
    Record before;
    Version real = 0;    // its version in the real engine; 0: it is absent there
    Version copied = 0;  // the version of the copy when it was made
  };

  [[nodiscard]] static Result<Record> look(Engine& engine, std::uint8_t db, Bytes key,
                                           Timestamp now);
  [[nodiscard]] Status copy(std::uint8_t db, Bytes key);
  [[nodiscard]] Status put(std::uint8_t db, Bytes key, const Record& record);
  [[nodiscard]] Error refuse(std::string why);
  void empty_copies();
  void add_effects(Outcome& outcome);
  void add_effect(Outcome& outcome, const Name& name, const Copy& copy);
  void add_hash(Outcome& outcome, const Name& name, const Record& before, const Record& after);
  void add_whole(Outcome& outcome, const Name& name, const Record& after);

  FixedClock clock_;
  std::unique_ptr<Engine> copies_;
  Engine* real_ = nullptr;
  Timestamp now_{};
  std::map<Name, Copy> used_;
  std::vector<std::vector<std::string>> published_;
  std::string refusal_;
  std::string_view discarded_{};
  unsigned runs_ = 0;
  std::string reply_;
};

}  // namespace semel::net
