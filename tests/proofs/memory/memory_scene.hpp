// The memory proof's words: a scene plays on an engine with a limit, and looks at the process now
// and then; what it must show is that the process stays near the limit, and that room is found
// again where there is some.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "semel/semel.hpp"
#include "tests/proofs/random.hpp"

namespace semel::proofs {

inline constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// What the process holds in memory, by its own account of pages.
[[nodiscard]] std::size_t resident_bytes();

class Scene {
 public:
  Scene(std::uint64_t seed, bool is_long);

  /// An engine on the scene's clock, which only the scene advances; once for each scene.
  Engine& open(std::size_t limit_bytes, unsigned shard_count = 16);
  /// The same as a user gets it: with its own clock and thread.
  Engine& open_usual(std::size_t limit_bytes);
  void close() { engine_.reset(); }
  [[nodiscard]] Engine& engine() noexcept { return *engine_; }
  [[nodiscard]] Store store() { return engine_->store(); }
  [[nodiscard]] Claims claims(const Policy& policy = {});
  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
  /// What the table, which does not shrink, and the reserve leave for records and timers.
  [[nodiscard]] std::size_t room_bytes() const;
  [[nodiscard]] bool is_long() const noexcept { return is_long_; }
  [[nodiscard]] Random& random() noexcept { return random_; }

  /// The short or the full size of something.
  [[nodiscard]] std::size_t sized(std::size_t short_size, std::size_t full) const noexcept {
    return is_long_ ? full : short_size;
  }

  /// Looks at the process each `every` calls: call it in each loop.
  void look(std::size_t every = 1'024) {
    if (++looks_ % every == 0) look_now();
  }
  void look_now();
  void pass(Millis time) { clock_.advance(time); }
  /// A tenth of a second goes by as with the engine's own thread.
  void tick();

  /// Puts `size` bytes under key after key until one is refused. Returns how many fit.
  std::size_t fill(const std::string& prefix, std::size_t size, Expiry expiry = Expiry::clear());
  /// There is room now: a new claim must be granted within a second of the scene's clock.
  void expect_room();
  /// What is resident is at most 1.2 times what the engine holds, and a little.
  void expect_given_back();
  void expect(bool right, const std::string& what);

  [[nodiscard]] bool failed() const noexcept { return !failure_.empty(); }
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  [[nodiscard]] std::size_t peak_bytes() const noexcept { return peak_; }
  [[nodiscard]] Millis waited() const noexcept { return waited_; }

 private:
  const bool is_long_;
  Random random_;
  ManualClock clock_;
  std::unique_ptr<Engine> engine_;
  bool is_usual_ = false;
  std::size_t limit_ = 0;
  std::size_t before_ = 0;  // resident
  std::size_t peak_ = 0;    // above that
  std::size_t looks_ = 0;
  std::uint64_t claims_ = 0;
  Millis waited_{0};
  std::string failure_;
};

struct NamedScene {
  const char* name;
  void (*play)(Scene&);
};
/// memory_scenes_records.cpp, memory_scenes_work.cpp
[[nodiscard]] std::span<const NamedScene> scenes_of_records();
[[nodiscard]] std::span<const NamedScene> scenes_of_work();

}  // namespace semel::proofs
