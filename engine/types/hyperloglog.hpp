// HyperLogLogs: strings of exactly the bytes that redis-server keeps, so that both can read what
// the other has written.
//
//   "HYLL" | encoding 1 | 0 0 0 | count 8, little-endian | registers
//
// The highest bit of count says that it is out of date. There are 16,384 registers of 0..63: the
// largest number of trailing zeros, and one, of the hashes of elements that fell into it.
//
//   dense  (encoding 0): 6 bits each, from the lowest bit of the first byte, 12,288 bytes
//   sparse (encoding 1): runs of equal registers
//     00nnnnnn            n + 1 registers of 0
//     01nnnnnn nnnnnnnn   n + 1 registers of 0
//     1vvvvvnn            n + 1 registers of v + 1
//
// Clients may store any bytes: everything here takes damaged ones, and reads and writes nothing
// outside of them. Source: Flajolet et al., HyperLogLog, 2007; the estimate is that of Ertl, New
// cardinality estimation algorithms for HyperLogLog sketches, arXiv:1702.01284, algorithm 6.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "semel/types.hpp"

namespace semel::engine {

inline constexpr std::size_t hll_register_count = 16'384;
using HllRegisters = std::array<std::uint8_t, hll_register_count>;

/// Whether the head is one. The registers may be damaged: all below may report that.
[[nodiscard]] bool is_hyperloglog(Bytes value) noexcept;
[[nodiscard]] bool is_dense(Bytes hll) noexcept;
/// Without elements, sparse.
[[nodiscard]] std::string empty_hyperloglog();

enum class HllChange : std::uint8_t { none, raised, damaged };

/// Adds `element`. One that is sparse becomes dense if it would be longer than `sparse_bytes_max`,
/// or a register larger than 32. After `damaged`, `hll` is to be dropped.
[[nodiscard]] HllChange add_to_hyperloglog(std::string& hll, Bytes element,
                                           std::size_t sparse_bytes_max);
/// Raises the register at `index` to `value` at least; else as above.
[[nodiscard]] HllChange raise_register(std::string& hll, std::size_t index, std::uint8_t value,
                                       std::size_t sparse_bytes_max);
/// False: damaged, and `hll` is as it was.
[[nodiscard]] bool make_dense(std::string& hll);
/// None: damaged.
[[nodiscard]] std::optional<HllRegisters> registers_of(Bytes hll);

/// How many elements, about; computed from the registers.
[[nodiscard]] std::uint64_t estimate(const HllRegisters& registers);
/// As it was estimated before; none: out of date.
[[nodiscard]] std::optional<std::uint64_t> kept_estimate(Bytes hll) noexcept;
void keep_estimate(std::string& hll, std::uint64_t count) noexcept;
void drop_estimate(std::string& hll) noexcept;

/// The runs of a sparse one, as PFDEBUG DECODE shows them, up to one that ends behind the end:
/// "z:5 v:1,2 Z:300", the last of two bytes. None: the text would be longer than `bytes_max`.
[[nodiscard]] std::optional<std::string> runs_of(Bytes hll, std::size_t bytes_max);

}  // namespace semel::engine
