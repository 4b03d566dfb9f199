// The tree of a large object beside std::map: every answer, every version, and no node lost or
// freed twice, also where memory ends in the middle of a change.
#include "engine/objects/tree_edit.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory_resource>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/kinds/stream_keys.hpp"
#include "engine/objects/tree_builder.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {

using engine::EntryRoom;
using engine::Handle;
using engine::NodeMemory;
using engine::Tree;
using engine::TreeChange;
using engine::TreeCursor;
using engine::TreeEdit;

namespace {

using Model = std::map<std::string, std::string>;

/// Counts what lives, and refuses on demand.
class Heap final : public NodeMemory {
 public:
  Heap() : NodeMemory(nullptr) {}
  ~Heap() override {
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
  bool reserve_retired(std::size_t) noexcept override { return grants_ != 0; }
  void retire(Handle handle) noexcept override {
    is_wrong_ |= !live_.contains(handle);
    retired_.push_back(handle);
  }

  /// All readers have left.
  void collect() {
    for (const Handle handle : retired_) free(handle);
    retired_.clear();
  }
  /// So many more nodes; -1: any number.
  void grant(int count) { grants_ = count; }
  [[nodiscard]] bool is_empty() const { return live_.empty(); }
  /// A node was freed twice, or was none.
  [[nodiscard]] bool is_wrong() const { return is_wrong_; }

 private:
  std::set<Handle> live_;
  std::vector<Handle> retired_;
  int grants_ = -1;
  bool is_wrong_ = false;
};

/// How many leaves of a tree have a stream's entries alone, and how many entries these are.
struct EntryLeaves {
  std::uint64_t leaves = 0;
  std::uint64_t entries = 0;
};
EntryLeaves entry_leaves(const NodeMemory& memory, Handle handle) {
  if (handle == 0) return {};
  const engine::TreeNode node{memory, handle};
  if (node.is_entry_leaf()) return {1, node.entries()};
  EntryLeaves all;
  for (unsigned i = 0; !node.is_leaf() && i < node.entries(); ++i) {
    const EntryLeaves below = entry_leaves(memory, node.child(i).node);
    all.leaves += below.leaves;
    all.entries += below.entries;
  }
  return all;
}

class Game {
 public:
  enum Style : std::uint64_t { text, padded, prefixed, long_text, stream, styles };

  explicit Game(std::uint64_t seed, std::optional<Style> style = {}) : random_(seed) {
    keys_ = std::uint64_t{1} << below(13);
    style_ = style.value_or(static_cast<Style>(below(styles)));
    put_percent_ = style_ == stream ? 50 + below(45) : 20 + below(70);
    refuses_ = below(3) == 0;
    shares_ms_ = below(4);
    word_bytes_ = std::size_t{1} << below(8);
  }

