#include "tools/semel/cluster/group_client.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "net/cluster/group.hpp"
#include "net/resp/reply_reader.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {
namespace {

/// A status of the most members there can be has a few KiB.
constexpr std::size_t reply_bytes_max = std::size_t{1} << 20;
constexpr std::size_t password_bytes_max = std::size_t{64} << 10;

struct ContextEnd {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};
struct StreamEnd {
  void operator()(SSL* stream) const noexcept { SSL_free(stream); }
};
using Context = std::unique_ptr<SSL_CTX, ContextEnd>;

std::string tls_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  char text[256] = "TLS failed";
  if (code != 0) ERR_error_string_n(code, text, sizeof text);
  return text;
}
std::string reason_of(int error) {
  return std::generic_category().message(error);
}
Error late(const std::string& address) {
  return file_error(address + ": no answer in time");
}

std::string request_of(const std::vector<std::string>& words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return bytes;
}

Result<std::string> read_password(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::string line;
  if (!file || !std::getline(file, line)) return file_error(path + ": no password can be read");
  if (line.ends_with('\r')) line.pop_back();
  if (line.size() <= password_bytes_max) return line;
  return usage_error(path + ": a password of more than " + std::to_string(password_bytes_max) +
                     " bytes");
}

Result<Context> make_context(const ClientOptions& options) {
  Context context{SSL_CTX_new(TLS_client_method())};
  if (context == nullptr) return file_error(tls_reason());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const bool knows =
      options.authorities.empty()
          ? SSL_CTX_set_default_verify_paths(context.get()) == 1
          : SSL_CTX_load_verify_locations(context.get(), options.authorities.c_str(), nullptr) == 1;
  if (!knows) return file_error(options.authorities + ": " + tls_reason());
  if (options.certificate.empty()) return context;
  const std::string& key = options.key.empty() ? options.certificate : options.key;
  if (SSL_CTX_use_certificate_chain_file(context.get(), options.certificate.c_str()) != 1) {
    return file_error(options.certificate + ": " + tls_reason());
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return file_error(key + ": " + tls_reason());
  }
  return context;
}

