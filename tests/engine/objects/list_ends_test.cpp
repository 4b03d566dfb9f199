// The ends of a large list: what lies in them, what goes to the tree, and what a push costs.
#include "engine/objects/list_edit.hpp"

#include <cstdlib>
#include <deque>
#include <random>
#include <string>

#include "engine/objects/object_edit.hpp"
#include "tests/support/catch.hpp"

namespace semel::engine {
namespace {

/// Counts allocations; from a bound on it has none left.
class CountingPool final : public NodePool {
 public:
  Handle allocate(std::size_t bytes) noexcept override {
    if (left == 0) return 0;
    if (left > 0) --left;
    ++allocations;
    ++live;
    return reinterpret_cast<std::uintptr_t>(std::malloc(bytes)) / 8;
  }
  void free(Handle handle) noexcept override {
    --live;
    std::free(writable(handle));
  }
  void set_growing(bool) noexcept override {}

  long left = -1;
  std::size_t allocations = 0;
  std::size_t live = 0;
};

/// A list whose newest version alone is kept, beside a model.
class KeptList {
 public:
  ~KeptList() {
    if (LargeObject* const large = object()) garbage_.release(*large, pool);
    while (garbage_.free_some(pool)) {
    }
    CHECK(pool.live == 0);
  }

  /// False: there was no memory, and it is as it was.
  template <class Change>
  bool change(Change&& change) {
    const std::string before = record_;
    ObjectEdit edit = begin(before);
    change(edit);
    std::string after;
    edit.write(after);
    if (edit.has_failed()) return false;
    Publication* const publication = edit.publication();
    if (publication != nullptr) {
      REQUIRE(publication->begin());
      publication->end(true);
    }
    record_ = after;
    if (LargeObject* const old = large_object_of(Kind::list, before)) garbage_.release(*old, pool);
    return true;
  }
  bool push(bool to_head, const std::string& value) {
    const bool done =
        change([&](ObjectEdit& list) { list.insert_at(to_head ? 0 : list.size(), value); });
    if (done) to_head ? model.push_front(value) : model.push_back(value);
    return done;
  }
  bool pop(bool from_head) {
    const bool done =
        change([&](ObjectEdit& list) { list.erase_at(from_head ? 0 : list.size() - 1); });
    if (done) from_head ? model.pop_front() : model.pop_back();
    return done;
  }
  [[nodiscard]] LargeObject* object() const { return large_object_of(Kind::list, record_); }
  [[nodiscard]] LargeElements elements() const { return object()->elements(); }
  void check() const {
    const ObjectReader list{record_, Kind::list};
    REQUIRE(list.size() == model.size());
    std::size_t rank = 0;
    list.each(0, list.size(), [&](const Element& each) { return each.value == model[rank++]; });
    REQUIRE(rank == model.size());
    REQUIRE(object()->tree().check_invariants(false) == nullptr);
    std::string scratch;
    REQUIRE(whole_bytes(Kind::list, record_, scratch).size() == whole_size(Kind::list, record_));
  }

  CountingPool pool;
  std::deque<std::string> model;

 private:
  [[nodiscard]] ObjectEdit begin(const std::string& record) {
    if (record.empty()) return ObjectEdit{Kind::list, &pool};
    return ObjectEdit{record, Kind::list, &pool};
  }

  std::string record_;
  LargeObjectGarbage garbage_;
};

void fill(KeptList& list, std::size_t count) {
  list.change([&](ObjectEdit& edit) {
    for (std::size_t i = 0; i < count; ++i) edit.insert_at(edit.size(), "element");
  });
  list.model.assign(count, "element");
}

}  // namespace

TEST_CASE("list ends: of 16 pushes or pops at an end, one changes the tree", "[objects][list]") {
  KeptList list;
  fill(list, 1000);
  for (const bool at_head : {true, false}) {
    for (const bool pushes : {true, false}) {
      const std::size_t before = list.pool.allocations;
      for (int i = 0; i < 320; ++i)
        REQUIRE((pushes ? list.push(at_head, "value") : list.pop(at_head)));
      list.check();
      // The version of each; and a leaf, its parents and what is trimmed for every 16.
      CHECK(list.pool.allocations - before <= 320 + 320 / 16 * 10);
    }
  }
}

TEST_CASE("list ends: an end holds 32 elements, 1,024 bytes, and values of 254",
          "[objects][list]") {
  KeptList list;
  fill(list, 1000);
  for (int i = 0; i < 40 && list.elements().head.size() < 32; ++i) REQUIRE(list.push(true, "a"));
  CHECK(list.elements().head.size() == 32);
  REQUIRE(list.push(true, "b"));
  CHECK(list.elements().head.size() == 17);  // the half next to the tree went there
  list.check();

  REQUIRE(list.push(true, std::string(255, 'c')));
  CHECK(list.elements().head.size() == 0);  // all that is behind a long value is in the tree
  for (int i = 0; i < 4; ++i) REQUIRE(list.push(true, std::string(254, 'd')));
  CHECK(list.elements().head.size() == 4);
  REQUIRE(list.push(true, std::string(8, 'e')));
  CHECK(list.elements().head.size() == 5);
  REQUIRE(list.push(true, ""));  // 1,024 bytes are there, and it has none
  CHECK(list.elements().head.size() == 6);
  REQUIRE(list.push(true, "f"));
  CHECK(list.elements().head.size() < 6);
  list.check();
}

TEST_CASE("list ends: a change that has no memory leaves the list as it was", "[objects][list]") {
  KeptList list;
  fill(list, 1000);
  std::mt19937_64 random{Catch::rngSeed()};
  for (int i = 0; i < 2000; ++i) {
    const bool at_head = random() % 2 == 0;
    const bool pushes = random() % 2 == 0;
    const std::string value(random() % 300, 'v');
    for (list.pool.left = 0;; ++list.pool.left) {
      const long granted = list.pool.left;
      const bool done = pushes ? list.push(at_head, value) : list.pop(at_head);
      if (done) break;
      list.pool.left = granted;
      REQUIRE(list.object()->elements().size() == list.model.size());
    }
    list.pool.left = -1;
    if (i % 50 == 0) list.check();
  }
  list.check();
}

}  // namespace semel::engine
