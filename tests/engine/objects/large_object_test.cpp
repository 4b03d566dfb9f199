// Versions of large objects: those that something names read as they were made, in whatever order
// they go, and in the end no node is left.
#include "engine/objects/large_object.hpp"

#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/kinds/element_keys.hpp"
#include "engine/kinds/stream_keys.hpp"
#include "engine/objects/object_edit.hpp"
#include "tests/support/catch.hpp"

namespace semel::engine {
namespace {

/// Counts what lives, and refuses on demand.
class HeapPool final : public NodePool {
 public:
  ~HeapPool() override {
    for (const Handle handle : live_) std::free(writable(handle));
  }
  Handle allocate(std::size_t bytes) noexcept override {
    if (grants_ == 0) return 0;
    if (grants_ > 0) --grants_;
    const Handle handle = reinterpret_cast<std::uintptr_t>(std::malloc(bytes)) / 8;
    live_.insert(handle);
    return handle;
  }
  void free(Handle handle) noexcept override {
    is_wrong_ |= live_.erase(handle) == 0;
    std::free(writable(handle));
  }
  void set_growing(bool) noexcept override {}
  void grant(int count) { grants_ = count; }
  [[nodiscard]] std::size_t count() const { return live_.size(); }
  [[nodiscard]] bool is_wrong() const { return is_wrong_; }

 private:
  std::set<Handle> live_;
  int grants_ = -1;
  bool is_wrong_ = false;
};

using Model = std::vector<std::pair<std::string, std::string>>;  // in the object's order

struct Held {
  std::string record;
  Model model;
};

class Game {
 public:
  Game(Kind kind, std::uint64_t seed) : kind_(kind), random_(seed) {
    usual_ = 100 + below(900);
    refuses_ = below(2) == 0;
    long_values_ = below(4) == 0;
    has_entries_ = kind_ == Kind::stream && below(4) != 0;
  }

  void play(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      step();
      while (held_.size() > 6) release(below(held_.size()));
      if (!held_.empty() && below(3) == 0) release(below(held_.size()));
      for (const Held& each : held_) compare(each);
      REQUIRE_FALSE(pool_.is_wrong());
    }
    while (!held_.empty()) release(below(held_.size()));
    while (garbage_.free_some(pool_)) {
    }
    CHECK(garbage_.is_empty());
    CHECK(pool_.count() == 0);
    REQUIRE_FALSE(pool_.is_wrong());
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  void step() {
    Held from;
    // Mostly the newest, sometimes an older one, whose change begins a chain of its own.
    const bool has_from = !held_.empty() && below(20) != 0;
    if (has_from) from = held_[below(8) == 0 ? below(held_.size()) : held_.size() - 1];
    if (has_from && below(20) == 0) {  // another name
      if (LargeObject* const object = large_object_of(kind_, from.record)) share(*object);
      held_.push_back(from);
      return;
    }
    std::optional<ObjectEdit> edit;
    has_from ? edit.emplace(from.record, kind_, &pool_) : edit.emplace(kind_, &pool_);
    REQUIRE(edit->is_good());
    if (refuses_ && below(4) == 0) pool_.grant(static_cast<int>(below(20)));
    const std::uint64_t changes = below(3) == 0 ? below(usual_) : below(6);
    for (std::uint64_t i = 0; i < changes; ++i) change(*edit, from.model);
    check_same(*edit, from.model);
    std::string record;
    if (edit->is_changed() && !edit->empty()) {
      const std::size_t bytes = edit->record_bytes();
      edit->write(record);
      pool_.grant(-1);
      if (edit->has_failed()) return;
      CHECK(whole_size(kind_, record) == bytes);
      if (Publication* const publication = edit->publication()) {
        REQUIRE(publication->begin());
        const bool wins = below(5) != 0;
        publication->end(wins);
        if (!wins) return;
      }
      held_.push_back({record, from.model});
    }
    pool_.grant(-1);
  }

  std::string some_value() {
    if (has_entries_ && below(10) != 0) {
      const std::string value(below(20), 'v');
      return "\x05"
             "field" +
             std::string(1, static_cast<char>(value.size())) + value;
    }
    if (long_values_ && below(10) == 0) return std::string(200 + below(700), 'v');
    return std::string(below(12), static_cast<char>('a' + below(20)));
  }

  /// Mostly near one of the ends.
  std::size_t some_rank(std::size_t size) {
    const std::uint64_t how = below(6);
    if (how == 0) return below(size);
    const std::size_t from_end = how < 4 ? 0 : below(std::min<std::size_t>(size, 40));
    return below(2) == 0 ? from_end : size - 1 - from_end;
  }

