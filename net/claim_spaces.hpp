// The namespaces of claims as clients name them: found without a lock, and declared by their first
// use, so that a claim needs nothing before it.
//
// A namespace lives in the database in which it was declared. A client that has selected another
// one is refused: it would look for its claims where they are not, and run what was done already.
// For the same reason a node with a storage writes down where each lives, and its policy.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "semel/claims.hpp"

namespace semel::net {

class ClaimSpaces {
  // Concurrency of `slots_`
  //   states   null -> a space, for good; the first null ends a search.
  //   writers  remember(), under the mutex. readers  any thread.
  //   [claim_spaces.slot]  release store in remember  pairs with  acquire load in known.
  //   stale    a search that misses a new space asks the engine. Cost: its lock, once.
 public:
  explicit ClaimSpaces(Engine& engine) : engine_(engine) {}
  ClaimSpaces(const ClaimSpaces&) = delete;
  ClaimSpaces& operator=(const ClaimSpaces&) = delete;

  /// None: nobody has named it here. Progress: wait-free.
  [[nodiscard]] std::optional<Claims> known(Bytes name) const noexcept {
    for (std::size_t at = hash_of(name);; ++at) {
      // mo: acquire [claim_spaces.slot]: the space is read next.
      const Space* const space = slots_[at % slot_count].load(std::memory_order_acquire);
      if (space == nullptr) return std::nullopt;
      if (space->name == name) return space->claims;
    }
  }
  /// The namespace, declared with the default policy in `db` if nobody has. Errors: bad_namespace,
  /// storage_failed.
  [[nodiscard]] Result<Claims> open(Bytes name, std::uint8_t db);
  /// Declares it, or gives it another policy. Errors: bad_namespace (also if it lives in another
  /// database), bad_option; storage_failed: it holds until the node ends, and is not written down.
  [[nodiscard]] Result<Claims> declare(Bytes name, const Policy& policy);

  /// Writes all namespaces down, given as text; false: that failed.
  using Store = std::function<bool(std::string_view text)>;
  /// From now on a namespace that is new or has a new policy is written down before anybody hears
  /// of it; a failure is storage_failed.
  void keep_in(Store store);
  /// Declares what a Store was given. Returns what is wrong, with its line.
  [[nodiscard]] std::optional<std::string> restore(std::string_view text);

  /// "lives in database 0, not 3".
  [[nodiscard]] static std::string elsewhere(const Claims& claims, std::uint8_t db);

 private:
  struct Space {
    std::string name;
    Claims claims;
  };
  static constexpr std::size_t slot_count = 4 * limits::namespace_count_max;

  [[nodiscard]] static std::size_t hash_of(Bytes name) noexcept {
    return std::hash<Bytes>{}(name) % slot_count;
  }
  /// Under mutex_.
  void remember(Bytes name, const Claims& claims);
  /// Under mutex_.
  [[nodiscard]] Status store_all() const;

  Engine& engine_;
  std::mutex mutex_;
  Store store_;                                       // under mutex_
  std::vector<std::unique_ptr<const Space>> spaces_;  // under mutex_
  std::array<std::atomic<const Space*>, slot_count> slots_{};
};

}  // namespace semel::net
