#include "net/follow/follower.hpp"

#include <utility>

#include "net/follow/full_sync.hpp"
#include "net/follow/master_link.hpp"
#include "net/follow/partial_copy.hpp"
#include "net/resp/text.hpp"
#include "net/settings/setting_table.hpp"

namespace semel::net {

namespace {

constexpr const char* has_claims_text =
    "ERR there are claims in this node, and to follow another one would remove them; drop their "
    "namespaces first";

}  // namespace

Follower::Follower(Node& node) : node_(node) {}
Follower::~Follower() = default;

Status Follower::open() {
  if (has_ended_) return Error{ErrorCode::no_thread, "the node ends"};
  if (link_ != nullptr) return Done{};
  auto link = std::make_unique<MasterLink>(node_, state_);
  SEMEL_CHECK(link->start());
  link_ = std::move(link);
  return Done{};
}

Status Follower::begin() {
  const std::string text = node_.settings.text(Setting::replicaof);
  const auto words = words_of(text);
  const bool is_partial = has_partial_copy(node_);
  if (words.size() != 2) {
    if (!is_partial) return Done{};
    node_.hooks.report({.level = LogLevel::warning,
                        .name = "partial_copy_removed",
                        .text = "the node ended within a full sync; its databases are empty now"});
    SEMEL_CHECK(clear_databases(node_));
    end_partial_copy(node_);
    return Done{};
  }
  if (is_partial) node_.role.become(NodeRole::State::loads);
  const std::int64_t port = integer_of(words[1]).value_or(0);
  Status followed = follow({std::string{words[0]}, static_cast<std::uint16_t>(port)});
  if (followed) return followed;
  constexpr std::size_t prefix = std::string_view{"ERR "}.size();
  return Error{followed.error().code, "replicaof: " + followed.error().detail.substr(prefix)};
}

void Follower::end() {
  const base::MutexLock lock{asking_};
  has_ended_ = true;
  link_.reset();
}

Status Follower::follow(const MasterAddress& master) {
  const base::MutexLock lock{asking_};
  if (has_claims(node_.engine())) return Error{ErrorCode::refused, has_claims_text};
  if (const Status opened = open(); !opened) {
    return Error{ErrorCode::no_thread, "ERR " + opened.error().detail};
  }
  const FollowState::Turn turn = state_.next_turn([this] {
    if (node_.role.state() == NodeRole::State::master) {
      node_.role.become(NodeRole::State::follows);
    }
    node_.role.set_linked(false);
  });
  FollowView view = state_.view();
  view.master = master;
  view.link = FollowView::Link::connect;
  state_.show(std::move(view));
  // Their writes would be refused now, and a write of the master does not serve them twice.
  for (const auto& client : node_.clients.all()) {
    client->end_wait(
        "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
        "replica?)\r\n");
  }
  link_->go(turn, master);
  return Done{};
}

void Follower::stop() {
  const base::MutexLock lock{asking_};
  if (!node_.role.follows()) return;
  const FollowState::Turn turn = state_.next_turn([this] {
    // A part of a copy would be taken for the whole.
    if (node_.role.state() == NodeRole::State::loads && clear_databases(node_)) {
      end_partial_copy(node_);
    }
    node_.role.become(NodeRole::State::master);
    node_.role.set_linked(false);
  });
  if (link_ != nullptr) link_->go(turn, std::nullopt);
}

FollowView Follower::view() const {
  return state_.view();
}

}  // namespace semel::net
