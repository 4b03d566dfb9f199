// What one set of rules allows: commands, keys, channels. A user has one, and one more for each of
// its selectors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/acl/command_set.hpp"
#include "net/acl/rules.hpp"

namespace semel::net {

/// What a command does to a key, and what a pattern permits. `none`: it looks at something beside
/// the value, as EXISTS does; any pattern permits that.
enum class KeyAccess : std::uint8_t { none = 0, read = 1, write = 2, both = 3 };

struct AclKey {
  std::string_view name;
  KeyAccess access = KeyAccess::both;
};

struct AclChannel {
  std::string_view name;
  bool is_pattern = false;  ///< of PSUBSCRIBE: the very pattern must be permitted
};

/// The rights to check, collected by the code that knows the commands.
struct AclRequest {
  std::uint32_t command = 0;    ///< its number in the catalog; of a subcommand, that one's
  std::string_view argument{};  ///< the first word behind the command's name
  std::span<const AclKey> keys{};
  std::span<const AclChannel> channels{};
};

/// `ok`, or the check that failed. In the order of the checks.
enum class AclDenied : std::uint8_t { ok, command, key, channel };

struct Verdict {
  AclDenied denied = AclDenied::ok;
  std::size_t index = 0;  ///< among the request's keys or channels

  [[nodiscard]] bool ok() const noexcept { return denied == AclDenied::ok; }
};

/// The reader of written rules: an operator, or the aclfile. Redis shows the pattern "%RW~*" as
/// "~*", which means all keys and lets no pattern follow: an aclfile with that could not be read.
/// And of categories it shows those that fit best, where a file keeps those that were named: what
/// belongs to them may grow.
enum class RuleForm : std::uint8_t { list, file };

class Rights {
 public:
  /// None. `catalog` must live as long as this and its copies.
  explicit Rights(const AclCatalog& catalog) : commands_(catalog) {}

  /// One rule about commands, keys or channels. Without effect where it is wrong.
  [[nodiscard]] RuleResult apply(std::string_view rule);
  /// As if new.
  void reset();

  [[nodiscard]] const AclCatalog& catalog() const noexcept { return commands_.catalog(); }
  [[nodiscard]] bool is_unlimited() const noexcept {
    return commands_.has_all() && all_keys_ && all_channels_;
  }
  [[nodiscard]] Verdict check(const AclRequest& request) const;
  /// Whether it may read every key, by "~*" or by one pattern that is an asterisk alone.
  [[nodiscard]] bool reads_all_keys() const;
  [[nodiscard]] bool may_hear(const AclChannel& channel) const {
    return all_channels_ || allows(channel);
  }

  /// As GETUSER has it: "~* %R~x", "&*", "-@all +get".
  [[nodiscard]] std::string keys_text(RuleForm form = RuleForm::list) const;
  [[nodiscard]] std::string channels_text() const;
  [[nodiscard]] std::string commands_text(RuleForm form = RuleForm::list) const {
    return form == RuleForm::file ? commands_.file_text() : commands_.text();
  }
  /// As LIST has it: "~k* resetchannels &c -@all +get".
  [[nodiscard]] std::string text(RuleForm form) const;

 private:
  struct KeyPattern {
    std::string text;
    std::uint8_t access;
  };

  [[nodiscard]] RuleResult apply_commands(std::string_view rule);
  [[nodiscard]] RuleResult allow_argument(std::string_view name, std::size_t bar);
  [[nodiscard]] RuleResult apply_key(std::string_view rule);
  [[nodiscard]] RuleResult apply_channel(std::string_view pattern);
  void forget_keys(bool all);
  void forget_channels(bool all);
  [[nodiscard]] bool allows(const AclKey& key) const;
  [[nodiscard]] bool allows(const AclChannel& channel) const;

  CommandSet commands_;
  std::vector<KeyPattern> keys_;
  std::vector<std::string> channels_;
  bool all_keys_ = false;
  bool all_channels_ = false;
};

}  // namespace semel::net
