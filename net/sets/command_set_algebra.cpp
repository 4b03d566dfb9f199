// Several sets at once: SINTER, SUNION, SDIFF and what stores their results.
#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/types/byte_list.hpp"
#include "engine/types/set_algebra.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"
#include "net/sets/set_reply.hpp"
#include "semel/limits.hpp"

namespace semel::net {
namespace {

using engine::ByteList;
using engine::ObjectEdit;
using engine::ObjectReader;
using engine::TakeKey;
using Keys = std::span<const std::string_view>;

enum class SetVerb : std::uint8_t { intersect, unite, subtract };

/// The sets of one call, which do not change while this lives.
class Operands {
 public:
  explicit Operands(Call& call) noexcept : call_(call) {}
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  /// False: an error has been written. `target`: of a result that is stored.
  [[nodiscard]] bool open(Keys keys, std::optional<Bytes> target) {
    keys_ = keys;
    std::vector<KeyRef> refs;
    refs.reserve(keys.size() + 1);
    for (const Bytes key : keys) refs.push_back({call_.client.db, key});
    if (target) refs.push_back({call_.client.db, *target});
    std::sort(refs.begin(), refs.end(),
              [](const KeyRef& a, const KeyRef& b) { return a.key < b.key; });
    refs.erase(std::unique(refs.begin(), refs.end(),
                           [](const KeyRef& a, const KeyRef& b) { return a.key == b.key; }),
               refs.end());
    Result<Section> section = call_.engine.section(refs);
    if (!section) return call_.fail(section.error()), false;
    section_.emplace(std::move(section).value());
    return look();
  }

  /// False: an error has been written.
  [[nodiscard]] bool compute(SetVerb verb, const TakeKey& take) {
    const engine::ReadSet read = [this](std::size_t i, const auto& look) {
      return read_one(keys_[i], look);
    };
    const bool is_empty = std::find(sizes_.begin(), sizes_.end(), std::size_t{0}) != sizes_.end();
    switch (verb) {
      case SetVerb::intersect:
        return is_empty || engine::intersect(sizes_, read, take);
      case SetVerb::unite:
        forget_repeats();
        return engine::unite(sizes_, read, take);
      case SetVerb::subtract:
        return engine::subtract(sizes_, read, take);
    }
    return true;
  }

  /// False: an error has been written. Events come behind it.
  [[nodiscard]] bool end() {
    const Status done = section_->commit();
    section_.reset();
    if (!done) call_.fail(done.error());
    return done.ok();
  }

 private:
  /// Sizes, kinds and misses, in the order of the keys.
  bool look() {
    sizes_.reserve(keys_.size());
    for (const Bytes key : keys_) {
      std::size_t size = 0;
      if (!read_one(key, [&size](const ObjectReader& set) { size = set.size(); })) return false;
      if (size == 0) call_.notify('m', "keymiss", key);
      sizes_.push_back(size);
    }
    return true;
  }
  bool read_one(Bytes key, const Function<void(const ObjectReader&)>& look) {
    const Status done =
        engine::read_object_by(call_.engine, {call_.client.db, key}, Kind::set, look);
    if (!done) call_.fail(done.error());
    return done.ok();
  }
  /// A union reads a set once, however often the words name it.
  void forget_repeats() {
    std::vector<std::size_t> order(keys_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return keys_[a] < keys_[b]; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (keys_[order[i]] == keys_[order[i - 1]]) sizes_[order[i]] = 0;
    }
  }

  Call& call_;
  Keys keys_{};
  std::vector<std::size_t> sizes_{};
  std::optional<Section> section_{};
};

void reply_with_sets(Call& call, SetVerb verb) {
  Operands sets{call};
  if (!sets.open(call.args.subspan(1), std::nullopt)) return;
  const std::size_t bytes_max = call.reply.room() / 2;  // they are held here and in the reply
  ByteList found;
  const bool done = sets.compute(verb, [&](Bytes key) {
    found.append(key);
    if (found.bytes() > bytes_max) call.reply.cut();
    return !call.reply.is_cut();
  });
  if (!done || !sets.end() || call.reply.is_cut()) return;
  call.reply.set(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!write_member(call.reply, found.at(i))) return;
  }
}

void store_sets(Call& call, SetVerb verb, std::string_view event) {
  const Bytes target = call.key();
  Operands sets{call};
  if (!sets.open(call.args.subspan(2), target)) return;
  ByteList found;
  std::size_t bytes = 0;
  const bool done = sets.compute(verb, [&](Bytes key) {
    found.append(key);
    bytes += key.size();
    return bytes <= limits::value_bytes_max;  // no record is longer, in any engine
  });
  if (!done) return;
  if (bytes > limits::value_bytes_max) return call.fail(ErrorCode::value_too_long);
  const auto change = engine::replace_object(call.engine, {call.client.db, target}, Kind::set,
                                             [&](ObjectEdit& set) {
                                               for (std::size_t i = 0; i < found.size(); ++i) {
                                                 set.put(found.at(i));
                                               }
                                               return ErrorCode::ok;
                                             });
  if (!change.ok()) return call.fail(change.error());
  if (!sets.end()) return;
  if (change->is_new()) call.notify('n', "new", target);
  if (change->is_there) call.notify('s', event, target);
  notify_removed(call, target, *change);
  call.reply.integer(static_cast<std::int64_t>(found.size()));
}

/// The words of SINTERCARD. None: an error has been written.
struct CountWords {
  Keys keys{};
  std::size_t limit = 0;  ///< 0: none
};

std::optional<CountWords> count_words_of(Call& call) {
  const auto fail = [&](std::string_view text) {
    call.fail(text);
    return std::nullopt;
  };
  const auto number = integer_of(call.args[1]);
  if (!number || *number < 1) return fail("ERR numkeys should be greater than 0");
  Keys rest = call.args.subspan(2);
  if (static_cast<std::uint64_t>(*number) > rest.size()) {
    return fail("ERR Number of keys can't be greater than number of args");
  }
  CountWords words{.keys = rest.first(static_cast<std::size_t>(*number))};
  for (rest = rest.subspan(words.keys.size()); !rest.empty(); rest = rest.subspan(2)) {
    if (rest.size() < 2 || !is_word(rest[0], "limit")) return fail("ERR syntax error");
    const auto limit = integer_of(rest[1]);
    if (!limit || *limit < 0) return fail("ERR LIMIT can't be negative");
    words.limit = static_cast<std::size_t>(*limit);
  }
  return words;
}

}  // namespace

namespace handlers {

void sinter(Call& call) {
  reply_with_sets(call, SetVerb::intersect);
}
void sunion(Call& call) {
  reply_with_sets(call, SetVerb::unite);
}
void sdiff(Call& call) {
  reply_with_sets(call, SetVerb::subtract);
}

void sinterstore(Call& call) {
  store_sets(call, SetVerb::intersect, "sinterstore");
}
void sunionstore(Call& call) {
  store_sets(call, SetVerb::unite, "sunionstore");
}
void sdiffstore(Call& call) {
  store_sets(call, SetVerb::subtract, "sdiffstore");
}

void sintercard(Call& call) {
  const auto words = count_words_of(call);
  if (!words) return;
  Operands sets{call};
  if (!sets.open(words->keys, std::nullopt)) return;
  std::size_t count = 0;
  const bool done =
      sets.compute(SetVerb::intersect, [&](Bytes) { return ++count != words->limit; });
  if (done && sets.end()) call.reply.integer(static_cast<std::int64_t>(count));
}

}  // namespace handlers
}  // namespace semel::net
