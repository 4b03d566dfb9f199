// Whether bytes are replies of Redis' protocol, in either dialect, and nothing is left over.
#pragma once

#include <string_view>

namespace semel::tests {

[[nodiscard]] bool is_whole_replies(std::string_view bytes);

}  // namespace semel::tests
