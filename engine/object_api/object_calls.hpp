// Reads and changes of objects of many elements: lists, sets, sorted sets, streams; and of strings.
// What a call does to the elements is a function of its own (the kinds are in engine/types); these
// take it to the record, as one atomic step, or as a part of the section that the calling thread is
// in.
//
//   change_object(engine, {db, key}, Kind::set, [&](ObjectEdit& object) {
//     added = object.put(member_key("a"));
//     return ErrorCode::ok;
//   });
//
// Errors of all: key_empty, key_too_long, db_out_of_range, wrong_type (the key holds something
// else), storage_damaged; of changes also value_too_long (of the whole object:
// Options::value_bytes_max, and limits::object_bytes_max where it never leaves memory),
// memory_full, refused, section_held, outcome_unknown, and what the function returned. On an error
// but the last nothing was changed. Thread-safe. std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "engine/object_api/any_number.hpp"
#include "engine/objects/object_edit.hpp"
#include "semel/engine.hpp"
#include "semel/function.hpp"
#include "semel/result.hpp"

namespace semel::engine {

/// What a change did to the key, for events and waits.
struct ObjectChange {
  bool was_there = false;
  bool is_there = false;    ///< an object without elements is not
  bool is_changed = false;  ///< elements were

  [[nodiscard]] bool is_new() const noexcept { return is_there && !was_there; }
  [[nodiscard]] bool is_gone() const noexcept { return was_there && !is_there; }
};

/// `read` is called once, with an object without elements if there is none. If the call ends with
/// an error, the reader drops the reply that it has made.
[[nodiscard]] Status read_object_by(Engine& engine, KeyRef key, Kind kind,
                                    const Function<void(const ObjectReader&)>& read);
/// `change` may be called several times, each time with another object: it sets what it answers
/// anew. An error that it returns leaves the object as it was.
[[nodiscard]] Result<ObjectChange> change_object_by(Engine& engine, KeyRef key, Kind kind,
                                                    const Function<ErrorCode(ObjectEdit&)>& change);

template <class Read>
[[nodiscard]] Status read_object(Engine& engine, KeyRef key, Kind kind, Read&& read) {
  return read_object_by(engine, key, kind, [&read](const ObjectReader& object) { read(object); });
}
template <class Change>
[[nodiscard]] Result<ObjectChange> change_object(Engine& engine, KeyRef key, Kind kind,
                                                 Change&& change) {
  return change_object_by(engine, key, kind,
                          [&change](ObjectEdit& object) { return change(object); });
}

/// Puts a new object, without ttl, in place of what the key holds; one without elements: the key
/// goes. Of SINTERSTORE and its like. `fill` makes the object, and may be called several times. A
/// claim is not replaced: wrong_type.
[[nodiscard]] Result<ObjectChange> replace_object_by(Engine& engine, KeyRef key, Kind kind,
                                                     const Function<ErrorCode(ObjectEdit&)>& fill);
template <class Fill>
[[nodiscard]] Result<ObjectChange> replace_object(Engine& engine, KeyRef key, Kind kind,
                                                  Fill&& fill) {
  return replace_object_by(engine, key, kind, [&fill](ObjectEdit& object) { return fill(object); });
}

/// The wall clock's time of this thread's call, in ms since 1970: of an entry that a group has
/// decided, the time of the entry, which is the same at every node; else the engine's clock.
[[nodiscard]] std::int64_t unix_ms_of_call(Engine& engine) noexcept;

// --- strings -------------------------------------------------------------------------------------

/// A string that a command changes in place: its bits, or a HyperLogLog in it.
class StringEdit {
 public:
  /// `before` and `scratch` must live as long as this.
  StringEdit(bool was_there, Bytes before, std::string& scratch) noexcept
      : before_(before), after_(scratch), was_there_(was_there) {}

  [[nodiscard]] bool was_there() const noexcept { return was_there_; }
  [[nodiscard]] Bytes before() const noexcept { return before_; }
  /// The value that the string gets; at the first call a copy of before(). Stored even if it stays
  /// the same, unless keep() is called.
  [[nodiscard]] std::string& value() {
    if (!is_open_) after_.assign(before_);
    is_changed_ = is_open_ = true;
    return after_;
  }
  /// Nothing is stored after all.
  void keep() noexcept { is_changed_ = false; }
  /// The length that the value would have: the change, which returns value_too_long, did not make
  /// it.
  void would_be(std::size_t bytes) noexcept { bytes_ = bytes; }

  [[nodiscard]] bool is_changed() const noexcept { return is_changed_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return is_open_ ? after_.size() : bytes_; }

 private:
  Bytes before_;
  std::string& after_;
  std::size_t bytes_ = 0;
  bool was_there_;
  bool is_open_ = false;
  bool is_changed_ = false;
};

/// `read` is called once, or, if the call ends with an error, perhaps not at all; with null if
/// there is no string. The bytes are valid during the call of `read` only.
[[nodiscard]] Status read_string_by(Engine& engine, KeyRef key,
                                    const Function<void(const Bytes*)>& read);
/// As change_object_by. The string keeps its ttl, and is raw from then on (OBJECT ENCODING); the
/// detail of value_too_long names both lengths. An empty string is one.
[[nodiscard]] Result<ObjectChange> change_string_by(Engine& engine, KeyRef key,
                                                    const Function<ErrorCode(StringEdit&)>& change);

template <class Read>
[[nodiscard]] Status read_string(Engine& engine, KeyRef key, Read&& read) {
  return read_string_by(engine, key, [&read](const Bytes* value) { read(value); });
}
template <class Change>
[[nodiscard]] Result<ObjectChange> change_string(Engine& engine, KeyRef key, Change&& change) {
  return change_string_by(engine, key, [&change](StringEdit& value) { return change(value); });
}

/// Puts `value`, without ttl, in place of what the key holds. A claim is not replaced: wrong_type.
[[nodiscard]] Result<ObjectChange> replace_string(Engine& engine, KeyRef key, Bytes value);

/// Of the engine's options.
[[nodiscard]] std::size_t value_bytes_max(Engine& engine) noexcept;

}  // namespace semel::engine
