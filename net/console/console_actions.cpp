// Resolving and forgetting claims. The operator decides about what the page has shown; so the
// record is read again and changed only if it is still that, in a transaction that fails if it
// changes in between (WATCH). Each attempt is in the log, with its outcome.
#include <utility>

#include "net/console/console_impl.hpp"
#include "net/console/console_json.hpp"
#include "net/console/console_reply.hpp"
#include "net/console/key_text.hpp"

namespace semel::net {
namespace {

namespace json = boost::json;

/// The first error among replies, also within that of EXEC. Of a transaction that was not queued
/// whole, that is what refused it.
const Reply* error_of(const std::vector<Reply>& replies) noexcept {
  for (const Reply& reply : replies) {
    if (reply.is_error()) return &reply;
    if (reply.type != Reply::Type::array) continue;
    for (const Reply& item : reply.items) {
      if (item.is_error()) return &item;
    }
  }
  return nullptr;
}

std::string state_of(const Reply& claim) {
  const Reply* const state = field_of(claim, "state");
  return state == nullptr ? std::string{} : state->text;
}

std::string epoch_of(const Reply& claim) {
  const Reply* const epoch = field_of(claim, "epoch");
  return epoch == nullptr ? std::string{"0"} : std::to_string(epoch->integer);
}

AdminResponse changed_response() {
  return error_response(409, "changed",
                        "the record has changed since it was shown; nothing was done");
}

}  // namespace

void ConsoleImpl::act(const SharedCall& call, const ConsoleSession& session, bool forgets) {
  auto action = std::make_shared<ConsoleAction>(ConsoleAction{
      .call = call, .user = session.user, .address = call->request.peer, .name = "forget"});
  if (!read_action(*action, forgets)) return;
  if (!has_actions_) {
    return end_action(*action, "read_only",
                      error_response(403, "read_only",
                                     "this console is read-only: the node was started without "
                                     "console-actions"));
  }
  if (!may_act()) {
    return call->respond(error_response(429, "too_many",
                                        "more than " +
                                            std::to_string(console_limits::actions_per_second) +
                                            " actions in a second"));
  }
  const ConsoleKey& key = action->key;
  run(call, session,
      {{"SELECT", std::to_string(key.db)},
       {"WATCH", key.table_key()},
       {"SEMEL.GETCLAIM", key.space, key.key}},
      [this, action](const std::vector<Reply>& replies) {
        mutex_.assume_held();
        return continue_action(*action, replies);
      });
}

bool ConsoleImpl::read_action(ConsoleAction& action, bool forgets) {
  const ConsoleCall& call = *action.call;
  if (!read_key(call, action.key)) return false;
  const auto as = text_field(call, "as");
  const auto state = text_field(call, "state");
  const auto epoch = text_field(call, "epoch");
  const auto text = text_field(call, "result");
  const auto result = text ? bytes_of_key_text(*text) : std::nullopt;
  const bool is_done = as && *as == "done";
  const bool is_known = forgets || is_done || (as && *as == "released");
  if (!state || !epoch || !result || !is_known) {
    call.respond(error_response(400, "bad_request",
                                "state, epoch and result are texts; as is done or released"));
    return false;
  }
  action.state = *state;
  action.epoch = *epoch;
  if (forgets) {
    action.change = {"SEMEL.FORGET", action.key.space, action.key.key};
    return true;
  }
  action.name = is_done ? "resolve_done" : "resolve_released";
  action.change = {"SEMEL.RESOLVE", action.key.space, action.key.key,
                   is_done ? "DONE" : "RELEASED"};
  if (is_done) action.change.push_back(*result);
  return true;
}

/// No more in a second than the log has lines for.
bool ConsoleImpl::may_act() {
  constexpr Millis second{1'000};
  const Timestamp now = clock_.now();
  if (now - action_second_ >= second) {
    action_second_ = now;
    actions_ = 0;
  }
  if (actions_ >= console_limits::actions_per_second) return false;
  ++actions_;
  return true;
}

CommandClient::Commands ConsoleImpl::continue_action(ConsoleAction& action,
                                                     const std::vector<Reply>& replies) {
  using Stage = ConsoleAction::Stage;
  const Stage stage = std::exchange(action.stage, Stage::done);
  if (stage == Stage::done) return {};  // after UNWATCH
  if (replies.size() < 3) {
    end_action(action, "unknown", unknown_outcome_response());
    return {};
  }
  const Reply* const error = error_of(replies);
  if (error != nullptr) {
    end_action(action, *error);
    return stage == Stage::check ? CommandClient::Commands{{"UNWATCH"}} : CommandClient::Commands{};
  }
  const Reply& last = replies.back();
  if (stage == Stage::check) {
    if (state_of(last) == action.state && epoch_of(last) == action.epoch) {
      action.stage = Stage::change;
      return {{"MULTI"}, action.change, {"EXEC"}};
    }
    end_action(action, "changed", changed_response());
    return {{"UNWATCH"}};
  }
  const bool has_changed = last.items.size() == 1 && last.items.front().integer == 1;
  if (has_changed) {
    end_action(action, "ok", json_response(200, json::object{{"done", true}}));
  } else if (last.is_null()) {
    end_action(action, "changed", changed_response());
  } else {
    end_action(action, "nothing",
               error_response(409, "changed",
                              "there was nothing to do: the record is not held, "
                              "in doubt or there any more"));
  }
  return {};
}

void ConsoleImpl::end_action(ConsoleAction& action, const Reply& error) {
  const std::string word = error.text.substr(0, error.text.find(' '));
  end_action(action, word, error_response(error, leader()));
}

void ConsoleImpl::end_action(ConsoleAction& action, std::string_view outcome,
                             AdminResponse response) {
  sources_.log({.name = "console_action",
                .user = action.user,
                .address = action.address,
                .action = action.name,
                .space = action.key.space,
                .key = action.key.key,
                .outcome = outcome});
  action.call->respond(std::move(response));
}

}  // namespace semel::net
