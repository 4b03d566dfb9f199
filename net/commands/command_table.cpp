// The table of commands, and finding in it.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "base/ascii.hpp"
#include "base/assert.hpp"
#include "net/commands/handlers.hpp"
#include "net/commands/single_key_command.hpp"
#include "net/resp/text.hpp"
#include "net/resp/word_code.hpp"

namespace semel::net {
namespace {

constexpr std::uint32_t flags_of(std::string_view letters) {
  std::uint32_t flags = 0;
  for (const char letter : letters) flags |= 1U << flag_letters.find(letter);
  return flags;
}

constexpr std::uint32_t category(std::string_view name) {
  for (std::size_t i = 0; i < acl_categories.size(); ++i) {
    if (acl_categories[i] == name) return 1U << i;
  }
  return 1U << 31U;  // fails the assertion below
}

/// Those that are named, and those that follow from the flags.
constexpr std::uint32_t categories_of(std::string_view names, std::uint32_t flags) {
  std::uint32_t found = category((flags & flag_fast) != 0 ? "fast" : "slow");
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(' '), names.size());
    found |= category(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  if ((flags & flag_write) != 0) found |= category("write");
  if ((flags & flag_readonly) != 0 && (found & category("scripting")) == 0) {
    found |= category("read");
  }
  if ((flags & flag_admin) != 0) found |= category("admin") | category("dangerous");
  if ((flags & flag_pubsub) != 0) found |= category("pubsub");
  if ((flags & flag_blocking) != 0) found |= category("blocking");
  return found;
}

struct FactWord {
  std::string_view word;
  CommandFact fact;
};
constexpr std::array fact_words{
    FactWord{"listening", fact_listening},
    FactWord{"at-once", fact_at_once},
    FactWord{"executes", fact_executes},
    FactWord{"publishes", fact_publishes},
    FactWord{"elsewhere", fact_elsewhere},
    FactWord{"monitors", fact_monitors},
    FactWord{"declares", fact_declares},
    FactWord{"script-text", fact_script_text},
    FactWord{"script-digest", fact_script_digest},
    FactWord{"function", fact_function},
    FactWord{"audited", fact_audited},
    FactWord{"audited-words", fact_audited_words},
    FactWord{"frees", fact_frees},
    FactWord{"stateless", fact_stateless},
    FactWord{"libraries", fact_libraries},
    FactWord{"binds", fact_binds},
    FactWord{"versions", fact_versions},
    FactWord{"repeats", fact_repeats},
    FactWord{"of-node", fact_of_node},
    FactWord{"removes", fact_removes},
    FactWord{"forgets", fact_forgets},
    FactWord{"objects", fact_objects},
    FactWord{"of-log", fact_of_log},
    FactWord{"for-tests", fact_for_tests},
    FactWord{"caches", fact_caches},
};

/// Of one digit. 0: it is none.
constexpr std::uint8_t digit_of(std::string_view text) {
  const bool is_digit = text.size() == 1 && text[0] >= '1' && text[0] <= '9';
  return is_digit ? static_cast<std::uint8_t>(text[0] - '0') : std::uint8_t{0};
}

/// "secret@2" and its like. False: no such word.
constexpr bool read_position(std::string_view name, std::string_view position,
                             CommandFacts& facts) {
  SecretWords& secrets = facts.secrets;
  if (name == "secret") {
    const std::size_t colon = position.find(':');
    if (colon == std::string_view::npos) return (secrets.from = digit_of(position)) != 0;
    secrets.option = position.substr(0, colon);
    return (secrets.count = digit_of(position.substr(colon + 1))) != 0;
  }
  if (name == "secret-settings") return (secrets.settings_from = digit_of(position)) != 0;
  if (name == "names") return (secrets.name_at = digit_of(position)) != 0;
  return name == "inner" && (facts.inner_at = digit_of(position)) != 0;
}

constexpr CommandFacts facts_of(std::string_view words) {
  CommandFacts facts;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (const std::size_t at = word.find('@'); at != std::string_view::npos) {
      const bool is_known = read_position(word.substr(0, at), word.substr(at + 1), facts);
      facts.is_valid = facts.is_valid && is_known;
      continue;
    }
    bool is_known = false;
    for (const FactWord& each : fact_words) {
      if (each.word != word) continue;
      facts.bits |= each.fact;
      is_known = true;
    }
    facts.is_valid = facts.is_valid && is_known;
  }
  return facts;
}

constexpr CommandRow row_of(const CommandRow& row, std::string_view categories,
                            std::string_view keys, std::string_view facts) {
  CommandRow whole = row;
  whole.categories = categories_of(categories, row.flags);
  whole.keys = key_specs_of(keys);
  whole.facts = facts_of(facts);
  for (const KeySpec& spec : whole.keys.all()) {
    if (spec.position != KeySpec::Position::range || !spec.is_shown()) continue;
    if (whole.first_key == 0) whole.first_key = spec.first;
    whole.last_key = spec.last;
    whole.key_step = spec.step;
  }
  return whole;
}

constexpr CommandRow rows[] = {
#define X(name, arity, flags, categories, keys, facts, since, handler, ...)                      \
  row_of({name, arity, flags_of(flags), 0, 0, 0, 0, since, &handlers::handler, nullptr, {}, {}}, \
         categories, keys, facts),
#define S(name, arity, flags, categories, keys, facts, since, handler, ...) \
  row_of({name,                                                             \
          arity,                                                            \
          flags_of(flags),                                                  \
          0,                                                                \
          0,                                                                \
          0,                                                                \
          0,                                                                \
          since,                                                            \
          &handlers::handler,                                               \
          &singles::handler##_single,                                       \
          {},                                                               \
          {}},                                                              \
         categories, keys, facts),
#include "net/commands/command_table.def"
#undef S
#undef X
};
constexpr std::size_t row_count = std::size(rows);
static_assert(std::is_sorted(std::begin(rows), std::end(rows),
                             [](const CommandRow& a, const CommandRow& b) {
                               return a.name < b.name;
                             }));
static_assert(std::none_of(std::begin(rows), std::end(rows), [](const CommandRow& row) {
  return (row.categories >> acl_categories.size()) != 0 || !row.keys.is_valid ||
         !row.facts.is_valid;
}));

// Names by their hash, without subcommands, which have a word each: a lookup is a few loads of the
// name and a comparison of them.
constexpr unsigned index_bits = 10;
constexpr std::size_t index_size = std::size_t{1} << index_bits;
constexpr std::uint16_t no_row = 0xffff;
static_assert(row_count * 2 < index_size);

/// The first and the last eight bytes of a name; the last are 0 if there are no more than eight.
struct NameBytes {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

constexpr NameBytes bytes_of_name(std::string_view name) noexcept {
  const bool is_long = name.size() > word_code_bytes_max;
  return {.first = packed_bytes(name),
          .last = is_long ? packed_bytes(name.substr(name.size() - word_code_bytes_max)) : 0};
}

/// In any case of letters.
constexpr std::size_t slot_of(const NameBytes& name, std::size_t size) noexcept {
  constexpr std::uint64_t spread = 0x9e37'79b9'7f4a'7c15;  // 2^64 by the golden ratio
  std::uint64_t hash = name.first | small_bits(size);
  if (size > word_code_bytes_max) {
    hash = hash * spread + (name.last | small_bits(word_code_bytes_max));
  }
  return static_cast<std::size_t>((hash + size) * spread >> (64 - index_bits));
}

/// 0x20 at each letter: it makes a capital letter small, and changes no other byte.
constexpr std::uint64_t letter_bits(std::uint64_t small) noexcept {
  std::uint64_t bits = 0;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    const auto byte = static_cast<char>(small >> shift & 0xff);
    if (byte >= 'a' && byte <= 'z') bits |= std::uint64_t{0x20} << shift;
  }
  return bits;
}

/// A row's name, and the bytes of it in which a client may write a capital letter.
struct FoldedName {
  NameBytes small{};
  NameBytes letters{};

