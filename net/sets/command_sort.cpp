// SORT and SORT_RO: elements of lists, sets and sorted sets, by themselves or by what other keys
// hold.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "engine/kinds/element_keys.hpp"
#include "engine/types/byte_list.hpp"
#include "engine/types/object_limits.hpp"
#include "net/commands/handlers.hpp"
#include "net/objects/object_command.hpp"
#include "net/sets/sort_words.hpp"
#include "semel/hashes.hpp"
#include "semel/limits.hpp"

namespace semel::net {
namespace {

using engine::ByteList;
using engine::Element;
using engine::ObjectEdit;
using engine::ObjectReader;

struct Sorted {
  std::size_t element;  ///< its number
  double number = 0;
  std::size_t weight = 0;  ///< 1 + its number among texts of weights; 0: there is none
};

class Sort {
 public:
  Sort(Call& call, const SortWords& words) noexcept : call_(call), words_(words) {}
  Sort(const Sort&) = delete;
  Sort& operator=(const Sort&) = delete;

  /// False: an error has been written, here and below. Holds what it reads until end().
  [[nodiscard]] bool begin();
  /// Puts the elements in order and chooses those of LIMIT.
  [[nodiscard]] bool arrange();
  void reply();
  void store();

 private:
  [[nodiscard]] bool load(Kind kind);
  void put_in_order();
  void choose();
  [[nodiscard]] bool end();
  /// `value` stays as it is if the place has none. False: see failure_; no error is written.
  [[nodiscard]] bool look_up(std::string_view pattern, Bytes element,
                             std::optional<std::string>& value);
  /// Calls `write(std::optional<Bytes>) -> bool` for each text of the result; false ends it.
  template <class Write>
  [[nodiscard]] bool each_text(Write&& write);

  [[nodiscard]] std::size_t texts() const noexcept {
    return (to_ - from_) * std::max<std::size_t>(words_.gets.size(), 1);
  }
  [[nodiscard]] bool is_by_pattern() const noexcept { return words_.by && !keeps_order_; }

