// The bytes of what a node hands over to its leader, and of the answers (transport/wire.hpp has the
// frames).
//
//   forward        life | .. and if that is not 0: lowest sequence | sequence - lowest | command;
//                  nothing at all: it is for a read
//   its reply      error | index of the entry, or that the read needs | answer
//
// Whose command it is is known by the connection that it comes from, and is not asked.
#pragma once

#include <cstddef>
#include <string>

#include "replication/core/types.hpp"
#include "replication/state/answer.hpp"
#include "replication/state/entry.hpp"

namespace semel::replication {

struct ForwardContent {
  Command command;    ///< points into the bytes that were read
  std::size_t begin;  ///< of the command's bytes in them; they end together
  Origin origin;
};
struct ForwardAnswer {
  Result<Answer> answer;
  LogIndex index;
};

[[nodiscard]] std::string forward_bytes(const Origin& origin, const PreparedCommand& command);
/// Errors: bad_encoding (also: of a session or a life of another node than `from`).
[[nodiscard]] Result<ForwardContent> read_forward(NodeId from, Bytes bytes);
/// An answer that no frame has room for becomes outcome_unknown: it is done all the same.
[[nodiscard]] std::string forward_reply_bytes(const Result<Answer>& answer, LogIndex index);
/// outcome_unknown if the bytes cannot be read.
[[nodiscard]] ForwardAnswer read_forward_reply(Bytes bytes);

}  // namespace semel::replication
