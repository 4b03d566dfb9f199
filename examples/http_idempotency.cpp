// POST /payments with an Idempotency-Key, as draft-ietf-httpapi-idempotency-key-header has it: a
// request that is sent again is answered as at first, and charges nothing. Payments is to be
// copied.
#include <semel/patterns/keys.hpp>
#include <semel/patterns/once.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>

#include "examples/http_loopback.hpp"

namespace {

namespace http = loopback::http;
using loopback::answer;
using loopback::problem;
using loopback::Request;
using loopback::Response;
using loopback::text;

// --- the endpoint -------------------------------------------------------------------------------

/// The string of a structured field (RFC 8941, 3.3.3): printable ASCII in quotes, with \" and \\.
std::optional<std::string> structured_string(std::string_view field) {
  if (field.size() < 2 || field.front() != '"' || field.back() != '"') return std::nullopt;
  field = field.substr(1, field.size() - 2);
  std::string found;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] < ' ' || field[i] > '~' || field[i] == '"') return std::nullopt;
    if (field[i] == '\\' && (++i == field.size() || (field[i] != '"' && field[i] != '\\'))) {
      return std::nullopt;
    }
    found += field[i];
  }
  return found;
}

/// What is kept of an answer.
struct Kept {
  int status;
  std::string body;
  [[nodiscard]] std::string encode() const { return std::to_string(status) + body; }
  static std::optional<Kept> decode(semel::Bytes bytes) {
    const auto status = semel::Codec<int>::decode(bytes.substr(0, 3));
    if (bytes.size() < 3 || !status) return std::nullopt;
    return Kept{*status, std::string{bytes.substr(3)}};
  }
};

class Payments {
 public:
  /// The work itself: what a provider answers to a body.
  using Charge = std::function<Kept(const std::string&)>;
  Payments(semel::Engine& engine, Charge charge)
      : claims_(engine.claims("http", semel::policies::call).value()), charge_(std::move(charge)) {}

  Response handle(const Request& request) {
    const auto caller = callers.find(text(request[http::field::authorization]));
    if (caller == callers.end()) return problem(401, "Who are you?");
    if (request.count("Idempotency-Key") == 0) return problem(400, "Idempotency-Key is missing");
    const auto id = structured_string(text(request["Idempotency-Key"]));
    if (request.count("Idempotency-Key") > 1 || !id || id->empty() || id->size() > key_max) {
      return problem(400, "Idempotency-Key is not one string of 1 to 255 characters in quotes");
    }
    // One caller's keys are nothing to another.
    const auto key = semel::scoped_key({.tenant = caller->second, .needs_tenant = true}, *id);
    if (!key) return problem(400, key.error().message());
    const std::string method = text(request.method_string());
    const std::string path = text(request.target());
    const semel::KeyField asked[] = {{"method", method}, {"path", path}, {"body", request.body()}};
    return response_to(once(claims_, {.key = *key, .fingerprint = semel::fingerprint_of(asked)},
                            [&]() -> semel::Result<Kept> {
                              Kept kept = charge_(request.body());
                              if (kept.status < 500) return kept;
                              return semel::unknown_outcome(kept.body);
                            }));
  }

 private:
  /// The draft: a repeat gets the result of the first, "success or an error". A 4xx is such a
  /// result, and is kept: the same request would get it again. A 5xx does not say what
  /// became of the charge. With policies::call that gives the key back, and the client's next try
  /// is a first one: right only where a 5xx charges nothing. Where that is not known take
  /// policies::payment: the key is in doubt, and is not charged before an operator has looked.
  static Response response_to(const semel::OnceOutcome<Kept>& outcome) {
    switch (outcome.answer) {
      case semel::OnceAnswer::in_flight: {
        Response response = problem(409, "A request is outstanding for this Idempotency-Key");
        response.set(http::field::retry_after, seconds(outcome.retry_after));
        return response;
      }
      case semel::OnceAnswer::mismatch:
        return problem(422, "Idempotency-Key is already used");
      case semel::OnceAnswer::failed:
        return problem(500, "The payment was not made");
      case semel::OnceAnswer::in_doubt:
        return problem(500, "It is not known whether the payment was made");
      default:
        break;
    }
    if (!outcome.has_value()) {
      Response response = problem(503, "No room now");
      response.set(http::field::retry_after, seconds(outcome.retry_after));
      return response;
    }
    Response response = answer(outcome.value->status, outcome.value->body);
    if (outcome.answer == semel::OnceAnswer::replayed) {
      response.set("Idempotency-Replayed", "true");  // our name: the draft has none
    }
    return response;
  }

