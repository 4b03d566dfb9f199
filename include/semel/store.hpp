// The store: bytes under a key with a time to live, true to Redis 7.2 plus the compare-and-set
// family of later servers. Typed calls over EngineHost::apply; multi-key calls are atomic.
// Source: docs/semantics.md#store
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "semel/engine.hpp"

namespace semel {

struct SetOptions {
  Condition condition = Condition::always;
  Bytes operand{};   ///< of if_equal and its family
  Expiry expiry{};   ///< default: no ttl, an existing one is removed
  bool get = false;  ///< return the previous value
};

struct SetResult {
  using is_answer = void;               // ask stored
  bool stored = false;                  ///< false: the condition refused the write
  std::optional<std::string> previous;  ///< with get: live value just before this call
  Version version = 0;
};

struct Versioned {
  std::string value;
  Version version = 0;  ///< of the last change of any kind, that of the ttl included
};

struct CompareResult {
  using is_answer = void;  // `if (store.compare_and_set(..))` does not compile: ask stored
  bool stored = false;
  std::optional<Versioned> current;  ///< the value now, whether stored or not
};

struct KeyValue {
  Bytes key{};
  Bytes value{};
};

struct IncrexOptions {
  std::int64_t by = 1;
  std::optional<std::int64_t> lower{};
  std::optional<std::int64_t> upper{};
  bool saturate = false;
  Expiry expiry = Expiry::keep();
  bool expiry_only_without_ttl = false;  ///< ENX
};

struct IncrexFloatOptions {
  long double by = 1;
  std::optional<long double> lower{};
  std::optional<long double> upper{};
  bool saturate = false;
  Expiry expiry = Expiry::keep();
  bool expiry_only_without_ttl = false;
};

template <class Number>
struct IncrexResult {
  Number value;    ///< after the call
  Number applied;  ///< 0 if a bound refused it
};

struct TtlResult {
  bool found = false;
  bool has_ttl = false;
  Millis remaining{0};
  Timestamp due = no_end;
};

class Store {
 public:
  Store(Engine& engine, std::uint8_t db) noexcept : engine_(&engine), db_(db) {}

  // One key. Errors of all: key_empty, key_too_long, db_out_of_range; of writes also
  // value_too_long, memory_full, refused, outcome_unknown. On an error nothing was changed.
  [[nodiscard]] Result<SetResult> set(Bytes key, Bytes value, const SetOptions& options = {});
  [[nodiscard]] Result<std::optional<std::string>> get(Bytes key);
  [[nodiscard]] Result<std::optional<std::string>> getdel(Bytes key);
  /// Also changes the ttl: Expiry::keep(), in, at, or clear (PERSIST).
  [[nodiscard]] Result<std::optional<std::string>> getex(Bytes key, Expiry expiry);
  [[nodiscard]] Result<std::optional<std::string>> getset(Bytes key, Bytes value);
  [[nodiscard]] Result<bool> setnx(Bytes key, Bytes value);
  [[nodiscard]] Result<std::int64_t> append(Bytes key, Bytes value);
  [[nodiscard]] Result<std::int64_t> strlen(Bytes key);
  [[nodiscard]] Result<std::string> getrange(Bytes key, std::int64_t start, std::int64_t end);
  [[nodiscard]] Result<std::int64_t> setrange(Bytes key, std::int64_t offset, Bytes value);
  [[nodiscard]] Result<std::int64_t> incr_by(Bytes key, std::int64_t by);
  [[nodiscard]] Result<std::int64_t> decr_by(Bytes key, std::int64_t by);
  /// Returns the new value as Redis prints it (17 digits, no exponent).
  [[nodiscard]] Result<std::string> incr_by_float(Bytes key, long double by);
  [[nodiscard]] Result<IncrexResult<std::int64_t>> increx(Bytes key, const IncrexOptions& options);
  [[nodiscard]] Result<IncrexResult<long double>> increx(Bytes key,
                                                         const IncrexFloatOptions& options);
  [[nodiscard]] Result<bool> del(Bytes key);
  [[nodiscard]] Result<bool> delex(Bytes key, Condition condition, Bytes operand);
  [[nodiscard]] Result<std::optional<std::string>> digest(Bytes key);
  /// The value and the version that compare_and_set() takes.
  [[nodiscard]] Result<std::optional<Versioned>> get_versioned(Bytes key);
  /// Sets `key` if nothing has changed it since it had `version` (0: there was none). A version is
  /// never used again, also after deletion and restart, so that no change between is overlooked.
  [[nodiscard]] Result<CompareResult> compare_and_set(Bytes key, Version version, Bytes value,
                                                      Expiry expiry = Expiry::keep());
  [[nodiscard]] Result<bool> exists(Bytes key);
  [[nodiscard]] Result<std::optional<Kind>> type(Bytes key);
  /// True if the ttl was set (or the key deleted, when the time has passed already).
  [[nodiscard]] Result<bool> expire(Bytes key, Expiry expiry, ExpireRule rule = {});
  [[nodiscard]] Result<bool> persist(Bytes key);
  [[nodiscard]] Result<TtlResult> ttl(Bytes key);
  /// A point of the engine's clock for an absolute wall time, mapped once, now.
  [[nodiscard]] Timestamp from_unix_ms(std::int64_t unix_ms) const noexcept;
  /// The wall time of a point of the engine's clock. What from_unix_ms() has mapped comes back as
  /// it was given, unless the wall clock has stepped since: then it is the time at which the record
  /// does end by the wall clock as it is now.
  [[nodiscard]] std::int64_t to_unix_ms(Timestamp when) const noexcept;

  // Several keys, one atomic step. Errors: as above, too_many_keys; nothing was changed.
  [[nodiscard]] Result<std::int64_t> del(std::span<const Bytes> keys);
  [[nodiscard]] Result<std::int64_t> exists(std::span<const Bytes> keys);  ///< counts repeats
  [[nodiscard]] Result<std::int64_t> touch(std::span<const Bytes> keys);
  [[nodiscard]] Result<std::vector<std::optional<std::string>>> mget(std::span<const Bytes> keys);
  [[nodiscard]] Status mset(std::span<const KeyValue> pairs);
  [[nodiscard]] Result<bool> msetnx(std::span<const KeyValue> pairs);
  /// MSETEX: all or nothing under if_absent or if_present; one expiry for all.
  [[nodiscard]] Result<bool> msetex(std::span<const KeyValue> pairs, Condition condition,
                                    Expiry expiry);
  /// Errors: no_such_key.
  [[nodiscard]] Status rename(Bytes from, Bytes to);
  [[nodiscard]] Result<bool> renamenx(Bytes from, Bytes to);
  /// Errors: same_key.
  [[nodiscard]] Result<bool> copy(Bytes from, Bytes to, std::optional<std::uint8_t> to_db,
                                  bool replace);
  [[nodiscard]] Result<bool> move(Bytes key, std::uint8_t to_db);

  // The whole database.
  [[nodiscard]] Result<std::optional<std::string>> randomkey();
  /// Keys that match a glob (`*`, `?`, `[a-z]`, `[^a]`, `\x`). Looks at everything.
  [[nodiscard]] Result<std::vector<std::string>> keys(Bytes pattern);

  [[nodiscard]] std::uint8_t db() const noexcept { return db_; }

 private:
  Engine* engine_;
  std::uint8_t db_;
};

/// Redis' glob over bytes, never recursive. Over 1000 stars with more behind them match nothing.
[[nodiscard]] bool glob_match(Bytes pattern, Bytes text) noexcept;

}  // namespace semel