  void change(ObjectEdit& edit, Model& model) {
    const bool grows = model.size() < usual_ ? below(4) != 0 : below(4) == 0;
    if (!model.empty() && below(200) == 0) {
      const std::size_t from = below(model.size());
      const std::size_t to = from + below(model.size() - from) + 1;
      edit.erase_range(from, to);
      model.erase(place(model, from), place(model, to));
      return;
    }
    if (kind_ == Kind::list) {
      const std::size_t rank = model.empty() ? 0 : some_rank(model.size());
      if (grows || model.empty()) {
        const std::size_t at = below(3) == 0 ? model.size() : rank;
        const std::string value = some_value();
        edit.insert_at(at, value);
        model.insert(place(model, at), {"", value});
      } else if (below(2) == 0) {
        const std::string value = some_value();
        edit.set_at(rank, value);
        model[rank].second = value;
      } else if (below(8) == 0) {  // of the list itself, whose elements move
        const std::size_t from = some_rank(model.size());
        edit.insert_at(rank, edit.at(from).value);
        const std::string value = model[from].second;
        model.insert(place(model, rank), {"", value});
      } else {
        edit.erase_at(rank);
        model.erase(place(model, rank));
      }
      return;
    }
    std::string key = std::to_string(below(usual_ * 2));
    if (long_values_) key.append(std::string(below(2) * 300, 'k'));
    if (has_entries_) key = std::string{Bytes{EntryKey{{below(usual_ / 4 + 1), below(8)}}}};
    if (kind_ == Kind::sorted_set) {  // a member has one score
      if (const auto found = edit.find_suffix(8, key)) {
        const std::string old{found->key};
        CHECK(edit.find_prefix(8, key) == old.substr(0, 8));
        std::erase_if(model, [&](const auto& each) { return each.first == old; });
        if (below(2) == 0) return move(edit, model, old, key);
        CHECK(edit.erase(old));
        if (!grows) return;
      }
      const auto score = encode_score(static_cast<double>(below(50)));
      key.insert(0, score.data(), score.size());
    }
    const auto at = std::lower_bound(model.begin(), model.end(), key,
                                     [](const auto& one, const auto& k) { return one.first < k; });
    const bool is_there = at != model.end() && at->first == key;
    if (!grows) {
      CHECK(edit.erase(key) == is_there);
      if (is_there) model.erase(at);
      return;
    }
    const std::string value = kind_ == Kind::stream ? some_value() : std::string{};
    CHECK(edit.put(key, value) != is_there);
    is_there ? void(at->second = value) : void(model.insert(at, {key, value}));
  }

  void move(ObjectEdit& edit, Model& model, const std::string& old, std::string member) {
    // Mostly far, sometimes to a near place.
    double score = score_of(old) + 0.5;
    if (below(3) != 0) score = static_cast<double>(below(50)) + 0.25;
    if (score == score_of(old)) score += 1;
    const auto prefix = encode_score(score);
    member.insert(0, prefix.data(), prefix.size());
    CHECK(edit.move(old, member));
    CHECK_FALSE(edit.move(old, member));
    const auto at = std::lower_bound(model.begin(), model.end(), member,
                                     [](const auto& one, const auto& k) { return one.first < k; });
    model.insert(at, {member, ""});
  }

  static Model::iterator place(Model& model, std::size_t rank) {
    return model.begin() + static_cast<std::ptrdiff_t>(rank);
  }

  void check_same(const ObjectReader& object, const Model& model) {
    REQUIRE(object.size() == model.size());
    std::size_t rank = 0;
    bool same = true;
    object.each(0, object.size(), [&](const Element& element) {
      same = same && element.key == model[rank].first && element.value == model[rank].second;
      return ++rank, same;
    });
    REQUIRE((same && rank == model.size()));
    object.each_back(0, object.size(), [&](const Element& element) {
      --rank;
      return same = same && element.key == model[rank].first;
    });
    REQUIRE((same && rank == 0));
    for (int i = 0; i < 10 && !model.empty(); ++i) {
      const std::size_t at = below(model.size());
      const auto& [key, value] = model[at];
      REQUIRE(object.at(at).value == value);
      if (kind_ == Kind::list) continue;
      REQUIRE(object.rank(key) == at);
      REQUIRE(object.find(key) == Bytes{value});
      if (kind_ != Kind::sorted_set) continue;
      REQUIRE(object.find_suffix(8, Bytes{key}.substr(8))->key == key);
    }
  }

  void compare(const Held& held) {
    check_same({held.record, kind_}, held.model);
    std::string scratch;
    const Bytes whole = whole_bytes(kind_, held.record, scratch);
    REQUIRE(is_sound(whole, parts_of(kind_)));
    check_same({whole, kind_}, held.model);
    const LargeObject* const object = large_object_of(kind_, held.record);
    if (object == nullptr) return;
    const char* const wrong = object->tree().check_invariants(kind_ != Kind::list);
    INFO((wrong == nullptr ? "" : wrong));
    REQUIRE(wrong == nullptr);
    REQUIRE(object->index_tree().check_invariants() == nullptr);
    const bool has_index = kind_ == Kind::sorted_set;
    REQUIRE(object->index_tree().size().elements == (has_index ? held.model.size() : 0));
  }

  void release(std::size_t index) {
    if (LargeObject* const object = large_object_of(kind_, held_[index].record)) {
      garbage_.release(*object, pool_);
    }
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  const Kind kind_;
  std::mt19937_64 random_;
  HeapPool pool_;
  LargeObjectGarbage garbage_;
  std::vector<Held> held_;
  std::uint64_t usual_;
  bool refuses_;
  bool has_entries_;  // keys and values of a stream's entries
  bool long_values_;
};

}  // namespace

TEST_CASE("large objects: each version that is named reads as it was made, and none is left",
          "[objects]") {
  for (const Kind kind : {Kind::list, Kind::set, Kind::sorted_set, Kind::stream}) {
    for (std::uint64_t round = 0; round < 12; ++round) {
      const std::uint64_t seed = Catch::rngSeed() + round;
      INFO(name_of(kind) << ", the round's seed " << seed);
      Game{kind, seed}.play(60);
    }
  }
}

}  // namespace semel::engine
