#include <algorithm>
#include <array>

#include "net/handlers.hpp"
#include "net/text.hpp"

namespace semel::net {
namespace {

constexpr std::uint32_t flags_of(std::string_view letters) {
  constexpr std::string_view known = "wrmfnlsx";  // in the order of the bits
  std::uint32_t flags = 0;
  for (const char letter : letters) flags |= 1U << known.find(letter);
  return flags;
}

constexpr CommandRow rows[] = {
#define X(name, arity, flags, first, last, step, since, handler) \
  {name, arity, flags_of(flags), first, last, step, since, &handlers::handler},
#include "net/command_table.def"
#undef X
};
static_assert(std::is_sorted(std::begin(rows), std::end(rows),
                             [](const CommandRow& a, const CommandRow& b) {
                               return a.name < b.name;
                             }));

constexpr std::size_t shown_bytes_max = 128;  // of a name and of arguments that nobody knows

std::string_view up_to_zero(std::string_view text) noexcept {
  return text.substr(0, text.find('\0'));
}

void fail_unknown(Call& call) {
  std::string text = "ERR unknown command '";
  text += up_to_zero(call.words[0]).substr(0, shown_bytes_max);
  text += "', with args beginning with: ";
  std::string shown;
  for (std::size_t i = 1; i < call.words.size() && shown.size() < shown_bytes_max; ++i) {
    const std::size_t room = shown_bytes_max - shown.size();
    shown.append("'").append(up_to_zero(call.words[i]).substr(0, room)).append("' ");
  }
  call.fail(text + shown);
}

}  // namespace

std::span<const CommandRow> all_commands() noexcept {
  return rows;
}

const CommandRow* find_command(std::string_view name) noexcept {
  constexpr std::size_t name_bytes_max = 32;
  if (name.size() > name_bytes_max) return nullptr;
  std::array<char, name_bytes_max> small{};
  std::transform(name.begin(), name.end(), small.begin(), lower);
  const std::string_view wanted{small.data(), name.size()};
  const auto found = std::lower_bound(
      std::begin(rows), std::end(rows), wanted,
      [](const CommandRow& row, std::string_view word) { return row.name < word; });
  return found != std::end(rows) && found->name == wanted ? found : nullptr;
}

void Call::fail(const Error& error) {
  std::string text{resp_prefix_of(error.code)};
  text.append(" ").append(sentence_of(error.code));
  fail(text);
}

void Call::fail_arity() {
  fail("ERR wrong number of arguments for '" + std::string{row->name} + "' command");
}

void Call::fail_expire() {
  fail("ERR invalid expire time in '" + std::string{row->name} + "' command");
}

void dispatch(Call& call) {
  call.row = find_command(call.words[0]);
  if (call.row == nullptr) return fail_unknown(call);
  const auto count = static_cast<int>(call.words.size());
  const int arity = call.row->arity;
  if (arity >= 0 ? count != arity : count < -arity) return call.fail_arity();
  call.row->handler(call);
}

}  // namespace semel::net
