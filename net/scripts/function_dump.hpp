// Libraries of functions as bytes: the payload of FUNCTION DUMP, as redis-server 7 writes it.
//
//   for each library u8 245 | string: its code | u16 version of the format | u64 CRC-64
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/scripts/function_store.hpp"
#include "semel/result.hpp"

namespace semel::net {

[[nodiscard]] std::string dump_of(const std::vector<SharedLibraryText>& libraries);
[[nodiscard]] std::string dump_of(const std::vector<SharedLibrary>& libraries);
/// The codes in such bytes, or in those that Semel wrote before 0.2. The detail of an error is the
/// whole reply.
[[nodiscard]] Result<std::vector<std::string>> codes_of(std::string_view dump);

}  // namespace semel::net
