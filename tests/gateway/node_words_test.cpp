// What is said to a node and what it answers, byte by byte.
#include "gateway/store/node_words.hpp"

#include <string>
#include <string_view>

#include "tests/support/catch.hpp"

namespace {

using semel::ClaimAnswer;
using semel::Millis;
using semel::OwnerAnswer;
using semel::gateway::Advice;
using semel::gateway::Guard;
using semel::gateway::NodeReply;
using semel::gateway::parse_reply;
using semel::gateway::ParsedReply;
using semel::gateway::PathPattern;
using semel::gateway::Route;
using State = semel::gateway::ParsedReply::State;
namespace limits = semel::gateway::limits;

NodeReply reply_of(std::string_view bytes) {
  ParsedReply parsed = parse_reply(bytes);
  REQUIRE(parsed.state == State::complete);
  REQUIRE(parsed.bytes == bytes.size());
  return parsed.reply;
}

std::string array_of(std::size_t items) {
  std::string text = "*" + std::to_string(items) + "\r\n";
  for (std::size_t i = 0; i < items; ++i) text += "$1\r\nx\r\n";
  return text;
}

constexpr std::string_view granted =
    "*8\r\n$7\r\noutcome\r\n$7\r\ngranted\r\n$5\r\nepoch\r\n$2\r\n17\r\n$7\r\nattempt\r\n$1\r\n1"
    "\r\n$8\r\ntakeover\r\n$1\r\n0\r\n";

}  // namespace

TEST_CASE("node reply: a reply that is cut anywhere is incomplete, and whole it is taken",
          "[gateway][node_words]") {
  for (const std::string_view whole :
       {granted, std::string_view{"+OK\r\n"}, std::string_view{"-ERR no\r\n"},
        std::string_view{":-7\r\n"}, std::string_view{"$-1\r\n"}, std::string_view{"$0\r\n\r\n"},
        std::string_view{"$4\r\na\r\nb\r\n"}, std::string_view{"*0\r\n"}}) {
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
      const ParsedReply part = parse_reply(whole.substr(0, bytes));
      CHECK(part.state == State::incomplete);
      CHECK(part.bytes > bytes);
      CHECK(part.bytes <= whole.size());
    }
    const std::string more = std::string{whole} + "+next";
    CHECK(parse_reply(more).bytes == whole.size());
  }
  CHECK(reply_of("$4\r\na\r\nb\r\n").text == "a\r\nb");
  CHECK(reply_of("$-1\r\n").kind == NodeReply::Kind::null);
}

TEST_CASE("node reply: what is not the protocol is told from what is incomplete",
          "[gateway][node_words]") {
  for (const std::string_view bytes :
       {"\r\n", "HTTP/1.1 200 OK\r\n", "$x\r\n", "$-2\r\n", "$1\r\nabc", "*-5\r\n", ":\r\n",
        ":1x\r\n", "*1\r\n*0\r\n", "%1\r\n+a\r\n+b\r\n", "*x\r\n", "$99999999999999999999\r\n",
        "*1\r\n-ERR\r\n"}) {
    CHECK(parse_reply(bytes).state == State::invalid);
  }
}

TEST_CASE("node reply: limits hold at n and at n + 1", "[gateway][node_words]") {
  CHECK(parse_reply(array_of(limits::reply_items_max)).state == State::complete);
  CHECK(parse_reply(array_of(limits::reply_items_max + 1)).state == State::invalid);
  const std::string line = "-" + std::string(limits::reply_line_max - 1, 'x');
  CHECK(parse_reply(line + "\r\n").state == State::complete);
  CHECK(parse_reply(line + "x\r\n").state == State::invalid);
  CHECK(parse_reply(line).state == State::incomplete);
  const std::string head = "$" + std::to_string(limits::reply_bytes_max) + "\r\n";
  CHECK(parse_reply(head).state == State::invalid);  // with its head it is longer
  const std::size_t fits = limits::reply_bytes_max - head.size() - 2;
  CHECK(parse_reply("$" + std::to_string(fits) + "\r\n").state == State::incomplete);
  CHECK(parse_reply("$" + std::to_string(fits + 1) + "\r\n").state == State::invalid);
}

