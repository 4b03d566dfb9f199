// What an operator shows at the admin port, and what is written of it.
#include "gateway/guard/admin_token.hpp"

#include <string>

#include "tests/support/catch.hpp"

using semel::gateway::AdminToken;

namespace {

bool is_token(const std::string& text) {
  return AdminToken::make(text).ok();
}

}  // namespace

TEST_CASE("admin token: 16 to 1024 printable characters are one", "[gateway][admin]") {
  CHECK_FALSE(is_token(""));
  CHECK_FALSE(is_token(std::string(15, 'x')));
  CHECK(is_token(std::string(16, 'x')));
  CHECK(is_token(std::string(1024, 'x')));
  CHECK_FALSE(is_token(std::string(1025, 'x')));
  for (const char wrong : {' ', '\t', '\0', '\x7f', '\xe4'}) {
    CHECK_FALSE(is_token(std::string(16, 'x') + wrong));
  }
  const auto refused = AdminToken::make("secret");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().detail.find("secret") == std::string::npos);
}

TEST_CASE("admin token: only the whole token behind Bearer is taken", "[gateway][admin]") {
  const auto token = AdminToken::make("0123456789abcdef");
  REQUIRE(token.ok());
  for (const char* const right :
       {"Bearer 0123456789abcdef", "bearer 0123456789abcdef", "BEARER   0123456789abcdef"}) {
    CHECK(token->is_in(right));
  }
  for (const char* const wrong :
       {"", "Bearer", "Bearer ", "0123456789abcdef", "Basic 0123456789abcdef",
        "Bearer 0123456789abcde", "Bearer 0123456789abcdeF", "Bearer 0123456789abcdefg",
        "Bearer 0123456789abcdef ", "Bearer\t0123456789abcdef", "Bearer0123456789abcdef",
        " Bearer 0123456789abcdef", "Bearers 0123456789abcdef", "Beare 0123456789abcdef",
        "[earer 0123456789abcdef"}) {
    CHECK_FALSE(token->is_in(wrong));
  }
}