  [[nodiscard]] constexpr bool is(const NameBytes& name) const noexcept {
    return (name.first | letters.first) == small.first && (name.last | letters.last) == small.last;
  }
};

constexpr FoldedName folded(std::string_view small_name) noexcept {
  const NameBytes small = bytes_of_name(small_name);
  return {.small = small,
          .letters = {.first = letter_bits(small.first), .last = letter_bits(small.last)}};
}

/// By which names clients find the commands: those of the rows, until rename_command(). It is
/// called before there are threads, so that a lookup takes no lock.
struct SpokenNames {
  std::array<std::string_view, row_count> names{};  // small; empty: none, or a subcommand
  std::array<FoldedName, row_count> folded_names{};
  std::array<std::uint16_t, index_size> index{};

  constexpr void give(std::size_t row, std::string_view name) {
    names[row] = name;
    folded_names[row] = folded(name);
  }
  constexpr void fill_index() {
    index.fill(no_row);
    for (std::size_t row = 0; row < row_count; ++row) {
      if (names[row].empty()) continue;
      std::size_t at = slot_of(folded_names[row].small, names[row].size());
      while (index[at] != no_row) at = (at + 1) % index_size;
      index[at] = static_cast<std::uint16_t>(row);
    }
  }
};

constexpr SpokenNames names_of_rows = [] {
  SpokenNames spoken;
  for (std::size_t row = 0; row < row_count; ++row) {
    if (rows[row].name.find('|') == std::string_view::npos) spoken.give(row, rows[row].name);
  }
  spoken.fill_index();
  return spoken;
}();
constinit SpokenNames spoken = names_of_rows;
constinit bool is_renamed = false;

/// The position of the one row that has `fact`; std::size(rows): none, or more than one.
constexpr std::size_t only_with(CommandFact fact) {
  std::size_t found = std::size(rows);
  for (std::size_t at = 0; at < std::size(rows); ++at) {
    if ((rows[at].facts.bits & fact) == 0) continue;
    if (found != std::size(rows)) return std::size(rows);
    found = at;
  }
  return found;
}

}  // namespace

