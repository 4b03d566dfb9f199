#include "tests/support/resp_client.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

namespace semel::tests {

namespace {

constexpr int depth_max = 8;
constexpr long items_max = 1'000'000;

bool parse_count(std::string_view text, long& count) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), count);
  return result.ec == std::errc{} && result.ptr == text.data() + text.size();
}

}  // namespace

std::string quoted(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text.append(1, '\\').append(1, c);
    } else if (byte >= 0x20 && byte < 0x7f) {
      text.push_back(c);
    } else {
      text.append("\\x").append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
    }
  }
  return text + '"';
}

std::string Reply::show() const {
  switch (type) {
    case Type::broken:
      return "broken connection";
    case Type::status:
      return '+' + text;
    case Type::error:
      return '-' + text;
    case Type::integer:
      return ':' + text;
    case Type::bulk:
      return quoted(text);
    case Type::null:
      return "nil";
    case Type::array:
      break;
  }
  std::string all = "[";
  for (const Reply& item : items) all.append(all.size() > 1 ? " " : "").append(item.show());
  return all + ']';
}

RespClient::RespClient(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return;
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    close();
  }
}

RespClient::~RespClient() {
  close();
}

void RespClient::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

Reply RespClient::call(const std::vector<std::string>& command) {
  std::string bytes = '*' + std::to_string(command.size()) + "\r\n";
  for (const std::string& word : command) {
    bytes.append(1, '$').append(std::to_string(word.size())).append("\r\n");
    bytes.append(word).append("\r\n");
  }
  Reply reply;
  if (connected() && send(bytes)) reply = read_reply(0);
  if (reply.type == Reply::Type::broken) close();
  buffer_.erase(0, at_);
  at_ = 0;
  return reply;
}

bool RespClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool RespClient::fill() {
  char chunk[16 * 1024];
  const ssize_t got = ::recv(socket_, chunk, sizeof(chunk), 0);
  if (got <= 0) return false;
  buffer_.append(chunk, static_cast<std::size_t>(got));
  return true;
}

bool RespClient::read_line(std::string& line) {
  std::size_t end = buffer_.find("\r\n", at_);
  while (end == std::string::npos) {
    if (!fill()) return false;
    end = buffer_.find("\r\n", at_);
  }
  line.assign(buffer_, at_, end - at_);
  at_ = end + 2;
  return true;
}

bool RespClient::read_bytes(std::size_t count, std::string& bytes) {
  while (buffer_.size() - at_ < count + 2) {
    if (!fill()) return false;
  }
  bytes.assign(buffer_, at_, count);
  at_ += count + 2;
  return true;
}

Reply RespClient::read_reply(int depth) {
  Reply reply;
  std::string line;
  if (depth > depth_max || !read_line(line) || line.empty()) return reply;
  reply.text = line.substr(1);
  long count = 0;
  switch (line.front()) {
    case '+':
      reply.type = Reply::Type::status;
      return reply;
    case '-':
      reply.type = Reply::Type::error;
      return reply;
    case ':':
      reply.type = Reply::Type::integer;
      return reply;
    case '$':
      if (!parse_count(reply.text, count)) return {};
      if (count >= 0 && !read_bytes(static_cast<std::size_t>(count), reply.text)) return {};
      reply.type = count < 0 ? Reply::Type::null : Reply::Type::bulk;
      return reply;
    case '*':
      if (!parse_count(reply.text, count) || count > items_max) return {};
      reply.type = count < 0 ? Reply::Type::null : Reply::Type::array;
      for (; count > 0; --count) {
        reply.items.push_back(read_reply(depth + 1));
        if (reply.items.back().type == Reply::Type::broken) return {};
      }
      return reply;
    default:
      return {};
  }
}

}  // namespace semel::tests