TEST_CASE("node words: answers to claims and owners are read by name, or are none",
          "[gateway][node_words]") {
  const auto outcome = semel::gateway::claim_outcome_of(reply_of(granted));
  REQUIRE(outcome);
  CHECK(outcome->answer == ClaimAnswer::granted);
  CHECK(outcome->epoch == 17);
  const auto replay = semel::gateway::claim_outcome_of(
      reply_of("*4\r\n$7\r\noutcome\r\n$6\r\nreplay\r\n$6\r\nresult\r\n$4\r\npaid\r\n"));
  REQUIRE(replay);
  CHECK(replay->result == "paid");
  for (const std::string_view bytes :
       {"+granted\r\n", "*0\r\n", "*2\r\n$7\r\noutcome\r\n$7\r\ngranted\r\n",
        "*4\r\n$7\r\noutcome\r\n$7\r\ngranted\r\n$5\r\nepoch\r\n$1\r\n0\r\n",
        "*4\r\n$7\r\noutcome\r\n$7\r\ngranted\r\n$5\r\nepoch\r\n$2\r\n-1\r\n",
        "*2\r\n$7\r\noutcome\r\n$5\r\nmaybe\r\n", "*1\r\n$7\r\noutcome\r\n"}) {
    CHECK_FALSE(semel::gateway::claim_outcome_of(reply_of(bytes)));
    CHECK_FALSE(semel::gateway::owner_outcome_of(reply_of(bytes)));
  }
  const auto stale = semel::gateway::owner_outcome_of(
      reply_of("*4\r\n$7\r\noutcome\r\n$11\r\nstale_owner\r\n$6\r\nresult\r\n$1\r\nx\r\n"));
  REQUIRE(stale);
  CHECK(stale->answer == OwnerAnswer::stale_owner);
  CHECK(stale->has_result);
}

TEST_CASE("node words: an error says whether its command may have been done",
          "[gateway][node_words]") {
  const auto advice = [](std::string_view text) {
    return semel::gateway::advice_of(reply_of("-" + std::string{text} + "\r\n"));
  };
  CHECK(advice("MOVED 7 127.0.0.1:7001") == Advice::elsewhere);
  CHECK(advice("CLUSTERDOWN no leader is known") == Advice::elsewhere);
  CHECK(advice("READONLY") == Advice::elsewhere);
  CHECK(advice("LOADING it") == Advice::elsewhere);
  CHECK(advice("TRYAGAIN applied") == Advice::unknown);
  CHECK(advice("BUSY a script runs") == Advice::ask_again);
  CHECK(advice("OOM full") == Advice::final_answer);
  CHECK(advice("NOPERM no") == Advice::final_answer);
  CHECK(semel::gateway::moved_to("MOVED 7 [::1]:7001") == "[::1]:7001");
  CHECK(semel::gateway::moved_to("ERR MOVED 7 a:1").empty());
}

TEST_CASE("node words: a signed route without a lead has nonces whose lead is checked",
          "[gateway][node_words]") {
  Route route;
  route.name = "hook";
  route.guard = Guard::idempotency_key;
  route.signature.is_required = true;
  route.signature.ahead = Millis{0};
  const auto needs = semel::gateway::namespaces_of({route});
  REQUIRE(needs.size() == 2);
  CHECK(needs[0].name == "gw.hook");
  CHECK(needs[1].name == "gw-nonce.hook");
  CHECK(needs[1].policy.window == route.signature.window);
  CHECK(needs[1].policy.ahead == Millis{1});
  CHECK(needs[1].policy.lease > route.signature.window);
  const std::string said = semel::gateway::namespace_command("DECLARE", needs[0]);
  CHECK(said.find("ON-LEASE-END\r\n$8\r\nIN-DOUBT") != std::string::npos);
}

TEST_CASE("gateway node: a client learns only the first word of an error of the store",
          "[gateway][node]") {
  using semel::gateway::error_word;
  CHECK(error_word("NOPERM user gw has no permissions") == "NOPERM");
  CHECK(error_word("OOM") == "OOM");
  CHECK(error_word("") == "ERR");
  CHECK(error_word("10.0.0.1:6379 is down") == "ERR");
  CHECK(error_word("ABCDEFGHIJKLMNOP x") == "ABCDEFGHIJKLMNOP");
  CHECK(error_word("ABCDEFGHIJKLMNOPQ x") == "ERR");
}
