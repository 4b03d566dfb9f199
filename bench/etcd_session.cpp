#include "bench/etcd_session.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifdef SEMEL_BENCH_NGHTTP2
#include <nghttp2/nghttp2.h>
#endif

namespace semel::bench {

#ifdef SEMEL_BENCH_NGHTTP2

namespace {

// Protocol buffers, as far as a transaction needs them. Every length here is below 128 or written
// by append_varint; types are those of their format: 0 a number, 2 bytes.
void append_varint(std::string& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
}

void append_number(std::string& out, unsigned field, std::uint64_t number) {
  append_varint(out, field << 3);
  append_varint(out, number);
}

void append_bytes(std::string& out, unsigned field, std::string_view bytes) {
  append_varint(out, field << 3 | 2);
  append_varint(out, bytes.size());
  out.append(bytes);
}

/// TxnRequest: if create_revision(key) = 0 then put(key, value) else range(key), behind the five
/// bytes that gRPC puts before a message.
std::string transaction(std::string_view key, std::string_view value) {
  std::string compare;
  append_number(compare, 1, 0);  // result EQUAL
  append_number(compare, 2, 1);  // target CREATE
  append_bytes(compare, 3, key);
  append_number(compare, 5, 0);  // create_revision
  std::string put;
  append_bytes(put, 1, key);
  append_bytes(put, 2, value);
  std::string range;
  append_bytes(range, 1, key);
  std::string success;
  append_bytes(success, 2, put);  // request_put
  std::string failure;
  append_bytes(failure, 1, range);  // request_range
  std::string message;
  append_bytes(message, 1, compare);
  append_bytes(message, 2, success);
  append_bytes(message, 3, failure);
  std::string framed(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) {
    framed.push_back(static_cast<char>(message.size() >> shift));
  }
  return framed + message;
}

/// Fields of a message, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  /// False at the end, and where the bytes are no message.
  bool next() {
    std::uint64_t tag = 0;
    if (rest_.empty() || !varint(tag) || !varint(number)) return false;
    field = static_cast<unsigned>(tag >> 3);
    bytes = {};
    if ((tag & 7) == 0) return true;
    if ((tag & 7) != 2 || number > rest_.size()) return false;
    bytes = rest_.substr(0, number);
    rest_.remove_prefix(number);
    return true;
  }

  unsigned field = 0;
  std::uint64_t number = 0;
  std::string_view bytes{};

 private:
  bool varint(std::uint64_t& to) {
    to = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      to |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  std::string_view rest_;
};

/// The bytes of the last field of this number; empty if there is none.
std::string_view field_of(std::string_view message, unsigned field) {
  std::string_view found;
  for (Fields each{message}; each.next();) {
    if (each.field == field) found = each.bytes;
  }
  return found;
}

/// What Redis would have replied.
std::string reply_of(std::string_view body) {
  if (body.size() < 5 || body[0] != 0) return "-ERR no message came\r\n";
  const std::string_view message = body.substr(5);
  bool succeeded = false;
  for (Fields each{message}; each.next();) succeeded |= each.field == 2 && each.number == 1;
  if (succeeded) return "$-1\r\n";
  // TxnResponse.responses, ResponseOp.response_range, RangeResponse.kvs, KeyValue.value
  const std::string_view range = field_of(field_of(message, 3), 1);
  const std::string_view pair = field_of(range, 2);
  if (pair.empty()) return "-ERR neither granted nor found\r\n";
  const std::string value{field_of(pair, 5)};
  return "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
}

nghttp2_nv header(const char* name, const char* value) {
  // nghttp2 copies both, and takes no const.
  const auto bytes = [](const char* text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text));
  };
  return {bytes(name), bytes(value), std::strlen(name), std::strlen(value), NGHTTP2_NV_FLAG_NONE};
}

void require(int code, const char* what) {
  if (code >= 0) return;
  std::fprintf(stderr, "%s: %s\n", what, nghttp2_strerror(code));
  std::exit(1);
}

}  // namespace

