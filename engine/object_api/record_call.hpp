// One call on one record: what reads and changes of objects, of hashes and of whole records share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>

#include "engine/api/engine_impl.hpp"
#include "engine/core/core_update.hpp"
#include "semel/limits.hpp"
#include "semel/result.hpp"

namespace semel::engine {

/// Of an object of elements, packed. A whole one leaves the engine as one record, if at all.
[[nodiscard]] inline std::size_t object_bytes_max(const Options& options) noexcept {
  const bool leaves = options.journal != nullptr || options.cold != nullptr || options.replicated;
  return leaves ? options.value_bytes_max
                : std::max(options.value_bytes_max, limits::object_bytes_max);
}

/// The bytes of the record that a call makes: the thread's own, so that a call that makes a short
/// one asks the heap for nothing.
class RecordInMaking {
 public:
  RecordInMaking() = default;
  ~RecordInMaking() {
    constexpr std::size_t kept_bytes = std::size_t{64} << 10;
    if (bytes_ != nullptr && bytes_->capacity() > kept_bytes) std::string{}.swap(*bytes_);
  }
  RecordInMaking(const RecordInMaking&) = delete;
  RecordInMaking& operator=(const RecordInMaking&) = delete;

  /// Inside the call's operation, in which the thread makes no other record.
  [[nodiscard]] std::string& of(Core& core) noexcept {
    bytes_ = &core.context().record;
    return *bytes_;
  }

 private:
  std::string* bytes_ = nullptr;
};

/// What `decide` of call_on_record() has found; it sets all of it each time it runs.
struct RecordCall {
  ErrorCode error = ErrorCode::ok;  ///< holds if the step itself has none
  bool was_there = false;
  bool is_changed = false;
};

/// Runs `decide(Core&, const RecordView* live, Timestamp now) -> Decision`, which may be
/// called several times, in the section of this thread if it is in one, and waits for the
/// engine's level of durability. Returns the first error. `answers`: as of update_unless(); what it
/// answers sets `call` as well.
template <class Answers, class Decide>
[[nodiscard]] ErrorCode call_on_record_unless(Engine& engine, KeyRef key, const RecordCall& call,
                                              Answers&& answers, Decide&& decide) {
  Engine::Impl& impl = impl_of(engine);
  Core& core = impl.core();
  if (const ErrorCode no = core.begin_call(); no != ErrorCode::ok) return no;
  ThreadContext& own = core.context();
  own.bump(Count::operations);
  Version version = 0;
  Timestamp now = core.now(own);
  const auto on_record = [&](const RecordView* live, const NextVersion&) -> Decision {
    return decide(core, live, now);
  };
  ErrorCode error = ErrorCode::ok;
  if constexpr (std::is_same_v<std::remove_cvref_t<Answers>, NoFastAnswer>) {
    error = update(core, key, now, on_record, version);
  } else {
    error = update_unless(core, key, now, answers, on_record, version);
  }
  own.bump(call.was_there ? Count::hits : Count::misses);
  if (error != ErrorCode::ok) return error;
  impl.after_operation(own, key, call.is_changed && call.error == ErrorCode::ok);
  return call.error != ErrorCode::ok ? call.error : impl.confirm(own);
}

template <class Decide>
[[nodiscard]] ErrorCode call_on_record(Engine& engine, KeyRef key, const RecordCall& call,
                                       Decide&& decide) {
  return call_on_record_unless(engine, key, call, NoFastAnswer{}, decide);
}

}  // namespace semel::engine
