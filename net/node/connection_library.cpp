// A change of the libraries of functions, at a connection of a node that belongs to a group: what
// is asked is found out here, the group decides it, and the request comes again for its reply
// (docs/decisions/0056-functions-in-a-group.md).
#include <utility>

#include "net/commands/access.hpp"
#include "net/node/connection.hpp"

namespace semel::net {
namespace {

std::string error_of(const Group& group, const GroupLibraryAnswer& answer) {
  if (answer.error == ErrorCode::ok) return {};
  if (answer.error == ErrorCode::refused) return "ERR " + answer.detail;
  std::string text = group_error(group, answer.error, 0);
  if (!answer.detail.empty()) text.append(": ").append(answer.detail);
  return text;
}

}  // namespace

/// The request is the same as when it came first. False: it waits, and comes again.
bool Connection::library_in_group(const CommandRow& row, std::string& out) {
  Group& group = *node_.services().group;
  std::string replied;
  RespWriter reply{replied, client_.dialect};
  Call call{node_.services(), node_.engine(), client_, parser_.arguments(), reply, &row};
  if (const auto round = std::exchange(group_->library, nullptr)) {
    round->draft.is_decided = true;
    round->draft.error = error_of(group, *round->answer);
    round->draft.verdict = std::move(round->answer->verdict);
    answer_libraries(call, round->draft);
  } else if (admit(call) != nullptr) {
    if (!group.leads() && !group.forwards()) {
      return refuse_in_group(group_error(group, ErrorCode::not_leader, 0), out);
    }
    auto begun = std::make_unique<GroupRound::Library>();
    if (draft_libraries(call, begun->draft)) {
      submit_library(std::move(begun));
      return false;
    }
  }
  if (client_.replies == Replies::on) out += replied;
  if (client_.replies == Replies::skip) client_.replies = Replies::on;
  return true;
}

void Connection::submit_library(std::unique_ptr<GroupRound::Library> library) {
  group_->library = std::move(library);
  const std::shared_ptr<GroupLibraryAnswer> answer = group_->library->answer;
  client_.waits = true;
  client_.discards_wait_reply = false;
  const std::uint64_t wait = client_.handle->begin_work();
  node_.services().group->change_libraries(
      group_->library->draft.change,
      [handle = client_.handle, answer, wait](GroupLibraryAnswer decided) {
        *answer = std::move(decided);
        handle->reply(wait, {});
      });
}

}  // namespace semel::net
