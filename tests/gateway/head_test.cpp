// Heads that have two readings are refused, and paths that would be another route's further on.
#include "gateway/rules/head.hpp"

#include <string>
#include <vector>

#include "gateway/rules/limits.hpp"
#include "gateway/rules/message.hpp"
#include "gateway/rules/method.hpp"
#include "tests/support/catch.hpp"

namespace {

using semel::gateway::check_head;
using semel::gateway::end_of_head;
using semel::gateway::normal_path;

std::string with_fields(const std::string& fields) {
  return "POST /pay HTTP/1.1\r\nHost: shop\r\n" + fields + "\r\n";
}

std::string why(const std::string& head) {
  const semel::Status checked = check_head(head);
  return checked.ok() ? "" : checked.error().detail;
}

}  // namespace

TEST_CASE("head: a plain request of either version is accepted", "[gateway][head]") {
  CHECK(why(with_fields("Content-Length: 5\r\nX-Note:  a b \r\n")).empty());
  CHECK(why(with_fields("Transfer-Encoding: chunked\r\n")).empty());
  CHECK(why("GET / HTTP/1.0\r\n\r\n").empty());
  CHECK(why("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").empty());
  for (const char* const host : {"", "shop.example:8080", "[::1]:80", "192.0.2.1", "a_b"}) {
    CHECK(why("GET / HTTP/1.1\r\nHost: " + std::string{host} + "\r\n\r\n").empty());
  }
}

