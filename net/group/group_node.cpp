#include "semel/group_node.hpp"

#include <optional>
#include <system_error>
#include <utility>

#include "net/group/entry_runner.hpp"
#include "net/group/replicated_group.hpp"
#include "net/node/local_redis_host.hpp"
#include "net/node/ticker.hpp"
#include "replication/node/replication_host.hpp"
#include "semel/limits.hpp"
#include "semel/process.hpp"

namespace semel {

using replication::ReplicationHost;

namespace {

/// The engine's limits decide what an entry does, so they are those of all other nodes.
ReplicationOptions as_of_a_node(const ReplicationOptions& options) {
  ReplicationOptions made = options;
  made.engine.key_bytes_max = limits::key_bytes_max;
  made.engine.value_bytes_max = limits::value_bytes_max;
  made.engine.background = std::nullopt;  // the Ticker's
  return made;
}

net::GroupTerms terms_of(const ReplicationOptions& options) {
  return {.cluster_id = options.cluster_id,
          .node_id = options.node_id,
          .forwards = true,
          .calls = {.patience = options.patience, .asks_again = options.patience}};
}

}  // namespace

class GroupNode::Impl {
 public:
  Impl(std::unique_ptr<Replication> made, const ReplicationOptions& options)
      : replication_(std::move(made)),
        group_(ReplicationHost::replica(*replication_), terms_of(options)),
        redis_(net::LocalRedisHost::make(replication_->engine(), group_)),
        runner_(net::LocalRedisHost::node(*redis_)) {}
  ~Impl() { stop(); }

  [[nodiscard]] Status start() {
    SEMEL_CHECK(ReplicationHost::start(*replication_, &runner_));
    try {
      ticker_.emplace(net::LocalRedisHost::node(*redis_));
    } catch (const std::system_error&) {
      return Error{ErrorCode::no_thread, "the thread that sweeps"};
    }
    return Done{};
  }
  /// The ticker goes on until the end: what begins to wait later is ended too.
  void stop() {
    if (ticker_) ticker_->end_waits();
    ReplicationHost::stop(*replication_);
  }

  [[nodiscard]] bool is_here() const noexcept { return mark_.is_here(); }
  [[nodiscard]] Replication& replication() noexcept { return *replication_; }
  [[nodiscard]] LocalRedis& redis() noexcept { return *redis_; }

 private:
  const ProcessMark mark_;
  // In the order of their dependencies.
  const std::unique_ptr<Replication> replication_;
  net::ReplicatedGroup group_;
  const std::unique_ptr<LocalRedis> redis_;
  net::EntryRunner runner_;
  std::optional<net::Ticker> ticker_;
};

GroupNode::GroupNode(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
GroupNode::~GroupNode() {
  // In a child process nothing of the parent's is here but its memory.
  if (!impl_->is_here()) static_cast<void>(impl_.release());
}

Status GroupNode::found(const ReplicationOptions& options) {
  return Replication::found(as_of_a_node(options));
}

Result<std::unique_ptr<GroupNode>> GroupNode::open(const ReplicationOptions& options) {
  SEMEL_TRY(made, ReplicationHost::make(as_of_a_node(options)));
  auto impl = std::make_unique<Impl>(std::move(made), options);
  SEMEL_CHECK(impl->start());
  return std::unique_ptr<GroupNode>{new GroupNode{std::move(impl)}};
}

void GroupNode::stop() {
  if (impl_->is_here()) impl_->stop();
}
Engine& GroupNode::engine() noexcept {
  return impl_->replication().engine();
}
LocalRedis& GroupNode::redis() noexcept {
  return impl_->redis();
}
Replication& GroupNode::group() noexcept {
  return impl_->replication();
}

}  // namespace semel
