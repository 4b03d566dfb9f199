// The once proof: random programs over the pattern library, counted against what the documented
// contract allows. A program is one policy and up to 12 calls on three keys: once(),
// consume_once(), batches with duplicates, steps, locks, semaphores, read/write locks, rate limits,
// tokens, debounce; functions that fail, throw, do not know, return what cannot be encoded, outlast
// their lease with and without a watchdog, or meet another caller on the way; time that passes,
// doubts that are resolved, memory that other keys fill up and leave again, engines that close
// under those who wait and are opened again from their journal, and a process that ends at a random
// step. Work with steps has keys of its own (once_steps.hpp): payloads that take turns, owners that
// were replaced, doubts resolved after days, namespaces that are dropped.
//
// proof_once [--long] [--seed N]
// Program i has seed N + i. The last line is the figure, the exit code the verdict.
#include <cstdio>
#include <string>

#include "tests/proofs/arguments.hpp"
#include "tests/proofs/once/once_program.hpp"

int main(int argument_count, char** argument_texts) {
  using namespace semel::proofs;
  const auto arguments = parse_arguments(argument_count, argument_texts);
  if (!arguments) return 2;
  const std::uint64_t first = arguments->seed.value_or(fresh_seed());
  const std::uint64_t programs = arguments->is_long ? 100'000 : 3'000;
  std::printf("once: first seed %llu\n", static_cast<unsigned long long>(first));
  OnceFigures figures;
  std::uint64_t outside = 0;
  std::uint64_t done = 0;
  for (; done < programs && outside < 5; ++done) {
    OnceProgram program{first + done};
    const std::string complaint = program.run();
    figures.add(program.figures());
    if (complaint.empty()) continue;
    ++outside;
    std::printf("once: seed %llu: %s\n", static_cast<unsigned long long>(first + done),
                complaint.c_str());
  }
  const auto say = [](const char* what, std::uint64_t count) {
    std::printf("%12llu %s\n", static_cast<unsigned long long>(count), what);
  };
  say("locks granted", figures.locks);
  say("permits of semaphores granted", figures.permits);
  say("readers and writers let in", figures.readers);
  say("calls allowed by rate limits", figures.allowed);
  say("calls refused as memory was full", figures.refusals);
  say("engines closed and opened again", figures.closes);
  say("twins in batches", figures.twins);
  say("results without a form", figures.formless);
  say("effects of steps", figures.effects);
  say("steps answered with a memo", figures.recalled);
  say("steps asked for by owners whose lease was over", figures.stale);
  say("changes of terms under claims", figures.changed);
  std::printf("once: %llu programs, %llu runs, %llu outside of the contract\n",
              static_cast<unsigned long long>(done), static_cast<unsigned long long>(figures.runs),
              static_cast<unsigned long long>(outside));
  return outside == 0 ? 0 : 1;
}
