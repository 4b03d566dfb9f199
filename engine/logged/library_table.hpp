// Which libraries of functions there are: at a node by itself, and as a part of the replicated
// state of a group. What a library's code registers was found out when it was loaded, by the node
// that was asked. Here only names and sizes decide, so that every replica decides alike: another
// bound or rule for them is a new level of features.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace semel::replication {

struct LibraryFunction {
  std::string name;
  std::optional<std::string> description{};
  std::uint32_t flags = 0;  ///< bits below library_flags_end
};
inline constexpr std::uint32_t library_flags_end = 1U << 5U;

/// Unchanging once it is shared.
struct LibraryText {
  std::string name;
  std::string code;            ///< with its first line
  std::size_t body_begin = 0;  ///< of `code`: behind what its first line says
  std::vector<LibraryFunction> functions{};
};
using SharedLibraryText = std::shared_ptr<const LibraryText>;

/// Letters, digits and underscores, one at least: of libraries and functions.
[[nodiscard]] bool is_library_name(std::string_view name) noexcept;

struct LibraryChange {
  /// The restores are of several; no name may be there twice.
  enum class What : std::uint8_t {
    load,                 ///< one whose name is not taken
    load_and_replace,     ///< or takes the place of the one with its name
    restore,              ///< none of their names is taken
    restore_and_replace,  ///< they take the places of those with their names
    restore_and_flush,    ///< all others go
    remove,               ///< `name`
    flush,                ///< all go
  };
  What what = What::load;
  std::string name{};
  std::vector<SharedLibraryText> libraries{};
};

/// Of a change. Unless `none`, it has changed nothing.
struct LibraryVerdict {
  enum class Fault : std::uint8_t {
    none,
    library_exists,
    function_exists,
    too_many_bytes,
    no_such
  };
  Fault fault = Fault::none;
  std::string name{};  ///< of what exists
};

/// Belongs to one thread at a time. std::bad_alloc of change() and restore(): nothing has changed.
class LibraryTable {
 public:
  /// Of all libraries together.
  static constexpr std::size_t bytes_max = std::size_t{64} << 20;
  /// That a library and a function count for, besides their texts.
  static constexpr std::size_t library_bytes = 128;
  static constexpr std::size_t function_bytes = 64;

  [[nodiscard]] static std::size_t bytes_of(const LibraryText& library) noexcept;

  [[nodiscard]] LibraryVerdict change(const LibraryChange& change);
  /// Takes the place of an empty one. False: a name is there twice, or they are too many.
  [[nodiscard]] bool restore(const std::vector<SharedLibraryText>& libraries);

  /// By their names.
  [[nodiscard]] std::vector<SharedLibraryText> all() const;
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t count() const noexcept { return libraries_.size(); }

 private:
  using Libraries = std::map<std::string, SharedLibraryText, std::less<>>;
  using Owners =
      std::map<std::string, SharedLibraryText, std::less<>>;  // by function, small letters
  struct Going {
    std::vector<Libraries::iterator> libraries{};
    std::vector<Owners::iterator> functions{};
    std::size_t bytes = 0;
  };
  /// Notes a library to drop, before any is dropped: dropping takes no memory.
  void note(std::string_view name, Going& going);
  void drop(const Going& going) noexcept;
  void clear() noexcept;
  [[nodiscard]] LibraryVerdict remove(std::string_view name);
  [[nodiscard]] LibraryVerdict put(const std::vector<SharedLibraryText>& libraries, bool replaces,
                                   bool flushes);

  Libraries libraries_;
  Owners owners_;
  std::size_t bytes_ = 0;
};

}  // namespace semel::replication
