#include "engine/core/section.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "engine/core/apply.hpp"

namespace semel {

namespace {

/// What a mutation takes in a journal besides its key and value, at most.
constexpr std::size_t mutation_overhead = 512;

}  // namespace

using engine::Core;

Section::Impl::Impl(Core& core, engine::ChangeListener& listener, std::uint64_t mask)
    : core_(core), listener_(listener), outer_(core_.context().section), mask_(mask) {
  if (outer_ != nullptr) {
    now_ = outer_->now();
    return;
  }
  has_begun_ = engine::begin_section(core_.keys().shards(), mask_, core_.threads());
  if (!has_begun_) return;
  core_.context().section = this;
  // Read after the wait: an operation that was under way then may have used a later time than one
  // read before.
  const engine::DecisionContext* const decision = core_.context().decision;
  now_ = decision != nullptr ? engine::bounded(decision->now) : engine::now_of(core_.clock());
  accepts_ = core_.journal() == nullptr || core_.journal()->accepts_writes();
  if (core_.journal() != nullptr) {
    const Options& options = core_.options();
    // Engine::open has made sure that one record fits.
    group_bytes_max_ = core_.journal()->group_bytes_max() - options.value_bytes_max -
                       options.key_bytes_max - mutation_overhead;
  }
  core_.context().bump(engine::Count::sections);
}

Section::Impl::~Impl() {
  if (outer_ != nullptr || !has_begun_) return;
  if (core_.threads().is_forked()) return;  // the parent ends it
  core_.context().section = nullptr;
  if (!group_.mutations().empty())
    core_.context().ticket = core_.guarded_journal().append(group_.mutations());
  core_.context().retired.trim();
  engine::end_section(core_.keys().shards(), mask_);
  if (all_changed_) listener_.all_changed();
  for (const Changed& key : changed_) listener_.changed(key.db, key.key);
}

void Section::Impl::take_long() noexcept {
  if (outer_ != nullptr) return outer_->take_long();
  engine::prolong_section(core_.keys().shards(), mask_);
}

void Section::Impl::yield() noexcept {
  if (outer_ != nullptr) return;
  engine::prolong_section(core_.keys().shards(), mask_);
  core_.context().section = nullptr;
}

void Section::Impl::resume() noexcept {
  if (outer_ == nullptr) core_.context().section = this;
}

void Section::Impl::note_all_changed() {
  if (outer_ != nullptr) return outer_->note_all_changed();
  all_changed_ = listener_.has_waiters();
}

void Section::Impl::note_change(const KeyRef& key) {
  if (outer_ != nullptr) return outer_->note_change(key);
  if (!listener_.has_waiters()) return;
  try {
    changed_.push_back({key.db, std::string{key.key}});
  } catch (const std::bad_alloc&) {
    all_changed_ = true;
  }
}

bool Section::Impl::covers(const KeyRef& key) const noexcept {
  if (key.db >= limits::db_count) return false;
  const engine::HashBits hash = core_.keys().hash_of(core_.databases().stored(key.db), key.key);
  return (mask_ >> (hash.shard() & (core_.keys().shards().size() - 1)) & 1) != 0;
}

ErrorCode Section::Impl::reserve(std::size_t bytes, std::size_t records) {
  if (!accepts(false)) return ErrorCode::refused;
  if (outer_ == nullptr && core_.journal() != nullptr &&
      group_bytes_ + bytes + records * mutation_overhead > group_bytes_max_) {
    return ErrorCode::refused;
  }
  using engine::Region;
  // Rounding to size classes adds at most a quarter; a record's header is at most 24 bytes. Each
  // size may need a span of its own, and each shard one to grow.
  const std::size_t spans = std::min<std::size_t>(records, engine::Arena::class_count) +
                            std::min(records, core_.keys().shards().size());
  const std::size_t wanted = bytes + bytes / 4 + records * 32 + spans * Region::span_bytes;
  const std::size_t limit = core_.region().limit_bytes(Region::Use::structure);
  if (core_.region().used_bytes() + wanted > limit) return ErrorCode::memory_full;
  return make_room_for_all(bytes, records);
}

void Section::Impl::only_frees() noexcept {
  if (outer_ == nullptr && has_begun_)
    accepts_frees_ = accepts_ || core_.journal()->accepts_frees();
}

ErrorCode Section::Impl::reserve_to_erase(std::size_t key_bytes, std::size_t records) {
  only_frees();
  return accepts(true) ? make_room_for_all(key_bytes, records) : ErrorCode::refused;
}

ErrorCode Section::Impl::make_room_for_all(std::size_t bytes, std::size_t records) {
  try {
    make_room(bytes, records);
  } catch (const std::bad_alloc&) {
    return ErrorCode::memory_full;
  }
  return core_.context().retired.reserve(records) ? ErrorCode::ok : ErrorCode::memory_full;
}

ErrorCode Section::Impl::read_ahead(std::span<const KeyRef> keys) {
  if (core_.cold() == nullptr) return ErrorCode::ok;
  for (const KeyRef& key : keys) {
    Version version = 0;
    const ErrorCode error = update(
        key.db, key.key, [](const engine::RecordView*, const auto&) { return engine::Decision{}; },
        version);
    if (error == ErrorCode::storage_failed || error == ErrorCode::storage_damaged) return error;
  }
  return ErrorCode::ok;
}

ErrorCode Section::Impl::copy_record(const KeyRef& from, const KeyRef& to, bool& copied) {
  copied = false;
  engine::Decision copy;
  std::string value;
  Version version = 0;
  ErrorCode error = update(
      from.db, from.key,
      [&](const engine::RecordView* live, const auto&) {
        if (live != nullptr) {
          value = live->value;
          copy = {engine::Action::store, live->kind, live->due, value};
          copy.raw = live->raw;
        }
        return engine::Decision{};
      },
      version);
  if (error != ErrorCode::ok || copy.action != engine::Action::store) return error;
  error = make_room_for_all(to.key.size() + value.size() + from.key.size(), 2);
  if (error != ErrorCode::ok) return error;
  error = update(
      to.db, to.key, [&](const engine::RecordView*, const auto&) { return copy; }, version);
  copied = error == ErrorCode::ok;
  if (copied) note_change(to);
  return error;
}

void Section::Impl::add(const Mutation& mutation) {
  if (outer_ != nullptr) return outer_->add(mutation);
  const std::size_t bytes = engine::MutationGroup::bytes_of(mutation);
  group_bytes_ += bytes + mutation_overhead;
  group_.reserve(bytes, 1);
  group_.add(mutation);
}

void Section::Impl::make_room(std::size_t bytes, std::size_t records) {
  if (outer_ != nullptr) return outer_->make_room(bytes, records);
  if (core_.journal() != nullptr) group_.reserve(bytes, records);
}

Section::Section(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Section::Section(Section&& other) noexcept = default;
Section::~Section() {
  if (impl_ == nullptr) return;
  engine::ThreadContext* const own = impl_->core().threads().try_context();
  impl_.reset();
  if (own == nullptr) return;  // a child of the process that began it
  own->ticket = 0;             // not waited for; this thread's next call waits for what it reads
}

void Section::yield() noexcept {
  impl_->yield();
}
void Section::resume() noexcept {
  impl_->resume();
}
Timestamp Section::now() const noexcept {
  return impl_->now();
}
void Section::only_frees() noexcept {
  impl_->only_frees();
}
bool Section::covers(const KeyRef& key) const noexcept {
  return impl_->covers(key);
}

Status Section::commit() {
  Core& core = impl_->core();
  if (const ErrorCode no = core.begin_call(); no != ErrorCode::ok) return Error{no, {}};
  impl_.reset();  // of a part: nothing has ended yet, and confirm() knows it
  const ErrorCode unknown = core.guarded_journal().confirm(core.context());
  if (unknown != ErrorCode::ok) return Error{unknown, {}};
  return Done{};
}

void Section::apply(const StoreOp& op, StoreOutcome& outcome) noexcept {
  Core& core = impl_->core();
  if (const ErrorCode no = core.begin_call(); no != ErrorCode::ok)
    return engine::refuse(outcome, no);
  engine::ThreadContext& own = core.context();
  if (!engine::begin_apply(op, core.options(), outcome, own)) return;
  {
    // The section keeps others out, but memory is still given back by epochs.
    engine::Operation operation{core, own};
    const engine::KeyLocation location = core.keys().location_of({op.db, op.key});
    try {
      engine::decide_store(core, operation, location, op, impl_->now(), outcome, impl_.get());
    } catch (const std::bad_alloc&) {
      engine::refuse(outcome, ErrorCode::memory_full);  // before anything was changed
    }
  }
  own.bump(outcome.found ? engine::Count::hits : engine::Count::misses);
  if (outcome.applied) impl_->note_change({op.db, op.key});
}

}  // namespace semel
