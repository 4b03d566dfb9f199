#include <string>
#include <string_view>
#include <vector>

#include "net/follow/absolute_ends.hpp"
#include "tests/support/catch.hpp"

namespace {

std::string rewritten(const std::vector<std::string_view>& words) {
  semel::net::AbsoluteEnds ends;
  std::string text;
  for (const std::string_view word : ends.rewrite(words, 1'000'000)) {
    text.append(text.empty() ? "" : " ").append(word);
  }
  return text;
}

}  // namespace

TEST_CASE("absolute ends: an end that is counted from now names its time", "[net][follow]") {
  CHECK(rewritten({"expire", "k", "10"}) == "PEXPIREAT k 1010000");
  CHECK(rewritten({"PEXPIRE", "k", "10", "NX"}) == "PEXPIREAT k 1000010 NX");
  CHECK(rewritten({"SETEX", "k", "10", "v"}) == "SET k v PXAT 1010000");
  CHECK(rewritten({"PSETEX", "k", "10", "v"}) == "SET k v PXAT 1000010");
  CHECK(rewritten({"SET", "k", "v", "NX", "EX", "10", "GET"}) == "SET k v NX PXAT 1010000 GET");
  CHECK(rewritten({"SET", "px", "ex", "px", "10"}) == "SET px ex PXAT 1000010");
  CHECK(rewritten({"GETEX", "k", "PX", "10"}) == "GETEX k PXAT 1000010");
  CHECK(rewritten({"RESTORE", "k", "10", "bytes", "REPLACE"}) ==
        "RESTORE k 1000010 bytes REPLACE ABSTTL");
}

TEST_CASE("absolute ends: everything else stays as it came", "[net][follow]") {
  for (const std::vector<std::string_view>& words :
       std::vector<std::vector<std::string_view>>{{"PEXPIREAT", "k", "10"},
                                                  {"SET", "k", "v"},
                                                  {"SET", "k", "v", "PXAT", "10"},
                                                  {"SET", "k", "v", "EX"},
                                                  {"SET", "ex", "10"},
                                                  {"EXPIRE", "k"},
                                                  {"EXPIRE", "k", "x"},
                                                  {"EXPIRE", "k", "9223372036854775807"},
                                                  {"SETEX", "k", "10"},
                                                  {"RESTORE", "k", "0", "bytes"},
                                                  {"RESTORE", "k", "10", "bytes", "ABSTTL"},
                                                  {"PING"}}) {
    std::string text;
    for (const std::string_view word : words) text.append(text.empty() ? "" : " ").append(word);
    CHECK(rewritten(words) == text);
  }
}
