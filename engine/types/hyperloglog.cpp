#include "engine/types/hyperloglog.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "base/assert.hpp"

namespace semel::engine {

namespace {

constexpr std::string_view magic = "HYLL";
constexpr std::size_t encoding_at = 4;
constexpr std::size_t count_at = 8;
constexpr std::size_t head_bytes = 16;
constexpr std::size_t dense_bytes = head_bytes + hll_register_count * 6 / 8;
constexpr char dense = 0;
constexpr char sparse = 1;
constexpr unsigned index_bits = 14;
constexpr unsigned hash_bits = 64 - index_bits;  // of which zeros are counted
constexpr unsigned out_of_date = 0x80;

unsigned octet_at(Bytes bytes, std::size_t index) noexcept {
  SEMEL_ASSERT(index < bytes.size());
  return static_cast<unsigned char>(bytes[index]);
}

// --- hash ----------------------------------------------------------------------------------------

/// MurmurHash64A, which Austin Appleby has put into the public domain.
std::uint64_t hash_of(Bytes bytes) noexcept {
  constexpr std::uint64_t seed = 0xadc83b19;
  constexpr std::uint64_t factor = 0xc6a4a7935bd1e995;
  constexpr unsigned shift = 47;
  std::uint64_t hash = seed ^ (bytes.size() * factor);
  const std::size_t whole = bytes.size() / 8 * 8;
  for (std::size_t at = 0; at < whole; at += 8) {
    std::uint64_t word = 0;
    for (std::size_t i = 8; i-- > 0;) word = word << 8 | octet_at(bytes, at + i);
    word *= factor;
    word ^= word >> shift;
    word *= factor;
    hash = (hash ^ word) * factor;
  }
  if (whole != bytes.size()) {
    std::uint64_t rest = 0;
    for (std::size_t i = bytes.size(); i-- > whole;) rest = rest << 8 | octet_at(bytes, i);
    hash = (hash ^ rest) * factor;
  }
  hash ^= hash >> shift;
  hash *= factor;
  hash ^= hash >> shift;
  return hash;
}

// --- dense ---------------------------------------------------------------------------------------

std::uint8_t dense_register(Bytes hll, std::size_t index) noexcept {
  const std::size_t byte = head_bytes + index * 6 / 8;
  const unsigned skipped = index * 6 % 8;
  unsigned two = octet_at(hll, byte);
  if (skipped > 2) two |= octet_at(hll, byte + 1) << 8;
  return static_cast<std::uint8_t>(two >> skipped & 63);
}

void set_dense_register(std::string& hll, std::size_t index, std::uint8_t value) noexcept {
  const std::size_t byte = head_bytes + index * 6 / 8;
  const unsigned skipped = index * 6 % 8;
  const unsigned low = (octet_at(hll, byte) & ~(63U << skipped)) | unsigned{value} << skipped;
  hll[byte] = static_cast<char>(low);
  if (skipped <= 2) return;
  const unsigned above = 8 - skipped;
  const unsigned high = (octet_at(hll, byte + 1) & ~(63U >> above)) | unsigned{value} >> above;
  hll[byte + 1] = static_cast<char>(high);
}

// --- sparse --------------------------------------------------------------------------------------

struct Run {
  enum class Form : std::uint8_t { zero, long_zero, value };

  static constexpr std::size_t zeros_max = 64;
  static constexpr std::size_t values_max = 4;
  static constexpr std::uint8_t value_max = 32;

  Form form;
  std::size_t count;
  std::uint8_t value;  // of its registers

  [[nodiscard]] std::size_t bytes() const noexcept { return form == Form::long_zero ? 2 : 1; }
};

/// The run that begins at `at`. None: it ends behind the end.
std::optional<Run> run_at(Bytes hll, std::size_t at) noexcept {
  const unsigned byte = octet_at(hll, at);
  if ((byte & 0x80) != 0) {
    return Run{Run::Form::value, (byte & 3) + 1, static_cast<std::uint8_t>((byte >> 2 & 31) + 1)};
  }
  if ((byte & 0x40) == 0) return Run{Run::Form::zero, (byte & 63) + 1, 0};
  if (at + 1 == hll.size()) return std::nullopt;
  return Run{Run::Form::long_zero, ((byte & 63) << 8 | octet_at(hll, at + 1)) + 1, 0};
}

/// The bytes of some runs that take the place of one. Three runs of two bytes at most.
class RunWriter {
 public:
  /// None, if `count` is 0.
  void add(std::size_t count, std::uint8_t value) noexcept {
    if (count == 0) return;
    const auto less = static_cast<unsigned>(count - 1);
    if (value != 0) return put(0x80U | (value - 1U) << 2 | less);
    if (count <= Run::zeros_max) return put(less);
    put(0x40U | less >> 8);
    put(less & 0xff);
  }
  [[nodiscard]] Bytes bytes() const noexcept { return {bytes_.data(), size_}; }

