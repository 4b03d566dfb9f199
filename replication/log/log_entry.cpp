#include "replication/log/log_entry.hpp"

#include <cstring>

namespace semel::replication {
namespace {

using What = LogStatement::What;

void put(std::string& to, std::uint64_t number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::uint64_t number_at(Bytes bytes, std::size_t at) noexcept {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

}  // namespace

void encode(const LogStatement& statement, std::string& to) {
  to.push_back(static_cast<char>(statement.what));
  if (statement.what == What::entry) to.push_back(static_cast<char>(statement.entry.type));
  if (statement.what != What::begin) put(to, statement.entry.index);
  if (statement.what == What::entry || statement.what == What::restart) {
    put(to, statement.entry.term);
  }
  put(to, statement.offset);
  to.append(statement.entry.data);
}

std::optional<LogStatement> read_statement(Bytes bytes) noexcept {
  if (bytes.empty()) return std::nullopt;
  LogStatement found;
  found.what = static_cast<What>(bytes[0]);
  const auto is = [&](std::size_t size) { return bytes.size() == size; };
  switch (found.what) {
    case What::begin:
      if (!is(1 + 8)) return std::nullopt;
      found.offset = number_at(bytes, 1);
      return found;
    case What::entry:
      if (bytes.size() < entry_overhead) return std::nullopt;
      found.entry = {.index = number_at(bytes, 2),
                     .term = number_at(bytes, 10),
                     .type = static_cast<std::uint8_t>(bytes[1]),
                     .data = bytes.substr(entry_overhead)};
      found.offset = number_at(bytes, 18);
      return found;
    case What::truncate:
      if (!is(1 + 2 * 8)) return std::nullopt;
      found.entry.index = number_at(bytes, 1);
      found.offset = number_at(bytes, 9);
      return found;
    case What::restart:
      if (!is(1 + 3 * 8)) return std::nullopt;
      found.entry.index = number_at(bytes, 1);
      found.entry.term = number_at(bytes, 9);
      found.offset = number_at(bytes, 17);
      return found;
  }
  return std::nullopt;
}

}  // namespace semel::replication
