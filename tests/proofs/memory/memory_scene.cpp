#include "tests/proofs/memory/memory_scene.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/support/sanitized.hpp"

namespace semel::proofs {

std::size_t resident_bytes() {
  std::ifstream file{"/proc/self/statm"};
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

Scene::Scene(std::uint64_t seed, bool is_long)
    : is_long_(is_long), random_{seed}, before_(resident_bytes()) {}

Engine& Scene::open(std::size_t limit_bytes, unsigned shard_count) {
  limit_ = limit_bytes;
  auto opened =
      Engine::open({.clock = &clock_, .memory_bytes = limit_bytes, .shard_count = shard_count});
  if (!opened.ok()) std::abort();
  engine_ = *std::move(opened);
  // Now: a namespace is held too, and refused on a full machine.
  if (!engine_->claims("again", Policy{.lease = Millis{1'000}}).ok()) std::abort();
  return *engine_;
}

Engine& Scene::open_usual(std::size_t limit_bytes) {
  limit_ = limit_bytes;
  is_usual_ = true;
  auto opened = Engine::open({.memory_bytes = limit_bytes});
  if (!opened.ok()) std::abort();
  engine_ = *std::move(opened);
  // Now: a namespace is held too, and refused on a full machine.
  if (!engine_->claims("again", Policy{.lease = Millis{1'000}}).ok()) std::abort();
  return *engine_;
}

Claims Scene::claims(const Policy& policy) {
  auto made = engine_->claims("n", policy);
  if (!made.ok()) std::abort();
  return *made;
}

std::size_t Scene::room_bytes() const {
  return limit_ - limit_ / 32 - engine_->stats().bytes_table;
}

void Scene::look_now() {
  const std::size_t resident = resident_bytes();
  peak_ = std::max(peak_, resident > before_ ? resident - before_ : 0);
  const std::size_t bound = limit_ + limit_ / 10 + 16 * mebibyte;
  if (!tests::is_sanitized && peak_ > bound) {
    expect(false, "resident " + std::to_string(peak_) + " bytes, limit " + std::to_string(limit_));
  }
}

void Scene::tick() {
  clock_.advance(Millis{100});
  while (engine_->advance() == 0) {
  }
}

std::size_t Scene::fill(const std::string& prefix, std::size_t size, Expiry expiry) {
  const std::string value(size, 'v');
  std::size_t count = 0;
  while (store().set(prefix + std::to_string(count), value, {.expiry = expiry}).ok()) {
    ++count;
    look();
  }
  look_now();
  return count;
}

void Scene::expect_room() {
  constexpr Millis second{1'000};
  constexpr Millis step{10};
  Claims again = *engine_->claims("again");
  const std::string key = "room" + std::to_string(++claims_);
  const Timestamp from = engine_->now();
  for (int i = 0; again.claim({.key = key}).answer != ClaimAnswer::granted; ++i) {
    const Millis waited = engine_->now() - from;
    waited_ = std::max(waited_, waited);
    if (waited > second) return expect(false, "a new claim is refused for a second");
    if (is_usual_) {
      std::this_thread::yield();
    } else {
      clock_.advance(step);
      if (i % 10 == 9) static_cast<void>(engine_->advance());
    }
  }
  static_cast<void>(again.forget(key));
  look_now();
}

void Scene::expect_given_back() {
  const Stats stats = engine_->stats();
  const std::size_t held = stats.bytes_records + stats.bytes_table + stats.bytes_wheel;
  const std::size_t resident = resident_bytes() - std::min(before_, resident_bytes());
  if (tests::is_sanitized || resident <= held + held / 5 + 8 * mebibyte) return;
  expect(false, "resident " + std::to_string(resident) + " bytes, held " + std::to_string(held));
}

void Scene::expect(bool right, const std::string& what) {
  if (!right && failure_.empty()) failure_ = what;
}

}  // namespace semel::proofs
