// A connection to a master: bytes in and out, and its end. On one thread, that of its io_context.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "net/session/node_role.hpp"

namespace semel::net {

class MasterSocket {
 public:
  /// None is called after close().
  struct Events {
    std::function<void()> opened;
    std::function<void(std::string_view bytes)> received;  ///< once for each read()
    std::function<void(const std::string& reason)> lost;
  };
  MasterSocket(boost::asio::io_context& io, Events events);

  void open(const MasterAddress& master);
  /// One piece; the next one when asked again.
  void read();
  /// Bytes beyond a bound are dropped, since a master that reads nothing is left soon.
  void write(std::string_view bytes);
  void close();

 private:
  using Error = boost::system::error_code;

  void write_some();
  void lose(const std::string& what, const Error& error);

  const Events events_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::ip::tcp::socket socket_;
  std::uint64_t connection_ = 0;  // handlers of an earlier one do nothing
  std::vector<char> piece_;
  std::string output_;
  std::string sending_;
};

}  // namespace semel::net
