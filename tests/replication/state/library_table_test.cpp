// Which libraries of functions may stand beside each other: by their names, those of their
// functions in any case of letters, and the bytes of all.
#include "engine/logged/library_table.hpp"

#include <algorithm>
#include <map>

#include "base/ascii.hpp"
#include "replication/state/library_fields.hpp"
#include "tests/proofs/random.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;
using Fault = LibraryVerdict::Fault;
using What = LibraryChange::What;

SharedLibraryText library(const std::string& name, const std::vector<std::string>& functions,
                          std::size_t code_bytes = 10) {
  auto made = std::make_shared<LibraryText>();
  made->name = name;
  made->code = std::string(code_bytes, 'x');
  for (const std::string& each : functions) made->functions.push_back({.name = each});
  return made;
}

LibraryVerdict change(LibraryTable& table, What what,
                      const std::vector<SharedLibraryText>& libraries,
                      const std::string& name = {}) {
  return table.change({.what = what, .name = name, .libraries = libraries});
}

std::string names(const LibraryTable& table) {
  std::string all;
  for (const SharedLibraryText& each : table.all()) all += each->name + " ";
  return all;
}

std::size_t bytes_of_all(const LibraryTable& table) {
  std::size_t bytes = 0;
  for (const SharedLibraryText& each : table.all()) bytes += LibraryTable::bytes_of(*each);
  return bytes;
}

}  // namespace

TEST_CASE("library table: what is refused changes nothing", "[library_table]") {
  LibraryTable table;
  REQUIRE(change(table, What::load, {library("b", {"fb"})}).fault == Fault::none);
  REQUIRE(change(table, What::load, {library("a", {"fa", "ga"})}).fault == Fault::none);
  const std::size_t bytes = table.bytes();
  CHECK(bytes == bytes_of_all(table));
  const auto refused = [&](What what, const std::vector<SharedLibraryText>& libraries, Fault fault,
                           const std::string& name) {
    const LibraryVerdict verdict = change(table, what, libraries);
    CHECK(verdict.fault == fault);
    CHECK(verdict.name == name);
    CHECK(names(table) == "a b ");
    CHECK(table.bytes() == bytes);
  };
  refused(What::load, {library("a", {"new"})}, Fault::library_exists, "a");
  refused(What::load, {library("c", {"new", "FA"})}, Fault::function_exists, "FA");
  refused(What::load, {library("c", {"new", "New"})}, Fault::function_exists, "New");
  refused(What::load_and_replace, {library("b", {"ga"})}, Fault::function_exists, "ga");
  refused(What::restore, {library("c", {"fc"}), library("b", {})}, Fault::library_exists, "b");
  refused(What::restore_and_replace, {library("c", {}), library("c", {})}, Fault::library_exists,
          "c");
  refused(What::restore_and_replace, {library("b", {"x"}), library("c", {"ga"})},
          Fault::function_exists, "ga");
  refused(What::restore_and_flush, {library("c", {"x"}), library("d", {"X"})},
          Fault::function_exists, "X");
  CHECK(change(table, What::remove, {}, "c").fault == Fault::no_such);
  CHECK(names(table) == "a b ");
}

TEST_CASE("library table: those that go make room for what comes", "[library_table]") {
  LibraryTable table;
  REQUIRE(change(table, What::restore, {library("a", {"f"}), library("b", {"g"})}).fault ==
          Fault::none);
  SECTION("names that are exchanged") {
    const std::vector<SharedLibraryText> exchanged{library("a", {"G"}), library("b", {"F"})};
    CHECK(change(table, What::restore_and_replace, exchanged).fault == Fault::none);
    CHECK(change(table, What::load, {library("c", {"g"})}).fault == Fault::function_exists);
    CHECK(change(table, What::remove, {}, "a").fault == Fault::none);
    CHECK(change(table, What::load, {library("c", {"g"})}).fault == Fault::none);
  }
  SECTION("a flush") {
    CHECK(change(table, What::restore_and_flush, {library("b", {"f", "g"})}).fault == Fault::none);
    CHECK(names(table) == "b ");
    CHECK(change(table, What::flush, {}).fault == Fault::none);
    CHECK(table.bytes() == 0);
    CHECK(change(table, What::load, {library("c", {"f", "g"})}).fault == Fault::none);
  }
}

