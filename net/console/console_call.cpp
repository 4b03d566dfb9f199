#include "net/console/console_call.hpp"

#include "net/cluster/group.hpp"
#include "net/console/console_reply.hpp"
#include "net/console/key_text.hpp"
#include "semel/claims.hpp"

namespace semel::net {

namespace json = boost::json;

std::optional<std::string_view> text_field(const ConsoleCall& call, std::string_view name,
                                           std::string_view fallback) {
  const json::value* const found = call.fields.if_contains({name.data(), name.size()});
  if (found == nullptr) return fallback;
  const json::string* const text = found->if_string();
  if (text == nullptr) return std::nullopt;
  return std::string_view{text->data(), text->size()};
}

std::optional<ConsoleKey> read_key(Node& node, const ConsoleCall& call) {
  const auto space = text_field(call, "namespace");
  const auto text = text_field(call, "key");
  const auto bytes = text ? bytes_of_key_text(*text) : std::nullopt;
  const auto fail = [&](unsigned status, std::string_view word, std::string_view why) {
    call.respond(error_response(status, word, why));
    return std::nullopt;
  };
  if (!space || !bytes) {
    return fail(400, "bad_request",
                "namespace and key are texts; in a key a backslash is \\\\, and other bytes are "
                "\\x and two digits");
  }
  if (bytes->empty() || bytes->size() > limits::key_bytes_max) {
    return fail(400, "bad_request",
                "the key has " + std::to_string(bytes->size()) + " bytes; it may have 1 to " +
                    std::to_string(limits::key_bytes_max));
  }
  ConsoleKey key{.space = std::string{*space}, .key = *bytes};
  const auto claims = node.engine().claims(key.space);
  if (!claims) return fail(404, "no_namespace", "there is no namespace of this name");
  key.db = claims->policy().db;
  return key;
}

std::string leader_of(Node& node) {
  const Group* const group = node.services().group;
  if (group == nullptr) return {};
  const GroupView view = group->view();
  for (const GroupMember& each : view.members) {
    if (each.id == view.leader) return each.client_address;
  }
  return {};
}

}  // namespace semel::net
