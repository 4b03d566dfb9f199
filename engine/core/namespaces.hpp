// The namespaces of an engine: name -> policy. Declared seldom, read by every claim call.
//
// They are records like others: as many as the memory limit lets in, journalled as mutations of
// Kind::name_space, put back by EngineHost::restore. They lie beside the table, where no key can
// meet them: neither scans nor flushes know of them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "engine/core/namespace_terms.hpp"
#include "engine/rules/bytes.hpp"
#include "semel/claims.hpp"
#include "semel/journal.hpp"

namespace semel {

/// One namespace. Held by the registry and by every handle; freed when the last releases it.
class Claims::Namespace {
  // Concurrency of the policy
  //   states   `sequence_` says which of two copies is current; the other is free to be written.
  //   writers  write(), under the registry's mutex. readers  any thread.
  //   [namespaces.policy]  release stores in write  pair with  acquire loads in policy. The
  //            words of a copy are written after the sequence that freed it, so a reader of
  //            them sees that the sequence has moved on, and reads again.
  //   stale    a call under way may still use the policy before a change. That is the promise:
  //            "for later calls".
  // Concurrency of `references_`
  //   [namespaces.references]  release in let_go by all  pairs with  acquire in let_go by the last.
  //            It destroys what the others have used.
  // Concurrency of `state_`
  //   writers  under the registry's mutex. readers  any thread; before a claim is stored, inside
  //            of an operation.
  //   [namespaces.state]  release stores in move_to  pair with  acquire loads in state and brief.
  //   stale    a drop waits for all operations after the store, so none stores a claim later.
 public:
  enum class State : std::uint8_t {
    open,
    closing,  ///< a drop is being checked: takes no new claims
    dropped,
  };

  Namespace(Bytes name, const Policy& policy);
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;

  [[nodiscard]] Bytes name() const noexcept { return Bytes{prefix_}.substr(0, prefix_.size() - 1); }
  /// "name:", what the table key of each record begins with.
  [[nodiscard]] Bytes prefix() const noexcept { return prefix_; }
  /// Progress: lock-free; a reader repeats its copy only if the policy was changed twice during it.
  [[nodiscard]] Policy policy() const noexcept {
    Policy policy;
    for (;;) {
      // mo: acquire [namespaces.policy]: the copy that it names is complete.
      const std::uint32_t sequence = sequence_.load(std::memory_order_acquire);
      const Words& copy = copies_[sequence & 1];
      // Each word is stored where it belongs: a copy of copies would wait for these stores to be
      // done.
#pragma GCC unroll 16
      for (std::size_t i = 0; i < word_count; ++i) {
        // mo: acquire [namespaces.policy]
        const std::uint64_t word = copy[i].load(std::memory_order_acquire);
        std::memcpy(reinterpret_cast<char*>(&policy) + i * sizeof word, &word, sizeof word);
      }
      // mo: relaxed: a word of a later copy was read with acquire, and its sequence came before it.
      if (sequence_.load(std::memory_order_relaxed) == sequence) [[likely]]
        return policy;
    }
  }
  void keep() noexcept {
    // mo: relaxed: the caller has a reference already.
    references_.fetch_add(1, std::memory_order_relaxed);
  }
  /// True: that was the last reference.
  [[nodiscard]] bool let_go() noexcept {
    // mo: release [namespaces.references]: what we did with it comes before its end.
    if (references_.fetch_sub(1, std::memory_order_release) != 1) return false;
    // mo: acquire [namespaces.references]: so does what all others did.
    static_cast<void>(references_.load(std::memory_order_acquire));
    return true;
  }
  [[nodiscard]] State state() const noexcept {
    return state_.load(std::memory_order_acquire);  // mo: acquire [namespaces.state]
  }

