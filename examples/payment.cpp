// Payments that are never run again by themselves: what a process left in the middle is in doubt
// until somebody has asked the provider. The provider is a map here; the crash is real to the
// storage: a life ends without finishing what it had begun.
#include <semel/patterns/once.hpp>
#include <semel/semel.hpp>
#include <semel/storage.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/// A remote service: it knows what it was asked to charge, whatever happens to us.
struct Provider {
  std::map<std::string, int> charges;  // payment -> how often
  bool answers = true;
  std::string charge(const std::string& payment) {
    ++charges[payment];
    if (!answers) throw std::runtime_error{"no answer"};
    return "charged " + payment;
  }
};

/// One life of the process.
class Life {
 public:
  Life(const std::string& directory, Provider& provider) : provider_(provider) {
    storage_ = semel::Storage::open({.directory = directory}, clock_).value();
    engine_ = semel::Engine::open({.clock = &clock_,
                                   .journal = storage_.get(),
                                   .durability = semel::Durability::synced,
                                   .first_version = storage_->first_version()})
                  .value();
    static_cast<void>(storage_->recover(*engine_).value());
    payments_.emplace(engine_->claims("payments", semel::policies::payment).value());
  }

  /// Asked by a client, perhaps not for the first time. `sent` is when it first did.
  std::string pay(const std::string& payment, std::int64_t sent) {
    // An exception is no failure: the charge may have been made. With policies::payment it
    // is not run again before that is resolved.
    const auto paid = once(*payments_, {.key = payment, .first_sent_unix_ms = sent},
                           [&]() -> semel::Result<std::string> {
                             try {
                               return provider_.charge(payment);
                             } catch (const std::runtime_error& broken) {
                               return semel::unknown_outcome(broken.what());
                             }
                           });
    if (paid.has_value()) return *paid.value;
    if (paid.answer == semel::OnceAnswer::in_doubt) return "in doubt";
    if (paid.answer == semel::OnceAnswer::too_old) return "too old";
    return "later";
  }

  /// An owner that is killed before or after its charge: the claim learns nothing.
  void pay_and_die(const std::string& payment, std::int64_t sent, bool charged) {
    const auto claim = payments_->claim({.key = payment, .first_sent_unix_ms = sent});
    if (claim.answer == semel::ClaimAnswer::granted && charged) provider_.charge(payment);
  }

  /// For the operator: the payments whose end is unknown.
  std::vector<std::string> doubts() {
    constexpr std::size_t prefix = sizeof "payments:" - 1;
    std::vector<std::string> found;
    std::uint64_t cursor = 0;
    do {
      const semel::ScanOptions options{.db = {},
                                       .kind = semel::Kind::claim,
                                       .state = semel::ClaimState::in_doubt,
                                       .prefix = "payments:",
                                       .count = 100};
      cursor = engine_
                   ->scan(cursor, options,
                          [&](const semel::ScanItem& item) {
                            found.emplace_back(item.key.substr(prefix));
                          })
                   .value();
    } while (cursor != 0);
    return found;
  }

  /// The provider knows, and ends each doubt. Returns how many there were.
  std::size_t resolve_all() {
    const std::vector<std::string> open = doubts();
    for (const std::string& payment : open) {
      const bool charged = provider_.charges.count(payment) != 0;
      const auto how = charged ? semel::Resolution::done : semel::Resolution::released;
      const std::string result = charged ? "charged " + payment : "";
      static_cast<void>(payments_->resolve(payment, how, result).value());
    }
    return open.size();
  }

  [[nodiscard]] std::int64_t now() const { return clock_.unix_ms(); }

 private:
  semel::SystemClock clock_;
  Provider& provider_;
  std::unique_ptr<semel::Storage> storage_;
  std::unique_ptr<semel::Engine> engine_;
  std::optional<semel::Claims> payments_;
};

bool is(const std::string& actual, const std::string& expected) {
  std::printf("%s\n", actual.c_str());
  return actual == expected;
}

bool play(const std::string& directory) {
  Provider provider;
  bool right = true;
  std::int64_t sent = 0;
  {
    Life first{directory, provider};
    sent = first.now();
    right &= is(first.pay("p1", sent), "charged p1");
    provider.answers = false;
    right &= is(first.pay("p4", sent), "in doubt");
    right &= is(first.pay("p4", sent), "in doubt");  // asked again: not charged again
    provider.answers = true;
    first.pay_and_die("p2", sent, true);
    first.pay_and_die("p3", sent, false);
  }
  Life second{directory, provider};
  right &= is(second.pay("p1", sent), "charged p1");  // the answer, not a second charge
  right &= is(second.pay("p2", sent), "in doubt");
  right &= is(second.pay("p3", sent), "in doubt");
  right &= is(std::to_string(second.resolve_all()) + " resolved", "3 resolved");
  right &= is(second.pay("p2", sent), "charged p2");  // it was, before the crash
  right &= is(second.pay("p3", sent), "charged p3");  // it is now
  // Older than what is remembered: it may have been paid, so it is not paid.
  const std::int64_t window = semel::policies::payment.window.count();
  right &= is(second.pay("p0", second.now() - window), "too old");
  right &= second.doubts().empty();
  return right &&
         provider.charges == std::map<std::string, int>{{"p1", 1}, {"p2", 1}, {"p3", 1}, {"p4", 1}};
}

}  // namespace

int main() {
  char name[] = "/tmp/semel_example_XXXXXX";
  if (mkdtemp(name) == nullptr) return 1;
  const bool right = play(name);
  std::filesystem::remove_all(name);
  return right ? 0 : 1;
}
