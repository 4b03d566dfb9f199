// When a connection to the upstream may serve another request: only when nothing is owed on it.
#include "gateway/rules/exchange_account.hpp"

#include <optional>

#include "tests/support/catch.hpp"

namespace {

using semel::gateway::ExchangeAccount;

ExchangeAccount replied(std::optional<std::uint64_t> bytes, std::uint64_t sent) {
  ExchangeAccount account;
  account.begin(bytes);
  account.sent(sent);
  account.reply_ended(true);
  return account;
}

}  // namespace

TEST_CASE("account: a connection is settled when all was sent and all was read",
          "[gateway][account][between-1]") {
  CHECK(replied(100, 100).is_settled());
  CHECK_FALSE(ExchangeAccount{}.is_settled());
  ExchangeAccount account;
  account.begin(100);
  CHECK_FALSE(account.is_settled());
  account.sent(60);
  account.sent(40);
  CHECK_FALSE(account.is_settled());  // the reply is owed
  account.reply_ended(true);
  CHECK(account.is_settled());
  account.begin(50);  // what was settled before is of no help
  CHECK_FALSE(account.is_settled());
}

TEST_CASE("account: a byte too few or too many is a debt", "[gateway][account][between-1]") {
  CHECK_FALSE(replied(100, 99).is_settled());
  CHECK_FALSE(replied(100, 101).is_settled());
  CHECK_FALSE(replied(100, 0).is_settled());
  CHECK(replied(0, 0).is_settled());
}

TEST_CASE("account: chunks are owed until the last one was sent", "[gateway][account][between-1]") {
  ExchangeAccount account = replied(std::nullopt, 1'000);
  CHECK_FALSE(account.is_settled());
  account.sent_last_chunk();
  CHECK(account.is_settled());
}

TEST_CASE("account: a reply whose head ends the connection settles nothing",
          "[gateway][account][between-1]") {
  ExchangeAccount account;
  account.begin(10);
  account.sent(10);
  account.reply_ended(false);
  CHECK_FALSE(account.is_settled());
}
