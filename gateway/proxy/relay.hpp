// A message from one connection to another, a part at a time: its length is not bounded, and who
// reads slowly slows the other down.
#pragma once

#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>

#include "gateway/proxy/wire.hpp"

namespace semel::gateway {

namespace http = boost::beast::http;

inline constexpr std::size_t relay_bytes = std::size_t{64} << 10;

/// Reads a part of a body into `room`. The bytes that came.
template <bool is_request>
asio::awaitable<std::size_t> read_part(Wire& from, beast::flat_buffer& buffer,
                                       http::parser<is_request, http::buffer_body>& in, char* room,
                                       std::size_t size) {
  auto& body = in.get().body();
  body.data = room;
  body.size = size;
  boost::system::error_code error;
  co_await http::async_read_some(from, buffer, in,
                                 asio::redirect_error(asio::use_awaitable, error));
  if (error && error != http::error::need_buffer) throw boost::system::system_error{error};
  co_return size - body.size;
}

/// The body, whose head is written already.
template <bool is_request>
asio::awaitable<void> relay_body(Wire& from, beast::flat_buffer& buffer,
                                 http::parser<is_request, http::buffer_body>& in, Wire& to,
                                 http::serializer<is_request, http::buffer_body>& out,
                                 Millis within) {
  auto room = std::make_unique<std::array<char, relay_bytes>>();
  auto& body = in.get().body();
  while (!out.is_done()) {
    std::size_t got = 0;
    if (!in.is_done()) {
      from.close_in(within);
      got = co_await read_part(from, buffer, in, room->data(), room->size());
      if (got == 0 && !in.is_done()) continue;
    }
    body.data = got == 0 ? nullptr : room->data();
    body.size = got;
    body.more = !in.is_done();
    to.close_in(within);
    boost::system::error_code error;
    co_await http::async_write(to, out, asio::redirect_error(asio::use_awaitable, error));
    if (error && error != http::error::need_buffer) throw boost::system::system_error{error};
  }
}

}  // namespace semel::gateway
