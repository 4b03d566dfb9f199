#include "net/console/console_action.hpp"

#include <utility>

#include "net/console/console_json.hpp"
#include "net/console/console_reply.hpp"
#include "net/console/key_text.hpp"

namespace semel::net {
namespace {

namespace json = boost::json;

/// The first error among replies, also within the reply of EXEC. If a command of a transaction
/// could not be queued, this is its error.
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

ConsoleAction::ConsoleAction(Node& node, const ConsoleSources& sources, SharedCall call,
                             const ConsoleSession& session)
    : node_(node),
      sources_(sources),
      call_(std::move(call)),
      user_(session.user),
      address_(call_->request.peer) {}

bool ConsoleAction::read(Kind kind) {
  auto key = read_key(node_, *call_);
  if (!key) return false;
  const bool forgets = kind == Kind::forget;
  const auto as = text_field(*call_, "as");
  const auto state = text_field(*call_, "state");
  const auto epoch = text_field(*call_, "epoch");
  const auto text = text_field(*call_, "result");
  const auto result = text ? bytes_of_key_text(*text) : std::nullopt;
  const bool is_done = as && *as == "done";
  const bool is_known = forgets || is_done || (as && *as == "released");
  if (!state || !epoch || !result || !is_known) {
    call_->respond(error_response(400, "bad_request",
                                  "state, epoch and result are texts; as is done or released"));
    return false;
  }
  key_ = *std::move(key);
  state_ = *state;
  epoch_ = *epoch;
  if (forgets) {
    name_ = "forget";
    change_ = {"SEMEL.FORGET", key_.space, key_.key};
    return true;
  }
  name_ = is_done ? "resolve_done" : "resolve_released";
  change_ = {"SEMEL.RESOLVE", key_.space, key_.key, is_done ? "DONE" : "RELEASED"};
  if (is_done) change_.push_back(*result);
  return true;
}

void ConsoleAction::refuse() {
  end("read_only", error_response(403, "read_only",
                                  "this console is read-only: the node was started without "
                                  "console-actions"));
}

CommandClient::Commands ConsoleAction::begin() const {
  return {{"SELECT", std::to_string(key_.db)},
          {"WATCH", key_.table_key()},
          {"SEMEL.GETCLAIM", key_.space, key_.key}};
}

CommandClient::Commands ConsoleAction::next(const std::vector<Reply>& replies) {
  const Stage stage = std::exchange(stage_, Stage::done);
  if (stage == Stage::done) return {};  // after UNWATCH
  if (replies.size() < 3) {
    end("unknown", unknown_outcome_response());
    return {};
  }
  const bool is_watched = stage == Stage::check;
  if (const Reply* const error = error_of(replies); error != nullptr) {
    end(*error);
    return is_watched ? CommandClient::Commands{{"UNWATCH"}} : CommandClient::Commands{};
  }
  const Reply& last = replies.back();
  if (!is_watched) {
    end_change(last);
    return {};
  }
  if (state_of(last) == state_ && epoch_of(last) == epoch_) {
    stage_ = Stage::change;
    return {{"MULTI"}, change_, {"EXEC"}};
  }
  end("changed", changed_response());
  return {{"UNWATCH"}};
}

void ConsoleAction::end_change(const Reply& executed) {
  const bool has_changed = executed.items.size() == 1 && executed.items.front().integer == 1;
  if (has_changed) return end("ok", json_response(200, json::object{{"done", true}}));
  if (executed.is_null()) return end("changed", changed_response());
  end("nothing", error_response(409, "changed",
                                "there was nothing to do: the record is not held, "
                                "in doubt or there any more"));
}

void ConsoleAction::end(const Reply& error) {
  const std::string word = error.text.substr(0, error.text.find(' '));
  end(word, error_response(error, leader_of(node_)));
}

void ConsoleAction::end(std::string_view outcome, AdminResponse response) {
  sources_.log({.name = "console_action",
                .user = user_,
                .address = address_,
                .action = name_,
                .space = key_.space,
                .key = key_.key,
                .outcome = outcome});
  call_->respond(std::move(response));
}

}  // namespace semel::net