/// One connection; its socket does not block.
class Link {
 public:
  Link(std::string address, int socket) : address_(std::move(address)), socket_(socket) {}
  ~Link() { close(socket_); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  [[nodiscard]] const std::string& address() const noexcept { return address_; }

  [[nodiscard]] Status begin_tls(SSL_CTX& context, const std::string& name, Deadline until);
  [[nodiscard]] Result<Reply> ask(const std::vector<std::string>& words, Deadline until);
  [[nodiscard]] Result<std::vector<Reply>> ask_all(
      std::span<const std::vector<std::string>> requests, std::size_t bytes_max, Deadline until);

 private:
  enum class Wish { read, write };
  /// Waits until the socket can do that. False: too late.
  [[nodiscard]] bool wait(Wish wish, Deadline until) const;
  /// More than 0: the number of bytes; 0: the end; less: an error or too late.
  [[nodiscard]] ssize_t transfer(Wish wish, char* bytes, std::size_t count, Deadline until);

  const std::string address_;
  const int socket_;
  std::unique_ptr<SSL, StreamEnd> tls_;
};

bool Link::wait(Wish wish, Deadline until) const {
  using std::chrono::milliseconds;
  for (;;) {
    const auto left = until - std::chrono::steady_clock::now();
    if (left.count() <= 0) return false;
    pollfd what{socket_, static_cast<short>(wish == Wish::read ? POLLIN : POLLOUT), 0};
    const auto ms = std::chrono::duration_cast<milliseconds>(left).count() + 1;
    constexpr std::int64_t ms_max = 60'000;
    const int ready = poll(&what, 1, static_cast<int>(std::min<std::int64_t>(ms, ms_max)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

ssize_t Link::transfer(Wish wish, char* bytes, std::size_t count, Deadline until) {
  for (;;) {
    Wish next = wish;
    if (tls_ != nullptr) {
      ERR_clear_error();
      const int size = static_cast<int>(count);
      const int done = wish == Wish::read ? SSL_read(tls_.get(), bytes, size)
                                          : SSL_write(tls_.get(), bytes, size);
      if (done > 0) return done;
      const int error = SSL_get_error(tls_.get(), done);
      if (error == SSL_ERROR_ZERO_RETURN) return 0;
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return -1;
      next = error == SSL_ERROR_WANT_READ ? Wish::read : Wish::write;
    } else {
      const ssize_t done = wish == Wish::read ? recv(socket_, bytes, count, 0)
                                              : send(socket_, bytes, count, MSG_NOSIGNAL);
      if (done >= 0) return done;
      if (errno != EAGAIN && errno != EINTR) return -1;
    }
    if (!wait(next, until)) return -1;
  }
}

Status Link::begin_tls(SSL_CTX& context, const std::string& name, Deadline until) {
  tls_.reset(SSL_new(&context));
  if (tls_ == nullptr || SSL_set_fd(tls_.get(), socket_) != 1) return file_error(tls_reason());
  in6_addr number{};
  const bool is_number = inet_pton(AF_INET, name.c_str(), &number) == 1 ||
                         inet_pton(AF_INET6, name.c_str(), &number) == 1;
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(tls_.get());
  const bool is_set = is_number ? X509_VERIFY_PARAM_set1_ip_asc(wanted, name.c_str()) == 1
                                : SSL_set1_host(tls_.get(), name.c_str()) == 1 &&
                                      SSL_set_tlsext_host_name(tls_.get(), name.c_str()) == 1;
  if (!is_set) return file_error(address_ + ": " + tls_reason());
  for (;;) {
    ERR_clear_error();
    const int done = SSL_connect(tls_.get());
    if (done == 1) return Done{};
    const int error = SSL_get_error(tls_.get(), done);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
      const long verified = SSL_get_verify_result(tls_.get());
      return file_error(
          address_ + ": " +
          (verified == X509_V_OK ? tls_reason() : X509_verify_cert_error_string(verified)));
    }
    if (!wait(error == SSL_ERROR_WANT_READ ? Wish::read : Wish::write, until)) {
      return late(address_);
    }
  }
}

Result<Reply> Link::ask(const std::vector<std::string>& words, Deadline until) {
  SEMEL_TRY(replies, ask_all({&words, 1}, reply_bytes_max, until));
  return std::move(replies.front());
}

Result<std::vector<Reply>> Link::ask_all(std::span<const std::vector<std::string>> requests,
                                         std::size_t bytes_max, Deadline until) {
  const Error unknown{ErrorCode::outcome_unknown,
                      address_ +
                          ": the connection ended, or no answer came in time: it is not "
                          "known whether it was done"};
  std::string bytes;
  for (const auto& words : requests) bytes += request_of(words);
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = transfer(Wish::write, bytes.data() + sent, bytes.size() - sent, until);
    if (count <= 0) return unknown;
    sent += static_cast<std::size_t>(count);
  }
  std::vector<Reply> replies;
  std::string got;
  std::size_t begin = 0;  // behind the last reply
  char room[64 << 10];
  while (got.size() < bytes_max) {
    const ssize_t count = transfer(Wish::read, room, sizeof room, until);
    if (count <= 0) return unknown;
    got.append(room, static_cast<std::size_t>(count));
    std::string_view rest = std::string_view{got}.substr(begin);
    while (auto reply = net::take_reply(rest)) replies.push_back(*std::move(reply));
    begin = got.size() - rest.size();
    if (replies.size() >= requests.size()) return replies;
  }
  return file_error(address_ + ": what it answers is no reply of a node, or has more than " +
                    std::to_string(bytes_max) + " bytes");
}

Result<int> connect_to(const addrinfo& to, const std::string& address, Deadline until) {
  const int made = socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return file_error(address + ": " + reason_of(errno));
  int error = connect(made, to.ai_addr, to.ai_addrlen) == 0 ? 0 : errno;
  while (error == EINPROGRESS) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd what{made, POLLOUT, 0};
    const int ready =
        left.count() <= 0
            ? 0
            : poll(&what, 1, static_cast<int>(std::min<std::int64_t>(left.count() + 1, 60'000)));
    if (ready < 0 && errno == EINTR) continue;
    socklen_t size = sizeof error;
    if (ready == 0) {
      error = ETIMEDOUT;
    } else {
      getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error == 0) return made;
  close(made);
  return file_error(address + ": " + reason_of(error));
}

}  // namespace

class GroupClient::Inside {
 public:
  ClientOptions options;
  std::string password;
  Context context;
  std::unique_ptr<Link> link;  // to the node of the last call; null: none

  [[nodiscard]] Status connect(const std::string& address, Deadline until) {
    if (link != nullptr && link->address() == address) return Done{};
    link.reset();
    const auto [host, port] = net::host_and_port(address);
    const bool is_number =
        !port.empty() && port.size() <= 5 &&
        std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (host.empty() || !is_number) return usage_error("'" + address + "' is not host:port");
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
      return file_error(address + ": " + gai_strerror(error));
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all{found, &freeaddrinfo};
    Result<int> socket = file_error(address + ": it has no address");
    for (const addrinfo* each = found; each != nullptr && !socket.ok(); each = each->ai_next) {
      socket = connect_to(*each, address, until);
    }
    if (!socket.ok()) return socket.error();
    auto made = std::make_unique<Link>(address, *socket);
    if (context != nullptr) {
      SEMEL_CHECK(
          made->begin_tls(*context, options.tls_name.empty() ? host : options.tls_name, until));
    }
    SEMEL_CHECK(log_in(*made, until));
    link = std::move(made);
    return Done{};
  }

 private:
  [[nodiscard]] Status log_in(Link& to, Deadline until) const {
    if (password.empty() && options.user.empty()) return Done{};
    std::vector<std::string> words{"AUTH"};
    if (!options.user.empty()) words.push_back(options.user);
    words.push_back(password);
    const auto reply = to.ask(words, until);
    if (!reply.ok()) return late(to.address());
    if (!reply->is_error()) return Done{};
    return file_error(to.address() + ": " + reply->text);
  }
};

GroupClient::GroupClient(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
GroupClient::~GroupClient() = default;

Result<std::unique_ptr<GroupClient>> GroupClient::open(const ClientOptions& options) {
  auto inside = std::make_unique<Inside>();
  inside->options = options;
  if (!options.password_file.empty()) {
    SEMEL_TRY(password, read_password(options.password_file));
    inside->password = std::move(password);
  }
  if (options.uses_tls) {
    SEMEL_TRY(context, make_context(options));
    inside->context = std::move(context);
  } else if (!options.authorities.empty() || !options.certificate.empty() || !options.key.empty() ||
             !options.tls_name.empty()) {
    return usage_error("--cacert, --cert, --key and --tls-name need --tls");
  }
  return std::unique_ptr<GroupClient>{new GroupClient{std::move(inside)}};
}

Result<Reply> GroupClient::ask(const std::string& address, const std::vector<std::string>& words,
                               Deadline until) {
  SEMEL_CHECK(inside_->connect(address, until));
  auto reply = inside_->link->ask(words, until);
  if (!reply.ok()) inside_->link.reset();
  return reply;
}

Result<std::vector<Reply>> GroupClient::ask_all(const std::string& address,
                                                std::span<const std::vector<std::string>> requests,
                                                std::size_t bytes_max, Deadline until) {
  SEMEL_CHECK(inside_->connect(address, until));
  auto replies = inside_->link->ask_all(requests, bytes_max, until);
  if (!replies.ok()) inside_->link.reset();
  return replies;
}

void add_login_options(CLI::App& app, ClientOptions& client) {
  app.add_option("--user", client.user, "User of the server")->type_name("NAME");
  app.add_option("--password-file", client.password_file, "File whose first line is the password")
      ->type_name("FILE");
  app.add_flag("--tls", client.uses_tls, "The server's port speaks TLS");
  app.add_option("--cacert", client.authorities,
                 "Authorities of the server's certificate, PEM. Default: the system's")
      ->type_name("FILE");
  app.add_option("--cert", client.certificate, "Certificate of this client, PEM")
      ->type_name("FILE");
  app.add_option("--key", client.key, "Its key, PEM. Default: the file of --cert")
      ->type_name("FILE");
  app.add_option("--tls-name", client.tls_name,
                 "Name that the server's certificate has. Default: the host of the address")
      ->type_name("NAME");
}

}  // namespace semel::tool