TEST_CASE("head: what two servers may read differently is refused", "[gateway][head]") {
  const std::string refused[] = {
      with_fields("Content-Length: 5\r\nContent-Length: 5\r\n"),
      with_fields("Content-Length: 5\r\nContent-Length: 6\r\n"),
      with_fields("Content-Length: 5, 5\r\n"),
      with_fields("Content-Length: +5\r\n"),
      with_fields("Content-Length: 0x5\r\n"),
      with_fields("Content-Length: \r\n"),
      with_fields("Content-Length: 99999999999999999999\r\n"),
      with_fields("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
      with_fields("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
      with_fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
      with_fields("Transfer-Encoding: gzip, chunked\r\n"),
      with_fields("Transfer-Encoding: chunked, identity\r\n"),
      with_fields("Transfer-Encoding: xchunked\r\n"),
      with_fields("Transfer-Encoding : chunked\r\n"),
      with_fields("X-Folded: a\r\n b\r\n"),
      with_fields(" X-First: a\r\n"),
      with_fields("X-Bare: a\nContent-Length: 5\r\n"),
      with_fields("X-Return: a\rb\r\n"),
      with_fields(std::string("X-Null: a\0b\r\n", 13)),
      with_fields("No colon\r\n"),
      with_fields(": no name\r\n"),
      with_fields("Host: other\r\n"),
      "POST /pay HTTP/1.1\r\n\r\n",
      "POST /pay HTTP/1.1\r\nHost: a, b\r\n\r\n",
      "POST /pay HTTP/1.1\r\nHost: a b\r\n\r\n",
      "POST /pay HTTP/1.1\r\nHost: a@b\r\n\r\n",
      "POST /pay HTTP/1.1\r\nHost: a/b\r\n\r\n",
      "POST /pay HTTP/1.1\r\nHost: a?b\r\n\r\n",
      "POST /pay HTTP/1.1\r\nHost: \xc3\xa9\r\n\r\n",
      "POST  /pay HTTP/1.1\r\nHost: a\r\n\r\n",
      "POST /pay HTTP/1.1 \r\nHost: a\r\n\r\n",
      "POST /a b HTTP/1.1\r\nHost: a\r\n\r\n",
      "POST http://other/ HTTP/1.1\r\nHost: a\r\n\r\n",
      "POST /pay#part HTTP/1.1\r\nHost: a\r\n\r\n",
      "POST /pay HTTP/2.0\r\nHost: a\r\n\r\n",
      "POST /pay HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
      "PO ST /pay\r\n\r\n",
      "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\n"};
  for (const std::string& head : refused) {
    INFO(head);
    CHECK_FALSE(why(head).empty());
  }
}

TEST_CASE("head: a method is a registered one in capitals", "[gateway][head][between-2]") {
  const auto head = [](const std::string& method) {
    return method + " /pay HTTP/1.1\r\nHost: a\r\n\r\n";
  };
  for (const auto method : semel::gateway::served_methods()) {
    CHECK(why(head(std::string{method})).empty());
  }
  for (const char* const method :
       {"post", "Post", "POSt", "get", "FETCH", "PRI", "P", "POST,", "_POST"}) {
    CHECK(why(head(method)).find("'" + std::string{method} + "'") != std::string::npos);
  }
}

TEST_CASE("head: Connection takes no field of the request away", "[gateway][head][between-3]") {
  using semel::gateway::Field;
  const auto passes = [](std::vector<Field> fields) {
    fields.insert(fields.end(), {{"Host", "a"},
                                 {"authorization", "b"},
                                 {"Idempotency-Key", "k"},
                                 {"X-Limit", "1"},
                                 {"TE", "trailers"},
                                 {"Keep-Alive", "5"}});
    return semel::gateway::check_fields(fields).ok();
  };
  for (const char* const value :
       {"close", "keep-alive, TE", "Upgrade", "X-Other", "", "Keep-Alive,te,,"}) {
    INFO(value);
    CHECK(passes({{"Connection", value}}));
  }
  for (const char* const value :
       {"X-Limit", "close, Authorization", "idempotency-key", "Host", "TE , x-limit\t", ",,HOST"}) {
    INFO(value);
    CHECK_FALSE(passes({{"Connection", value}}));
    CHECK_FALSE(passes({{"Connection", "close"}, {"connection", value}}));
  }
}

TEST_CASE("head: names that servers may read as others are not passed on",
          "[gateway][head][between-3]") {
  using semel::gateway::is_passed_name;
  CHECK(is_passed_name("Idempotency-Key"));
  CHECK(is_passed_name("X-9"));
  for (const char* const name : {"Idempotency_Key", "Semel_Fencing-Token", "X.Limit", "X~Limit",
                                 "Content_Length", "X!", "X|Y", "X*"}) {
    INFO(name);
    CHECK_FALSE(is_passed_name(name));
  }
}

TEST_CASE("head: its limits hold at n and at n + 1", "[gateway][head][limits]") {
  namespace limits = semel::gateway::limits;
  const auto target = [](std::size_t bytes) {
    return "GET /" + std::string(bytes - 1, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n";
  };
  CHECK(why(target(limits::target_bytes_max)).empty());
  CHECK(why(target(limits::target_bytes_max + 1)).find("limit") != std::string::npos);
  const auto fields = [](std::size_t count) {
    std::string text = "GET / HTTP/1.1\r\nHost: a\r\n";
    for (std::size_t i = 1; i < count; ++i) text += "X: y\r\n";
    return text + "\r\n";
  };
  CHECK(why(fields(limits::fields_max)).empty());
  CHECK(why(fields(limits::fields_max + 1)).find("header fields") != std::string::npos);
}

TEST_CASE("head: its end is found, also where lines end without CR", "[gateway][head]") {
  CHECK_FALSE(end_of_head("GET / HTTP/1.1\r\nHost: a\r\n"));
  CHECK(end_of_head("GET / HTTP/1.1\r\n\r\nbody") == 18U);
  CHECK(end_of_head("GET / HTTP/1.1\n\nbody") == 16U);
  CHECK_FALSE(end_of_head(""));
}

TEST_CASE("head: hop-by-hop fields are known, and those that Connection names", "[gateway][head]") {
  using semel::gateway::is_hop_by_hop;
  CHECK(is_hop_by_hop("connection", ""));
  CHECK(is_hop_by_hop("Transfer-Encoding", ""));
  CHECK(is_hop_by_hop("X-Secret", "close, x-secret"));
  CHECK_FALSE(is_hop_by_hop("X-Secret", "close"));
  CHECK_FALSE(is_hop_by_hop("Content-Length", ""));
}

TEST_CASE("path: one form for the choice of a route, and no second reading", "[gateway][head]") {
  CHECK(*normal_path("/p%61y") == "/pay");
  CHECK(*normal_path("//pay///now") == "/pay/now");
  CHECK(*normal_path("/a/..b/.c") == "/a/..b/.c");
  CHECK(*normal_path("/pay;a=b/now;/x") == "/pay/now/x");
  CHECK(*normal_path("/;x/pay%3Ba/") == "/pay/");
  for (const char* const path : {"/a/..;/pay", "/a/%2e%2e;b/pay", "/a/../pay", "/a/%2e%2e/pay",
                                 "/./pay", "/pay/.", "/pay/..", "/a%2fb", "/a%5cb", "/a\\b",
                                 "/%2570ay", "/a%00", "/a%0a", "/a%", "/a%4", "/a%zz"}) {
    INFO(path);
    CHECK_FALSE(normal_path(path).ok());
  }
}
