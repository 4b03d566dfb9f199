// The aclfile: a line for each user, "user NAME RULE..", separated by single blanks.
#include <algorithm>

#include "net/acl/acl.hpp"
#include "net/acl/acl_limits.hpp"
#include "net/resp/reply_error.hpp"

namespace semel::net {
namespace {

std::string_view trimmed(std::string_view text, std::string_view what) {
  const std::size_t begin = text.find_first_not_of(what);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(what) - begin + 1);
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

/// Reads lines into users, and collects their errors.
class Acl::FileReader {
 public:
  FileReader(const AclCatalog& catalog, std::string_view file_name, const Users& before,
             std::uint64_t& next_id, FirstChannels first)
      : catalog_(catalog),
        file_name_(file_name),
        before_(before),
        next_id_(next_id),
        first_channels_(first) {}

  void read(std::string_view text) {
    for (const std::string_view line : parts_of(text, '\n')) {
      ++line_;
      const std::string_view content = trimmed(line, " \t\r");
      if (!content.empty()) read_line(parts_of(content, ' '));
    }
    if (!users_.contains(default_name())) {
      put(User::default_user(catalog_, id_of(default_name())));
    }
  }

  [[nodiscard]] Users& users() noexcept { return users_; }
  [[nodiscard]] const std::string& errors() const noexcept { return errors_; }

 private:
  static std::string_view default_name() noexcept { return "default"; }

  void put(User user) {
    std::string name = user.name();
    users_.insert_or_assign(std::move(name), std::make_shared<const User>(std::move(user)));
  }

  [[nodiscard]] std::uint64_t id_of(std::string_view name) {
    const auto known = before_.find(name);
    return known != before_.end() ? known->second->id() : next_id_++;
  }

  void fail(std::string_view text) {
    if (errors_.size() + text.size() <= acl_limits::file_error_bytes_max) errors_ += text;
  }
  [[nodiscard]] std::string here() const {
    return std::string{file_name_} + ":" + std::to_string(line_);
  }

  void read_line(const std::vector<std::string_view>& words) {
    if (words[0] != "user" || words.size() < 2) {
      return fail(here() + " should start with user keyword followed by the username. ");
    }
    const std::string_view name = words[1];
    const std::string shown{up_to_nul(name).substr(0, acl_limits::name_bytes_max)};
    if (has_blanks(name) || name.size() > acl_limits::name_bytes_max) {
      return fail("'" + here() + ": username '" + shown + "' contains invalid characters. ");
    }
    if (users_.contains(name)) {
      return fail("WARNING: Duplicate user '" + shown + "' found on line " + std::to_string(line_) +
                  ". ");
    }
    // One user is reserved for `default`, which is there in any case.
    const bool keeps_place = name != default_name() && !users_.contains(default_name());
    if (users_.size() + (keeps_place ? 1 : 0) >= acl_limits::users_max) {
      return fail(here() + ": more than " + std::to_string(acl_limits::users_max) + " users. ");
    }
    User user{catalog_, std::string{name}, id_of(name), first_channels_};
    apply(user, std::span{words}.subspan(2));
    put(std::move(user));
  }

  void apply(User& user, std::span<const std::string_view> words) {
    const MergedRules merged = merge_selectors(words);
    if (merged.unmatched) {
      return fail(here() + ": Unmatched parenthesis in selector definition.");
    }
    bool was_reported = false;  // only the first error: later ones may follow from it
    for (const std::string& word : merged.rules) {
      const std::string_view rule = trimmed(word, "\t\r\n");
      const RuleResult error = user.apply(rule);
      if (!error) continue;
      if (*error == RuleError::unknown_command) {
        fail(here() + ": Error in applying operation '" + std::string{up_to_nul(rule)} +
             "': " + text_of(*error) + ". ");
      } else if (!was_reported) {
        was_reported = true;
        fail(here() + ": " + text_of(*error) + ". ");
      }
    }
  }

  const AclCatalog& catalog_;
  const std::string_view file_name_;
  const Users& before_;
  std::uint64_t& next_id_;
  const FirstChannels first_channels_;
  std::size_t line_ = 0;
  Users users_;
  std::string errors_;
};

Status Acl::load_file(std::string_view text, std::string_view file_name) {
  const base::MutexLock lock{mutex_};
  FileReader reader{catalog_, file_name, users_, next_id_, first_channels_};
  reader.read(text);
  if (!reader.errors().empty()) {
    return reply_error(
        "ERR " + reader.errors() +
        "WARNING: ACL errors detected, no change to the previously active ACL rules was performed");
  }
  users_ = std::move(reader.users());
  changed();
  return Done{};
}

std::string Acl::file_text() const {
  std::string text;
  for (const SharedUser& user : users()) {
    text.append("user ").append(user->name()).append(" ");
    text.append(user->text(RuleForm::file)).append("\n");
  }
  return text;
}

}  // namespace semel::net