  /// What a call that its record answers needs of policy and state.
  struct Brief {
    std::uint64_t word;
    /// Open, and newcomers do not queue behind waiters.
    [[nodiscard]] bool is_usual() const noexcept { return (word & unusual_bit) == 0; }
    [[nodiscard]] std::uint8_t db() const noexcept { return static_cast<std::uint8_t>(word); }
    [[nodiscard]] Millis retry_after_max() const noexcept {
      return Millis{static_cast<std::int64_t>(word >> brief_shift)};
    }
  };
  /// All of it of one moment.
  [[nodiscard]] Brief brief() const noexcept {
    return {brief_.load(std::memory_order_acquire)};  // mo: acquire [namespaces.state]
  }
  /// "name:key" at `to`, which has room for it and is at least `joined_min` bytes long.
  [[nodiscard, gnu::always_inline]] inline Bytes join(Bytes key, char* to) const noexcept {
    const std::size_t before = prefix_.size();
    if (before <= joined_min) [[likely]] {
      std::memcpy(to, prefix_head_.data(), joined_min);
    } else {
      engine::copy_bytes(to, prefix_.data(), before);
    }
    engine::copy_bytes(to + before, key.data(), key.size());
    return {to, before + key.size()};
  }
  static constexpr std::size_t joined_min = 16;

  /// Where claims are counted (engine/decisions/claim_counts.hpp); 0: not known yet.
  [[nodiscard]] std::uint8_t count_slot() const noexcept {
    return count_slot_.load(std::memory_order_relaxed);  // mo: relaxed: a number, always the same
  }
  void set_count_slot(std::uint8_t slot) const noexcept {
    count_slot_.store(slot, std::memory_order_relaxed);  // mo: relaxed: as above
  }

  // --- of the registry, under its mutex ---------------------------------------------------------
  void write(const Policy& policy) noexcept;
  void move_to(State state) noexcept;
  /// What it costs, in bytes of the engine's memory.
  [[nodiscard]] static std::size_t bytes_of(Bytes name) noexcept;

  Version version = 0;       ///< of the newest mutation; under the mutex
  std::uint64_t serial = 0;  ///< its position in the order of declaration
  Ticket ticket = 0;         ///< of that mutation; under the mutex

 private:
  static constexpr std::size_t word_count = sizeof(Policy) / 8;
  static_assert(sizeof(Policy) % 8 == 0);
  static_assert(std::is_trivially_copyable_v<Policy>);
  using Words = std::array<std::atomic<std::uint64_t>, word_count>;

  // Of brief_: bits 0..7 db, bit 8 unusual, bits 16.. retry_after_max.
  static constexpr std::uint64_t unusual_bit = 0x100;
  static constexpr unsigned brief_shift = 16;
  static_assert(limits::ttl_max.count() < std::int64_t{1} << (63 - brief_shift));

  void write_brief(const Policy& policy, State state) noexcept;

  std::atomic<std::uint32_t> references_{1};
  std::atomic<std::uint32_t> sequence_{0};
  std::atomic<State> state_{State::open};
  mutable std::atomic<std::uint8_t> count_slot_{0};
  std::atomic<std::uint64_t> brief_{unusual_bit};
  std::array<Words, 2> copies_{};
  std::string prefix_;
  std::array<char, joined_min> prefix_head_{};  // its first bytes, and as many behind them
};

namespace engine {

class Core;
using NamespaceHandle = Claims::NamespaceRef;

/// All namespaces of one engine; safe from any thread. Progress: takes a mutex, shared to look
/// something up, so callers keep the handle instead of asking for each call.
class Namespaces {
 public:
  explicit Namespaces(Core& core) : core_(core) {}

  /// See Engine::claims. Sets `ticket`: await it before the call is answered.
  [[nodiscard]] Result<NamespaceHandle> declare(Bytes name, const Policy& policy, Ticket& ticket);
  /// See Engine::change_namespace.
  [[nodiscard]] Result<std::string> change(Bytes name, const Policy& policy, Ticket& ticket);

