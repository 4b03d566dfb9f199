#include "gateway/proxy/upstream.hpp"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <utility>

namespace semel::gateway {

Result<UpstreamAddress> upstream_of(const std::string& url) {
  UpstreamAddress found;
  std::string rest = url;
  const auto wrong = [&] {
    return Error{ErrorCode::bad_option,
                 "upstream '" + url + "': http://HOST:PORT or https://HOST:PORT is needed"};
  };
  if (rest.starts_with("https://")) {
    found.is_tls = true;
    rest = rest.substr(8);
  } else if (rest.starts_with("http://")) {
    rest = rest.substr(7);
  } else {
    return wrong();
  }
  if (rest.ends_with('/')) rest.pop_back();
  if (rest.find_first_of("/?#@ ") != std::string::npos) return wrong();
  found.port = found.is_tls ? "443" : "80";
  const std::size_t colon = rest.rfind(':');
  const bool has_port = colon != std::string::npos && rest.find(']', colon) == std::string::npos;
  if (has_port) {
    found.port = rest.substr(colon + 1);
    rest.resize(colon);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  const bool is_number = !found.port.empty() && found.port.size() <= 5 &&
                         std::all_of(found.port.begin(), found.port.end(),
                                     [](char c) { return c >= '0' && c <= '9'; });
  if (rest.empty() || !is_number || std::stoi(found.port) < 1 || std::stoi(found.port) > 65'535) {
    return wrong();
  }
  found.host = rest;
  return found;
}

std::unique_ptr<Wire> UpstreamPool::take(Millis fresh) {
  const Timestamp now = clock_.now();
  while (!idle_.empty()) {
    Idle newest = std::move(idle_.back());
    idle_.pop_back();
    if (now - newest.since > fresh) {
      idle_.clear();  // all others are older
      return nullptr;
    }
    if (!newest.wire->is_stale()) return std::move(newest.wire);
  }
  return nullptr;
}

asio::awaitable<std::unique_ptr<Wire>> UpstreamPool::connect(Millis within) {
  const auto executor = co_await asio::this_coro::executor;
  Tcp::resolver resolver{executor};
  const auto found =
      co_await resolver.async_resolve(address_.host, address_.port, asio::use_awaitable);
  auto wire = std::make_unique<Wire>(executor);
  wire->close_in(within);
  co_await wire->tcp().async_connect(found, asio::use_awaitable);
  boost::system::error_code ignored;
  wire->tcp().socket().set_option(Tcp::no_delay{true}, ignored);
  if (tls_ != nullptr) co_await wire->connect_tls(*tls_, address_.host);
  co_return wire;
}

void UpstreamPool::give_back(std::unique_ptr<Wire> wire) {
  wire->close_never();
  idle_.push_back({std::move(wire), clock_.now()});
  if (idle_.size() > idle_max) idle_.pop_front();
}

}  // namespace semel::gateway
