#include "tests/support/resp_client.hpp"

#include <optional>
#include <utility>

namespace semel::tests {

RespValue RespReader::next() {
  for (;;) {
    std::string_view rest{buffer_};
    if (std::optional<RespValue> value = take_value(rest)) {
      buffer_.erase(0, buffer_.size() - rest.size());
      return *std::move(value);
    }
    if (stream_.receive(buffer_, 64 * 1024) != Stream::Received::bytes) return {};
  }
}

RespValue RespClient::call(const Words& command) {
  RespValue reply;
  if (socket_.try_send(request_bytes(command))) reply = reader_.next();
  if (reply.type == RespValue::Type::broken) socket_.close();
  return reply;
}

}  // namespace semel::tests
