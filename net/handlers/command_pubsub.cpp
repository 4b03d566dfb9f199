// Subscriptions, publications, and what PUBSUB tells of them.
#include <array>

#include "net/acl/acl.hpp"
#include "net/commands/access.hpp"
#include "net/commands/handlers.hpp"
#include "net/events/pubsub.hpp"

namespace semel::net::handlers {
namespace {

void subscribe_to(Call& call, Topic topic) {
  const Status status = call.services.pubsub.subscribe(call.client, topic, call.args.subspan(1));
  if (!status) return call.fail(status.error().detail);
  // A change of the user's rights since they were checked may have missed this subscription, and
  // its reply has promised that no message reaches it.
  const AclChange change = call.services.acl.refresh(call.client.user);
  if (change == AclChange::none) return;
  if (change == AclChange::gone || !may_still_hear(call.client)) call.client.handle->kill();
}

void unsubscribe_from(Call& call, Topic topic) {
  call.services.pubsub.unsubscribe(call.client, topic, call.args.subspan(1));
}

void publish_to(Call& call, Topic topic) {
  const std::size_t count =
      call.services.pubsub.publish(&call.client, topic, call.args[1], call.args[2]);
  call.reply.integer(static_cast<std::int64_t>(count));
}

void list_channels(Call& call, Topic topic) {
  if (call.args.size() > 3) {
    return call.fail("ERR unknown subcommand or wrong number of arguments for '" +
                     std::string{call.args[1].substr(0, 128)} + "'. Try PUBSUB HELP.");
  }
  std::optional<std::string_view> pattern;
  if (call.args.size() == 3) pattern = call.args[2];
  const std::vector<std::string> names = call.services.pubsub.channels(topic, pattern);
  call.reply.array(names.size());
  for (const std::string& name : names) call.reply.bulk(name);
}

void count_subscribers(Call& call, Topic topic) {
  const auto names = call.args.subspan(2);
  call.reply.array(names.size() * 2);
  for (const std::string_view name : names) {
    call.reply.bulk(name);
    call.reply.integer(static_cast<std::int64_t>(call.services.pubsub.subscribers(topic, name)));
  }
}

}  // namespace

void subscribe(Call& call) {
  subscribe_to(call, Topic::channel);
}
void psubscribe(Call& call) {
  subscribe_to(call, Topic::pattern);
}
void ssubscribe(Call& call) {
  if (call.context().is_part()) {
    return call.fail("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client");
  }
  subscribe_to(call, Topic::shard);
}
void unsubscribe(Call& call) {
  unsubscribe_from(call, Topic::channel);
}
void punsubscribe(Call& call) {
  unsubscribe_from(call, Topic::pattern);
}
void sunsubscribe(Call& call) {
  unsubscribe_from(call, Topic::shard);
}
void publish(Call& call) {
  publish_to(call, Topic::channel);
}
void spublish(Call& call) {
  publish_to(call, Topic::shard);
}

/// Never called: one of its subcommands is always meant.
void pubsub(Call& call) {
  call.fail_arity();
}
void pubsub_channels(Call& call) {
  list_channels(call, Topic::channel);
}
void pubsub_shardchannels(Call& call) {
  list_channels(call, Topic::shard);
}
void pubsub_numsub(Call& call) {
  count_subscribers(call, Topic::channel);
}
void pubsub_shardnumsub(Call& call) {
  count_subscribers(call, Topic::shard);
}
void pubsub_numpat(Call& call) {
  call.reply.integer(static_cast<std::int64_t>(call.services.pubsub.pattern_count()));
}

void pubsub_help(Call& call) {
  constexpr std::array<std::string_view, 14> lines = {
      "PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
      "CHANNELS [<pattern>]",
      "    Return the currently active channels matching a <pattern> (default: '*').",
      "NUMPAT",
      "    Return number of subscriptions to patterns.",
      "NUMSUB [<channel> ...]",
      "    Return the number of subscribers for the specified channels, excluding",
      "    pattern subscriptions(default: no channels).",
      "SHARDCHANNELS [<pattern>]",
      "    Return the currently active shard level channels matching a <pattern> (default: '*').",
      "SHARDNUMSUB [<shardchannel> ...]",
      "    Return the number of subscribers for the specified shard level channel(s)",
      "HELP",
      "    Prints this help."};
  call.reply.array(lines.size());
  for (const std::string_view line : lines) call.reply.simple(line);
}

}  // namespace semel::net::handlers
