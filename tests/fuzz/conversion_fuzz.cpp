// Values on their way into Lua and out of it: whatever a command replied and whatever a script
// returns, the client gets one whole reply; and what has a form of its own on both sides comes out
// as it went in.
//
// Input: a byte of choices (the client's dialect, the script's, the kind), then bytes from which a
// well-formed reply is made (kind 0), a reply as it is (kind 1), or a value of Lua (kind 2).
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/check.hpp"
#include "tests/fuzz/reply_form.hpp"
#include "tests/lua_compat/fake_host.hpp"

namespace semel::tests {
namespace {

/// Choices out of bytes; when they are used up, the first of all.
class Bytes {
 public:
  explicit Bytes(std::string_view data) : data_(data) {}

  [[nodiscard]] unsigned next() {
    if (data_.empty()) return 0;
    const auto value = static_cast<unsigned char>(data_.front());
    data_.remove_prefix(1);
    return value;
  }
  [[nodiscard]] std::string_view text() {
    const std::size_t size = next() % 16;
    const std::string_view found = data_.substr(0, size);
    data_.remove_prefix(found.size());
    return found;
  }

 private:
  std::string_view data_;
};

std::string printable(std::string_view bytes) {
  std::string line;
  for (const char c : bytes) line += c >= ' ' && c <= '~' ? c : '_';
  return line;
}

constexpr unsigned depth_max = 5;

/// Appends one reply; false: Lua has no value that stands for it alone.
bool write_reply(Bytes& bytes, net::RespWriter& out, unsigned depth) {
  const unsigned count = bytes.next() % 4;
  switch (const unsigned kind = bytes.next() % (depth < depth_max ? 14 : 10); kind) {
    case 0:
      out.integer(static_cast<int>(bytes.next()) - 128);
      return true;
    case 1:
      out.bulk(bytes.text());
      return true;
    case 2:
      out.simple(printable(bytes.text()));
      return true;
    case 3:
      out.error("ERR " + printable(bytes.text()));
      return true;
    case 4:
      out.null();
      return false;
    case 5:
      out.null_array();
      return false;
    case 6:
      out.boolean(bytes.next() % 2 == 0);
      return false;
    case 7:
      out.number((static_cast<double>(bytes.next()) - 128) / 8);
      return false;
    case 8:
      out.verbatim(bytes.text());
      return false;
    case 9:
      out.bulk_of(static_cast<int>(bytes.next()) << (bytes.next() % 24));
      return true;
    default: {
      bool whole = kind <= 11;
      if (kind <= 11) out.array(count);
      if (kind == 12) out.map(count);
      if (kind == 13) out.set(count);
      for (unsigned i = 0; i < (kind == 12 ? 2 * count : count); ++i)
        whole = write_reply(bytes, out, depth + 1) && whole;
      return whole;
    }
  }
}

std::string lua_string(std::string_view bytes) {
  std::string text = "'";
  for (const char c : bytes) {
    const std::string code = std::to_string(static_cast<unsigned char>(c));
    text += '\\' + std::string(3 - code.size(), '0') + code;
  }
  return text + "'";
}

std::string lua_value(Bytes& bytes, unsigned depth) {
  static constexpr std::array<std::string_view, 12> plain{
      "nil", "true",  "false",          "0/0",
      "1/0", "-1/0",  "2^63",           "-0.0",
      "1.5", "1e300", "function() end", "coroutine.create(tostring)"};
  static constexpr std::array<std::string_view, 7> fields{
      "ok", "err", "double", "map", "set", "big_number", "verbatim_string"};
  const unsigned kind = bytes.next() % (depth < depth_max ? 8 : 4);
  switch (kind) {
    case 0:
      return std::to_string(static_cast<int>(bytes.next()) - 128);
    case 1:
    case 2:
      return lua_string(bytes.text());
    case 3:
      return std::string{plain[bytes.next() % plain.size()]};
    case 4:
      return "{" + std::string{fields[bytes.next() % fields.size()]} + " = " +
             lua_value(bytes, depth + 1) + "}";
    case 5:
      return "{verbatim_string = {format = " + lua_value(bytes, depth + 1) +
             ", string = " + lua_value(bytes, depth + 1) + "}}";
    default: {
      std::string list = "{";
      for (unsigned i = bytes.next() % 4; i > 0; --i) {
        if (kind == 7) list += "[" + lua_string(bytes.text()) + "] = ";
        list += lua_value(bytes, depth + 1) + ", ";
      }
      return list + "}";
    }
  }
}

lua::Interpreter& interpreter() {
  static lua::Interpreter kept{[] {
    lua::Bounds bounds;
    bounds.steps = 1'000'000;
    bounds.reply_bytes = std::size_t{1} << 20;
    return bounds;
  }()};
  return kept;
}

void convert(std::string_view input) {
  Bytes bytes{input};
  const unsigned choices = bytes.next();
  const net::Resp client = (choices & 1U) != 0 ? net::Resp::three : net::Resp::two;
  const net::Resp script = (choices & 2U) != 0 ? net::Resp::three : net::Resp::two;
  FakeHost host;
  const std::string begin =
      "redis.setresp(" + std::to_string(static_cast<unsigned>(script)) + ") return ";
  if (const unsigned kind = choices / 4 % 3; kind == 2) {
    const std::string text = begin + lua_value(bytes, 0);
    const std::string answer = run_script(interpreter(), host, text, client);
    return check(is_whole_replies(answer), "no whole reply: " + answer);
  } else {
    std::string reply;
    bool is_same = false;
    if (kind == 0) {
      net::RespWriter out{reply, script};
      is_same = write_reply(bytes, out, 0);
    } else {
      reply = input.substr(std::min<std::size_t>(1, input.size()));
    }
    const std::string answer =
        run_script(interpreter(), host, begin + "redis.pcall('raw', ARGV[1])", client, {}, {reply});
    check(is_whole_replies(answer), "no whole reply: " + answer);
    if (is_same) check(answer == reply, "another reply: " + answer);
  }
}

}  // namespace
}  // namespace semel::tests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size != 0) semel::tests::convert({reinterpret_cast<const char*>(data), size});
  return 0;
}
