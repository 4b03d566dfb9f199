#include "tools/semel/shared/output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace semel::tool {
namespace {

/// The errno of the first write to standard output that failed; 0: none has. A process has one
/// standard output, so one place for this.
int& out_error() noexcept {
  static int error = 0;
  return error;
}

}  // namespace

void append_out(std::string_view text) {
  if (out_error() != 0) return;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    out_error() = errno != 0 ? errno : EIO;
  }
}

Exit finish_out() {
  errno = 0;
  if (out_error() == 0 && std::fflush(stdout) != 0) out_error() = errno != 0 ? errno : EIO;
  if (out_error() == 0 || out_error() == EPIPE) return Exit::ok;
  print_error("semel: cannot write standard output: {}\n", std::strerror(out_error()));
  return Exit::file;
}

Exit write_out(std::string_view text) {
  append_out(text);
  return finish_out();
}

void write_error(const std::string& text) {
  std::fputs(text.c_str(), stderr);
}

}  // namespace semel::tool