 private:
  void put(unsigned byte) noexcept { bytes_[size_++] = static_cast<char>(byte); }

  std::array<char, 6> bytes_{};
  std::size_t size_ = 0;
};

/// Joins equal neighbours, from the run at `at` on, as far as redis-server does: five looks.
void join_runs(std::string& hll, std::size_t at) {
  for (int looks = 5; looks > 0 && at < hll.size(); --looks) {
    const std::optional<Run> run = run_at(hll, at);
    if (!run) return;
    if (run->form != Run::Form::value) {
      at += run->bytes();
      continue;
    }
    const std::optional<Run> next = at + 1 < hll.size() ? run_at(hll, at + 1) : std::nullopt;
    const bool joins = next && next->form == Run::Form::value && next->value == run->value &&
                       next->count + run->count <= Run::values_max;
    if (!joins) {
      ++at;
      continue;
    }
    RunWriter both;
    both.add(run->count + next->count, run->value);
    hll.replace(at, 2, both.bytes());
  }
}

HllChange raise_dense(std::string& hll, std::size_t index, std::uint8_t value) noexcept {
  if (dense_register(hll, index) >= value) return HllChange::none;
  set_dense_register(hll, index, value);
  return HllChange::raised;
}

HllChange promote(std::string& hll, std::size_t index, std::uint8_t value) {
  return make_dense(hll) ? raise_dense(hll, index, value) : HllChange::damaged;
}

HllChange raise_sparse(std::string& hll, std::size_t index, std::uint8_t value,
                       std::size_t bytes_max) {
  if (value > Run::value_max) return promote(hll, index, value);
  std::size_t at = head_bytes;
  std::size_t before = at;  // where the run in front begins
  std::size_t first = 0;    // the first register of the run at `at`
  std::optional<Run> run;
  for (;; first += run->count, before = at, at += run->bytes()) {
    if (at >= hll.size()) return HllChange::damaged;
    run = run_at(hll, at);
    if (!run) return HllChange::damaged;
    if (index < first + run->count) break;
  }
  if (run->value >= value) return HllChange::none;
  RunWriter writer;
  writer.add(index - first, run->value);
  writer.add(1, value);
  writer.add(first + run->count - index - 1, run->value);
  const Bytes bytes = writer.bytes();
  if (bytes.size() > run->bytes() && hll.size() + bytes.size() - run->bytes() > bytes_max) {
    return promote(hll, index, value);
  }
  hll.replace(at, run->bytes(), bytes);
  join_runs(hll, before);
  drop_estimate(hll);
  return HllChange::raised;
}

/// `each(const Run&, std::size_t first)` of all runs. False: they are not all registers.
template <class Each>
bool for_runs(Bytes hll, Each&& each) {
  std::size_t first = 0;
  for (std::size_t at = head_bytes; at < hll.size();) {
    const std::optional<Run> run = run_at(hll, at);
    if (!run || first + run->count > hll_register_count) return false;
    each(*run, first);
    first += run->count;
    at += run->bytes();
  }
  return first == hll_register_count;
}

// --- the estimate --------------------------------------------------------------------------------

double sigma(double x) {
  if (x == 1) return std::numeric_limits<double>::infinity();
  double weight = 1;
  double sum = x;
  double before = 0;
  do {
    x *= x;
    before = sum;
    sum += x * weight;
    weight += weight;
  } while (sum != before);
  return sum;
}

double tau(double x) {
  if (x == 0 || x == 1) return 0;
  double weight = 1;
  double sum = 1 - x;
  double before = 0;
  do {
    x = std::sqrt(x);
    before = sum;
    weight *= 0.5;
    sum -= std::pow(1 - x, 2) * weight;
  } while (sum != before);
  return sum / 3;
}

}  // namespace

bool is_hyperloglog(Bytes value) noexcept {
  if (value.size() < head_bytes || !value.starts_with(magic)) return false;
  if (value[encoding_at] != dense && value[encoding_at] != sparse) return false;
  return value[encoding_at] == sparse || value.size() == dense_bytes;
}

bool is_dense(Bytes hll) noexcept {
  SEMEL_ASSERT(is_hyperloglog(hll));
  return hll[encoding_at] == dense;
}

std::string empty_hyperloglog() {
  std::string hll{magic};
  hll.resize(head_bytes, '\0');
  hll[encoding_at] = sparse;
  RunWriter writer;
  writer.add(hll_register_count, 0);
  return hll.append(writer.bytes());
}

HllChange add_to_hyperloglog(std::string& hll, Bytes element, std::size_t sparse_bytes_max) {
  const std::uint64_t hash = hash_of(element);
  const std::uint64_t rest = hash >> index_bits | std::uint64_t{1} << hash_bits;
  return raise_register(hll, hash & (hll_register_count - 1),
                        static_cast<std::uint8_t>(std::countr_zero(rest) + 1), sparse_bytes_max);
}

HllChange raise_register(std::string& hll, std::size_t index, std::uint8_t value,
                         std::size_t sparse_bytes_max) {
  SEMEL_ASSERT(index < hll_register_count && value >= 1 && value <= 63);
  return is_dense(hll) ? raise_dense(hll, index, value)
                       : raise_sparse(hll, index, value, sparse_bytes_max);
}

bool make_dense(std::string& hll) {
  if (is_dense(hll)) return true;
  std::string made{hll, 0, head_bytes};
  made[encoding_at] = dense;
  made.resize(dense_bytes, '\0');
  const bool is_good = for_runs(hll, [&](const Run& run, std::size_t first) {
    if (run.value == 0) return;
    for (std::size_t i = 0; i < run.count; ++i) set_dense_register(made, first + i, run.value);
  });
  if (is_good) hll = std::move(made);
  return is_good;
}

std::optional<HllRegisters> registers_of(Bytes hll) {
  HllRegisters registers{};
  if (is_dense(hll)) {
    for (std::size_t i = 0; i < hll_register_count; ++i) registers[i] = dense_register(hll, i);
    return registers;
  }
  const bool is_good = for_runs(hll, [&](const Run& run, std::size_t first) {
    for (std::size_t i = 0; i < run.count; ++i) registers[first + i] = run.value;
  });
  if (!is_good) return std::nullopt;
  return registers;
}

std::uint64_t estimate(const HllRegisters& registers) {
  std::array<std::uint32_t, 64> counts{};  // of registers, by their value
  for (const std::uint8_t value : registers) ++counts[value & 63];
  constexpr double all = hll_register_count;
  constexpr double alpha = 0.721347520444481703680;  // 1 / (2 ln 2)
  double z = all * tau((all - counts[hash_bits + 1]) / all);
  for (unsigned value = hash_bits; value >= 1; --value) {
    z += counts[value];
    z *= 0.5;
  }
  z += all * sigma(counts[0] / all);
  return static_cast<std::uint64_t>(std::llroundl(alpha * all * all / z));
}

std::optional<std::uint64_t> kept_estimate(Bytes hll) noexcept {
  SEMEL_ASSERT(hll.size() >= head_bytes);
  if ((octet_at(hll, count_at + 7) & out_of_date) != 0) return std::nullopt;
  std::uint64_t count = 0;
  for (std::size_t i = 8; i-- > 0;) count = count << 8 | octet_at(hll, count_at + i);
  return count;
}

void keep_estimate(std::string& hll, std::uint64_t count) noexcept {
  SEMEL_ASSERT(hll.size() >= head_bytes);
  for (std::size_t i = 0; i < 8; ++i) {
    hll[count_at + i] = static_cast<char>(count & 0xff);
    count >>= 8;
  }
}

void drop_estimate(std::string& hll) noexcept {
  SEMEL_ASSERT(hll.size() >= head_bytes);
  hll[count_at + 7] = static_cast<char>(octet_at(hll, count_at + 7) | out_of_date);
}

std::optional<std::string> runs_of(Bytes hll, std::size_t bytes_max) {
  std::string text;
  for (std::size_t at = head_bytes; at < hll.size();) {
    const std::optional<Run> run = run_at(hll, at);
    if (!run) break;
    text += text.empty() ? "" : " ";
    if (run->form == Run::Form::value) {
      text += "v:" + std::to_string(run->value) + "," + std::to_string(run->count);
    } else {
      text += (run->form == Run::Form::zero ? "z:" : "Z:") + std::to_string(run->count);
    }
    if (text.size() > bytes_max) return std::nullopt;
    at += run->bytes();
  }
  return text;
}

}  // namespace semel::engine
