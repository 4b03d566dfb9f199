#include "net/connection.hpp"

namespace semel::net {

void Connection::receive(std::string_view bytes, std::string& out) {
  // Most often nothing is left of the last time, and the requests are read where they are.
  if (!input_.empty()) input_.append(bytes);
  std::string_view rest = input_.empty() ? bytes : std::string_view{input_};
  const std::size_t all = rest.size();
  while (!client_.closes) {
    const RespParser::Step step = parser_.parse(rest, RequestLimits{});
    if (step == RespParser::Step::incomplete) break;
    RespWriter reply{out, client_.dialect};
    if (step == RespParser::Step::bad) {
      reply.error("ERR " + parser_.error());
      client_.closes = true;
      break;
    }
    if (!parser_.arguments().empty()) {
      Call call{engine_, client_, parser_.arguments(), reply};
      dispatch(call);
    }
    rest.remove_prefix(parser_.consumed());
  }
  if (input_.empty()) {
    input_ = rest;
  } else {
    input_.erase(0, all - rest.size());
  }
}

}  // namespace semel::net
