// Replies, byte for byte, in both dialects.
#include "net/resp/resp_writer.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include "tests/support/catch.hpp"

namespace semel::tests {

using net::Resp;
using net::RespWriter;

namespace {

std::string written(Resp dialect, const std::function<void(RespWriter&)>& write) {
  std::string out;
  RespWriter writer{out, dialect};
  write(writer);
  return out;
}

}  // namespace

TEST_CASE("replies: each form in both dialects", "[net][resp]") {
  struct Case {
    std::function<void(RespWriter&)> write;
    std::string two;
    std::string three;
  };
  const std::vector<Case> cases{
      {[](RespWriter& w) { w.ok(); }, "+OK\r\n", "+OK\r\n"},
      {[](RespWriter& w) { w.error("ERR no\r\nway"); }, "-ERR no  way\r\n", "-ERR no  way\r\n"},
      {[](RespWriter& w) { w.integer(std::numeric_limits<std::int64_t>::min()); },
       ":-9223372036854775808\r\n", ":-9223372036854775808\r\n"},
      {[](RespWriter& w) {
         w.bulk({"\0\r\n", 3});
       },
       std::string{"$3\r\n\0\r\n\r\n", 9}, std::string{"$3\r\n\0\r\n\r\n", 9}},
      {[](RespWriter& w) { w.bulk({}); }, "$0\r\n\r\n", "$0\r\n\r\n"},
      {[](RespWriter& w) { w.bulk_of(-42); }, "$3\r\n-42\r\n", "$3\r\n-42\r\n"},
      {[](RespWriter& w) { w.null(); }, "$-1\r\n", "_\r\n"},
      {[](RespWriter& w) { w.null_array(); }, "*-1\r\n", "_\r\n"},
      {[](RespWriter& w) { w.boolean(true); }, ":1\r\n", "#t\r\n"},
      {[](RespWriter& w) { w.boolean(false); }, ":0\r\n", "#f\r\n"},
      {[](RespWriter& w) { w.number(0.1); }, "$3\r\n0.1\r\n", ",0.1\r\n"},
      {[](RespWriter& w) { w.number(-HUGE_VAL); }, "$4\r\n-inf\r\n", ",-inf\r\n"},
      {[](RespWriter& w) { w.verbatim("a"); }, "$1\r\na\r\n", "=5\r\ntxt:a\r\n"},
      {[](RespWriter& w) { w.array(3); }, "*3\r\n", "*3\r\n"},
      {[](RespWriter& w) { w.map(3); }, "*6\r\n", "%3\r\n"},
      {[](RespWriter& w) { w.set(3); }, "*3\r\n", "~3\r\n"},
      {[](RespWriter& w) { w.push(3); }, "*3\r\n", ">3\r\n"}};
  for (const Case& each : cases) {
    CHECK(written(Resp::two, each.write) == each.two);
    CHECK(written(Resp::three, each.write) == each.three);
  }
}

TEST_CASE("replies: a double is the shortest text that reads back as itself", "[net][resp]") {
  for (const double value : {0.0, 1.0, -1.5, 3.0e300, 1.0e-9, 1.0 / 3, 123456789.125}) {
    CHECK(std::stod(net::text_of(value)) == value);
  }
  CHECK(net::text_of(3.0) == "3");
  CHECK(net::text_of(std::numeric_limits<double>::quiet_NaN()) == "nan");
}

}  // namespace semel::tests
