// Engine's calls about sections; what a section does is in engine/core/section.cpp.
#include <memory>
#include <string>
#include <utility>

#include "engine/api/engine_impl.hpp"
#include "engine/core/section.hpp"
#include "semel/engine_host.hpp"

namespace semel {

bool EngineHost::set_no_wait(bool no_wait) noexcept {
  engine::ThreadContext* const own = impl_->core().threads().try_context();
  return own != nullptr && std::exchange(own->no_wait, no_wait);
}
void EngineHost::section_takes_long() noexcept {
  engine::ThreadContext* const own = impl_->core().threads().try_context();
  if (own != nullptr && own->section != nullptr) own->section->take_long();
}

bool EngineHost::in_section() const noexcept {
  const engine::ThreadContext* const own = impl_->core().threads().try_context();
  return own != nullptr && own->section != nullptr;
}

Result<Section> Engine::section(std::span<const KeyRef> keys) {
  if (keys.size() > limits::section_keys_max) {
    return Error{ErrorCode::too_many_keys, std::to_string(keys.size()) + " keys, limit " +
                                               std::to_string(limits::section_keys_max)};
  }
  engine::Core& core = impl_->core();
  if (const ErrorCode no = core.begin_call(); no != ErrorCode::ok) return Error{no, {}};
  const std::size_t count = core.keys().shards().size();
  std::uint64_t mask = 0;
  for (const KeyRef& key : keys) {
    if (key.db >= limits::db_count) {
      return Error{ErrorCode::db_out_of_range, std::to_string(key.db)};
    }
    const engine::HashBits hash = core.keys().hash_of(core.databases().stored(key.db), key.key);
    mask |= std::uint64_t{1} << (hash.shard() & (count - 1));
  }
  if (keys.empty()) mask = engine::mask_of_all(core.keys().shards());
  if (const engine::OwnSection* const own = core.context().section; own != nullptr) {
    for (std::uint32_t shard = 0; shard < count; ++shard) {
      if ((mask >> shard & 1) == 0 || own->holds_shard(shard)) continue;
      return Error{ErrorCode::bad_option, "keys that the section of this thread does not hold"};
    }
  }
  {
    Section section{std::make_unique<Section::Impl>(core, impl_->wait_queue(), mask)};
    if (!engine::impl_of(section).has_begun()) return Error{ErrorCode::section_held, {}};
    bool all_covered = true;
    for (const KeyRef& key : keys) all_covered = all_covered && section.covers(key);
    if (all_covered) {
      const ErrorCode unread = engine::impl_of(section).read_ahead(keys);
      if (unread != ErrorCode::ok) return Error{unread, {}};
      return section;
    }
  }
  // The databases were swapped while we waited: take everything.
  Section section{std::make_unique<Section::Impl>(core, impl_->wait_queue(),
                                                  engine::mask_of_all(core.keys().shards()))};
  if (!engine::impl_of(section).has_begun()) return Error{ErrorCode::section_held, {}};
  const ErrorCode unread = engine::impl_of(section).read_ahead(keys);
  if (unread != ErrorCode::ok) return Error{unread, {}};
  return section;
}

}  // namespace semel
