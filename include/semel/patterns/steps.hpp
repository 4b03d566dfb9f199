// Steps of one piece of work. The result of each step is remembered in a memo until the work is
// over, so that an owner that takes the work over continues after the last completed step. Memos
// are part of the claim's record: they live as long as it does, and are removed when the work is
// done, has failed finally or is forgotten.
//
//   Steps steps{claims, "order-4711", claim.epoch};
//   auto charged = steps.run("charge", [&] { return bank.charge(order); });    // once
//   auto mailed = steps.run("mail", [&] { return mailer.send(order, *charged); });
//   auto done = steps.complete("shipped");      // and the steps are forgotten
//
// A step runs only while its claim is held with this epoch and the lease runs; else the answer is
// not_owner. A step is repeated if its process ends between its effect and its memo, or if its memo
// cannot be kept (it is too long, the disk refuses it), which is an error of run(). A step that
// must not be repeated even then needs an effect that can be queried, or one that joins the commit
// (semel/rocksdb.hpp).
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "semel/claims.hpp"
#include "semel/codec.hpp"
#include "semel/engine.hpp"
#include "semel/patterns/returns.hpp"

namespace semel {

class Steps {
 public:
  /// The key's bytes must live as long as this. Epoch 0 belongs to no claim: every call is
  /// not_owner.
  Steps(const Claims& claims, Bytes key, Epoch epoch) noexcept
      : claims_(claims), key_(key), epoch_(epoch) {}
  /// For unguarded work: steps run, and this object alone remembers their results.
  [[nodiscard]] static Steps unguarded(const Claims& claims) noexcept {
    Steps steps{claims, {}, 0};
    steps.is_guarded_ = false;
    return steps;
  }
  Steps(Steps&&) = default;
  Steps(const Steps&) = delete;  // a copy of unguarded work's would have memos of its own

  /// The memo under `name` for this payload: a memo of another fingerprint of the same algorithm
  /// does not count. None: there is none, and the step may run. Errors: not_owner (the claim is not
  /// held with this epoch, or its lease is over: do not run the step); bad_option (the name is
  /// empty or longer than limits::step_name_max); value_too_long (no memo, and no room for one:
  /// limits::memos_max, limits::memos_bytes_max); those of Claims::get.
  [[nodiscard]] Result<std::optional<std::string>> recall(Bytes name);
  /// Remembers `bytes` under `name` for this payload, replacing an earlier memo. Errors, and
  /// nothing was changed: as above; memory_full, refused; outcome_unknown; in a group those of its
  /// calls (semel/replication.hpp).
  [[nodiscard]] Status remember(Bytes name, Bytes bytes);

  /// Returns the remembered result of `step`, or runs the step and remembers its result. The step
  /// may return Result<T>: an error is returned and not remembered.
  /// Errors: those of recall(), before the step runs; those of remember(), after the step ran
  /// without being remembered; bad_encoding (the memo is not a T).
  template <class Step>
  auto run(Bytes name, Step&& step);

  /// Claims::complete, which removes the memos. For unguarded work: unknown.
  [[nodiscard]] OwnerOutcome complete(Bytes result = {},
                                      ResultKeeping keeping = ResultKeeping::optional);
  /// Whether this object has read or written memos.
  [[nodiscard]] bool used() const noexcept { return used_; }

 private:
  Claims claims_;
  Bytes key_;
  Epoch epoch_;
  bool used_ = false;
  bool is_guarded_ = true;
  std::string own_;  // the memos of unguarded work
};

namespace detail {

template <class T>
struct Returned {  // what a function returns, and whether it can fail
  using Value = T;
  static constexpr bool can_fail = false;
};
template <>
struct Returned<void> {
  using Value = Nothing;
  static constexpr bool can_fail = false;
};
template <class T>
struct Returned<Result<T>> {
  using Value = T;
  static constexpr bool can_fail = true;
};
template <>
struct Returned<Status> {
  using Value = Nothing;
  static constexpr bool can_fail = true;
};

/// Calls `function` and makes a Result of whatever it returns.
template <class Function, class... Arguments>
auto call_for_result(Function& function, Arguments&&... arguments) {
  using Plain = decltype(function(std::forward<Arguments>(arguments)...));
  using Value = typename Returned<std::remove_cvref_t<Plain>>::Value;
  if constexpr (std::is_void_v<Plain>) {
    function(std::forward<Arguments>(arguments)...);
    return Result<Value>{Value{}};
  } else if constexpr (std::is_same_v<std::remove_cvref_t<Plain>, Status>) {
    Status status = function(std::forward<Arguments>(arguments)...);
    return status ? Result<Value>{Value{}} : Result<Value>{status.error()};
  } else {
    return Result<Value>{function(std::forward<Arguments>(arguments)...)};
  }
}

}  // namespace detail

namespace detail {
[[nodiscard]] inline Error not_readable_step(Bytes name) {
  return {ErrorCode::bad_encoding, "memo of step '" + std::string{name} + "'"};
}
}  // namespace detail

template <class Step>
auto Steps::run(Bytes name, Step&& step) {
  using Outcome = decltype(detail::call_for_result(step));
  using Value = std::remove_cvref_t<decltype(*std::declval<Outcome&>())>;
  static_assert(!detail::is_lazy<Value>,
                "the step returns work that is still to be done (a future, a coroutine, a "
                "callable, a lazy range): wait for it or call it, and return its value");
  static_assert(detail::is_lazy<Value> || Encodable<Value>,
                "give the result's type encode() and decode(), or a Codec");
  Result<std::optional<std::string>> memo = recall(name);
  if (!memo.ok()) return Outcome{memo.error()};
  if (*memo) {
    std::optional<Value> value = Codec<Value>::decode(**memo);
    if (value) return Outcome{*std::move(value)};
    return Outcome{detail::not_readable_step(name)};
  }
  Outcome outcome = detail::call_for_result(step);
  if (!outcome.ok()) return outcome;
  const std::string bytes = Codec<Value>::encode(*outcome);
  if (Status kept = remember(name, bytes); !kept) return Outcome{kept.error()};
  if constexpr (!ExactCodec<Value>) {  // later attempts get the decoded value, and so does this one
    std::optional<Value> value = Codec<Value>::decode(bytes);
    return value ? Outcome{*std::move(value)} : Outcome{detail::not_readable_step(name)};
  } else {
    return outcome;
  }
}

}  // namespace semel