  static std::string seconds(semel::Millis wait) {
    return std::to_string(std::max<std::int64_t>(1, (wait.count() + 999) / 1'000));
  }

  static constexpr std::size_t key_max = 255;
  inline static const std::map<std::string, std::string> callers{{"Bearer a1", "alice"},
                                                                 {"Bearer b2", "bob"}};
  semel::Claims claims_;
  Charge charge_;
};

// --- a client that tries it ---------------------------------------------------------------------

struct Sent {
  std::string key;  // as the header has it; empty: none
  std::string body = "100";
  std::string caller = "Bearer a1";
  std::string path = "/payments";
};

/// The answer as one line: status, body, and whether it was replayed.
std::string post(const loopback::Server& server, const Sent& sent) {
  Request request{http::verb::post, sent.path, 11, sent.body};
  request.set(http::field::authorization, sent.caller);
  if (!sent.key.empty()) request.set("Idempotency-Key", sent.key);
  const Response response = ask(server, std::move(request));
  const bool is_problem = response[http::field::content_type] == "application/problem+json";
  return std::to_string(response.result_int()) + " " + (is_problem ? "problem" : response.body()) +
         (response.count("Idempotency-Replayed") != 0 ? " replayed" : "") +
         (response.count(http::field::retry_after) != 0 ? " later" : "");
}

bool is(const std::string& actual, const std::string& expected) {
  std::printf("%s\n", actual.c_str());
  return actual == expected;
}

}  // namespace

int main() {
  constexpr std::chrono::seconds patience{20};
  int charges = 0;
  bool provider_is_up = false;
  std::promise<void> begun;
  std::promise<void> go_on;
  auto engine = semel::Engine::open().value();
  Payments payments{*engine, [&](const std::string& body) {
                      if (body == "0") return Kept{402, "nothing to pay"};
                      if (body == "50" && !provider_is_up) return Kept{503, "down"};
                      if (body == "slow") {
                        begun.set_value();
                        go_on.get_future().wait_for(patience);
                      }
                      return Kept{201, "charge " + std::to_string(++charges)};
                    }};
  const loopback::Server server{[&](const Request& request) { return payments.handle(request); }};
  bool right = true;
  const auto check = [&](const Sent& sent, const std::string& expected) {
    right &= is(post(server, sent), expected);
  };
  check({.key = ""}, "400 problem");
  check({.key = "bare"}, "400 problem");
  check({.key = "\"a\"b\""}, "400 problem");
  check({.key = "\"a\\\\\"b\""}, "400 problem");
  check({.key = "\"\""}, "400 problem");
  check({.key = '"' + std::string(256, 'k') + '"'}, "400 problem");
  check({.key = "\"k1\"", .caller = "Bearer c3"}, "401 problem");
  check({.key = "\"k1\""}, "201 charge 1");
  check({.key = "\"k1\""}, "201 charge 1 replayed");
  check({.key = "\"k1\"", .body = "200"}, "422 problem");
  check({.key = "\"k1\"", .path = "/refunds"}, "422 problem");
  check({.key = "\"k1\"", .caller = "Bearer b2"}, "201 charge 2");
  check({.key = "\"k\\\"2\"", .body = "0"}, "402 nothing to pay");
  check({.key = "\"k\\\"2\"", .body = "0"}, "402 nothing to pay replayed");
  check({.key = "\"k3\"", .body = "50"}, "500 problem");
  provider_is_up = true;
  check({.key = "\"k3\"", .body = "50"}, "201 charge 3");
  // Two at once: the second is asked to retry, and then gets the answer of the first.
  const Sent slow{.key = "\"k4\"", .body = "slow"};
  auto first = std::async(std::launch::async, [&] { return post(server, slow); });
  begun.get_future().wait_for(patience);
  check(slow, "409 problem later");
  go_on.set_value();
  right &= is(first.get(), "201 charge 4");
  check(slow, "201 charge 4 replayed");
  return right && charges == 4 ? 0 : 1;
}
