// The tree of a large object beside std::map: every answer, every version, and no node lost or
// freed twice, also where memory ends in the middle of a change.
#include "engine/objects/tree_edit.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace semel::tests {

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

class Game {
 public:
  explicit Game(std::uint64_t seed) : random_(seed) {
    keys_ = std::uint64_t{1} << below(13);
    style_ = below(4);
    put_percent_ = 20 + below(70);
    refuses_ = below(3) == 0;
  }

  void play(int edits) {
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

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  /// Numbers as text, in order as text, behind a long prefix, and long themselves.
  std::string some_key() {
    const std::uint64_t number = below(keys_);
    const std::string text = std::to_string(number);
    switch (style_) {
      case 0:
        return text;
      case 1:
        return std::string(8 - text.size(), '0') + text;
      case 2:
        return std::string(300, 'p') + text;
      default:
        return std::string(number % 700, 'x') + text;
    }
  }
  std::string some_value() {
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
      TreeEdit edit{heap_, root_, ++stamp_};
      for (std::uint64_t left = below(4) == 0 ? below(300) : below(4); left > 0; --left) {
        if (refuses_ && below(4) == 0) heap_.grant(static_cast<int>(below(6)));
        below(100) < put_percent_ ? put(edit) : erase(edit);
        heap_.grant(-1);
      }
      if (below(40) == 0) {
        REQUIRE(edit.clear());
        model_.clear();
      }
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
    const std::string key = some_key();
    const std::string value = some_value();
    const TreeChange change = edit.put(key, value);
    if (change == TreeChange::no_memory) return;
    const auto [at, is_new] = model_.try_emplace(key, value);
    TreeChange wanted = TreeChange::added;
    if (!is_new) wanted = at->second == value ? TreeChange::nothing : TreeChange::replaced;
    REQUIRE(change == wanted);
    at->second = value;
  }

  void erase(TreeEdit& edit) {
    const std::string key = some_key();
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
    for (int i = 0; i < 10; ++i) REQUIRE(finds(tree, model, some_key()));
  }

  /// Forward, and backward again.
  static bool has_all(const Tree& tree, const Model& model) {
    std::uint64_t payload = 0;
    TreeCursor cursor = tree.at(0);
    for (const auto& [key, value] : model) {
      if (!cursor.has_element()) return false;
      if (cursor.element().key != key || cursor.element().value != value) return false;
      payload += key.size() + value.size();
      cursor.next();
    }
    if (cursor.has_element() || payload != tree.size().payload) return false;
    for (auto at = model.rbegin(); at != model.rend(); ++at) {
      if (!cursor.previous() || cursor.element().key != at->first) return false;
    }
    return !cursor.previous();
  }

  static bool finds(const Tree& tree, const Model& model, const std::string& key) {
    const auto at = model.lower_bound(key);
    const auto rank = static_cast<std::uint64_t>(std::distance(model.begin(), at));
    if (tree.rank(key) != rank) return false;
    for (const TreeCursor& cursor : {tree.lower_bound(key), tree.at(rank)}) {
      if (cursor.has_element() != (at != model.end())) return false;
      if (cursor.has_element() && cursor.element().key != at->first) return false;
    }
    const auto found = tree.find(key);
    if (!found) return !model.contains(key);
    return model.contains(key) && *found == model.at(key);
  }

  std::mt19937_64 random_;
  Heap heap_;
  Model model_;
  Handle root_ = 0;
  std::uint64_t stamp_ = 0;
  std::uint64_t keys_;
  std::uint64_t style_;
  std::uint64_t put_percent_;
  bool refuses_;
};

}  // namespace

TEST_CASE("tree: every version answers as std::map does, also where memory ends", "[objects]") {
  for (std::uint64_t round = 0; round < 24; ++round) {
    const std::uint64_t seed = Catch::rngSeed() + round;
    INFO("round's seed " << seed);
    Game{seed}.play(40);
  }
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
