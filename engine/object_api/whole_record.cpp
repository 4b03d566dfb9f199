#include "engine/object_api/whole_record.hpp"

#include "engine/kinds/kinds.hpp"
#include "engine/object_api/record_call.hpp"
#include "engine/objects/large_object.hpp"

namespace semel::engine {

namespace {

/// `decide` sets RecordCall::error.
template <class Decide>
Status run_whole(Engine& engine, KeyRef key, RecordCall& call, Decide&& decide) {
  const ErrorCode error = call_on_record(engine, key, call, decide);
  return error == ErrorCode::ok ? Status{Done{}} : Status{Error{error, {}}};
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
  RecordCall call;
  const auto decide = [&](const Core&, const RecordView* live, Timestamp) {
    found.reset();
    call = {.was_there = !is_absent(live)};
    if (is_absent(live)) return Decision{};
    if (!is_carried(live->kind)) {
      call.error = ErrorCode::wrong_type;
      return Decision{};
    }
    found = {live->kind, live->due, live->version, {}};
    if (const Bytes bytes = whole_bytes(live->kind, live->value, found->value);
        bytes.data() != found->value.data()) {
      found->value.assign(bytes);
    }
    return Decision{};
  };
  SEMEL_CHECK(run_whole(engine, key, call, decide));
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
  RecordCall call;
  const auto decide = [&](const Core&, const RecordView* live, Timestamp now) -> Decision {
    call = {.was_there = !is_absent(live), .is_changed = true};
    if (!is_absent(live) && live->kind == Kind::claim) {
      call.error = ErrorCode::wrong_type;
      return {};
    }
    if (record.due <= now) {
      if (is_absent(live)) return {};
      return {.action = Action::erase, .kind = live->kind, .value = {}};
    }
    return {.action = Action::store, .kind = record.kind, .due = record.due, .value = record.value};
  };
  return run_whole(engine, key, call, decide);
}

}  // namespace semel::engine