TEST_CASE("library table: all of them have so many bytes, and not one more", "[library_table]") {
  LibraryTable table;
  const std::size_t besides = LibraryTable::bytes_of(*library("a", {"f"}, 0));
  CHECK(besides == LibraryTable::library_bytes + LibraryTable::function_bytes + 2);
  const std::size_t room = LibraryTable::bytes_max - besides;
  CHECK(change(table, What::load, {library("a", {"f"}, room + 1)}).fault == Fault::too_many_bytes);
  CHECK(change(table, What::load, {library("a", {"f"}, room)}).fault == Fault::none);
  CHECK(table.bytes() == LibraryTable::bytes_max);
  CHECK(change(table, What::load, {library("b", {})}).fault == Fault::too_many_bytes);
  CHECK(change(table, What::load_and_replace, {library("a", {"f"}, room)}).fault == Fault::none);
  CHECK(change(table, What::restore_and_flush, {library("b", {"f"}, room)}).fault == Fault::none);
  CHECK(names(table) == "b ");
}

TEST_CASE("library table: random changes, against a plain model", "[library_table]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    proofs::Random random{seed};
    LibraryTable table;
    std::map<std::string, SharedLibraryText> model;
    for (int i = 0; i < 2'000; ++i) {
      LibraryChange wanted;
      wanted.what = static_cast<What>(random.below(7));
      if (wanted.what == What::flush && !random.chance(1, 20)) wanted.what = What::load;
      wanted.name = "l" + std::to_string(random.below(6));
      const bool has_none = wanted.what == What::remove || wanted.what == What::flush;
      for (std::uint64_t n = has_none ? 0 : random.between(1, 3); n > 0; --n) {
        std::vector<std::string> functions;
        for (std::uint64_t f = random.below(3); f > 0; --f) {
          functions.push_back((random.chance(1, 2) ? "f" : "F") + std::to_string(random.below(12)));
        }
        wanted.libraries.push_back(library("l" + std::to_string(random.below(6)), functions));
      }
      // All at once, and then whether that may be.
      auto next = model;
      bool is_right = true;
      if (wanted.what == What::flush || wanted.what == What::restore_and_flush) next.clear();
      if (wanted.what == What::remove) is_right = next.erase(wanted.name) != 0;
      if (wanted.what == What::load_and_replace || wanted.what == What::restore_and_replace) {
        for (const auto& each : wanted.libraries) next.erase(each->name);
      }
      for (const auto& each : wanted.libraries) {
        is_right = next.emplace(each->name, each).second && is_right;
      }
      std::map<std::string, int> functions;
      for (const auto& [name, each] : next) {
        for (const auto& f : each->functions) {
          is_right = ++functions[base::lower_of(f.name)] == 1 && is_right;
        }
      }
      if (is_right) model = next;
      REQUIRE((table.change(wanted).fault == Fault::none) == is_right);
      const auto all = table.all();
      REQUIRE(std::equal(all.begin(), all.end(), model.begin(), model.end(),
                         [](const auto& one, const auto& other) { return one == other.second; }));
      REQUIRE(table.bytes() == bytes_of_all(table));
    }
  }
}

TEST_CASE("library table: a snapshot's libraries are taken whole or not at all",
          "[library_table]") {
  LibraryTable table;
  CHECK_FALSE(table.restore({library("a", {"f"}), library("b", {"F"})}));
  CHECK(table.count() == 0);
  CHECK(table.restore({library("a", {"f"}), library("b", {"g"})}));
  CHECK(names(table) == "a b ");
}

TEST_CASE("library table: no library has more bytes in a snapshot than it counts for",
          "[library_table]") {
  auto made = std::make_shared<LibraryText>();
  made->name = "l";
  made->code = std::string(70'000, 'c');
  made->body_begin = made->code.size();
  for (int i = 0; i < 10'000; ++i) {
    made->functions.push_back(
        {.name = "f" + std::to_string(i), .description = std::string(), .flags = 31});
  }
  std::string bytes;
  FieldWriter fields{bytes};
  LibraryCommand::Library view = view_of(*made);
  all(fields, view);
  CHECK(bytes.size() < LibraryTable::bytes_of(*made));
  FieldReader reader{bytes};
  LibraryCommand::Library read;
  all(reader, read);
  REQUIRE((reader.is_good() && reader.rest().empty()));
  std::string again;
  FieldWriter second{again};
  all(second, read);
  CHECK(again == bytes);
}

}  // namespace semel::tests
