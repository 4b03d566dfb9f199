#include "tests/storage/faults/all_starts.hpp"

#include <filesystem>
#include <string>

#include "tests/storage/faults/interrupted_starts.hpp"
#include "tests/storage/golden.hpp"

namespace semel::faults {
namespace {

class AllStarts {
 public:
  AllStarts(const Wanted& wanted, proofs::Random& random, Findings& findings)
      : wanted_(wanted), random_(random), findings_(findings) {}

  /// `weight`: how much more its starts cost than those of others.
  void interrupt(const Result<StartSubject>& subject, std::uint64_t weight = 1) {
    if (!subject) return findings_.not_opened("not made: " + subject.error().message());
    const std::uint64_t stride = wanted_.is_long ? 1 : 8 * weight;
    const StartsFound found =
        interrupt_starts(*subject, {.seed = random_.bits(),
                                    .first = wanted_.is_long ? 1 : random_.between(1, stride),
                                    .stride = stride});
    interrupted_ += found.interrupted;
    for (const std::string& wrong : found.wrong) findings_.lost(wrong);
  }
  void interrupt_golden(const std::filesystem::path& archive, const std::string& path) {
    std::filesystem::create_directory(path);
    if (!tests::golden::unpack(archive, path)) {
      return findings_.not_opened("not unpacked: " + archive.string());
    }
    interrupt(golden_subject(path + "/golden"));
  }
  [[nodiscard]] std::uint64_t interrupted() const noexcept { return interrupted_; }

 private:
  const Wanted& wanted_;
  proofs::Random& random_;
  Findings& findings_;
  std::uint64_t interrupted_ = 0;
};

}  // namespace

std::uint64_t interrupt_all_starts(const Wanted& wanted, const Scratch& scratch,
                                   proofs::Random& random, Findings& findings) {
  AllStarts starts{wanted, random, findings};
  findings.look_at("interrupted starts");
  for (const bool has_cold : {false, true}) {
    starts.interrupt(new_subject(scratch / (has_cold ? "tiered" : "plain"), has_cold));
  }
  starts.interrupt(full_subject(scratch / "full"), 5);
  for (const auto& archive : std::filesystem::directory_iterator{SEMEL_GOLDEN}) {
    if (archive.path().extension() != ".gz") continue;
    starts.interrupt_golden(archive.path(), scratch / archive.path().stem().stem().string());
  }
  return starts.interrupted();
}

}  // namespace semel::faults
