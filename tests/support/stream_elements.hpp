// Elements of a stream for tests that are about records: the rules of streams make them, as bytes
// of another form are refused where they come in.
#pragma once

#include <array>
#include <string>

#include "engine/types/stream.hpp"

namespace semel::tests {

/// The first one is the head, the others are entries. `number` is their value.
inline void put_stream_element(engine::ObjectEdit& stream, int number) {
  if (stream.empty()) return engine::begin_stream(stream);
  const std::string value = "v" + std::to_string(number);
  const std::array<Bytes, 2> words{"f", value};
  engine::StreamId added;
  static_cast<void>(engine::add_entry(stream, {}, 1, words, added));
}

}  // namespace semel::tests
