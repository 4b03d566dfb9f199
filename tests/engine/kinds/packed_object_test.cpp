#include "engine/kinds/packed_object.hpp"

#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

namespace semel::engine {
namespace {

std::vector<std::pair<std::string, std::string>> some(std::mt19937_64& random, std::size_t count,
                                                      ElementParts parts) {
  std::vector<std::pair<std::string, std::string>> all;
  for (std::size_t i = 0; i < count; ++i) {
    std::string key = "k" + std::to_string(1'000'000 + i);
    key.append(random() % 200, 'x');
    all.emplace_back(parts == ElementParts::values ? "" : key,
                     parts == ElementParts::keys ? "" : std::string(random() % 300, 'v'));
  }
  return all;
}

std::vector<Element> views(const std::vector<std::pair<std::string, std::string>>& all) {
  std::vector<Element> elements;
  for (const auto& [key, value] : all) elements.push_back({key, value});
  return elements;
}

constexpr ElementParts all_parts[] = {ElementParts::keys, ElementParts::values, ElementParts::both};

TEST_CASE("packed objects: what was packed is read, small and indexed", "[objects]") {
  std::mt19937_64 random{7};
  for (const ElementParts parts : all_parts) {
    for (const std::size_t count : {1U, 2U, 127U, 128U, 129U, 130U, 1'000U}) {
      CAPTURE(count, static_cast<int>(parts));
      const auto all = some(random, count, parts);
      std::string record;
      pack(views(all), parts, record);
      std::size_t bytes = packed_head_bytes(count);
      for (const Element& element : views(all)) bytes += packed_bytes(element, parts);
      CHECK(record.size() == bytes);
      CHECK(is_sound(record, parts));
      const PackedObject object{record, parts};
      REQUIRE(object.is_good());
      REQUIRE(object.size() == count);
      for (std::size_t i = 0; i < count; ++i) {
        CHECK(object.at(i).key == all[i].first);
        CHECK(object.at(i).value == all[i].second);
        if (parts == ElementParts::values) continue;
        CHECK(object.rank(all[i].first) == i);
        CHECK(object.rank(all[i].first + '\0') == i + 1);
      }
    }
  }
}

TEST_CASE("packed objects: parts that a kind does not have take no byte", "[objects]") {
  const Element member{"a", {}};
  CHECK(packed_bytes(member, ElementParts::keys) == 2);
  const Element element{{}, "a"};
  CHECK(packed_bytes(element, ElementParts::values) == 2);
}

TEST_CASE("packed objects: bytes of another form, cut or altered are refused or read safely",
          "[objects]") {
  std::mt19937_64 random{11};
  for (const ElementParts parts : all_parts) {
    for (const std::size_t count : {3U, 200U}) {
      std::string record;
      const auto all = some(random, count, parts);
      pack(views(all), parts, record);
      for (std::size_t size = 0; size < record.size(); size += 1 + size / 40) {
        CHECK_FALSE(is_sound(Bytes{record}.substr(0, size), parts));
      }
      CHECK_FALSE(is_sound(record + "x", parts));
      for (const ElementParts other : all_parts) {
        if (other != parts) CHECK_FALSE(is_sound(record, other));
      }
      for (int i = 0; i < 2'000; ++i) {
        std::string bad = record;
        bad[random() % bad.size()] = static_cast<char>(random());
        const PackedObject object{bad, parts};
        std::size_t bytes = 0;
        for (std::size_t at = 0; at < object.size(); ++at) {
          bytes += object.at(at).key.size() + object.at(at).value.size();
        }
        CHECK(object.rank("k1000001") <= object.size());
        if (is_sound(bad, parts)) CHECK(bytes < bad.size());
      }
    }
  }
  CHECK_FALSE(is_sound({}, ElementParts::keys));
  std::string none;
  pack({}, ElementParts::keys, none);
  CHECK_FALSE(is_sound(none, ElementParts::keys));  // an object has an element
}

TEST_CASE("packed objects: keys out of order, or twice, are unsound", "[objects]") {
  std::string record;
  const std::vector<Element> wrong{{"b", {}}, {"a", {}}};
  pack(wrong, ElementParts::keys, record);
  CHECK_FALSE(is_sound(record, ElementParts::keys));
  const std::vector<Element> twice{{"a", {}}, {"a", {}}};
  pack(twice, ElementParts::keys, record);
  CHECK_FALSE(is_sound(record, ElementParts::keys));
}

}  // namespace
}  // namespace semel::engine
