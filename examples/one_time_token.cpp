// A form that is sent once: the page carries a token, and the token is good for one submission. Who
// clicks twice sees what the first click did, who made a mistake may send the form again, and a
// token that was never given out, or that is too old, does nothing.
#include <semel/patterns/token_service.hpp>
#include <semel/policies.hpp>
#include <semel/semel.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace {

class OrderForm {
 public:
  explicit OrderForm(semel::Engine& engine)
      : tokens_(
            semel::TokenService::open(engine.claims("order-form", semel::policies::token).value())
                .value()) {}

  /// The page is shown: a token for its hidden field. Empty: there is no room for one.
  std::string show() {
    auto token = tokens_.issue();
    return token.ok() ? *std::move(token) : std::string{};
  }

  /// The page comes back.
  std::string submit(const std::string& token, int count) {
    const auto page = tokens_.redeem(token, [&] { return order(count); });
    if (page.has_value()) return *page.value;  // of this click, or of the first
    switch (page.answer) {
      case semel::OnceAnswer::failed:
        return page.error.detail;
      case semel::OnceAnswer::in_flight:
        return "being worked on";
      case semel::OnceAnswer::kept_failure:
        return "too many tries";
      case semel::OnceAnswer::unknown:  // never given out, or too old: both look the same
        return "show the form again";
      default:
        return "later";
    }
  }

  [[nodiscard]] const std::vector<int>& orders() const noexcept { return orders_; }

 private:
  /// An error gives the token back: it is good again, for as long as at first.
  semel::Result<std::string> order(int count) {
    if (count <= 0) return semel::Error{semel::ErrorCode::refused, "how many?"};
    orders_.push_back(count);
    return "order " + std::to_string(orders_.size());
  }

  semel::TokenService tokens_;
  std::vector<int> orders_;
};

bool is(const std::string& what, const std::string& actual, const std::string& expected) {
  std::printf("%-22s %s\n", what.c_str(), actual.c_str());
  return actual == expected;
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
  right &= is("made up", form.submit("0123456789abcdefghijkl", 3), "show the form again");

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
