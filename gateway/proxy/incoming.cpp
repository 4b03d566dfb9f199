#include "gateway/proxy/incoming.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "gateway/rules/head.hpp"
#include "gateway/rules/route_choice.hpp"

namespace semel::gateway {
namespace {

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

std::optional<Refusal> choose_route_of(Incoming& in) {
  const std::string_view method = in.request.method;
  if (method == "CONNECT" || method == "TRACE") {
    return Refusal{Outcome::not_supported, std::string{method} + " is not served"};
  }
  const FieldLookup expect = find_field(in.fields, "Expect");
  if (expect.value) {
    if (!equal_names(*expect.value, "100-continue") || expect.repeated) {
      return Refusal{Outcome::not_supported, "Expect has something else than 100-continue"};
    }
    in.expects_continue = !in.is_1_0;
  }
  const Status passed = check_fields(in.fields);
  if (!passed) return Refusal{Outcome::bad_request, passed.error().detail};
  RouteChoice choice =
      gateway::choose_route(in.policy->routes(), in.policy->default_route(), in.request);
  in.route = choice.route;
  return std::move(choice.refusal);
}

}  // namespace

std::optional<Refusal> read_head(Incoming& in, std::string_view text, std::size_t header_limit) {
  const Status checked = check_head(text);
  if (!checked) return Refusal{Outcome::bad_request, checked.error().detail};
  in.parser.header_limit(static_cast<std::uint32_t>(header_limit));
  in.parser.body_limit(boost::none);
  error_code error;
  const std::size_t used = in.parser.put(asio::buffer(text.data(), text.size()), error);
  if (error || !in.parser.is_header_done()) {
    return Refusal{Outcome::bad_request, "the head: " + error.message()};
  }
  SEMEL_ASSERT(used == text.size());
  const auto& head = in.parser.get();
  for (const auto& field : head) {
    if (!is_passed_name(view(field.name_string()))) continue;
    in.fields.push_back({view(field.name_string()), view(field.value())});
  }
  in.target = view(head.target());
  const std::size_t mark = std::min(in.target.find('?'), in.target.size());
  in.request.method = view(head.method_string());
  in.request.path = in.target.substr(0, mark);
  in.request.query = in.target.substr(std::min(mark + 1, in.target.size()));
  in.request.fields = in.fields;
  in.is_head = head.method() == http::verb::head;
  in.is_1_0 = head.version() == 10;
  in.keep_alive = head.keep_alive();
  return choose_route_of(in);
}

bool asks_for_websocket(const Incoming& in) {
  constexpr std::size_t key_characters = 24;  // 16 bytes in base64
  const auto only = [&](std::string_view name) {
    const FieldLookup found = find_field(in.fields, name);
    return found.repeated ? std::string_view{} : found.value.value_or(std::string_view{});
  };
  return in.request.method == "GET" && !in.is_1_0 && in.parser.is_done() &&
         equal_names(only("Upgrade"), "websocket") && has_token(only("Connection"), "upgrade") &&
         only("Sec-WebSocket-Key").size() == key_characters &&
         only("Sec-WebSocket-Version") == "13";
}

Framing framing_of_request(const Incoming& in) {
  if (in.parser.chunked()) return {Framing::Kind::chunked, 0};
  const auto length = in.parser.content_length();
  return length ? Framing{Framing::Kind::length, *length} : Framing{};
}

bool is_repeatable(const Incoming& in) {
  const std::string_view method = in.request.method;
  return !has_body(framing_of_request(in)) &&
         (method == "GET" || method == "HEAD" || method == "OPTIONS");
}

}  // namespace semel::gateway
