// A form that is sent once: the page carries a token, and the token is good for one submission. Who
// clicks twice sees what the first click did, who made a mistake may send the form again, and a
// token that was never given out, or that is too old, does nothing.
#include <semel/policies.hpp>
#include <semel/semel.hpp>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace {

/// 128 bits that nobody can guess, as hexadecimal digits.
std::string random_token() {
  std::random_device device;
  char digits[33];
  std::snprintf(digits, sizeof digits, "%08x%08x%08x%08x", device(), device(), device(), device());
  return digits;
}

class OrderForm {
 public:
  explicit OrderForm(semel::Engine& engine)
      : tokens_(engine.claims("order-form", semel::policies::token).value()) {}

  /// The page is shown: a token for its hidden field. Empty: there is no room for one.
  std::string show() {
    std::string token = random_token();
    const auto issued = tokens_.issue(token);
    return issued && *issued ? token : std::string{};
  }

  /// The page comes back.
  std::string submit(const std::string& token, int count) {
    const semel::ClaimOutcome claim = tokens_.claim({.key = token});
    switch (claim.answer) {
      case semel::ClaimAnswer::granted:
        break;
      case semel::ClaimAnswer::replay:  // the second click
        return claim.result;
      case semel::ClaimAnswer::in_flight:
        return "being worked on";
      case semel::ClaimAnswer::kept_failure:
        return "too many tries";
      case semel::ClaimAnswer::unknown:  // never given out, or too old: both look the same
        return "show the form again";
      default:
        return "later";
    }
    if (count <= 0) {  // a mistake: the token is good again, for as long as at first
      const auto given_back =
          tokens_.fail({.key = token, .epoch = claim.epoch, .payload = "how many?"});
      return given_back.answer == semel::OwnerAnswer::ok ? "how many?" : "later";
    }
    orders_.push_back(count);
    const std::string page = "order " + std::to_string(orders_.size());
    const auto done = tokens_.complete({.key = token, .epoch = claim.epoch, .payload = page});
    return done.answer == semel::OwnerAnswer::ok ? page : "later";
  }

  [[nodiscard]] const std::vector<int>& orders() const noexcept { return orders_; }

 private:
  semel::Claims tokens_;
  std::vector<int> orders_;
};

bool is(const std::string& what, const std::string& told, const std::string& expected) {
  std::printf("%-22s %s\n", what.c_str(), told.c_str());
  return told == expected;
}

}  // namespace

int main() {
  semel::ManualClock clock;
  auto engine = semel::Engine::open({.clock = &clock}).value();
  OrderForm form{*engine};
  bool right = true;

  const std::string first = form.show();
  right &= is("submitted", form.submit(first, 3), "order 1");
  right &= is("clicked twice", form.submit(first, 3), "order 1");
  right &= is("made up", form.submit(random_token(), 3), "show the form again");

  const std::string second = form.show();
  right &= is("a mistake", form.submit(second, 0), "how many?");
  right &= is("corrected", form.submit(second, 2), "order 2");

  const std::string slow = form.show();
  clock.advance(semel::policies::token.attempts_ttl - semel::Millis{1});
  right &= is("slow", form.submit(slow, 0), "how many?");
  clock.advance(semel::policies::token.attempts_ttl - semel::Millis{1});
  right &= is("slow again", form.submit(slow, 4), "order 3");

  const std::string late = form.show();
  clock.advance(semel::policies::token.attempts_ttl);
  right &= is("too late", form.submit(late, 5), "show the form again");

  const std::string stubborn = form.show();
  for (int i = 0; i < 3; ++i) right &= is("a mistake", form.submit(stubborn, 0), "how many?");
  right &= is("the fourth try", form.submit(stubborn, 6), "too many tries");

  return right && form.orders() == std::vector<int>{3, 2, 4} ? 0 : 1;
}
