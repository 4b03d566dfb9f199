// Which commands are allowed: what "+get -@dangerous +select|0" comes to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/acl/catalog.hpp"

namespace semel::net {

class CommandSet {
 public:
  /// Nothing is allowed. `catalog` must live as long as this and its copies.
  explicit CommandSet(const AclCatalog& catalog)
      : catalog_(&catalog), bits_(catalog.word_count()) {}

  [[nodiscard]] const AclCatalog& catalog() const noexcept { return *catalog_; }

  /// The command with its subcommands. Replaces earlier rules about its first argument.
  void set(std::uint32_t command, bool allowed);
  void set_category(std::size_t category, bool allowed);
  /// Also commands that are not known yet; commands that are forbidden later stay exceptions.
  void set_all(bool allowed);
  /// The command, where it is not allowed as a whole, with this first argument. False: there are
  /// arguments_max of them.
  [[nodiscard]] bool allow_argument(std::uint32_t command, std::string_view argument);

  [[nodiscard]] bool has_all() const noexcept { return all_; }
  [[nodiscard]] bool has(std::uint32_t command) const {
    return (bits_[command / 64] >> (command % 64) & 1U) != 0;
  }
  /// `argument`: the first word behind the command's name; empty: none.
  [[nodiscard]] bool allows(std::uint32_t command, std::string_view argument) const {
    return all_ || has(command) || (!arguments_.empty() && allows_argument(command, argument));
  }

  /// Rules that come to this set, with as few words as Redis uses: beginning at all or nothing,
  /// the categories that fit best, then single commands. "-@all +@read -get". A category without a
  /// command that was allowed or forbidden by name is kept as well: it may have some one day.
  [[nodiscard]] std::string text() const;
  /// For a file, which a later version may read: with every category that was named since all or
  /// nothing was, in that order, and then the commands that differ.
  [[nodiscard]] std::string file_text() const;

 private:
  struct Fit {
    std::size_t same = 0;
    std::size_t different = 0;
  };

  struct Named {
    std::size_t category;
    bool allowed;
  };

  void put(std::uint32_t command, bool allowed);
  [[nodiscard]] bool is_empty(std::size_t category) const;
  void append_differences(CommandSet& written, std::string& text) const;
  [[nodiscard]] bool allows_argument(std::uint32_t command, std::string_view argument) const;
  [[nodiscard]] Fit fit_of(std::size_t category, bool adds) const;
  [[nodiscard]] std::optional<std::size_t> best_category(bool adds, std::uint32_t used) const;

  const AclCatalog* catalog_;
  AclCatalog::Words bits_;
  std::map<std::uint32_t, std::vector<std::string>> arguments_;
  std::size_t argument_count_ = 0;
  std::vector<Named> named_;  ///< categories since set_all(), each once, by their last time
  bool all_ = false;          ///< every bit is set
  bool future_ = false;       ///< began at all
};

}  // namespace semel::net