  /// Takes no new claims from now on. Errors: namespace_dropped (another call drops it).
  [[nodiscard]] Status begin_drop(Claims::Namespace& names);
  void give_up_drop(Claims::Namespace& names);
  /// Errors: refused; then it is open again.
  [[nodiscard]] Status finish_drop(Claims::Namespace& names, Ticket& ticket);

  /// Null: not declared.
  [[nodiscard]] NamespaceHandle find(Bytes name) const;
  /// The namespace whose records a table key "name:key" belongs to. Null: none declared.
  [[nodiscard]] NamespaceHandle find_by_key(Bytes table_key) const;
  /// The names of all, in order.
  [[nodiscard]] std::vector<std::string> names() const;
  /// See EngineHost::list_namespaces.
  [[nodiscard]] std::uint64_t list(
      std::uint64_t cursor, std::size_t count,
      const std::function<void(Bytes name, const Policy& policy)>& visit) const;

  /// Puts a mutation of Kind::name_space back. Errors: memory_full, bad_namespace, storage_damaged.
  [[nodiscard]] Status restore(const Mutation& mutation, Timestamp now);
  /// Visits the mutation that made each what it is, as it is when the walk comes by. `visit` may
  /// call the engine.
  void for_each_mutation(const std::function<void(const Mutation&)>& visit) const;
  /// Appends the same to the journal, under the mutex: an erase must not be appended before
  /// the put that it ends, or a journal that forgets from old to new would bring it back.
  void append_again(Journal& journal) const;

  struct Figures {
    std::uint64_t count = 0;
    std::uint64_t dropped = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Figures figures() const;

 private:
  /// An erase that was put back before the put that it ended.
  struct DeleteMarker {
    Version version = 0;
    Timestamp end{};
  };
  static constexpr Millis delete_marker_ttl{3'600'000};
  /// The engine's own keyed hash: an attacker cannot choose names that collide.
  struct NameHash {
    Core* core;
    [[nodiscard]] std::size_t operator()(Bytes name) const noexcept;
  };
  using ByName = std::unordered_map<Bytes, NamespaceHandle, NameHash>;
  using BySerial = std::map<std::uint64_t, NamespaceHandle>;

  /// False: no memory.
  [[nodiscard]] bool insert(const NamespaceHandle& made) SEMEL_REQUIRES(mutex_);
  void remove(const Claims::Namespace& names) SEMEL_REQUIRES(mutex_);
  [[nodiscard]] Result<NamespaceHandle> same_or_error(const NamespaceHandle& known,
                                                      const Policy& policy, Ticket& ticket) const
      SEMEL_REQUIRES_SHARED(mutex_);
  /// Gives the change to the journal, under a new version. False: the journal has not taken it.
  [[nodiscard]] bool append_mutation(Mutation::Type type, Claims::Namespace& names,
                                     const Policy& policy, Ticket& ticket) SEMEL_REQUIRES(mutex_);
  [[nodiscard]] Status check_journal() const;
  [[nodiscard]] Status restore_put(const Mutation& mutation) SEMEL_REQUIRES(mutex_);
  void restore_erase(const Mutation& mutation, Timestamp now) SEMEL_REQUIRES(mutex_);
  void forget_delete_markers(Timestamp now) SEMEL_REQUIRES(mutex_);

  Core& core_;
  mutable base::SharedMutex mutex_;
  // Its keys lie in the namespaces.
  ByName by_name_ SEMEL_GUARDED_BY(mutex_){1, NameHash{&core_}};
  BySerial by_serial_ SEMEL_GUARDED_BY(mutex_);
  std::uint64_t next_serial_ SEMEL_GUARDED_BY(mutex_) = 1;
  std::uint64_t dropped_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t bytes_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, DeleteMarker> delete_markers_ SEMEL_GUARDED_BY(mutex_);
  std::deque<std::pair<Timestamp, std::string>> delete_marker_ends_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace engine
}  // namespace semel
