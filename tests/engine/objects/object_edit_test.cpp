#include "engine/objects/object_edit.hpp"

#include <map>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

namespace semel::engine {
namespace {

template <class Model>
void check_same(const ObjectReader& object, const Model& model) {
  REQUIRE(object.size() == model.size());
  std::size_t rank = 0;
  for (const auto& [key, value] : model) {
    CHECK(object.at(rank).key == key);
    CHECK(object.at(rank).value == value);
    if (!key.empty()) {
      CHECK(object.rank(key) == rank);
      CHECK(object.find(key) == Bytes{value});
    }
    ++rank;
  }
}

TEST_CASE("object edits: keys and values as in a map, record after record", "[objects]") {
  std::mt19937_64 random{5};
  std::map<std::string, std::string> model;
  std::string record;
  for (int round = 0; round < 400; ++round) {
    ObjectEdit edit{record, Kind::stream};
    ObjectEdit first{Kind::stream};
    ObjectEdit& object = record.empty() ? first : edit;
    check_same(object, model);
    const auto before = model;
    bool adds = false;
    for (std::uint64_t i = random() % 12; i > 0; --i) {
      const std::string key = "key" + std::to_string(random() % 300);
      const std::string value(random() % 20, static_cast<char>('a' + random() % 3));
      if (random() % 3 != 0) {
        const bool is_new = !model.contains(key);
        adds = adds || is_new || model[key] != value;
        model[key] = value;
        CHECK(object.put(key, value) == is_new);
      } else {
        CHECK(object.erase(key) == (model.erase(key) == 1));
      }
    }
    check_same(object, model);
    if (!object.is_changed()) CHECK(model == before);
    if (object.is_changed()) CHECK(object.only_erases() == !adds);
    if (object.empty()) {
      record.clear();
    } else if (object.is_changed()) {
      std::string written;
      object.write(written);
      CHECK(object.record_bytes() == written.size());
      CHECK(is_sound(written, ElementParts::both));
      record = written;
    }
  }
}

TEST_CASE("object edits: places of a list as in a vector", "[objects]") {
  std::mt19937_64 random{6};
  std::vector<std::pair<std::string, std::string>> model;
  std::string record;
  for (int round = 0; round < 300; ++round) {
    ObjectEdit fresh{Kind::list};
    ObjectEdit kept{record, Kind::list};
    ObjectEdit& list = record.empty() ? fresh : kept;
    for (std::uint64_t i = random() % 8; i > 0; --i) {
      const std::string value = std::to_string(random() % 1'000'000);
      const auto place = random() % (model.size() + 1);
      const auto at = [&](std::uint64_t rank) {
        return model.begin() + static_cast<std::ptrdiff_t>(rank);
      };
      if (random() % 2 == 0 || model.empty()) {
        model.insert(at(place), {"", value});
        list.insert_at(place, value);
      } else if (random() % 2 == 0) {
        const auto rank = place % model.size();
        model[rank].second = value;
        list.set_at(rank, value);
      } else {
        const auto to = place + random() % 3;
        const auto end = std::min<std::uint64_t>(to, model.size());
        model.erase(at(place), at(end));
        list.erase_range(place, end);
      }
      check_same(list, model);
    }
    std::size_t visited = 0;
    list.each(0, list.size(), [&](const Element& element) {
      CHECK(element.value == model[visited].second);
      return ++visited < 5;
    });
    list.each_back(0, list.size(), [&](const Element& element) {
      CHECK(element.value == model.back().second);
      return false;
    });
    if (!list.is_changed()) continue;
    std::string written;
    if (!list.empty()) list.write(written);
    record = written;
  }
}

TEST_CASE("object edits: a suffix is found behind what all keys begin with", "[objects]") {
  ObjectEdit edit{Kind::sorted_set};
  edit.put("12345678a");
  edit.put("12345679b");
  edit.put("12345679");
  CHECK(edit.find_suffix(8, "b")->key == "12345679b");
  CHECK(edit.find_suffix(8, "")->key == "12345679");
  CHECK_FALSE(edit.find_suffix(8, "c"));
  CHECK_FALSE(edit.find_suffix(7, "b"));
}

TEST_CASE("object edits: a packed object finds a suffix as the edit does", "[objects]") {
  const std::uint32_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  for (int round = 0; round < 300; ++round) {
    ObjectEdit edit{Kind::sorted_set};
    const std::uint64_t count = 1 + random() % 200;  // small and indexed
    for (std::uint64_t i = 0; i < count; ++i) {
      // Members that begin alike, are longer than a byte of length says, or are empty.
      std::string key(8, static_cast<char>('0' + random() % 3));
      key.append(random() % 20 == 0 ? 120 + random() % 20 : random() % 4,
                 static_cast<char>('a' + random() % 3));
      edit.put(key);
    }
    std::string record;
    edit.write(record);
    const ObjectReader packed{record, Kind::sorted_set};
    for (int i = 0; i < 30; ++i) {
      const std::string suffix(random() % 8 == 0 ? 110 + random() % 35 : random() % 5,
                               static_cast<char>('a' + random() % 4));
      const std::size_t skip = random() % 3 == 0 ? random() % 12 : 8;
      const auto expected = edit.find_suffix(skip, suffix);
      const auto found = packed.find_suffix(skip, suffix);
      REQUIRE(found.has_value() == expected.has_value());
      if (found) CHECK(found->key == expected->key);
    }
  }
}

}  // namespace
}  // namespace semel::engine