  Call& call_;
  const SortWords& words_;
  std::optional<Section> section_{};
  bool keeps_order_ = false;
  bool is_alpha_ = false;
  bool has_weights_ = false;  // words_.by counts
  ByteList elements_{};
  ByteList weights_{};
  std::vector<Sorted> order_{};
  std::size_t from_ = 0;
  std::size_t to_ = 0;
  ErrorCode failure_ = ErrorCode::ok;  // of a lookup
};

bool Sort::begin() {
  std::vector<KeyRef> keys;
  if (!words_.has_patterns()) {
    keys.push_back({call_.client.db, call_.key()});
    if (words_.target && *words_.target != call_.key()) {
      keys.push_back({call_.client.db, *words_.target});
    }
  }
  Result<Section> section = call_.engine.section(keys);  // without keys: over everything
  if (!section) return call_.fail(section.error()), false;
  section_.emplace(std::move(section).value());
  const auto kind = call_.store().type(call_.key());
  if (!kind.ok()) return call_.fail(kind.error()), false;
  if (!*kind) {
    call_.notify('m', "keymiss", call_.key());
    return true;
  }
  constexpr std::array sortable = {Kind::list, Kind::set, Kind::sorted_set};
  if (std::find(sortable.begin(), sortable.end(), **kind) == sortable.end()) {
    return call_.fail(ErrorCode::wrong_type), false;
  }
  return load(**kind);
}

bool Sort::load(Kind kind) {
  keeps_order_ = words_.keeps_order;
  is_alpha_ = words_.is_alpha;
  has_weights_ = is_by_pattern();
  if (keeps_order_ && kind == Kind::set && (words_.target || call_.context().is_script())) {
    // A set has no order that would be the same everywhere: redis-server makes one.
    keeps_order_ = false;
    is_alpha_ = true;
  }
  const auto take = [&](const Element& element) {
    engine::MemberText text;
    elements_.append(kind == Kind::list  ? element.value
                     : kind == Kind::set ? engine::member_of(element.key, text)
                                         : element.key.substr(engine::score_bytes));
    return true;
  };
  const bool is_backwards = keeps_order_ && words_.is_descending && kind != Kind::set;
  const Status done = engine::read_object(call_.engine, {call_.client.db, call_.key()}, kind,
                                          [&](const ObjectReader& object) {
                                            is_backwards ? object.each_back(0, object.size(), take)
                                                         : object.each(0, object.size(), take);
                                          });
  if (!done) call_.fail(done.error());
  return done.ok();
}

bool Sort::arrange() {
  order_.reserve(elements_.size());
  for (std::size_t i = 0; i < elements_.size(); ++i) order_.push_back({.element = i});
  bool are_numbers = true;
  for (Sorted& item : order_) {
    if (keeps_order_) break;
    std::optional<std::string> weight;
    const Bytes element = elements_.at(item.element);
    if (has_weights_ && !look_up(*words_.by, element, weight)) return call_.fail(failure_), false;
    if (has_weights_ && !weight) continue;
    if (!is_alpha_) {
      const auto number = sort_number(has_weights_ ? Bytes{*weight} : element);
      are_numbers = are_numbers && number.has_value();
      item.number = number.value_or(0);
    } else if (has_weights_) {
      weights_.append(*weight);
      item.weight = weights_.size();
      if (weights_.bytes() > limits::sort_weights_bytes_max) {
        call_.fail("ERR the weights of SORT are limited to " +
                   std::to_string(limits::sort_weights_bytes_max) + " bytes");
        return false;
      }
    }
  }
  if (!are_numbers) {
    call_.fail("ERR One or more scores can't be converted into double");
    return false;
  }
  if (!keeps_order_) put_in_order();
  choose();
  return true;
}

/// Equal numbers are in the order of their elements; equal weights as they came.
void Sort::put_in_order() {
  const auto is_before = [&](const Sorted& a, const Sorted& b) {
    if (is_alpha_ && has_weights_) {
      if (a.weight == 0 || b.weight == 0) return a.weight == 0 && b.weight != 0;
      return weights_.at(a.weight - 1) < weights_.at(b.weight - 1);
    }
    if (!is_alpha_ && a.number != b.number) return a.number < b.number;
    return elements_.at(a.element) < elements_.at(b.element);
  };
  if (words_.is_descending) {
    std::stable_sort(order_.begin(), order_.end(),
                     [&](const Sorted& a, const Sorted& b) { return is_before(b, a); });
  } else {
    std::stable_sort(order_.begin(), order_.end(), is_before);
  }
}

void Sort::choose() {
  const auto size = static_cast<std::int64_t>(order_.size());
  const std::int64_t from = std::clamp<std::int64_t>(words_.offset, 0, size);
  const std::int64_t left = size - from;
  const std::int64_t count = words_.count < 0 ? left : std::min(words_.count, left);
  from_ = static_cast<std::size_t>(from);
  to_ = static_cast<std::size_t>(from + count);
}

bool Sort::look_up(std::string_view pattern, Bytes element, std::optional<std::string>& value) {
  if (pattern == "#") {
    value.emplace(element);
    return true;
  }
  const auto place = sort_place(pattern, element);
  if (!place) return true;
  notify_miss(call_, place->key);
  auto found = place->field ? call_.engine.hashes(call_.client.db).hget(place->key, *place->field)
                            : call_.store().get(place->key);
  if (found.ok()) {
    value = *std::move(found);
    return true;
  }
  // No record can have such a key, or this one is of another kind.
  const ErrorCode code = found.error().code;
  if (code == ErrorCode::wrong_type || code == ErrorCode::key_empty ||
      code == ErrorCode::key_too_long) {
    return true;
  }
  failure_ = code;
  return false;
}

template <class Write>
bool Sort::each_text(Write&& write) {
  for (std::size_t i = from_; i < to_; ++i) {
    const Bytes element = elements_.at(order_[i].element);
    if (words_.gets.empty() && !write(std::optional{element})) return true;
    for (const std::string_view pattern : words_.gets) {
      std::optional<std::string> value;
      if (!look_up(pattern, element, value)) return false;
      if (!write(value ? std::optional<Bytes>{*value} : std::nullopt)) return true;
    }
  }
  return true;
}

bool Sort::end() {
  const Status done = section_->commit();
  section_.reset();
  if (!done) call_.fail(done.error());
  return done.ok();
}

void Sort::reply() {
  const std::size_t begin = call_.reply.size();
  call_.reply.array(texts());
  const bool done = each_text([&](std::optional<Bytes> text) {
    if (call_.reply.room() == 0) call_.reply.cut();
    text ? call_.reply.bulk(*text) : call_.reply.null();
    return !call_.reply.is_cut();
  });
  if (done && call_.reply.is_cut()) return;
  if (done) {
    if (const Status ended = section_->commit(); !ended) failure_ = ended.error().code;
  }
  if (failure_ == ErrorCode::ok) return;
  call_.reply.take_back(begin);
  call_.fail(failure_);
}

void Sort::store() {
  const Bytes target = *words_.target;
  ByteList found;
  std::size_t bytes = 0;
  const bool done = each_text([&](std::optional<Bytes> text) {
    found.append(text.value_or(Bytes{}));
    bytes += 1 + text.value_or(Bytes{}).size();  // an element has its length besides
    return bytes <= limits::value_bytes_max;     // no record is longer, in any engine
  });
  if (!done) return call_.fail(failure_);
  if (bytes > limits::value_bytes_max) return call_.fail(ErrorCode::value_too_long);
  const auto change = engine::replace_object(call_.engine, {call_.client.db, target}, Kind::list,
                                             [&](ObjectEdit& list) {
                                               for (std::size_t i = 0; i < found.size(); ++i)
                                                 list.insert_at(list.size(), found.at(i));
                                               return ErrorCode::ok;
                                             });
  if (!change.ok()) return call_.fail(change.error());
  if (!end()) return;
  if (change->is_new()) call_.notify('n', "new", target);
  if (change->is_there) call_.notify('l', "sortstore", target);
  notify_removed(call_, target, *change);
  call_.reply.integer(static_cast<std::int64_t>(found.size()));
}

void run_sort(Call& call, bool stores) {
  const auto words = sort_words_of(call, stores);
  if (!words) return;
  Sort sort{call, *words};
  if (!sort.begin() || !sort.arrange()) return;
  words->target ? sort.store() : sort.reply();
}

}  // namespace

namespace handlers {

void sort(Call& call) {
  run_sort(call, true);
}
void sort_ro(Call& call) {
  run_sort(call, false);
}

}  // namespace handlers
}  // namespace semel::net
