// Atomic sections: see Engine::section.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "engine/core.hpp"
#include "semel/engine.hpp"

namespace semel {

class Section::Impl final : public engine::MutationSink {
 public:
  /// `mask`: one bit per shard.
  Impl(Engine::Impl& engine, std::uint64_t mask);
  ~Impl() override;

  [[nodiscard]] Engine::Impl& engine() noexcept { return engine_; }
  [[nodiscard]] engine::Core& core() noexcept { return core_; }
  [[nodiscard]] Timestamp now() const noexcept { return now_; }
  [[nodiscard]] bool covers(const KeyRef& key) const noexcept;

  /// As Core::update, at the section's time.
  template <class Decide>
  ErrorCode update(std::uint8_t db, Bytes key, Decide&& decide, Version& version) {
    return core_.update_exclusive(db, key, now_, decide, version, *this);
  }

  /// Makes sure that records of `bytes` altogether fit and the journal takes them, so that what
  /// follows cannot fail half-way. `bytes`: keys and values. Errors: memory_full, refused.
  [[nodiscard]] ErrorCode reserve(std::size_t bytes, std::size_t records);
  /// Reads what the cold store has of these keys, so that a disk that fails does so before anything
  /// has changed. Errors: storage_failed, storage_damaged.
  [[nodiscard]] ErrorCode read_ahead(std::span<const KeyRef> keys);
  /// Copies a record of any kind with its ttl. Errors: memory_full, refused, key_*.
  [[nodiscard]] ErrorCode copy_record(const KeyRef& from, const KeyRef& to, bool& copied);

  /// Whoever waits for this key is told when the section has ended.
  void note_change(const KeyRef& key);

  void add(const Mutation& mutation) override;
  /// Also false when the group has no room for another record of any size.
  [[nodiscard]] bool accepts() const noexcept override {
    return accepts_ && group_bytes_ <= group_bytes_max_;
  }

 private:
  struct Owned {
    Mutation mutation;
    std::string key;
    std::string value;
    std::string owner;
  };
  struct Changed {
    std::uint8_t db;
    std::string key;
  };
  Engine::Impl& engine_;
  engine::Core& core_;
  const std::uint64_t mask_;
  Timestamp now_{};
  bool accepts_ = true;  // of the journal, when the section began: a group is never half refused
  std::deque<Owned> group_;
  std::size_t group_bytes_ = 0;
  std::size_t group_bytes_max_ = 0;  // that leaves room for one more record
  std::vector<Changed> changed_;
};

}  // namespace semel
