// The tree of a large list, by ranks, beside a vector: values of all lengths, whole parts of a
// leaf, memory that ends in the middle of a change, and how full its leaves are.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/objects/tree_builder.hpp"
#include "engine/objects/tree_edit.hpp"
#include "tests/support/catch.hpp"

namespace semel::engine {
namespace {

using ListModel = std::vector<std::string>;

/// Counts what lives, and refuses on demand.
class ListNodes final : public NodeMemory {
 public:
  ListNodes() : NodeMemory(nullptr) {}
  ~ListNodes() override {
    for (const Handle handle : live) std::free(writable(handle));
  }
  Handle allocate(std::size_t bytes) noexcept override {
    if (left == 0) return 0;
    if (left > 0) --left;
    const Handle handle = reinterpret_cast<std::uintptr_t>(std::malloc(bytes)) / 8;
    live.insert(handle);
    return handle;
  }
  void free(Handle handle) noexcept override {
    is_wrong |= live.erase(handle) == 0;
    std::free(writable(handle));
  }
  bool reserve_retired(std::size_t) noexcept override { return left != 0; }
  void retire(Handle handle) noexcept override { retired.push_back(handle); }
  void collect() {
    for (const Handle handle : retired) free(handle);
    retired.clear();
  }

  std::set<Handle> live;
  std::vector<Handle> retired;
  int left = -1;
  bool is_wrong = false;
};

void compare_list(const Tree& tree, const ListModel& model) {
  const char* const wrong = tree.check_invariants(false);
  INFO((wrong == nullptr ? "" : wrong));
  REQUIRE(wrong == nullptr);
  REQUIRE(tree.size().elements == model.size());
  std::uint64_t payload = 0;
  TreeCursor at = tree.at(0);
  bool is_same = true;
  for (const std::string& value : model) {
    is_same = is_same && at.has_element() && at.element().value == value;
    payload += value.size();
    if (is_same) at.next();
  }
  REQUIRE(is_same);
  REQUIRE(tree.size().payload == payload);
}

class ListGame {
 public:
  explicit ListGame(std::uint64_t seed) : random_(seed) {
    longest_ = std::size_t{1} << below(10);
    put_percent_ = 30 + below(60);
    refuses_ = below(3) == 0;
  }

