#include "engine/objects/edit_trail.hpp"

#include <array>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/objects/object_edit.hpp"

namespace semel::engine {
namespace {

constexpr std::array kinds{Kind::list, Kind::sorted_set, Kind::stream};

std::string key_of(std::uint64_t number) {
  return "key" + std::to_string(10'000 + number % 3'000);
}

void step(ObjectEdit& object, std::uint64_t number) {
  const std::string bytes = std::to_string(number) + std::string(number % 5, '\0');
  const std::size_t rank = number % (object.size() + 1);
  const bool is_inside = rank < object.size();
  switch (number / 7 % 5) {
    case 0:
      if (is_inside) object.erase_range(rank, std::min(object.size(), rank + 1 + number % 3));
      return;
    case 1:
      if (is_inside && object.kind() != Kind::sorted_set) object.set_at(rank, bytes);
      return;
    case 2:
      if (object.kind() != Kind::list) object.erase(key_of(number));
      return;
    default:
      break;
  }
  if (object.kind() == Kind::list) return object.insert_at(rank, bytes);
  object.put(key_of(number), object.kind() == Kind::stream ? Bytes{bytes} : Bytes{});
}

std::string first_record(Kind kind, unsigned elements) {
  ObjectEdit object{kind};
  for (unsigned i = 0; i < elements; ++i) {
    if (kind == Kind::list) {
      object.insert_at(object.size(), "element");
    } else {
      object.put(key_of(i * 3), kind == Kind::stream ? Bytes{"value"} : Bytes{});
    }
  }
  std::string record;
  object.write(record);
  return record;
}

TEST_CASE("trails: many of them make the record that the edits made", "[objects]") {
  const std::uint32_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  for (const Kind kind : kinds) {
    INFO(name_of(kind));
    const std::string base = first_record(kind, 600);
    std::string record = base;
    std::vector<std::string> trails;
    while (trails.size() < 300) {
      ObjectEdit object{record, kind};
      for (std::uint64_t i = random() % 6; i > 0; --i) step(object, random());
      if (!object.is_changed()) {
        CHECK(object.trail().empty());
        continue;
      }
      REQUIRE_FALSE(object.trail().empty());
      CHECK(object.trail().size() <= record.size() / 8);
      trails.emplace_back(object.trail());
      std::string next;
      object.write(next);
      record = next;
      const std::vector<Bytes> all{trails.begin(), trails.end()};
      if (trails.size() % 60 != 1) continue;
      std::string found;
      REQUIRE(apply_trails(kind, base, all, found));
      CHECK((found == record));
    }
  }
}

TEST_CASE("trails: a short record has none, and neither has a change that is long", "[objects]") {
  const auto trail_of = [](const std::string& record, std::size_t value_bytes) {
    ObjectEdit object{record, Kind::list};
    object.insert_at(0, std::string(value_bytes, 'v'));
    return object.trail().size();
  };
  const std::string small = first_record(Kind::list, 100);
  REQUIRE(small.size() < limits::trail_record_bytes_min);
  CHECK(trail_of(small, 1) == 0);
  const std::string large = first_record(Kind::list, 1'000);
  CHECK(trail_of(large, 1) > 0);
  CHECK(trail_of(large, large.size() / 8 - 40) > 0);
  CHECK(trail_of(large, large.size() / 8) == 0);
  // What follows on a step that did not fit is not noted either.
  ObjectEdit object{large, Kind::list};
  object.insert_at(0, std::string(large.size() / 8, 'v'));
  object.insert_at(0, "v");
  CHECK(object.trail().empty());
  ObjectEdit fresh{Kind::list};
  fresh.insert_at(0, "v");
  CHECK(fresh.trail().empty());
}

}  // namespace
}  // namespace semel::engine
