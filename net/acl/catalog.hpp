// What rights can be about: the commands with their categories, by number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace semel::net {

/// In the order of ACL CAT; a command's categories are the bits of this order.
inline constexpr std::array<std::string_view, 21> acl_categories{
    "keyspace", "read",   "write",       "set",       "sortedset",  "list",        "hash",
    "string",   "bitmap", "hyperloglog", "geo",       "stream",     "pubsub",      "admin",
    "fast",     "slow",   "blocking",    "dangerous", "connection", "transaction", "scripting"};

/// In any case of letters.
[[nodiscard]] std::optional<std::size_t> acl_category_of(std::string_view name) noexcept;

struct AclCommand {
  std::string_view name;         ///< small letters; a subcommand is "parent|sub"
  std::uint32_t categories = 0;  ///< bit i: acl_categories[i]
  bool no_auth = false;          ///< for all clients, as AUTH and HELLO: no rights are checked
};

/// The commands by their numbers, which are their places in the list it was made of. Immutable.
class AclCatalog {
 public:
  using Words = std::vector<std::uint64_t>;  ///< a bit for each command

  /// Copies what it needs. Of two commands of one name the first is found.
  explicit AclCatalog(std::span<const AclCommand> commands);

  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
  [[nodiscard]] std::size_t word_count() const noexcept { return (size() + 63) / 64; }
  [[nodiscard]] const std::string& name_of(std::uint32_t command) const {
    return rows_[command].name;
  }
  [[nodiscard]] bool is_for_all(std::uint32_t command) const { return rows_[command].no_auth; }
  [[nodiscard]] bool is_subcommand(std::uint32_t command) const { return rows_[command].is_child; }
  [[nodiscard]] std::span<const std::uint32_t> children_of(std::uint32_t command) const {
    return rows_[command].children;
  }
  /// Every command before its subcommands, else as they were listed: the order of all answers.
  [[nodiscard]] std::span<const std::uint32_t> in_order() const noexcept { return order_; }

  /// "get", "client" or "client|kill", in any case of letters.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const;
  /// Of a request: the subcommand that words[1] names where words[0] has subcommands; none: there
  /// is no such command or subcommand.
  [[nodiscard]] std::optional<std::uint32_t> find(std::span<const std::string_view> words) const;

  /// The members of a category.
  [[nodiscard]] const Words& members_of(std::size_t category) const { return members_[category]; }
  /// The commands that a rule about it covers: its members and their subcommands.
  [[nodiscard]] const Words& meant_by(std::size_t category) const { return meant_[category]; }

 private:
  struct Row {
    std::string name;
    bool no_auth = false;
    bool is_child = false;
    std::vector<std::uint32_t> children{};
  };

  void add_category_bits(std::uint32_t command, std::uint32_t categories);

  std::vector<Row> rows_;
  std::map<std::string, std::uint32_t, std::less<>> by_name_;
  std::vector<std::uint32_t> order_;
  std::array<Words, acl_categories.size()> members_;
  std::array<Words, acl_categories.size()> meant_;
};

}  // namespace semel::net
