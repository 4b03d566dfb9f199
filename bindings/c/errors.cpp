// Error numbers, their texts, and the detail of the last error of a thread.
#include <cstring>

#include "bindings/c/sized.hpp"
#include "semel/result.hpp"
#include "semel/version.hpp"

namespace semel::c {
namespace {

/// Of a fixed size, so that to remember it needs no memory that may not be there, and nothing has
/// to be freed when a thread ends.
struct Detail {
  char text[512];
};
thread_local Detail detail{};

}  // namespace

int say(ErrorCode code, const std::string& text) noexcept {
  if (code == ErrorCode::ok) return SEMEL_OK;
  const std::size_t length = std::min(text.size(), sizeof detail.text - 1);
  std::memcpy(detail.text, text.data(), length);
  detail.text[length] = '\0';
  return number_of(code);
}

int say_unknown_outcome(const char* why) noexcept {
  const std::size_t length = std::min(std::strlen(why), sizeof detail.text - 1);
  std::memcpy(detail.text, why, length);
  detail.text[length] = '\0';
  return SEMEL_OUTCOME_UNKNOWN;
}

int say_null(const char* what) noexcept {
  return guarded([&] { return say(ErrorCode::bad_option, std::string{what} + " is NULL"); });
}

int check_size(std::size_t size, std::size_t least) noexcept {
  return size < least || size > struct_bytes_max ? say_size(size, least) : int{SEMEL_OK};
}

int say_size(std::size_t size, std::size_t least) noexcept {
  return guarded([&] {
    return say(ErrorCode::bad_option, "size = " + std::to_string(size) + ", allowed " +
                                          std::to_string(least) + ".." +
                                          std::to_string(struct_bytes_max) + "; see SEMEL_INIT");
  });
}

int say_tail(std::size_t offset) noexcept {
  return guarded([&] {
    return say(ErrorCode::bad_option,
               "byte " + std::to_string(offset) + " of a struct is of a later release");
  });
}

}  // namespace semel::c

const char* semel_version(void) {
  return semel::version;
}

const char* semel_error_text(int error) {
  switch (error) {
#define SEMEL_X(name, number, retry, prefix, sentence) \
  case number:                                         \
    return sentence;
#include "semel/error_codes.def"
#undef SEMEL_X
    default:
      return "unknown error";
  }
}

const char* semel_error_detail(void) {
  return semel::c::detail.text;
}
