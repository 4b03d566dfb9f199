#include "tools/semel/cli/line_editor.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <utility>
#include <vector>

#include "tools/semel/shared/output.hpp"

namespace semel::tool {

namespace {

using Generator = char*(const char*, int);
using Attempt = char**(const char*, int, int);

// The library's callback has no place for more than the text.
std::vector<std::string>& completions() {
  static std::vector<std::string> words;
  return words;
}

}  // namespace

/// What of libedit is used, by its readline names. Loaded only where somebody types, so that no
/// other start of the program waits for it, and the program runs where it is not installed.
struct LineEditor::Library {
  char* (*readline)(const char*) = nullptr;
  int (*add_history)(const char*) = nullptr;
  char** (*matches)(const char*, Generator*) = nullptr;
  Attempt** attempted_completion = nullptr;

  static const Library* load() {
    static Library loaded;
    void* const library = dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    const auto find = [&](const char* name, auto& to) {
      void* const found = dlsym(library, name);
      std::memcpy(&to, &found, sizeof to);
      return found != nullptr;
    };
    const bool has_all = find("readline", loaded.readline) &&
                         find("add_history", loaded.add_history) &&
                         find("rl_completion_matches", loaded.matches) &&
                         find("rl_attempted_completion_function", loaded.attempted_completion);
    return has_all ? &loaded : nullptr;
  }

  /// The `n`-th word that begins with `text`, as memory of malloc; null: there is no more.
  static char* next(const char* text, int n) {
    static std::size_t at = 0;
    if (n == 0) at = 0;
    const std::string begin{text};
    for (const std::vector<std::string>& words = completions(); at < words.size();) {
      const std::string& word = words[at++];
      const auto same = [](char one, char other) {
        return one == std::tolower(static_cast<unsigned char>(other));
      };
      if (word.size() >= begin.size() && std::equal(begin.begin(), begin.end(), word.begin(),
                                                    [&](char b, char a) { return same(a, b); })) {
        return strdup(word.c_str());
      }
    }
    return nullptr;
  }
  static char** attempt(const char* text, int begin, int /*end*/) {
    const Library* const library = load();
    return begin == 0 && library != nullptr ? library->matches(text, &next) : nullptr;
  }
};

LineEditor::LineEditor(std::string complete_with)
    : is_interactive_(isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0) {
  if (!is_interactive_) return;
  library_ = Library::load();
  if (library_ == nullptr) {
    write_error("semel cli: no history and no completion, as libedit2 is not installed\n");
    return;
  }
  std::istringstream words{std::move(complete_with)};
  completions().clear();
  for (std::string word; words >> word;) completions().push_back(word);
  *library_->attempted_completion = &Library::attempt;
}

LineEditor::~LineEditor() {
  if (library_ != nullptr) *library_->attempted_completion = nullptr;
}

std::optional<std::string> LineEditor::read(const std::string& prompt) {
  if (library_ != nullptr) {
    char* const line = library_->readline(prompt.c_str());
    if (line == nullptr) return std::nullopt;
    std::string text{line};
    std::free(line);
    return text;
  }
  if (is_interactive_) static_cast<void>(write_out(prompt));
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

void LineEditor::remember(const std::string& line) {
  if (library_ != nullptr) library_->add_history(line.c_str());
}

}  // namespace semel::tool
