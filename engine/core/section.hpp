// Atomic sections: see Engine::section.
#pragma once

#include <string>
#include <vector>

#include "engine/core/core.hpp"
#include "engine/core/core_update.hpp"
#include "engine/rules/mutation_group.hpp"
#include "semel/engine.hpp"

namespace semel {

class Section::Impl final : public engine::OwnSection {
 public:
  /// `mask`: one bit per shard. The thread is in no section, or in one that holds all of them:
  /// then this one is a part of it and ends with it.
  Impl(engine::Core& core, engine::ChangeListener& listener, std::uint64_t mask);
  ~Impl() override;
  /// False: it holds nothing, because another section takes long.
  [[nodiscard]] bool has_begun() const noexcept { return has_begun_; }
  void take_long() noexcept override;
  void yield() noexcept;
  void resume() noexcept;

  [[nodiscard]] engine::Core& core() noexcept { return core_; }
  [[nodiscard]] Timestamp now() const noexcept override { return now_; }
  [[nodiscard]] bool covers(const KeyRef& key) const noexcept;
  [[nodiscard]] bool holds_shard(std::uint32_t shard) const noexcept override {
    return (mask_ >> shard & 1) != 0;
  }

  /// As Core::update, at the section's time.
  ErrorCode update(std::uint8_t db, Bytes key, engine::DecideRef decide, Version& version) {
    return engine::update_exclusive(core_, {db, key}, now_, decide, version, *this);
  }

  /// Makes sure that the memory and the journal have room for records of `bytes` altogether, keys
  /// and values, so that the changes after this call cannot fail half-way. Errors: memory_full,
  /// refused.
  [[nodiscard]] ErrorCode reserve(std::size_t bytes, std::size_t records);
  /// The same for erases, which need no memory for records.
  [[nodiscard]] ErrorCode reserve_to_erase(std::size_t key_bytes, std::size_t records);
  /// Reads what the cold store has of these keys, so that a disk that fails does so before anything
  /// has changed. Errors: storage_failed, storage_damaged.
  [[nodiscard]] ErrorCode read_ahead(std::span<const KeyRef> keys);
  /// Copies a record of any kind with its ttl, and makes sure that `from` can be erased then.
  /// Errors: memory_full, refused, key_*.
  [[nodiscard]] ErrorCode copy_record(const KeyRef& from, const KeyRef& to, bool& copied);

  void note_change(const KeyRef& key) override;
  void note_all_changed() override;

  void add(const Mutation& mutation) override;
  void make_room(std::size_t bytes, std::size_t records) override;
  /// Also false when the group has no room for another record of any size.
  [[nodiscard]] bool accepts(bool frees) const noexcept override {
    if (outer_ != nullptr) return outer_->accepts(frees);
    return (accepts_ || (frees && accepts_frees_)) && group_bytes_ <= group_bytes_max_;
  }
  /// Promises that this section only erases, ends sooner or ends claims: what the journal takes of
  /// that is accepted. Of others it is not, as a group is never half refused. Before the first
  /// change; without effect inside another section.
  void only_frees() noexcept;

 private:
  /// What noting so many changes, and keeping what they replace, takes of the heap.
  [[nodiscard]] ErrorCode make_room_for_all(std::size_t bytes, std::size_t records);

  struct Changed {
    std::uint8_t db;
    std::string key;
  };
  engine::Core& core_;
  engine::ChangeListener& listener_;
  engine::OwnSection* const outer_;  // the thread's own, of which this is a part; null: none
  const std::uint64_t mask_;
  bool has_begun_ = true;
  Timestamp now_{};
  bool accepts_ = true;  // of the journal, when the section began: a group is never half refused
  bool accepts_frees_ = false;
  engine::MutationGroup group_;  // for the journal
  std::size_t group_bytes_ = 0;
  std::size_t group_bytes_max_ = 0;  // that leaves room for one more record
  std::vector<Changed> changed_;
  bool all_changed_ = false;
};

}  // namespace semel
