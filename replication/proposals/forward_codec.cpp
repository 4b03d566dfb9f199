#include "replication/proposals/forward_codec.hpp"

#include <algorithm>
#include <utility>

#include "replication/state/fields.hpp"
#include "replication/transport/wire.hpp"

namespace semel::replication {
namespace {

/// A session, and a life, is of the node that asks for it.
bool is_of(NodeId from, const Command& command) {
  if (const auto* session = std::get_if<SessionCommand>(&command.what)) {
    return session->what == SessionCommand::What::close || session->node == from;
  }
  const auto* const section = std::get_if<SectionCommand>(&command.what);
  return section == nullptr ||
         std::all_of(section->commands.begin(), section->commands.end(),
                     [from](const Command& each) { return is_of(from, each); });
}

}  // namespace

std::string forward_bytes(const Origin& origin, const PreparedCommand& command) {
  std::string bytes;
  FieldWriter fields{bytes};
  fields.number(origin.life);
  if (Origin copy = origin; copy.life != 0) numbers(fields, copy);
  bytes += command.bytes;
  return bytes;
}

Result<ForwardContent> read_forward(NodeId from, Bytes bytes) {
  FieldReader fields{bytes};
  Origin origin;
  fields.number(origin.life);
  if (origin.life != 0) {
    origin.node = from;
    numbers(fields, origin);
  }
  Bytes rest = fields.rest();
  if (!fields.is_good()) return Error{ErrorCode::bad_encoding, {}};
  const std::size_t begin = bytes.size() - rest.size();
  SEMEL_TRY(command, decode(rest));
  if (!rest.empty() || !is_of(from, command)) return Error{ErrorCode::bad_encoding, {}};
  return ForwardContent{std::move(command), begin, origin};
}

std::string forward_reply_bytes(const Result<Answer>& answer, LogIndex index) {
  std::string bytes;
  if (answer.ok()) encode(*answer, bytes);
  ErrorCode error = answer.ok() ? ErrorCode::ok : answer.error().code;
  if (bytes.size() > frame_bytes_max / 2) error = ErrorCode::outcome_unknown;
  if (error != ErrorCode::ok) bytes.clear();
  std::string whole;
  FieldWriter fields{whole};
  fields.number(static_cast<std::uint64_t>(error));
  fields.number(index);
  fields.bytes(bytes);
  return whole;
}

ForwardAnswer read_forward_reply(Bytes bytes) {
  FieldReader fields{bytes};
  std::uint64_t error = 0;
  LogIndex index = 0;
  Bytes answer;
  fields.number(error);
  fields.number(index);
  fields.bytes(answer);
  if (!fields.is_good()) return {Error{ErrorCode::outcome_unknown, {}}, index};
  if (error != 0) return {Error{static_cast<ErrorCode>(error), {}}, index};
  return {decode_answer(answer), index};
}

}  // namespace semel::replication
