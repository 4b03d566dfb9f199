#include "net/node/group_library_run.hpp"

#include <utility>

#include "net/cluster/group_round.hpp"
#include "net/commands/access.hpp"

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

Taken GroupLibraryRun::take(const PresentRequest& request, std::string& out) {
  Group& group = *node_.services().group;
  std::string replied;
  RespWriter reply{replied, client_.dialect};
  Call call{node_.services(), node_.engine(), client_, request.words, reply, request.row};
  if (const auto asked = std::exchange(asked_, nullptr)) {
    asked->draft.is_decided = true;
    asked->draft.error = error_of(group, *asked->answer);
    asked->draft.verdict = std::move(asked->answer->verdict);
    answer_libraries(call, asked->draft);
  } else if (admit(call) != nullptr) {
    if (!group.leads() && !group.forwards()) {
      call.fail(group_error(group, ErrorCode::not_leader, 0));
    } else {
      auto begun = std::make_unique<Asked>();
      if (draft_libraries(call, begun->draft)) {
        submit(std::move(begun));
        return Taken::again;
      }
    }
  }
  hand_out(client_, replied, out);
  return Taken::done;
}

void GroupLibraryRun::submit(std::unique_ptr<Asked> asked) {
  asked_ = std::move(asked);
  node_.services().group->change_libraries(
      asked_->draft.change, [handle = client_.handle, answer = asked_->answer,
                             wait = begin_work(client_)](GroupLibraryAnswer decided) {
        *answer = std::move(decided);
        handle->reply(wait, {});
      });
}

}  // namespace semel::net
