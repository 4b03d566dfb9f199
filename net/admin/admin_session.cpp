#include "net/admin/admin_session.hpp"

#include <utility>

#include "base/assert.hpp"

namespace semel::net::admin {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::size_t first_read_bytes = 512;
// More than the limit of the header, so that the latter is reached first.
constexpr std::size_t buffer_bytes_max = 2 * admin_limits::header_bytes_max;
// How much a client may send behind a refused request before it has read the response.
constexpr std::size_t ignored_bytes_max = 64 * 1024;

/// The client has sent something that is not a request; else it is gone, or took too long.
bool is_of_request(beast::error_code error) {
  return error.category() == http::make_error_code(http::error::bad_method).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

}  // namespace

Session::Session(const Terms& terms, tcp::socket socket)
    : terms_(terms), stream_(std::move(socket)), buffer_(buffer_bytes_max) {}

void Session::wait() {
  begin(Doing::awaits);
  if (buffer_.size() > 0) return read();
  stream_.expires_after(terms_.idle_within);
  stream_.async_read_some(buffer_.prepare(first_read_bytes),
                          [self = shared_from_this()](beast::error_code error, std::size_t bytes) {
                            self->step([&] {
                              if (error) return self->end();
                              self->buffer_.commit(bytes);
                              self->read();
                            });
                          });
}

void Session::end() noexcept {
  beast::error_code ignored;
  stream_.socket().close(ignored);
  stream_.cancel();
  terms_.ended(this);
}

void Session::read() {
  parser_.emplace();
  request_.reset();
  route_ = nullptr;
  parser_->header_limit(static_cast<std::uint32_t>(admin_limits::header_bytes_max));
  parser_->body_limit(boost::none);  // the route has one
  stream_.expires_after(terms_.request_within);
  http::async_read_header(stream_, buffer_, *parser_,
                          [self = shared_from_this()](beast::error_code error, std::size_t bytes) {
                            self->step([&] {
                              // Beast lets a few more bytes pass.
                              if (!error && bytes > admin_limits::header_bytes_max) {
                                error = http::error::header_limit;
                              }
                              error ? self->fail(error) : self->admit();
                            });
                          });
}

void Session::admit() {
  beast::error_code failed;
  const tcp::endpoint peer = stream_.socket().remote_endpoint(failed);
  if (failed) return end();
  const tcp::endpoint local = stream_.socket().local_endpoint(failed);
  if (failed) return end();
  request_ = request_of(parser_->get(), peer, local);
  AdminChoice choice = choose_route(terms_.site.routes, terms_.guard, *request_);
  SEMEL_ASSERT((choice.route == nullptr) == choice.refusal.has_value());
  if (choice.refusal) return refuse(*std::move(choice.refusal));
  route_ = choice.route;
  if (parser_->is_done()) return handle();
  const std::size_t most = request_->is_post() ? route_->body_bytes_max : 0;
  if (most == 0) return fail(http::error::unexpected_body);
  const auto length = parser_->content_length();
  if (length && *length > most) return fail(http::error::body_limit);
  parser_->body_limit(most);
  read_body();
}

void Session::read_body() {
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](beast::error_code error, std::size_t) {
                     self->step([&] { error ? self->fail(error) : self->handle(); });
                   });
}

/// The handler may respond later, when this session may be gone. Nothing is read until it does.
void Session::handle() {
  SEMEL_ASSERT(parser_->is_done() && route_ != nullptr);
  begin(Doing::works);
  stream_.expires_never();
  request_->body = std::move(parser_->get().body());
  route_->handle(*std::move(request_), [session = weak_from_this()](AdminResponse response) {
    const auto self = session.lock();
    if (!self || self->doing_ != Doing::works) return;
    self->step([&] { self->send(std::move(response)); });
  });
}

void Session::fail(beast::error_code error) {
  if (!is_of_request(error)) return end();
  const std::size_t most = route_ == nullptr ? 0 : route_->body_bytes_max;
  refuse(text_response(400, reason_for(error, most)));
}

void Session::refuse(AdminResponse response) {
  if (request_ && terms_.site.refused) terms_.site.refused(*request_, response.status);
  send(std::move(response));
}

void Session::send(AdminResponse response) {
  // A body that has not been read would be taken for the next request.
  const bool is_read = request_ && parser_->is_done();
  const bool stays = is_read && parser_->keep_alive();
  response_ = response_of(std::move(response));
  if (is_read) response_.version(parser_->get().version());
  response_.keep_alive(stays);
  response_.prepare_payload();
  const bool is_head = request_ && parser_->get().method() == http::verb::head;
  if (is_head) response_.body().clear();  // its length is kept
  parser_.reset();
  write(stays);
}

void Session::write(bool stays) {
  begin(Doing::answers);
  stream_.expires_after(terms_.request_within);
  http::async_write(stream_, response_,
                    [self = shared_from_this(), stays](beast::error_code error, std::size_t) {
                      self->step([&] {
                        if (error) return self->end();
                        self->response_ = {};
                        if (stays) return self->wait();
                        self->stream_.socket().shutdown(tcp::socket::shutdown_send, error);
                        if (error) return self->end();
                        self->stream_.expires_after(self->terms_.request_within);
                        self->begin(Doing::awaits);  // its end
                        self->ignore(0);
                      });
                    });
}

/// Reads and drops input. Closing a socket with unread input would reset the connection, and the
/// client might lose the response.
void Session::ignore(std::size_t bytes_so_far) {
  buffer_.clear();
  stream_.async_read_some(
      buffer_.prepare(buffer_bytes_max),
      [self = shared_from_this(), bytes_so_far](beast::error_code error, std::size_t bytes) {
        self->step([&] {
          const std::size_t all = bytes_so_far + bytes;
          if (error || all > ignored_bytes_max) return self->end();
          self->ignore(all);
        });
      });
}

}  // namespace semel::net::admin
