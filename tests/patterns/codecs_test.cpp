// Codecs of results that are put together.
#include "semel/patterns/codecs.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "semel/patterns/once.hpp"
#include "tests/patterns/process.hpp"
#include "tests/proofs/random.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {

namespace {

struct Line {
  std::string name;
  std::uint32_t count = 0;
  bool operator==(const Line&) const = default;
};
struct Invoice {
  std::uint64_t number = 0;
  std::vector<Line> lines;
  std::optional<std::string> note;
  std::map<std::string, double> rates;
  bool operator==(const Invoice&) const = default;
};
struct Renamed {
  static constexpr const char* semel_type = "line/2";
  std::string name;
  std::uint32_t count = 0;
};
struct Own {
  int number = 0;
  std::string encode() const { return std::to_string(number); }
  static std::optional<Own> decode(Bytes bytes) {
    const auto number = Codec<int>::decode(bytes);
    return number ? std::optional{Own{*number}} : std::nullopt;
  }
  bool operator==(const Own&) const = default;
};
struct Most {
  int a, b, c, d, e, f, g, h, i, j, k, l;
  bool operator==(const Most&) const = default;
};
enum class Shade : std::uint8_t { red = 1, blue = 7 };

template <class T>
void comes_back(const T& value, Bytes bytes) {
  static_assert(Encodable<T>);
  CHECK(Codec<T>::encode(value) == bytes);
  const std::optional<T> back = Codec<T>::decode(bytes);
  REQUIRE(back);
  CHECK(*back == value);
}

}  // namespace

TEST_CASE("codecs: what is put together comes back, and its bytes say what it is", "[codecs]") {
  comes_back(std::vector<int>{1, -20}, "~[i4]~1:13:-20");
  comes_back(std::vector<std::string>{}, "~[s]~");
  comes_back(std::vector<bool>{true, false}, "~[b]~1:11:0");
  comes_back(std::optional<std::string>{}, "~?s~");
  comes_back(std::optional<std::string>{""}, "~?s~0:");
  comes_back(std::pair<std::string, bool>{"a~b", true}, "~(s,b)~3:a~b1:1");
  comes_back(std::tuple<Shade, float, Own, Nothing>{Shade::blue, 0.5F, {3}, {}},
             "~(eu1,f4,x,-)~1:73:0.51:30:");
  comes_back(std::map<int, std::string>{{1, "x"}, {2, ""}}, "~{i4:s}~1:11:x1:20:");
  comes_back(Line{"pen", 2}, "~(s,u4)~3:pen1:2");
  comes_back(Invoice{7, {{"pen", 2}}, "n", {{"vat", 0.19}}},
             "~(u8,[(s,u4)],?s,{s:f8})~1:710:8:3:pen1:23:1:n"
             "11:3:vat4:0.19");
  comes_back(Most{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
             "~(i4,i4,i4,i4,i4,i4,i4,i4,i4,i4,i4,i4)~"
             "1:11:21:31:41:51:61:71:81:92:102:112:12");
  CHECK(Codec<Renamed>::encode({"pen", 2}) == "~line/2(s,u4)~3:pen1:2");
}

TEST_CASE("codecs: what was stored as another type is not read", "[codecs]") {
  const std::string line = Codec<Line>::encode({"pen", 2});
  CHECK_FALSE(Codec<Renamed>::decode(line));
  CHECK_FALSE((Codec<std::tuple<std::string, std::int32_t>>::decode(line)));
  CHECK((Codec<std::tuple<std::string, std::uint32_t>>::decode(line)));  // the same parts
  CHECK_FALSE(Codec<std::vector<int>>::decode("1"));                     // of another codec
  CHECK_FALSE(Codec<std::vector<int>>::decode(""));
}

TEST_CASE("codecs: damaged bytes give a value or none, never more memory than they are",
          "[codecs]") {
  for (const Bytes wrong : {"~[i4]~1", "~[i4]~:1", "~[i4]~-1:1", "~[i4]~2:1", "~[i4]~1:x",
                            "~[i4]~99999999999999999999:", "~[i4]~18446744073709551615:1",
                            "~[i4]~1:1x", "~[i4]", "~[i4", "~"}) {
    INFO(wrong);
    CHECK_FALSE(Codec<std::vector<int>>::decode(wrong));
  }
  CHECK_FALSE((Codec<std::map<int, int>>::decode("~{i4:i4}~1:11:11:11:2")));  // a key twice
  CHECK_FALSE((Codec<std::pair<int, int>>::decode("~(i4,i4)~1:11:11:1")));    // a part too many
  const std::string right =
      Codec<Invoice>::encode({7, {{"pen", 2}, {"ink", 1}}, "note", {{"vat", 0.19}}});
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    proofs::Random random{seed};
    for (int i = 0; i < 2'000; ++i) {
      std::string bytes = right;
      for (std::uint64_t change = random.below(3); change != 0; --change) {
        bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
      }
      if (random.chance(1, 3)) bytes.resize(random.below(bytes.size()));
      const auto read = Codec<Invoice>::decode(bytes);
      // What is read is written as bytes that give the same again.
      if (read) CHECK(Codec<Invoice>::decode(Codec<Invoice>::encode(*read)) == read);
    }
  }
}

TEST_CASE("codecs: once() replays a struct", "[codecs][patterns]") {
  Process process;
  Claims orders = process.claims("orders", policies::call);
  const auto pay = [] { return Invoice{7, {{"pen", 2}}, {}, {}}; };
  CHECK(once(orders, "k", pay).answer == OnceAnswer::ran);
  const auto again = once(orders, "k", pay);
  CHECK(again.answer == OnceAnswer::replayed);
  CHECK(again.value == pay());
  // A later release has changed the type: it is told so, and nothing runs again.
  const auto later = once(orders, "k", [] { return Line{}; });
  CHECK(later.answer == OnceAnswer::replayed);
  CHECK_FALSE(later.value);
  CHECK(later.error.code == ErrorCode::bad_encoding);
}

}  // namespace semel::tests
