#include "engine/object_api/object_calls.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "engine/api/engine_impl.hpp"
#include "engine/core/core_update.hpp"
#include "engine/core/thread_nodes.hpp"
#include "engine/kinds/kinds.hpp"
#include "engine/logged/call_log.hpp"
#include "engine/object_api/record_call.hpp"

namespace semel::engine {

namespace {

/// The error names the value and the limit.
Error explain(const Core& core, KeyRef key, ErrorCode code) {
  const Options& options = core.options();
  const auto limit = [](auto value, auto bound) {
    return std::to_string(value) + ", limit " + std::to_string(bound);
  };
  switch (code) {
    case ErrorCode::key_too_long:
      return {code, "bytes = " + limit(key.key.size(), options.key_bytes_max)};
    case ErrorCode::db_out_of_range:
      return {code, "db = " + limit(unsigned{key.db}, limits::db_count - 1)};
    default:
      return {code, {}};
  }
}

/// One call: what it decides about a record, and what it has seen.
class ObjectStep {
 public:
  ObjectStep(Kind kind, bool replaces) noexcept : kind_(kind), replaces_(replaces) {}

  template <class Change>
  Decision decide(Core& core, const RecordView* live, const Change& change) {
    // A claim that was given back and only remembers its attempts is absent to all other calls.
    if (live != nullptr && !is_visible(live->kind, live->value)) live = nullptr;
    error = ErrorCode::ok;
    seen = {.was_there = live != nullptr, .is_there = live != nullptr};
    const bool is_in_the_way =
        live != nullptr && (replaces_ ? live->kind == Kind::claim : live->kind != kind_);
    if (is_in_the_way) return fail(ErrorCode::wrong_type);
    NodePool& pool = pool_of(core);
    if (live == nullptr || replaces_) {
      edit_.emplace(kind_, &pool);
      return judge(core, replaces_ ? live : nullptr, change);
    }
    edit_.emplace(live->value, kind_, &pool, core.journal() != nullptr);
    if (!edit_->is_good()) return fail(ErrorCode::storage_damaged);
    return judge(core, live, change);
  }

  /// How long the object is, and the limit.
  [[nodiscard]] std::string too_long(const Core& core) const {
    return "bytes of the object = " + std::to_string(bytes_) + ", limit " +
           std::to_string(object_bytes_max(core.options()));
  }

  ErrorCode error = ErrorCode::ok;
  ObjectChange seen;

 private:
  Decision fail(ErrorCode code) noexcept {
    error = code;
    return {};
  }
  /// Of the calling thread. What a section changes may use the reserve, as its records may.
  NodePool& pool_of(Core& core) {
    return pool_.emplace(core.arena(), core.context(), core.context().section != nullptr);
  }
  template <class Change>
  Decision judge(Core& core, const RecordView* live, const Change& change) {
    ObjectEdit& edit = *edit_;
    if (const ErrorCode refused = change(edit); refused != ErrorCode::ok) return fail(refused);
    if (!edit.is_changed() && !(replaces_ && edit.empty())) return {};
    seen.is_changed = true;
    seen.is_there = !edit.empty();
    if (edit.empty()) {
      return {.action = live == nullptr ? Action::keep : Action::erase, .kind = kind_, .value = {}};
    }
    bytes_ = edit.record_bytes();
    // A record that is too long already, stored under a larger limit, may become shorter.
    const bool grows = live == nullptr || replaces_ || bytes_ > whole_size(kind_, live->value);
    if (grows && bytes_ > object_bytes_max(core.options())) {
      seen.is_changed = false;
      return fail(ErrorCode::value_too_long);
    }
    std::string& record = record_.of(core);
    edit.write(record, bytes_);
    return {.action = Action::store,
            .kind = kind_,
            .due = live != nullptr && !replaces_ ? live->due : no_end,
            .value = record,
            .gives_up = edit.only_erases() && !grows,
            .no_memory = edit.has_failed(),
            .publication = edit.publication(),
            .trail = edit.trail()};
  }

  const Kind kind_;
  const bool replaces_;
  std::size_t bytes_ = 0;
  RecordInMaking record_;
  std::optional<ThreadNodes> pool_;
  std::optional<ObjectEdit> edit_;  // until what it has made is published
};

/// The same for a string.
class StringStep {
 public:
  explicit StringStep(bool replaces) noexcept : replaces_(replaces) {}