struct EtcdSession::Impl {
  struct Stream {
    std::string request;
    std::size_t sent = 0;
    std::string body{};
  };

  nghttp2_session* session = nullptr;
  std::map<std::int32_t, Stream> streams{};
  std::string* replies = nullptr;  // while something is received

  static Impl& of(void* user) { return *static_cast<Impl*>(user); }

  static ssize_t read_request(nghttp2_session*, std::int32_t id, std::uint8_t* to, std::size_t room,
                              std::uint32_t* flags, nghttp2_data_source*, void* user) {
    Stream& stream = of(user).streams.at(id);
    const std::size_t bytes = std::min(room, stream.request.size() - stream.sent);
    std::memcpy(to, stream.request.data() + stream.sent, bytes);
    stream.sent += bytes;
    if (stream.sent == stream.request.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(bytes);
  }

  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                     std::size_t bytes, void* user) {
    of(user).streams.at(id).body.append(reinterpret_cast<const char*>(data), bytes);
    return 0;
  }

  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
    Impl& self = of(user);
    const auto found = self.streams.find(id);
    if (found == self.streams.end() || self.replies == nullptr) return 0;
    *self.replies += reply_of(found->second.body);
    self.streams.erase(found);
    return 0;
  }
};

bool etcd_is_available() {
  return true;
}

EtcdSession::EtcdSession() : impl_(std::make_unique<Impl>()) {
  nghttp2_session_callbacks* callbacks = nullptr;
  require(nghttp2_session_callbacks_new(&callbacks), "callbacks");
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &Impl::on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &Impl::on_close);
  require(nghttp2_session_client_new(&impl_->session, callbacks, impl_.get()), "session");
  nghttp2_session_callbacks_del(callbacks);
  require(nghttp2_submit_settings(impl_->session, NGHTTP2_FLAG_NONE, nullptr, 0), "settings");
}

EtcdSession::~EtcdSession() {
  nghttp2_session_del(impl_->session);
}

void EtcdSession::claim(std::string_view key, std::string_view value) {
  const nghttp2_nv headers[] = {header(":method", "POST"),
                                header(":scheme", "http"),
                                header(":path", "/etcdserverpb.KV/Txn"),
                                header(":authority", "127.0.0.1"),
                                header("content-type", "application/grpc"),
                                header("te", "trailers")};
  nghttp2_data_provider provider{};
  provider.read_callback = &Impl::read_request;
  const std::int32_t id = nghttp2_submit_request(impl_->session, nullptr, headers,
                                                 std::size(headers), &provider, nullptr);
  require(id, "request");
  impl_->streams.emplace(id, Impl::Stream{.request = transaction(key, value)});
}

void EtcdSession::take_output(std::string& out) {
  for (;;) {
    const std::uint8_t* data = nullptr;
    const ssize_t bytes = nghttp2_session_mem_send(impl_->session, &data);
    require(static_cast<int>(bytes), "send");
    if (bytes == 0) return;
    out.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(bytes));
  }
}

bool EtcdSession::receive(std::string_view bytes, std::string& replies) {
  impl_->replies = &replies;
  const ssize_t taken = nghttp2_session_mem_recv(
      impl_->session, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  impl_->replies = nullptr;
  return taken == static_cast<ssize_t>(bytes.size()) &&
         nghttp2_session_want_read(impl_->session) != 0;
}

#else

struct EtcdSession::Impl {};

bool etcd_is_available() {
  return false;
}

EtcdSession::EtcdSession() {
  std::fprintf(stderr, "built without nghttp2: there is no client for etcd\n");
  std::exit(1);
}
EtcdSession::~EtcdSession() = default;
void EtcdSession::claim(std::string_view, std::string_view) {}
void EtcdSession::take_output(std::string&) {}
bool EtcdSession::receive(std::string_view, std::string&) {
  return false;
}

#endif

}  // namespace semel::bench
