// Requests in any pieces are the same requests: bytes into the parser, at once and in pieces.
//
// Input: two bytes that say how it is cut and under which limits, and what a client sends.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "net/resp/resp_parser.hpp"
#include "tests/fuzz/check.hpp"

namespace semel::tests {
namespace {

using net::RequestLimits;
using net::RespParser;

struct Seen {
  std::vector<std::vector<std::string>> requests{};
  std::string error{};
  std::size_t left = 0;  ///< bytes of a request that is not whole
};

/// Takes all requests out of what has come; false: nothing more is to be read.
bool take(RespParser& parser, std::string& input, const RequestLimits& limits, Seen& seen) {
  for (;;) {
    const RespParser::Step step = parser.parse(input, limits);
    if (step == RespParser::Step::incomplete) {
      check(parser.wanted() > input.size(), "incomplete, and nothing more is wanted");
      return true;
    }
    if (step == RespParser::Step::bad) {
      check(!parser.error().empty(), "refused without a word");
      seen.error = parser.error();
      return false;
    }
    check(parser.consumed() > 0 && parser.consumed() <= input.size(), "consumed out of bounds");
    const auto words = parser.arguments();
    // An inline command that comes at once is bounded by nothing but the input, as in redis-server.
    if (input.front() == '*') {
      check(words.size() <= limits.arguments_max, "more arguments than the limit");
      for (const std::string_view word : words) {
        check(word.size() <= limits.bulk_bytes_max, "a longer argument than the limit");
      }
    }
    seen.requests.emplace_back(words.begin(), words.end());
    input.erase(0, parser.consumed());
  }
}

Seen read(std::string_view bytes, const RequestLimits& limits, std::mt19937* cuts) {
  RespParser parser;
  Seen seen;
  std::string input;
  while (!bytes.empty()) {
    const std::size_t most = cuts == nullptr ? bytes.size() : 1 + (*cuts)() % 7;
    const std::size_t piece = std::min(bytes.size(), most);
    // Each time at another address, as a buffer that grows.
    input = std::string{input}.append(bytes.substr(0, piece));
    bytes.remove_prefix(piece);
    if (!take(parser, input, limits, seen)) return seen;
  }
  seen.left = input.size();
  return seen;
}

}  // namespace
}  // namespace semel::tests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace semel::tests;
  if (size < 2) return 0;
  std::mt19937 cuts{data[0]};
  const RequestLimits limits =
      data[1] % 2 == 0
          ? RequestLimits{.arguments_max = 100, .bulk_bytes_max = 1'000, .line_bytes_max = 200}
          : semel::net::limits_before_auth;
  const std::string_view bytes{reinterpret_cast<const char*>(data) + 2, size - 2};
  const Seen whole = read(bytes, limits, nullptr);
  const Seen pieces = read(bytes, limits, &cuts);
  // As in redis-server, a line may be longer than its limit if it comes at once.
  if (pieces.error.find("too big") != std::string::npos) {
    check(pieces.requests.size() <= whole.requests.size() &&
              std::equal(pieces.requests.begin(), pieces.requests.end(), whole.requests.begin()),
          "other requests in pieces, before a line that is too long");
    return 0;
  }
  check(whole.requests == pieces.requests, "other requests in pieces");
  check(whole.error == pieces.error, "another error in pieces");
  check(whole.left == pieces.left, "another rest in pieces");
  return 0;
}
