#include "engine/object_api/whole_record.hpp"

#include "engine/api/engine_impl.hpp"
#include "engine/core/core_update.hpp"
#include "engine/kinds/kinds.hpp"
#include "engine/objects/large_object.hpp"

namespace semel::engine {

namespace {

/// One call on one key. `decide` sets `error`, which holds if the step itself has none.
template <class Decide>
Status run(Engine& engine, KeyRef key, const ErrorCode& error, bool changes, Decide&& decide) {
  Engine::Impl& impl = impl_of(engine);
  Core& core = impl.core();
  if (const ErrorCode no = core.begin_call(); no != ErrorCode::ok) return Error{no, {}};
  ThreadContext& own = core.context();
  own.bump(Count::operations);
  Version version = 0;
  Timestamp now = core.now(own);
  if (const ErrorCode failed = update(core, key, now, decide, version); failed != ErrorCode::ok) {
    return Error{failed, {}};
  }
  impl.after_operation(own, key, changes && error == ErrorCode::ok);
  const ErrorCode ended = error != ErrorCode::ok ? error : impl.confirm(own);
  return ended == ErrorCode::ok ? Status{Done{}} : Status{Error{ended, {}}};
}

bool is_absent(const RecordView* live) noexcept {
  return live == nullptr || !is_visible(live->kind, live->value);
}

}  // namespace

bool is_carried(Kind kind) noexcept {
  return is_record_kind(kind) && kind != Kind::claim;
}

Result<std::optional<WholeRecord>> read_whole(Engine& engine, KeyRef key) {
  std::optional<WholeRecord> found;
  ErrorCode error = ErrorCode::ok;
  const auto decide = [&](const RecordView* live, const NextVersion&) {
    found.reset();
    error = ErrorCode::ok;
    if (is_absent(live)) return Decision{};
    if (!is_carried(live->kind)) {
      error = ErrorCode::wrong_type;
      return Decision{};
    }
    found = {live->kind, live->due, live->version, {}};
    if (const Bytes bytes = whole_bytes(live->kind, live->value, found->value);
        bytes.data() != found->value.data()) {
      found->value.assign(bytes);
    }
    return Decision{};
  };
  SEMEL_CHECK(run(engine, key, error, false, decide));
  return found;
}

Status replace_whole(Engine& engine, KeyRef key, const WholeRecord& record) {
  if (!is_carried(record.kind)) return Error{ErrorCode::wrong_type, {}};
  if (!is_sound(record.kind, record.value)) {
    return Error{ErrorCode::bad_option,
                 "these are not the bytes of a " + std::string{name_of(record.kind)}};
  }
  const std::size_t bytes_max = impl_of(engine).core().options().value_bytes_max;
  if (record.value.size() > bytes_max) {
    return Error{ErrorCode::value_too_long,
                 "bytes of the record = " + std::to_string(record.value.size()) + ", limit " +
                     std::to_string(bytes_max)};
  }
  ErrorCode error = ErrorCode::ok;
  Core& core = impl_of(engine).core();
  const auto decide = [&](const RecordView* live, const NextVersion&) -> Decision {
    error = ErrorCode::ok;
    if (!is_absent(live) && live->kind == Kind::claim) {
      error = ErrorCode::wrong_type;
      return {};
    }
    if (record.due <= core.now(core.context())) {
      if (is_absent(live)) return {};
      return {.action = Action::erase, .kind = live->kind, .value = {}};
    }
    return {.action = Action::store, .kind = record.kind, .due = record.due, .value = record.value};
  };
  return run(engine, key, error, true, decide);
}

}  // namespace semel::engine
