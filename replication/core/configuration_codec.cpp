#include "replication/core/configuration_codec.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "replication/core/raft_shim.h"
#include "replication/core/shim_convert.hpp"

namespace semel::replication {
namespace {

/// Whether the library can decode it without reading beyond its end: u8 1 | u64 count | for each
/// u64 id, text with a zero, u8 role; then zeros up to a multiple of 8.
bool is_sound(Bytes data) {
  const auto number = [&](std::size_t at) {
    std::uint64_t value;
    std::memcpy(&value, data.data() + at, sizeof value);
    return value;
  };
  constexpr std::size_t head = 1 + sizeof(std::uint64_t);
  if (data.size() < head || data[0] != 1) return false;
  const std::uint64_t count = number(1);
  if (count > members_max) return false;
  std::size_t at = head;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (data.size() - at < sizeof(std::uint64_t)) return false;
    if (number(at) == 0) return false;
    at += sizeof(std::uint64_t);
    const std::size_t end = data.find('\0', at);
    if (end == Bytes::npos || end - at > full_address_bytes_max || end + 1 >= data.size())
      return false;
    at = end + 1;
    const auto role = static_cast<unsigned char>(data[at]);
    if (role > raft_shim_voter) return false;
    ++at;
  }
  return data.size() - at < sizeof(std::uint64_t);
}

}  // namespace

Result<SharedData> encode_configuration(const Configuration& configuration) {
  const auto is_voter = [](const Member& each) { return each.role == MemberRole::voter; };
  if (configuration.size() > members_max) {
    return Error{ErrorCode::bad_option, std::to_string(configuration.size()) +
                                            " members, at most " + std::to_string(members_max)};
  }
  if (std::none_of(configuration.begin(), configuration.end(), is_voter)) {
    return Error{ErrorCode::bad_option, "a group needs a voter"};
  }
  for (const Member& each : configuration) {
    if (each.id == 0 || each.address.empty() || each.address.size() > address_bytes_max ||
        each.address.find('\0') != std::string::npos) {
      return Error{ErrorCode::bad_option, "member " + std::to_string(each.id) + " with address '" +
                                              each.address.substr(0, address_bytes_max) +
                                              "': the id is from 1, the address has 1 to " +
                                              std::to_string(address_bytes_max) + " bytes"};
    }
  }
  const ShimMembers made_of = to_shim(configuration);
  const std::vector<raft_shim_member>& members = made_of.members;
  void* data = nullptr;
  std::size_t bytes = 0;
  const int error = raft_shim_encode(members.data(), members.size(), &data, &bytes);
  if (error != 0) {
    return Error{ErrorCode::bad_option, std::string{"members: "} + raft_shim_error_text(error)};
  }
  auto made = std::make_shared<const std::string>(static_cast<const char*>(data), bytes);
  raft_shim_free_data(data);
  return SharedData{std::move(made)};
}

Result<Configuration> decode_configuration(Bytes data) {
  Configuration found;
  const auto add = [](void* context, const raft_shim_member* member) {
    static_cast<Configuration*>(context)->push_back(to_member(*member));
  };
  if (!is_sound(data) || raft_shim_decode(data.data(), data.size(), &found, add) != 0) {
    return Error{ErrorCode::bad_encoding,
                 "a configuration of " + std::to_string(data.size()) + " bytes"};
  }
  return found;
}

}  // namespace semel::replication
