#include "gateway/proxy/heads.hpp"

#include <algorithm>
#include <array>
#include <boost/beast/http/status.hpp>
#include <charconv>

#include "gateway/rules/head.hpp"

namespace semel::gateway {
namespace {

void append_field(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ").append(value).append("\r\n");
}

void append_framing(std::string& head, const Framing& framing) {
  if (framing.kind == Framing::Kind::length) {
    append_field(head, "Content-Length", std::to_string(framing.length));
  } else if (framing.kind == Framing::Kind::chunked) {
    append_field(head, "Transfer-Encoding", "chunked");
  }
}

/// The values of all Connection fields, as one list.
std::string connection_of(Fields fields) {
  std::string all;
  for (const Field& field : fields) {
    if (!equal_names(field.name, "Connection")) continue;
    if (!all.empty()) all += ',';
    all += field.value;
  }
  return all;
}

bool is_forwarded(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 5> names{
      "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP"};
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view each) { return equal_names(each, name); });
}

}  // namespace

std::string upstream_head(const Request& request, std::string_view target, const Framing& framing,
                          const ForwardOptions& options) {
  constexpr std::size_t usual_bytes = 1'024;
  std::string head;
  head.reserve(usual_bytes);
  head.append(request.method).append(" ").append(target).append(" HTTP/1.1\r\n");
  const std::string_view client_host = find_field(request.fields, "Host").value.value_or("");
  const std::string_view host = options.host.empty() ? client_host : options.host;
  append_field(head, "Host", host);
  std::string forwarded_for;
  for (const Field& field : request.fields) {
    const bool is_ours =
        equal_names(field.name, "Host") || equal_names(field.name, "Content-Length") ||
        equal_names(field.name, "Expect") || equal_names(field.name, "Semel-Fencing-Token");
    if (is_ours || is_hop_by_hop(field.name, "")) continue;
    if (is_forwarded(field.name)) {
      if (!options.trusts_forwarded) continue;
      if (equal_names(field.name, "X-Forwarded-For")) {
        forwarded_for.append(field.value).append(", ");
        continue;
      }
    }
    append_field(head, field.name, field.value);
  }
  append_field(head, "X-Forwarded-For", forwarded_for.append(options.client_address));
  const auto add_unless_there = [&](std::string_view name, std::string_view value) {
    const bool is_there = options.trusts_forwarded && find_field(request.fields, name).value;
    if (!is_there) append_field(head, name, value);
  };
  add_unless_there("X-Forwarded-Proto", options.is_tls ? "https" : "http");
  if (!client_host.empty()) add_unless_there("X-Forwarded-Host", client_host);
  if (!options.fencing_token.empty()) {
    append_field(head, "Semel-Fencing-Token", options.fencing_token);
  }
  if (options.is_upgrade) {
    append_field(head, "Connection", "upgrade");
    append_field(head, "Upgrade", find_field(request.fields, "Upgrade").value.value_or(""));
  }
  append_framing(head, framing);
  return head.append("\r\n");
}

std::vector<Field> end_to_end_fields(Fields fields) {
  const std::string connection = connection_of(fields);
  std::vector<Field> kept;
  kept.reserve(fields.size());
  for (const Field& field : fields) {
    if (equal_names(field.name, "Content-Length")) continue;
    if (!is_hop_by_hop(field.name, connection)) kept.push_back(field);
  }
  return kept;
}

std::string client_head(const ReplyHead& reply) {
  constexpr std::size_t usual_bytes = 512;
  std::string head;
  head.reserve(usual_bytes);
  head.append("HTTP/1.1 ").append(std::to_string(reply.status)).append(" ");
  if (reply.reason.empty()) {
    const auto usual =
        boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(reply.status));
    head.append(usual.data(), usual.size());
  } else {
    head.append(reply.reason);
  }
  head.append("\r\n");
  for (const Field& field : reply.fields) append_field(head, field.name, field.value);
  head.append(reply.extra);
  append_framing(head, reply.framing);
  if (!reply.keep_alive) {
    append_field(head, "Connection", "close");
  } else if (reply.is_1_0) {
    append_field(head, "Connection", "keep-alive");
  }
  return head.append("\r\n");
}

std::string problem_reply(const Refusal& refusal, bool keep_alive, bool is_head) {
  const std::string body = problem_json(refusal);
  std::string extra;
  if (refusal.retry_after > Millis{0}) {
    constexpr std::int64_t second_ms = 1'000;
    const std::int64_t seconds = (refusal.retry_after.count() + second_ms - 1) / second_ms;
    extra = "Retry-After: " + std::to_string(seconds) + "\r\n";
  }
  if (status_of(refusal.outcome) == 401) extra += "WWW-Authenticate: Semel-Signature\r\n";
  const std::array<Field, 2> fields{
      {{"Content-Type", "application/problem+json"}, {"Cache-Control", "no-store"}}};
  std::string reply = client_head({.status = status_of(refusal.outcome),
                                   .fields = fields,
                                   .framing = {Framing::Kind::length, body.size()},
                                   .keep_alive = keep_alive,
                                   .extra = extra});
  return is_head ? reply : reply.append(body);
}

std::string chunk_line(std::size_t bytes) {
  std::array<char, 20> digits;
  constexpr int hexadecimal = 16;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), bytes, hexadecimal);
  return std::string{digits.data(), end.ptr}.append("\r\n");
}

}  // namespace semel::gateway
