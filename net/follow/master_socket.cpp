#include "net/follow/master_socket.hpp"

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/write.hpp>

namespace semel::net {

namespace asio = boost::asio;

namespace {

constexpr std::size_t piece_bytes = std::size_t{128} << 10;
constexpr std::size_t output_bytes_max = std::size_t{64} << 10;

}  // namespace

MasterSocket::MasterSocket(asio::io_context& io, Events events)
    : events_(std::move(events)), resolver_(io), socket_(io), piece_(piece_bytes) {}

void MasterSocket::close() {
  ++connection_;
  Error ignored;
  static_cast<void>(socket_.close(ignored));
  resolver_.cancel();
  output_.clear();
  sending_.clear();
}

void MasterSocket::lose(const std::string& what, const Error& error) {
  close();
  events_.lost(what + ": " + error.message());
}

void MasterSocket::open(const MasterAddress& master) {
  close();
  using Found = asio::ip::tcp::resolver::results_type;
  resolver_.async_resolve(
      master.host, std::to_string(master.port),
      [this, connection = connection_](const Error& error, const Found& found) {
        if (connection != connection_) return;
        if (error) return lose("the address of the master", error);
        asio::async_connect(
            socket_, found, [this, connection](const Error& failed, const auto& /*endpoint*/) {
              if (connection != connection_) return;
              if (failed) return lose("connecting", failed);
              Error ignored;
              static_cast<void>(socket_.set_option(asio::ip::tcp::no_delay{true}, ignored));
              events_.opened();
            });
      });
}

void MasterSocket::read() {
  socket_.async_read_some(asio::buffer(piece_),
                          [this, connection = connection_](const Error& error, std::size_t bytes) {
                            if (connection != connection_) return;
                            if (error) return lose("reading", error);
                            events_.received({piece_.data(), bytes});
                          });
}

void MasterSocket::write(std::string_view bytes) {
  if (output_.size() > output_bytes_max) return;
  output_ += bytes;
  if (sending_.empty()) write_some();
}

void MasterSocket::write_some() {
  if (output_.empty()) return;
  sending_ = std::exchange(output_, {});
  asio::async_write(socket_, asio::buffer(sending_),
                    [this, connection = connection_](const Error& error, std::size_t) {
                      if (connection != connection_) return;
                      if (error) return lose("writing", error);
                      sending_.clear();
                      write_some();
                    });
}

}  // namespace semel::net
