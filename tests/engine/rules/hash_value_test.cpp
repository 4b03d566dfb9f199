// The bytes of a hash: written, changed, read, and read when they are not what was written.
//
// Words: *plain* and *indexed* are the two forms; a *model* is a list of pairs that is changed in
// the same way, without any index.
#include "engine/rules/hash_value.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

namespace semel::tests {

using engine::HashChange;
using engine::HashView;
using engine::HashWriter;
using engine::is_sound;
using engine::plain_fields_max;

namespace {

using Model = std::vector<std::pair<std::string, std::string>>;

constexpr std::uint64_t hash_seed = 0x5eed;

std::string changed(const std::string& before, const std::vector<HashChange>& changes) {
  const HashView view = before.empty() ? HashView{} : HashView{before};
  const HashWriter writer{view, changes, hash_seed};
  if (writer.fields() == 0) return {};
  std::string after;
  writer.write(after);
  REQUIRE(after.size() == writer.bytes());
  return after;
}

std::string with_fields(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("field " + std::to_string(i));
  std::vector<HashChange> changes;
  for (const std::string& name : names) changes.push_back({name, name});
  return changed({}, changes);
}

Model read(const std::string& value) {
  Model all;
  if (value.empty()) return all;
  HashView{value}.each(
      [&](const HashView::Found& pair) { all.emplace_back(pair.field, pair.value); });
  return all;
}

/// Everything that can be asked of unchecked bytes.
std::size_t read_all(Bytes value, Bytes field) {
  const HashView view{value};
  std::size_t seen = view.find(field) ? 1 : 0;
  view.each([&](const HashView::Found& pair) { seen += pair.field.size() + pair.value.size(); });
  for (std::size_t i = 0; i < view.size() && view.is_indexed(); ++i) {
    const auto pair = view.pair_at(static_cast<std::uint32_t>(view.index_word(i)));
    seen += pair ? pair->end : 0;
  }
  return seen;
}

}  // namespace

TEST_CASE("hash value: up to 32 fields are plain, 33 have an index", "[engine][hash]") {
  const std::string plain = with_fields(plain_fields_max);
  const std::string indexed = with_fields(plain_fields_max + 1);
  CHECK_FALSE(HashView{plain}.is_indexed());
  CHECK(HashView{indexed}.is_indexed());
  CHECK(is_sound(plain));
  CHECK(is_sound(indexed));
  CHECK(HashView{indexed}.find("field 32")->value == "field 32");
  CHECK_FALSE(HashView{indexed}.find("field 33"));
  // And back: the index goes.
  CHECK(changed(indexed, {{"field 32", std::nullopt}}) == plain);
  CHECK(changed(plain, {{"field 32", "field 32"}}) == indexed);
}

TEST_CASE("hash value: fields stay where they came, whatever becomes of their values",
          "[engine][hash]") {
  std::string value = changed({}, {{"b", "1"}, {"a", "2"}, {"", ""}, {"c", "4"}});
  CHECK(read(value) == Model{{"b", "1"}, {"a", "2"}, {"", ""}, {"c", "4"}});
  value = changed(value, {{"a", std::string_view{"a longer one\0", 13}}});
  value = changed(value, {{"", "now something"}, {"d", "5"}, {"b", ""}});
  CHECK(read(value) == Model{{"b", ""},
                             {"a", std::string("a longer one\0", 13)},
                             {"", "now something"},
                             {"c", "4"},
                             {"d", "5"}});
  value = changed(value, {{"a", std::nullopt}, {"x", std::nullopt}});
  CHECK(read(value) == Model{{"b", ""}, {"", "now something"}, {"c", "4"}, {"d", "5"}});
}

TEST_CASE("hash value: of changes of one field the last counts, at the place of the first",
          "[engine][hash]") {
  const std::vector<HashChange> twice{{"a", "1"}, {"b", "1"}, {"a", "2"}, {"c", "1"}, {"a", "3"}};
  const HashView none;
  const HashWriter writer{none, twice, hash_seed};
  CHECK(writer.added() == 3);
  CHECK(read(changed({}, twice)) == Model{{"a", "3"}, {"b", "1"}, {"c", "1"}});
  const std::string before = changed({}, twice);
  const HashView view{before};
  const std::vector<HashChange> gone{{"b", std::nullopt}, {"b", std::nullopt}};
  CHECK(HashWriter{view, gone, hash_seed}.removed() == 1);
}

TEST_CASE("hash value: lengths at both ends of a varint's byte", "[engine][hash]") {
  for (const std::size_t size : {0U, 1U, 127U, 128U, 16'383U, 16'384U, 100'000U}) {
    const std::string bytes(size, 'x');
    const std::string value = changed({}, {{bytes, bytes}, {bytes + "y", "z"}});
    CHECK(is_sound(value));
    CHECK(read(value) == Model{{bytes, bytes}, {bytes + "y", "z"}});
  }
}

TEST_CASE("hash value: random changes do what they do to a list", "[engine][hash]") {
  const auto rng_seed = Catch::rngSeed();
  INFO("seed " << rng_seed);
  std::mt19937_64 random{rng_seed};
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  for (const std::size_t names : {8U, 40U, 400U}) {  // plain, between the forms, indexed
    Model model;
    std::string value;
    for (int step = 0; step < 1'500; ++step) {
      std::vector<std::string> words;
      const std::size_t count = 1 + below(below(10) == 0 ? names : 3);
      for (std::size_t i = 0; i < 2 * count; i += 2) {
        words.push_back("f" + std::to_string(below(names)));
        words.push_back(std::string(below(below(20) == 0 ? 300 : 12), 'v'));
      }
      const bool erases = below(3) == 0;
      std::vector<HashChange> changes;
      for (std::size_t i = 0; i < words.size(); i += 2) {
        changes.push_back({words[i], erases ? std::nullopt : std::optional<Bytes>{words[i + 1]}});
        const auto found = std::find_if(model.begin(), model.end(),
                                        [&](const auto& each) { return each.first == words[i]; });
        if (erases && found != model.end()) model.erase(found);
        if (!erases && found != model.end()) found->second = words[i + 1];
        if (!erases && found == model.end()) model.emplace_back(words[i], words[i + 1]);
      }
      value = changed(value, changes);
      REQUIRE(read(value) == model);
      REQUIRE((value.empty() || is_sound(value)));
      const std::string name = "f" + std::to_string(below(names));
      const auto wanted = std::find_if(model.begin(), model.end(),
                                       [&](const auto& each) { return each.first == name; });
      const auto found = value.empty() ? std::nullopt : HashView{value}.find(name);
      REQUIRE(found.has_value() == (wanted != model.end()));
      if (found) REQUIRE(found->value == wanted->second);
    }
  }
}

TEST_CASE("hash value: what is cut, longer, or has a wrong byte is not sound, and can be read",
          "[engine][hash]") {
  for (const std::size_t fields : {1U, 3U, 33U, 60U}) {
    const std::string value = with_fields(fields);
    REQUIRE(is_sound(value));
    CHECK_FALSE(is_sound(value + '\0'));
    for (std::size_t size = 0; size < value.size(); ++size) {
      const std::string cut = value.substr(0, size);
      CHECK_FALSE(is_sound(cut));
      static_cast<void>(read_all(cut, "field 1"));
    }
    std::mt19937_64 random{Catch::rngSeed()};
    INFO("seed " << Catch::rngSeed());
    for (int i = 0; i < 3'000; ++i) {
      std::string wrong = value;
      for (std::uint64_t flips = 1 + random() % 3; flips != 0; --flips) {
        wrong[random() % wrong.size()] = static_cast<char>(random());
      }
      // Another name or value may be right; all of it can be read without leaving the bytes.
      static_cast<void>(is_sound(wrong));
      static_cast<void>(read_all(wrong, "field 1"));
    }
  }
}

TEST_CASE("hash value: heads, counts and indexes that are never written are not sound",
          "[engine][hash]") {
  const auto is_right = [](std::string value) { return is_sound(value); };
  CHECK_FALSE(is_right(""));
  CHECK_FALSE(is_right(std::string("\1", 1)));
  CHECK_FALSE(is_right(std::string("\1\0", 2)));               // no field
  CHECK_FALSE(is_right(std::string("\3\1\1\1ab", 6)));         // no such form
  CHECK(is_right(std::string("\1\1\1\1ab", 6)));               // a: b
  CHECK_FALSE(is_right(std::string("\1\2\1\1ab", 6)));         // one of two
  CHECK_FALSE(is_right(std::string("\1\2\1\1ab\1\1ac", 10)));  // twice a
  CHECK_FALSE(is_right("\1\1\x81\x81\x81\x81\x81\1\1ab"));     // a length that does not end
  CHECK_FALSE(is_right("\1\1\xff\xff\xff\xff\x0f\1"));         // and one of four GiB
  // 33 fields in the plain form.
  std::string many = with_fields(plain_fields_max + 1);
  const HashView view{many};
  CHECK_FALSE(is_right(std::string("\1\x21", 2) + std::string{view.pairs()}));
  // Two words of the index in the wrong order; a field twice, with an index that fits.
  std::string swapped = many;
  std::swap_ranges(swapped.end() - 16, swapped.end() - 8, swapped.end() - 8);
  CHECK_FALSE(is_right(swapped));
  std::string seeded = many;
  seeded[5] = static_cast<char>(seeded[5] + 1);
  CHECK_FALSE(is_right(seeded));
  std::string huge = many;
  huge.replace(1, 4, "\xff\xff\xff\xff", 4);
  CHECK_FALSE(is_right(huge));
  CHECK(HashView{huge}.size() == 0);
}

}  // namespace semel::tests
