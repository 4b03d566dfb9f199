#include "net/console/login_limit.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

namespace semel::net {
namespace {

/// Logins are counted by IPv4 address, or by the 64 bits that one customer is given of IPv6.
std::string name_of(std::string_view address) {
  address = address.substr(0, address.rfind(':'));
  if (address.starts_with('[') && address.ends_with(']')) {
    address = address.substr(1, address.size() - 2);
  }
  boost::system::error_code unknown;
  const auto parsed = boost::asio::ip::make_address(std::string{address}, unknown);
  if (unknown || parsed.is_v4()) return std::string{address};
  auto bytes = parsed.to_v6().to_bytes();
  if (!parsed.to_v6().is_v4_mapped()) std::fill(bytes.begin() + 8, bytes.end(), 0);
  return boost::asio::ip::make_address_v6(bytes).to_string();
}

}  // namespace

Millis LoginLimit::wait_of(const Tries& tries, std::size_t most, Millis each,
                           Timestamp now) noexcept {
  // A try is available if fewer than `most` are missing.
  const Timestamp free_at = tries.full_at - each * static_cast<std::int64_t>(most - 1);
  return std::max(Millis{0}, free_at - now);
}

void LoginLimit::use(Tries& tries, Millis each, Timestamp now) noexcept {
  tries.full_at = std::max(tries.full_at, now) + each;
}

LoginLimit::Tries& LoginLimit::tries_of(std::string_view address, Timestamp now) {
  std::string name = name_of(address);
  if (const auto found = by_address_.find(name); found != by_address_.end()) return found->second;
  if (by_address_.size() >= console_limits::addresses_max) {
    std::erase_if(by_address_, [&](const auto& each) { return each.second.full_at <= now; });
  }
  if (by_address_.size() >= console_limits::addresses_max) return others_;
  return by_address_[std::move(name)];
}

Millis LoginLimit::take(std::string_view address, Timestamp now) {
  using namespace console_limits;
  Tries& one = tries_of(address, now);
  const Millis wait = std::max(wait_of(one, tries_per_address, try_of_address_after, now),
                               wait_of(all_, tries_in_all, try_in_all_after, now));
  if (wait > Millis{0}) return wait;
  use(one, try_of_address_after, now);
  use(all_, try_in_all_after, now);
  return Millis{0};
}

}  // namespace semel::net
