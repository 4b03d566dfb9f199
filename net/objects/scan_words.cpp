#include "net/objects/scan_words.hpp"

#include "net/resp/text.hpp"

namespace semel::net {

std::optional<ObjectScanWords> object_scan_words_of(Call& call) {
  ObjectScanWords words;
  auto rest = call.args.subspan(3);
  for (; rest.size() >= 2; rest = rest.subspan(2)) {
    if (is_word(rest[0], "match")) {
      // An asterisk alone matches an empty text here, as nowhere else in redis-server.
      words.pattern.reset();
      if (rest[1] != "*") words.pattern = rest[1];
    } else if (is_word(rest[0], "count")) {
      const auto count = integer_of(rest[1]);
      if (!count) {
        call.fail_number();
        return std::nullopt;
      }
      if (*count < 1) break;
      words.count = static_cast<std::size_t>(*count);
    } else {
      break;
    }
  }
  if (rest.empty()) return words;
  call.fail_syntax();
  return std::nullopt;
}

}  // namespace semel::net