  void play(int edits) {
    if (style_ == stream && below(2) == 0) build();
    for (int i = 0; i < edits; ++i) {
      edit();
      REQUIRE_FALSE(heap_.is_wrong());
    }
    TreeEdit last{heap_, root_, ++stamp_};
    REQUIRE(last.clear());
    last.commit();
    heap_.collect();
    REQUIRE(heap_.is_empty());
  }
  /// Of all versions.
  [[nodiscard]] std::uint64_t entry_leaves_seen() const { return entry_leaves_; }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  /// Numbers as text, in order as text, behind a long prefix, and long themselves.
  std::string some_key() {
    const std::uint64_t number = below(keys_);
    const std::string digits = std::to_string(number);
    switch (style_) {
      case text:
        return digits;
      case padded:
        return std::string(8 - digits.size(), '0') + digits;
      case prefixed:
        return std::string(300, 'p') + digits;
      case stream:
        return some_stream_key(digits);
      default:
        return std::string(number % 700, 'x') + digits;
    }
  }
  /// A key of any section, and some that no stream has.
  std::string some_stream_key(const std::string& digits) {
    using engine::StreamSection;
    switch (below(24)) {
      case 0:
        return engine::section_key(StreamSection::head);
      case 1:
        return engine::section_key(below(2) == 0 ? StreamSection::entries : StreamSection::groups);
      case 2:
        return engine::group_key("g" + digits);
      case 3:
        return engine::pending_key("g", {1, below(100)});
      case 4:
        return engine::section_key(StreamSection::entries) + digits;
      default:
        return std::string{Bytes{engine::EntryKey{{below(last_.ms + 2), below(6)}}}};
    }
  }
  std::string next_entry() {
    if (below(1'000) == 0) last_.ms += std::uint64_t{1} << below(40);
    const bool is_later = below(4) >= shares_ms_;
    last_ = is_later ? engine::StreamId{last_.ms + 1, below(3) == 0 ? random_() : 0}
                     : engine::StreamId{last_.ms, last_.seq + 1 + below(2) * below(300)};
    return std::string{Bytes{engine::EntryKey{last_}}};
  }
  /// Fields with their values, mostly the same fields; and bytes that are none.
  std::string some_fields() {
    const std::uint64_t choice = below(40);
    if (choice == 0) return std::string(240 + below(40), 'v');
    if (choice == 1) return std::string(below(4), static_cast<char>(below(256)));
    const std::uint64_t fields = choice == 2 ? below(4) : 1 + shares_ms_ % 3;
    std::string value;
    for (std::uint64_t i = 0; i < fields; ++i) {
      base::put_prefixed(value, choice == 3 ? "other" : "field " + std::to_string(i));
      const std::string word(below(word_bytes_), static_cast<char>(below(256)));
      base::put_prefixed(value, word);
    }
    if (choice == 4 && !value.empty()) value.pop_back();
    if (choice == 5)
      value = std::string{
          "\x01"
          "f\x81\x00v",
          5};  // a length in a longer form
    return value;
  }
  void build() {
    model_[engine::section_key(engine::StreamSection::head)] = "head";
    for (std::uint64_t left = below(500); left > 0; --left) model_[next_entry()] = some_fields();
    for (std::uint64_t left = below(100); left > 0; --left) model_[some_key()] = some_fields();
    engine::TreeBuilder builder{heap_, ++stamp_, engine::TreeBuilder::Of::stream};
    if (refuses_) heap_.grant(static_cast<int>(below(30)));
    bool done = true;
    for (const auto& [key, value] : model_) done = done && builder.add(key, value);
    done = done && builder.finish(root_);
    heap_.grant(-1);
    if (!done) model_.clear(), root_ = 0;
    compare({heap_, root_}, model_);
  }
  std::string some_value() {
    if (style_ == stream) return some_fields();
    const std::uint64_t choice = below(20);
    if (choice == 0) return std::string(below(3'000), 'v');
    if (choice < 3) return {};
    return std::string(below(30), static_cast<char>('a' + below(3)));
  }

  void edit() {
    const Model before = model_;
    const Handle old = root_;
    const bool is_taken_back = below(6) == 0;
    {
      TreeEdit edit{heap_, root_, ++stamp_, std::pmr::get_default_resource(), style_ == stream};
      for (std::uint64_t left = below(4) == 0 ? below(300) : below(4); left > 0; --left) {
        if (refuses_ && below(4) == 0) heap_.grant(static_cast<int>(below(6)));
        below(100) < put_percent_ ? put(edit) : erase(edit);
        heap_.grant(-1);
      }
      if (below(40) == 0) {
        REQUIRE(edit.clear());
        model_.clear();
      }
      if (below(2) == 0) edit.trim();
      compare(edit.tree(), model_);
      if (is_taken_back) {
        model_ = before;
      } else {
        root_ = edit.root();
        edit.commit();
      }
    }
    compare({heap_, old}, before);  // nobody has seen it change
    heap_.collect();
    compare({heap_, root_}, model_);
  }

  void put(TreeEdit& edit) {
    const std::string key = style_ == stream && below(8) != 0 ? next_entry() : some_key();
    const std::string value = some_value();
    const TreeChange change = edit.put(key, value);
    if (change == TreeChange::no_memory) return;
    const auto [at, is_new] = model_.try_emplace(key, value);
    TreeChange wanted = TreeChange::added;
    if (!is_new) wanted = at->second == value ? TreeChange::nothing : TreeChange::replaced;
    REQUIRE(change == wanted);
    at->second = value;
  }

  /// Mostly from the front, as a stream is trimmed.
  void erase_at_front(TreeEdit& edit) {
    for (std::uint64_t left = below(80); left > 0 && model_.size() > 2; --left) {
      const std::uint64_t rank = below(10) == 0 ? below(model_.size()) : 1;
      engine::TreeElementBytes bytes;
      if (edit.erase_at(rank, bytes) == TreeChange::no_memory) return;
      const auto gone = std::next(model_.begin(), static_cast<std::ptrdiff_t>(rank));
      REQUIRE(bytes.key == gone->first.size());
      REQUIRE(bytes.value == gone->second.size());
      model_.erase(gone);
    }
  }

  void erase(TreeEdit& edit) {
    if (style_ == stream && below(20) == 0) return erase_at_front(edit);
    std::string key = some_key();
    if (below(2) == 0) {
      const auto at = model_.lower_bound(key);
      if (at != model_.end()) key = at->first;
    }
    const TreeChange change = edit.erase(key);
    if (change == TreeChange::no_memory) return;
    REQUIRE(change == (model_.erase(key) == 1 ? TreeChange::erased : TreeChange::nothing));
  }

  void compare(const Tree& tree, const Model& model) {
    const char* const wrong = tree.check_invariants();
    INFO((wrong == nullptr ? "" : wrong));
    REQUIRE(wrong == nullptr);
    REQUIRE(tree.size().elements == model.size());
    REQUIRE(has_all(tree, model));
    entry_leaves_ += entry_leaves(heap_, tree.root()).leaves;
    for (int i = 0; i < 10; ++i) REQUIRE(finds(tree, model, some_key()));
  }

  /// Forward, and backward again.
  static bool has_all(const Tree& tree, const Model& model) {
    std::uint64_t payload = 0;
    TreeCursor cursor = tree.at(0);
    EntryRoom room;
    for (const auto& [key, value] : model) {
      if (!cursor.has_element()) return false;
      const engine::TreeElement element = cursor.element(room);
      if (element.key != key || element.value != value) return false;
      payload += key.size() + value.size();
      cursor.next();
    }
    if (cursor.has_element() || payload != tree.size().payload) return false;
    for (auto at = model.rbegin(); at != model.rend(); ++at) {
      if (!cursor.previous() || cursor.element(room).key != at->first) return false;
    }
    return !cursor.previous();
  }

  static bool finds(const Tree& tree, const Model& model, const std::string& key) {
    const auto at = model.lower_bound(key);
    const auto rank = static_cast<std::uint64_t>(std::distance(model.begin(), at));
    if (tree.rank(key) != rank) return false;
    EntryRoom room;
    for (const TreeCursor& cursor : {tree.lower_bound(key), tree.at(rank)}) {
      if (cursor.has_element() != (at != model.end())) return false;
      if (cursor.has_element() && cursor.element(room).key != at->first) return false;
    }
    const auto found = tree.find(key, room);
    if (!found) return !model.contains(key);
    return model.contains(key) && *found == model.at(key);
  }

  std::mt19937_64 random_;
  Heap heap_;
  Model model_;
  Handle root_ = 0;
  std::uint64_t stamp_ = 0;
  std::uint64_t keys_;
  Style style_;
  std::uint64_t put_percent_;
  bool refuses_;
  // Of a stream.
  engine::StreamId last_{1, 0};
  std::uint64_t shares_ms_;
  std::size_t word_bytes_;
  std::uint64_t entry_leaves_ = 0;
};

}  // namespace

TEST_CASE("tree: every version answers as std::map does, also where memory ends", "[objects]") {
  for (std::uint64_t round = 0; round < 24; ++round) {
    const std::uint64_t seed = Catch::rngSeed() + round;
    INFO("round's seed " << seed);
    Game{seed}.play(40);
  }
}

TEST_CASE("tree: a stream's versions answer as std::map does, also where memory ends",
          "[objects][stream]") {
  std::uint64_t leaves = 0;
  for (std::uint64_t round = 0; round < 24; ++round) {
    const std::uint64_t seed = Catch::rngSeed() + round;
    INFO("round's seed " << seed);
    Game game{seed, Game::stream};
    game.play(100);
    leaves += game.entry_leaves_seen();
  }
  CHECK(leaves > 1'000);  // else nothing was looked at
}

TEST_CASE("tree: entries of a stream that come in order take little more than their values",
          "[objects][stream]") {
  using engine::EntryKey;
  constexpr std::uint64_t entries = 32'000;
  Heap heap;
  TreeEdit edit{heap, 0, 1, std::pmr::get_default_resource(), true};
  const std::string head = engine::section_key(engine::StreamSection::head);
  const std::string group = engine::group_key("g");
  const bool has_groups = GENERATE(false, true);
  REQUIRE(edit.put(head, std::string(40, 'h')) == TreeChange::added);
  if (has_groups) {
    for (int i = 0; i < 40; ++i) {
      REQUIRE(edit.put(group + std::to_string(i), std::string(24, 'g')) == TreeChange::added);
    }
  }
  for (std::uint64_t i = 0; i < entries; ++i) {
    std::string value;
    base::put_prefixed(value, "the field's name");
    base::put_prefixed(value, std::string(7, 'v'));
    const EntryKey key{{1'700'000'000'000 + i / 10, i % 10}};
    REQUIRE(edit.put(key, value) == TreeChange::added);
    REQUIRE(edit.put(head, std::string(32, 'h') + std::to_string(10'000'000 + i)) ==
            TreeChange::replaced);
  }
  edit.trim();
  std::uint64_t bytes = 0;
  std::uint64_t leaves = 0;
  const auto count = [&](const auto& self, Handle handle) -> void {
    const engine::TreeNode node{heap, handle};
    bytes += node.head().room;
    leaves += node.is_leaf() ? 1 : 0;
    for (unsigned i = 0; !node.is_leaf() && i < node.entries(); ++i) {
      self(self, node.child(i).node);
    }
  };
  count(count, edit.root());
  const EntryLeaves packed = entry_leaves(heap, edit.root());
  INFO(bytes << " bytes, " << leaves << " leaves");
  CHECK(packed.entries >= entries - engine::tree_entries_max);
  CHECK(packed.leaves == packed.entries / engine::tree_entries_max);
  CHECK(leaves <= packed.leaves + 4);
  CHECK(bytes * 10 < entries * 145);  // 7 of it are the value
  // A leaf of the head alone: a change of it copies no entry.
  engine::TreeNode first{heap, edit.root()};
  while (!first.is_leaf()) first = {heap, first.child(0).node};
  CHECK(first.entries() == 1);
}

TEST_CASE("tree: keys are in the order of their bytes, however much of two is the same",
          "[objects]") {
  std::mt19937_64 random{Catch::rngSeed()};
  for (int round = 0; round < 20'000; ++round) {
    std::string one(random() % 40, '\0');
    for (char& c : one) c = static_cast<char>(random() % 3 - 1);  // -1 is above all others
    std::string other = one.substr(0, random() % (one.size() + 1));
    while (random() % 4 != 0) other.push_back(static_cast<char>(random()));
    INFO("lengths " << one.size() << " and " << other.size());
    REQUIRE(engine::SoughtKey{one}.is_below(other) == (Bytes{one} < Bytes{other}));
    REQUIRE(engine::SoughtKey{other}.is_below(one) == (Bytes{other} < Bytes{one}));
    REQUIRE_FALSE(engine::SoughtKey{one}.is_below(one));
  }
}

TEST_CASE("tree: keys that come in order fill their nodes", "[objects]") {
  constexpr std::uint64_t elements = 32'000;
  Heap heap;
  TreeEdit edit{heap, 0, 1};
  for (std::uint64_t i = 0; i < elements; ++i) {
    char key[16];
    std::snprintf(key, sizeof key, "%08llu", static_cast<unsigned long long>(i));
    REQUIRE(edit.put(key, "") == TreeChange::added);
  }
  std::uint64_t leaves = 0;
  const auto count = [&](const auto& self, Handle handle) -> void {
    const engine::TreeNode node{heap, handle};
    leaves += node.is_leaf() ? 1 : 0;
    for (unsigned i = 0; !node.is_leaf() && i < node.entries(); ++i) {
      self(self, node.child(i).node);
    }
  };
  count(count, edit.root());
  REQUIRE(leaves == elements / engine::tree_entries_max);
}

TEST_CASE("tree: a sought key is above and below the keys that its bytes are", "[objects]") {
  std::mt19937_64 random{Catch::rngSeed()};
  const auto some_key = [&random] {
    std::string key(random() % 11, '\0');
    constexpr std::array<char, 4> bytes{'\0', '\1', '\x7f', '\xff'};  // so that many begin alike
    for (char& byte : key) byte = bytes[random() % bytes.size()];
    return key;
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::string one = some_key();
    const std::string other = random() % 4 == 0 ? one + some_key() : some_key();
    const engine::SoughtKey sought{one};
    REQUIRE(sought.is_above(other) == (Bytes{one} > Bytes{other}));
    REQUIRE(sought.is_below(other) == (Bytes{one} < Bytes{other}));
  }
}

TEST_CASE("tree: a change copies one path, and an edit of many changes copies it once",
          "[objects]") {
  Heap heap;
  TreeEdit first{heap, 0, 1};
  for (int i = 0; i < 5'000; ++i) {
    REQUIRE(first.put(std::to_string(i), "v") == TreeChange::added);
  }
  const Handle root = first.root();
  const unsigned levels = engine::TreeNode{heap, root}.head().level + 1U;
  first.commit();
  heap.grant(static_cast<int>(levels));
  TreeEdit one{heap, root, 2};
  REQUIRE(one.put("17", "w") == TreeChange::replaced);
  for (int i = 0; i < 100; ++i) {
    heap.grant(1);  // at most a leaf with room: the others it has made, and changes in place
    REQUIRE(one.put("17", std::to_string(i)) == TreeChange::replaced);
  }
}

}  // namespace semel::tests