std::span<const CommandRow> all_commands() noexcept {
  return rows;
}

std::size_t index_of(const CommandRow& row) noexcept {
  SEMEL_ASSERT(&row >= std::begin(rows) && &row < std::end(rows));
  return static_cast<std::size_t>(&row - rows);
}

const CommandRow& monitor_row() noexcept {
  constexpr std::size_t at = only_with(fact_monitors);
  static_assert(at < std::size(rows));
  return rows[at];
}

const CommandRow& forget_row() noexcept {
  constexpr std::size_t at = only_with(fact_forgets);
  static_assert(at < std::size(rows));
  return rows[at];
}

const CommandRow& declare_row() noexcept {
  constexpr std::size_t at = only_with(fact_declares);
  static_assert(at < std::size(rows));
  return rows[at];
}

bool needs_objects(const CommandRow& row) noexcept {
  constexpr std::uint32_t kinds = category("list") | category("set") | category("sortedset") |
                                  category("stream") | category("geo") | category("bitmap") |
                                  category("hyperloglog");
  return (row.categories & kinds) != 0 || row.has(fact_objects);
}

const CommandRow* find_command(std::string_view name) noexcept {
  const std::size_t size = name.size();
  const NameBytes bytes = bytes_of_name(name);
  for (std::size_t at = slot_of(bytes, size); spoken.index[at] != no_row;
       at = (at + 1) % index_size) {
    const std::size_t found = spoken.index[at];
    if (spoken.names[found].size() != size || !spoken.folded_names[found].is(bytes)) continue;
    // What lies between the first and the last eight bytes.
    if (size <= 2 * word_code_bytes_max || is_word(name, spoken.names[found])) return &rows[found];
  }
  return nullptr;
}

std::string_view rename_command(std::string_view from, std::string_view to) {
  const CommandRow* const row = find_command(from);
  // redis-server has none of ours, and the node calls some of them itself.
  if (row == nullptr || row->name.starts_with("semel.")) {
    return "No such command in rename-command";
  }
  const CommandRow* const taken_by = to.empty() ? nullptr : find_command(to);
  if (taken_by == row) return {};
  if (taken_by != nullptr) return "Target command name already exists";
  static std::map<std::size_t, std::string> texts;  // by row
  std::string& text = texts[index_of(*row)];
  text = base::lower_of(to);
  spoken.give(index_of(*row), text);
  spoken.fill_index();
  is_renamed = true;
  return {};
}

bool has_name(const CommandRow& row) noexcept {
  const std::string_view parent = row.name.substr(0, row.name.find('|'));
  std::size_t at = index_of(row);
  while (rows[at].name != parent) --at;  // it is before its subcommands
  return !spoken.names[at].empty();
}

bool has_renamed_commands() noexcept {
  return is_renamed;
}

void restore_command_names() noexcept {
  spoken = names_of_rows;
  is_renamed = false;
}

bool is_container(const CommandRow& row) noexcept {
  const CommandRow* const next = &row + 1;
  return next != std::end(rows) && next->name.size() > row.name.size() &&
         next->name[row.name.size()] == '|' && next->name.starts_with(row.name);
}

const CommandRow* find_subcommand(const CommandRow& parent, std::string_view name) noexcept {
  const std::size_t behind = parent.name.size() + 1;
  for (const CommandRow* row = &parent + 1;
       row != std::end(rows) && row->name.size() > behind && row->name[behind - 1] == '|' &&
       row->name.starts_with(parent.name);
       ++row) {
    if (is_word(name, row->name.substr(behind))) return row;
  }
  return nullptr;
}

const CommandRow* find_row(std::span<const std::string_view> words) noexcept {
  const CommandRow* const row = find_command(words[0]);
  if (row == nullptr || !is_container(*row) || words.size() < 2) return row;
  return find_subcommand(*row, words[1]);
}

}  // namespace semel::net