  void play(int edits) {
    if (below(2) == 0) build();
    for (int i = 0; i < edits; ++i) {
      edit();
      REQUIRE_FALSE(nodes_.is_wrong);
    }
    TreeEdit last{nodes_, root_, ++stamp_};
    REQUIRE(last.clear());
    last.commit();
    nodes_.collect();
    REQUIRE(nodes_.live.empty());
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  std::string some_value() {
    // A length takes a byte up to 254; a longer value lies in a run.
    const std::size_t bytes = below(8) == 0 ? 250 + below(10) : below(longest_ + 1);
    return std::string(bytes, static_cast<char>('a' + below(26)));
  }

  void build() {
    for (std::uint64_t left = below(3'000); left > 0; --left) model_.push_back(some_value());
    TreeBuilder builder{nodes_, ++stamp_, TreeBuilder::Of::list};
    if (refuses_) nodes_.left = static_cast<int>(below(30));
    bool done = true;
    for (const std::string& value : model_) done = done && builder.add({}, value);
    done = done && builder.finish(root_);
    nodes_.left = -1;
    if (!done) model_.clear(), root_ = 0;
    compare_list({nodes_, root_}, model_);
  }

  void edit() {
    const ListModel before = model_;
    const Handle old = root_;
    const bool is_taken_back = below(6) == 0;
    {
      TreeEdit edit{nodes_, root_, ++stamp_};
      for (std::uint64_t left = below(4) == 0 ? below(300) : below(4); left > 0; --left) {
        if (refuses_ && below(4) == 0) nodes_.left = static_cast<int>(below(6));
        below(100) < put_percent_ ? put(edit) : erase(edit);
        nodes_.left = -1;
      }
      if (below(2) == 0) edit.trim();
      compare_list(edit.tree(), model_);
      if (is_taken_back) {
        model_ = before;
      } else {
        root_ = edit.root();
        edit.commit();
      }
    }
    compare_list({nodes_, old}, before);  // nobody has seen it change
    nodes_.collect();
    compare_list({nodes_, root_}, model_);
  }

  void put(TreeEdit& edit) {
    if (below(3) == 0) return put_some(edit);
    const std::string value = some_value();
    if (below(3) == 0 && !model_.empty()) {
      const std::uint64_t rank = below(model_.size());
      const TreeChange change = edit.set_at(rank, value);
      if (change == TreeChange::no_memory) return;
      REQUIRE((change == TreeChange::nothing) == (model_[rank] == value));
      model_[rank] = value;
      return;
    }
    const std::uint64_t rank = below(2) == 0 ? model_.size() : below(model_.size() + 1);
    if (edit.insert_at(rank, value) == TreeChange::no_memory) return;
    model_.insert(model_.begin() + static_cast<std::ptrdiff_t>(rank), value);
  }

  /// As an end of the list does.
  void put_some(TreeEdit& edit) {
    std::string bytes;
    std::vector<std::uint8_t> lengths;
    ListModel values;
    for (std::uint64_t left = 1 + below(32); left > 0; --left) {
      std::string value = some_value();
      if (value.size() >= list_apart_min || bytes.size() + value.size() > 1'024) break;
      lengths.push_back(static_cast<std::uint8_t>(value.size()));
      bytes += value;
      values.push_back(std::move(value));
    }
    if (values.empty()) return;
    const TreeEnd end = below(2) == 0 ? TreeEnd::begin : TreeEnd::end;
    const ListValues all{lengths.data(), bytes.data(), static_cast<unsigned>(values.size()),
                         bytes.size(), false};
    if (edit.insert_values(all, end) == TreeChange::no_memory) return;
    model_.insert(end == TreeEnd::begin ? model_.begin() : model_.end(), values.begin(),
                  values.end());
  }

  void erase(TreeEdit& edit) {
    if (model_.empty()) return;
    if (below(3) == 0) return erase_some(edit);
    const std::uint64_t rank = below(model_.size());
    TreeElementBytes bytes;
    if (edit.erase_at(rank, bytes) == TreeChange::no_memory) return;
    REQUIRE(bytes.value == model_[rank].size());
    model_.erase(model_.begin() + static_cast<std::ptrdiff_t>(rank));
  }

  void erase_some(TreeEdit& edit) {
    const TreeEnd end = below(2) == 0 ? TreeEnd::begin : TreeEnd::end;
    const unsigned most = std::min(edit.leaf_entries(end), static_cast<unsigned>(below(20)));
    unsigned count = 0;
    while (count < most && from_end(end, count).size() < list_apart_min) ++count;
    if (count == 0) return;
    if (edit.erase_values(count, end) == TreeChange::no_memory) return;
    const auto begin = end == TreeEnd::begin ? model_.begin() : model_.end() - count;
    model_.erase(begin, begin + count);
  }
  const std::string& from_end(TreeEnd end, unsigned index) const {
    return end == TreeEnd::begin ? model_[index] : model_[model_.size() - 1 - index];
  }

  std::mt19937_64 random_;
  ListNodes nodes_;
  ListModel model_;
  Handle root_ = 0;
  std::uint64_t stamp_ = 0;
  std::size_t longest_;
  std::uint64_t put_percent_;
  bool refuses_;
};

/// What the leaves take, in sizes of the arena above 1 KiB.
struct LeafSums {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};
LeafSums sums_of(const NodeMemory& nodes, Handle handle) {
  const TreeNode node{nodes, handle};
  if (node.is_leaf()) return {1, (node.head().room + 255) / 256 * 256};
  LeafSums all;
  for (unsigned i = 0; i < node.entries(); ++i) {
    const LeafSums below = sums_of(nodes, node.child(i).node);
    all.count += below.count;
    all.bytes += below.bytes;
  }
  return all;
}

}  // namespace

TEST_CASE("list tree: every version answers as a vector does, also where memory ends",
          "[objects][list]") {
  for (std::uint64_t round = 0; round < 24; ++round) {
    const std::uint64_t seed = Catch::rngSeed() + round;
    INFO("round's seed " << seed);
    ListGame{seed}.play(40);
  }
}

TEST_CASE("list tree: values that come in order at either end fill their leaves",
          "[objects][list]") {
  const std::string bytes(16 * 7, 'v');
  const std::vector<std::uint8_t> lengths(16, 7);
  for (const TreeEnd end : {TreeEnd::begin, TreeEnd::end}) {
    ListNodes nodes;
    TreeEdit edit{nodes, 0, 1};
    constexpr std::uint64_t elements = 64'000;
    for (std::uint64_t i = 0; i < elements / 16; ++i) {
      REQUIRE(edit.insert_values({lengths.data(), bytes.data(), 16, bytes.size(), false}, end) ==
              TreeChange::added);
    }
    const LeafSums leaves = sums_of(nodes, edit.root());
    CHECK(leaves.bytes * 100 <= elements * 840);  // 7 of it are the value
    CHECK(leaves.count == (elements + 245) / 246);
  }
}

TEST_CASE("list tree: values before the same one, the first of a full leaf, share their leaves",
          "[objects][list]") {
  const std::string bytes(16 * 7, 'v');
  const std::vector<std::uint8_t> lengths(16, 7);
  ListNodes nodes;
  TreeEdit edit{nodes, 0, 1};
  ListModel model;
  for (int i = 0; i < 100; ++i) {
    REQUIRE(edit.insert_values({lengths.data(), bytes.data(), 16, bytes.size(), false},
                               TreeEnd::end) == TreeChange::added);
    model.insert(model.end(), 16, std::string(7, 'v'));
  }
  const LeafSums before = sums_of(nodes, edit.root());
  const TreeNode root{nodes, edit.root()};
  std::uint64_t pivot = root.child(0).size.elements + root.child(1).size.elements;
  REQUIRE(root.child(2).size.elements == 246);  // full
  for (int i = 0; i < 300; ++i) {
    const std::string value = std::to_string(1'000'000 + i);
    REQUIRE(edit.insert_at(pivot, value) == TreeChange::added);
    model.insert(model.begin() + static_cast<std::ptrdiff_t>(pivot), value);
    ++pivot;
  }
  compare_list(edit.tree(), model);
  CHECK(sums_of(nodes, edit.root()).count <= before.count + 4);
}

TEST_CASE("list tree: a leaf whose last value goes leaves its neighbour as it is",
          "[objects][list]") {
  const std::string bytes(16 * 7, 'v');
  const std::vector<std::uint8_t> lengths(16, 7);
  ListNodes nodes;
  TreeEdit edit{nodes, 0, 1};
  for (int i = 0; i < 40; ++i) {
    REQUIRE(edit.insert_values({lengths.data(), bytes.data(), 16, bytes.size(), false},
                               TreeEnd::end) == TreeChange::added);
  }
  REQUIRE(sums_of(nodes, edit.root()).count == 3);
  REQUIRE(edit.erase_values(edit.leaf_entries(TreeEnd::end) - 1, TreeEnd::end) ==
          TreeChange::erased);
  REQUIRE(edit.leaf_entries(TreeEnd::end) == 1);
  const Handle neighbour = TreeNode{nodes, edit.root()}.child(1).node;
  REQUIRE(edit.erase_at(edit.tree().size().elements - 1) == TreeChange::erased);
  REQUIRE(sums_of(nodes, edit.root()).count == 2);
  CHECK(TreeNode{nodes, edit.root()}.child(1).node == neighbour);
  compare_list(edit.tree(), ListModel(edit.tree().size().elements, std::string(7, 'v')));
}

TEST_CASE("list tree: a value of 254 bytes lies in its leaf, and one of 255 in a run",
          "[objects][list]") {
  for (const std::size_t bytes : {0U, 1U, 254U, 255U, 256U, 257U, 100'000U}) {
    ListNodes nodes;
    const std::string value(bytes, 'v');
    TreeEdit edit{nodes, 0, 1};
    for (int i = 0; i < 3; ++i) REQUIRE(edit.insert_at(0, value) == TreeChange::added);
    compare_list(edit.tree(), {value, value, value});
    CHECK(nodes.live.size() == (bytes < 255 ? 1U : 4U));
    REQUIRE(edit.set_at(1, "short") == TreeChange::replaced);
    compare_list(edit.tree(), {value, "short", value});
    REQUIRE(edit.erase_at(0) == TreeChange::erased);
    REQUIRE(edit.erase_at(1) == TreeChange::erased);
    compare_list(edit.tree(), {"short"});
    CHECK(nodes.live.size() == 1);
  }
}

}  // namespace semel::engine
