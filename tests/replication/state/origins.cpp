#include "tests/replication/state/origins.hpp"

#include "replication/state/answer_table.hpp"

namespace semel::tests {

using namespace replication;

Origins::Next Origins::next() {
  if (random_.chance(1, 4)) return {{}, true};
  const std::uint64_t id = random_.between(1, random_.chance(1, 50) ? nodes + 1 : nodes);
  Node& node = nodes_[id - 1];
  Origin origin{.node = id, .life = node.life == 0 ? 7 : node.life, .lowest = node.lowest};
  bool is_new = node.life != 0;
  const std::uint64_t kind = random_.below(100);
  if (kind < 12 && node.next > node.lowest) {
    origin.sequence = random_.between(node.lowest, node.next - 1);
    is_new = false;
  } else if (kind < 15 && node.lowest > 1) {
    origin.sequence = origin.lowest = random_.between(1, node.lowest - 1);
    is_new = false;
  } else if (kind < 17) {
    origin.sequence = node.lowest + answers_window + random_.below(3);
    if (random_.chance(1, 4)) origin.sequence = sequence_max;
    is_new = false;
  } else if (kind < 19 && node.former != 0) {
    origin.sequence = origin.lowest;
    origin.life = node.former;
    is_new = false;
  } else {
    if (random_.chance(1, 40)) node.next += random_.between(1, 100);  // some were never proposed
    origin.sequence = node.next++;
    // Some answers are waited for while others come and go.
    if (random_.chance(1, 5)) node.lowest = random_.between(node.lowest, origin.sequence);
    origin.lowest = node.lowest;
  }
  return {origin, is_new};
}

void Origins::note(const Command& command, const Answer& answer) {
  if (const auto* refused = std::get_if<NotApplied>(&answer.what)) {
    ++refused_[static_cast<std::size_t>(refused->why)];
    return;
  }
  const auto* const session = std::get_if<SessionCommand>(&command.what);
  const auto* const plain = std::get_if<PlainAnswer>(&answer.what);
  if (session == nullptr || session->what != SessionCommand::What::close_former ||
      session->node == 0 || session->node > nodes || plain == nullptr) {
    return;
  }
  Node& node = nodes_[session->node - 1];
  const auto life = static_cast<std::uint64_t>(plain->number);
  if (life == node.life) return;
  node = {.life = life, .former = node.life};
}

}  // namespace semel::tests