  template <class Change>
  Decision decide(Core& core, const RecordView* live, const Change& change) {
    if (live != nullptr && !is_visible(live->kind, live->value)) live = nullptr;
    error = ErrorCode::ok;
    seen = {.was_there = live != nullptr, .is_there = live != nullptr};
    const bool is_in_the_way =
        live != nullptr && (replaces_ ? live->kind == Kind::claim : live->kind != Kind::string);
    if (is_in_the_way) return fail(ErrorCode::wrong_type);
    const bool begins = live == nullptr || replaces_;
    std::string& after = record_.of(core);
    StringEdit edit{live != nullptr, begins ? Bytes{} : live->value, after};
    const ErrorCode refused = change(edit);
    bytes_ = edit.bytes();
    if (refused != ErrorCode::ok) return fail(refused);
    if (!edit.is_changed()) return {};
    // A value that is too long already, stored under a larger limit, may stay as long.
    const bool grows = begins || after.size() > live->value.size();
    if (grows && after.size() > core.options().value_bytes_max) {
      return fail(ErrorCode::value_too_long);
    }
    seen.is_changed = seen.is_there = true;
    return {.action = Action::store,
            .kind = Kind::string,
            .due = begins ? no_end : live->due,
            .value = after,
            .raw = true};
  }

  [[nodiscard]] std::string too_long(const Core& core) const {
    return std::to_string(bytes_) + " bytes, at most " +
           std::to_string(core.options().value_bytes_max);
  }

  ErrorCode error = ErrorCode::ok;
  ObjectChange seen;

 private:
  Decision fail(ErrorCode code) noexcept {
    error = code;
    return {};
  }

  const bool replaces_;
  std::size_t bytes_ = 0;
  RecordInMaking record_;
};

template <class Step, class Change>
Result<ObjectChange> run(Engine& engine, KeyRef key, Step& step, const Change& change) {
  RecordCall call;
  const auto decide = [&](Core& core, const RecordView* live, Timestamp) {
    const Decision decision = step.decide(core, live, change);
    call = {step.error, step.seen.was_there, step.seen.is_changed};
    return decision;
  };
  const ErrorCode error = call_on_record(engine, key, call, decide);
  if (error == ErrorCode::ok) [[likely]]
    return step.seen;
  const Core& core = impl_of(engine).core();
  if (error != ErrorCode::value_too_long) return explain(core, key, error);
  return Error{error, step.too_long(core)};
}

}  // namespace

Status read_object_by(Engine& engine, KeyRef key, Kind kind,
                      const Function<void(const ObjectReader&)>& read) {
  if (const LoggedCall log = impl_of(engine).log_for_call(); log) [[unlikely]] {
    SEMEL_CHECK(log->read());
  }
  RecordCall call;
  const auto read_record = [&](Bytes record) {
    const ObjectReader object{record, kind};
    call.error = object.is_good() ? ErrorCode::ok : ErrorCode::storage_damaged;
    call.was_there = true;
    if (object.is_good()) read(object);
  };
  const auto answers = [&](const Entry& live) {
    if (live.kind() != kind) return false;
    read_record(live.value());
    return true;
  };
  const auto decide = [&](Core&, const RecordView* live, Timestamp) -> Decision {
    if (live != nullptr && live->kind == kind) {
      read_record(live->value);
    } else if (live != nullptr && is_visible(live->kind, live->value)) {
      call = {ErrorCode::wrong_type, true, false};
    } else {  // as is a claim that was given back and only remembers its attempts
      call = {};
      read(ObjectReader{});
    }
    return {};
  };
  const ErrorCode error = call_on_record_unless(engine, key, call, answers, decide);
  if (error != ErrorCode::ok) [[unlikely]]
    return explain(impl_of(engine).core(), key, error);
  return Done{};
}

Result<ObjectChange> change_object_by(Engine& engine, KeyRef key, Kind kind,
                                      const Function<ErrorCode(ObjectEdit&)>& change) {
  ObjectStep step{kind, false};
  return run(engine, key, step, change);
}

Result<ObjectChange> replace_object_by(Engine& engine, KeyRef key, Kind kind,
                                       const Function<ErrorCode(ObjectEdit&)>& fill) {
  ObjectStep step{kind, true};
  return run(engine, key, step, fill);
}

std::int64_t unix_ms_of_call(Engine& engine) noexcept {
  return impl_of(engine).unix_ms();
}

Status read_string_by(Engine& engine, KeyRef key, const Function<void(const Bytes*)>& read) {
  if (const LoggedCall log = impl_of(engine).log_for_call(); log) [[unlikely]] {
    SEMEL_CHECK(log->read());
  }
  StringStep step{false};
  const Result<ObjectChange> done = run(engine, key, step, [&read](StringEdit& value) {
    const Bytes bytes = value.before();
    read(value.was_there() ? &bytes : nullptr);
    return ErrorCode::ok;
  });
  if (!done.ok()) return done.error();
  return Done{};
}

Result<ObjectChange> change_string_by(Engine& engine, KeyRef key,
                                      const Function<ErrorCode(StringEdit&)>& change) {
  StringStep step{false};
  return run(engine, key, step, change);
}

Result<ObjectChange> replace_string(Engine& engine, KeyRef key, Bytes value) {
  StringStep step{true};
  return run(engine, key, step, [value](StringEdit& edit) {
    edit.value().assign(value);
    return ErrorCode::ok;
  });
}

std::size_t value_bytes_max(Engine& engine) noexcept {
  return impl_of(engine).core().options().value_bytes_max;
}

}  // namespace semel::engine
