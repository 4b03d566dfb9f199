// Requests: what redis-server reads, in whatever pieces it comes, and what it refuses.
// Words: piece = what one read of a socket brings.
#include "net/resp/resp_parser.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

namespace semel::tests {

using net::limits_before_auth;
using net::RequestLimits;
using net::RespParser;

namespace {

using Words = std::vector<std::string>;

struct Read {
  std::vector<Words> commands;
  std::string error{};
  std::size_t left = 0;  // bytes of a request that is not whole
  friend bool operator==(const Read&, const Read&) = default;
};

/// Feeds `bytes` in pieces that end at the places given, as a connection does, in a buffer of its
/// own for each call.
Read read(const std::string& bytes, const std::vector<std::size_t>& ends,
          const RequestLimits& limits = {}) {
  RespParser parser;
  Read seen;
  std::string buffer;
  std::size_t from = 0;
  for (const std::size_t end : ends) {
    buffer = std::string{buffer} + bytes.substr(from, end - from);
    from = end;
    for (;;) {
      const RespParser::Step step = parser.parse(buffer, limits);
      if (step == RespParser::Step::incomplete) {
        CHECK(parser.wanted() > buffer.size());
        break;
      }
      if (step == RespParser::Step::bad) {
        seen.error = parser.error();
        return seen;
      }
      const auto arguments = parser.arguments();
      if (!arguments.empty()) seen.commands.emplace_back(arguments.begin(), arguments.end());
      buffer.erase(0, parser.consumed());
    }
  }
  seen.left = buffer.size();
  return seen;
}

Read read_whole(const std::string& bytes, const RequestLimits& limits = {}) {
  return read(bytes, {bytes.size()}, limits);
}

std::string error_of(const std::string& bytes, const RequestLimits& limits = {}) {
  return read_whole(bytes, limits).error;
}

std::string array_of(const Words& words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return bytes;
}

}  // namespace

TEST_CASE("requests: arrays and inline commands, one behind the other", "[net][resp]") {
  const Read seen =
      read_whole(array_of({"SET", "k", std::string{"\0\r\n", 3}}) + "PING\r\n" +
                 "*0\r\n*-1\r\n\r\n\n" + "get  k \n" + array_of({"DEL", ""}) + "*1\r\n$");
  CHECK(seen.commands ==
        std::vector<Words>{
            {"SET", "k", std::string{"\0\r\n", 3}}, {"PING"}, {"get", "k"}, {"DEL", ""}});
  CHECK(seen.error.empty());
  CHECK(seen.left == 5);
}

TEST_CASE("requests: the same in whatever pieces they come", "[net][resp]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  const std::vector<std::string> parts{
      array_of({"SET", "key", "value", "NX", "GET", "PX", "60000"}),
      array_of({std::string(3'000, 'x'), ""}),
      "PING\r\n",
      "\r\n",
      "SET a \"b c\\x00\\n\" 'd\\'e'\r\n",
      "*0\r\n",
      "*1\r\n$1x\r\n",
      "*2\r\n$1\r\na\r\n:1\r\n",
      "*\r\n",
      "\"\r\n"};
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    for (int i = 0; i < 6; ++i) bytes += parts[random() % parts.size()];
    std::vector<std::size_t> ends;
    for (std::size_t at = 0; at < bytes.size(); at += 1 + random() % (round % 2 == 0 ? 3 : 900)) {
      ends.push_back(at);
    }
    ends.push_back(bytes.size());
    CHECK(read(bytes, ends) == read_whole(bytes));
  }
}

TEST_CASE("requests: lengths of one to four digits, in one piece and in two", "[net][resp]") {
  for (const std::size_t bytes : {0U, 1U, 9U, 10U, 11U, 99U, 100U, 999U, 1'000U, 9'999U}) {
    CAPTURE(bytes);
    const Words words{"a", std::string(bytes, 'x'), "b"};
    const std::string request = array_of(words);
    CHECK(read_whole(request).commands == std::vector<Words>{words});
    const std::string last = array_of({std::string(bytes, 'x')});
    for (std::size_t end = 0; end < std::min<std::size_t>(last.size(), 40); ++end) {
      CAPTURE(end);
      CHECK(read(last, {end, last.size()}) == read_whole(last));
      CHECK(read_whole(last.substr(0, end)).left == end);
    }
  }
}

TEST_CASE("requests: one leaves nothing to the next, whatever their forms", "[net][resp]") {
  const Words many(500, "word");
  const std::vector<std::pair<std::string, Words>> forms{
      {array_of({"GET", "k"}), {"GET", "k"}},
      {array_of(many), many},
      {"PING now\r\n", {"PING", "now"}},
      {array_of({"SET", "k", std::string(2'000, 'v')}), {"SET", "k", std::string(2'000, 'v')}}};
  for (const auto& [first, first_words] : forms) {
    for (const auto& [second, second_words] : forms) {
      const std::string both = first + second;
      const std::vector<Words> expected{first_words, second_words};
      CHECK(read_whole(both).commands == expected);
      CHECK(read(both, {first.size() + 3, both.size()}).commands == expected);
    }
  }
}

TEST_CASE("requests: the words of an inline command", "[net][resp]") {
  const auto words = [](const std::string& line) {
    const Read seen = read_whole(line + "\r\n");
    return seen.commands.empty() ? Words{} : seen.commands.front();
  };
  CHECK(words("a\tb\v c") == Words{"a", "b", "c"});
  CHECK(words(R"("a b" 'c d')") == Words{"a b", "c d"});
  CHECK(words(R"("\x41\x4g\n\r\t\b\a\"\\\q")") == Words{"Ax4g\n\r\t\b\a\"\\q"});
  CHECK(words(R"('\n\'')") == Words{R"(\n')"});
  CHECK(words(R"("" '')") == Words{"", ""});
  CHECK(words(R"(a"b c"d)").empty());  // a quote that closes ends the word
  for (const char* bad : {"\"", "'", "\"a", "'a\\'", "\"a\"b", "'a'b", "\"\\\""}) {
    CAPTURE(bad);
    CHECK(error_of(std::string{bad} + "\r\n") == "Protocol error: unbalanced quotes in request");
  }
}

TEST_CASE("requests: errors are in redis-server's words", "[net][resp]") {
  for (const char* count :
       {"a", "", "1a", "+1", "01", " 1", "-", "2147483648", "1048577", "99999999999999999999"}) {
    CAPTURE(count);
    CHECK(error_of("*" + std::string{count} + "\r\n") ==
          "Protocol error: invalid multibulk length");
  }
  for (const char* length : {"a", "", "-1", "536870913", "-9223372036854775808", "1 ", "01", "00",
                             "007", "0x", "1a", "12a", ":", "1:", "/"}) {
    CAPTURE(length);
    CHECK(error_of("*1\r\n$" + std::string{length} + "\r\n") ==
          "Protocol error: invalid bulk length");
  }
  CHECK(error_of("*1\r\n:1\r\n") == "Protocol error: expected '$', got ':'");
  CHECK(error_of("*1\r\nPING\r\n") == "Protocol error: expected '$', got 'P'");
}

TEST_CASE("requests: each bound, at it and one beyond", "[net][resp][limits]") {
  const std::size_t line = RequestLimits{}.line_bytes_max;
  CHECK(error_of(std::string(line, 'a')).empty());
  CHECK(error_of(std::string(line + 1, 'a')) == "Protocol error: too big inline request");
  CHECK(error_of("*" + std::string(line - 1, '1')).empty());
  CHECK(error_of("*" + std::string(line, '1')) == "Protocol error: too big mbulk count string");
  CHECK(error_of("*1\r\n$" + std::string(line - 1, '1')).empty());
  CHECK(error_of("*1\r\n$" + std::string(line, '1')) ==
        "Protocol error: too big bulk count string");
  CHECK(error_of("*1048576\r\n").empty());
  CHECK(error_of("*1\r\n$536870912\r\n").empty());
  CHECK(error_of("*10\r\n$16384\r\n", limits_before_auth).empty());
  CHECK(error_of("*11\r\n", limits_before_auth) ==
        "Protocol error: unauthenticated multibulk length");
  CHECK(error_of("*1\r\n$16385\r\n", limits_before_auth) ==
        "Protocol error: unauthenticated bulk length");
}

TEST_CASE("requests: an inline command that is whole is bound like one that is not",
          "[net][resp][limits]") {
  const RequestLimits limits{.line_bytes_max = 100};
  CHECK(read_whole(std::string(100, 'a') + "\nb\n", limits).commands.size() == 2);
  CHECK(read_whole(std::string(99, 'a') + "\r\n", limits).commands.size() == 1);
  CHECK(error_of(std::string(101, 'a') + "\n", limits) == "Protocol error: too big inline request");
  const Read behind = read_whole("a\n" + std::string(101, 'b') + "\n", limits);
  CHECK(behind.commands == std::vector<Words>{{"a"}});
  CHECK(behind.error == "Protocol error: too big inline request");
}

TEST_CASE("requests: all that an unauthenticated client declares is bound, too",
          "[net][resp][limits]") {
  // 16 KiB, and what is around them, are taken of a password; not ten times as much.
  const std::string password = "*2\r\n$4\r\nAUTH\r\n$16384\r\n" + std::string(16'384, 'p') + "\r\n";
  CHECK(read_whole(password, limits_before_auth).commands.size() == 1);
  const std::string two = "*3\r\n$4\r\nAUTH\r\n$16384\r\n" + std::string(16'384, 'p') + "\r\n";
  const std::size_t room = limits_before_auth.request_bytes_max;
  // "$NNNN\r\n" is 7 bytes long.
  const std::size_t left = room - two.size() - 7;
  CHECK(error_of(two + "$" + std::to_string(left) + "\r\n", limits_before_auth).empty());
  CHECK(error_of(two + "$" + std::to_string(left + 1) + "\r\n", limits_before_auth) ==
        "Protocol error: unauthenticated request of more than 20480 bytes");
  CHECK(error_of(std::string(16'385, 'a'), limits_before_auth) ==
        "Protocol error: too big inline request");
}

TEST_CASE("requests: words of inline commands are views that stay until the next call",
          "[net][resp]") {
  RespParser parser;
  const std::string many = "'' \"a b\" c" + std::string(3'000, ' ') + "d\n";
  REQUIRE(parser.parse(many, {}) == RespParser::Step::command);
  CHECK_FALSE(parser.in_place());
  const auto words = parser.arguments();
  CHECK(Words(words.begin(), words.end()) == Words{"", "a b", "c", "d"});
  REQUIRE(parser.parse("''\n", {}) == RespParser::Step::command);
  CHECK_FALSE(parser.in_place());  // although there is no byte in it
  CHECK(parser.arguments().size() == 1);
  REQUIRE(parser.parse("*1\r\n$1\r\na\r\n", {}) == RespParser::Step::command);
  CHECK(parser.in_place());
}

TEST_CASE("requests: a length that was declared is not paid for", "[net][resp][limits]") {
  RespParser parser;
  const std::string bytes = "*1048576\r\n$536870912\r\nabc";
  REQUIRE(parser.parse(bytes, {}) == RespParser::Step::incomplete);
  CHECK(parser.wanted() == 22 + 536'870'912 + 2);
  CHECK(parser.arguments().empty());
}

}  // namespace semel::tests
