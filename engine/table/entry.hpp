// A record in memory: immutable once published, so a reader needs no lock and a writer replaces it.
// Two bits are not: whether the journal has it yet, and whether its timer comes early.
//
//   word 0   bits 0..43 due in ms of the engine's clock (all ones: does not end)
//            bits 44..46 kind, 0: a string that grew (raw), bits 47..50 database,
//            bit 51 early timer, bits 52..62 version, high part,
//            bit 63 pending: not journalled yet
//   word 1   bits 0..47 version, low part; bits 48..55 key bytes, 0: the long form, as no key is
//            empty; bits 56..63 value bytes of the short form
//   word 2   long form only: bits 0..31 key bytes, 32..63 value bytes
//   then the key, then the value, without padding.
//
// A 32-byte key with an 8-byte value takes 56 bytes. due, 44 bits, reaches 557 years.
//
// Early timer: the end was moved to later, and the timer left where it was. Set before the record
// is published; cleared, once another timer stands for its end, by the thread that moves the wheel
// (upkeep/expiry.cpp). A copy of the record (compactor.hpp) may still have the bit: then one timer
// more than needed is set again, once. No other memory is read by it: relaxed. Both bits are
// cleared by a fetch_and, so that neither writer puts back what the other has cleared.
//
// Concurrency
//   [entry.pending]  cleared with release by the thread that published the record, after it has
//                    been appended to the journal; read with acquire by a thread that answers from
//                    it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/assert.hpp"
#include "engine/rules/bytes.hpp"
#include "engine/rules/record.hpp"
#include "semel/limits.hpp"
#include "semel/op.hpp"
#include "semel/types.hpp"

namespace semel::engine {

class Entry {
 public:
  static constexpr Version version_max = limits::version_max;

  [[nodiscard]] static constexpr bool is_short(std::size_t key, std::size_t value) noexcept {
    return (key | value) < 256;
  }
  [[nodiscard]] static constexpr std::size_t bytes(std::size_t key, std::size_t value) noexcept {
    return (is_short(key, value) ? 16 : 24) + key + value;
  }

  struct Header {
    Kind kind;
    std::uint8_t db;
    Timestamp due;
    Version version;
    bool pending = false;
    bool raw = false;  ///< of a string: what Redis keeps unencoded since an APPEND or SETRANGE
  };
  /// Writes a record of Entry::bytes() at `memory`.
  static void write(void* memory, const Header& header, Bytes key, Bytes value) noexcept {
    copy_bytes(write_all_but_value(memory, header, key, value.size()), value.data(), value.size());
  }
  /// The same for the changes that are made most: all but the value, of which the bytes are to be
  /// written where this points to.
  [[nodiscard, gnu::always_inline]] static char* write_all_but_value(
      void* memory, const Header& header, Bytes key, std::size_t value_bytes) noexcept {
    SEMEL_ASSERT_SLOW(header.db < 16);
    SEMEL_ASSERT_SLOW(header.kind != Kind{} && static_cast<unsigned>(header.kind) <= kind_mask);
    SEMEL_ASSERT_SLOW(!header.raw || header.kind == Kind::string);
    SEMEL_ASSERT_SLOW(!key.empty());
    auto* const entry = static_cast<Entry*>(memory);
    const bool compact = is_short(key.size(), value_bytes);
    const std::uint64_t word0 =
        pack_due(header.due) |
        (std::uint64_t{header.raw ? std::uint8_t{0} : static_cast<std::uint8_t>(header.kind)}
         << 44) |
        (std::uint64_t{header.db} << 47) | ((header.version >> 48) << 52) |
        (std::uint64_t{header.pending} << 63);
    entry->word0_.store(word0, std::memory_order_relaxed);  // mo: relaxed: not published yet
    entry->word1_ = header.version & low_version;
    char* bytes = reinterpret_cast<char*>(entry + 1);
    if (compact) {
      entry->word1_ |= (std::uint64_t{key.size()} << 48) | (std::uint64_t{value_bytes} << 56);
    } else {
      const std::uint64_t sizes = key.size() | (std::uint64_t{value_bytes} << 32);
      std::memcpy(bytes, &sizes, 8);
      bytes += 8;
    }
    copy_bytes(bytes, key.data(), key.size());
    return bytes + key.size();
  }

  /// Writes the same record at `memory`. Only of a record that is not pending: no thread writes to
  /// it.
  void copy_to(void* memory) const noexcept {
    SEMEL_ASSERT(!pending());
    auto* const copy = static_cast<Entry*>(memory);
    copy->word0_.store(word0(), std::memory_order_relaxed);  // mo: relaxed: not published yet
    copy->word1_ = word1_;
    std::memcpy(reinterpret_cast<char*>(copy + 1), reinterpret_cast<const char*>(this + 1),
                bytes() - sizeof(Entry));
  }

  /// What its two words say, loaded once: a getter of the record itself loads them each time.
  class Head {
   public:
    Head() noexcept = default;
    Head(const Entry& entry) noexcept  // implicit: a record stands for its head
        : first_(entry.word0()),
          second_(entry.word1_),
          rest_(reinterpret_cast<const char*>(&entry + 1)) {}

    [[nodiscard, gnu::always_inline]] Timestamp due() const noexcept {
      const std::uint64_t due = first_ & due_mask;
      return due == due_mask ? no_end : Timestamp{Millis{static_cast<std::int64_t>(due)}};
    }
    /// A delete marker is a record that is dead from the start: only its key and version count.
    [[nodiscard, gnu::always_inline]] bool is_delete_marker() const noexcept {
      return (first_ & due_mask) == 0;
    }
    /// due() > now; "does not end" is the largest number already.
    [[nodiscard, gnu::always_inline]] bool lives_at(Timestamp now) const noexcept {
      return static_cast<std::int64_t>(first_ & due_mask) > now.time_since_epoch().count();
    }
    [[nodiscard, gnu::always_inline]] Kind kind() const noexcept {
      const auto code = static_cast<unsigned>((first_ >> 44) & kind_mask);
      return static_cast<Kind>(code + (code == 0 ? 1 : 0));
    }
    /// kind() == kind, of another one than a string.
    [[nodiscard, gnu::always_inline]] bool is(Kind kind) const noexcept {
      SEMEL_ASSERT_SLOW(kind != Kind::string);
      return ((first_ >> 44) & kind_mask) == static_cast<unsigned>(kind);
    }
    [[nodiscard, gnu::always_inline]] bool is_string() const noexcept {
      return ((first_ >> 44) & kind_mask) <= static_cast<unsigned>(Kind::string);
    }
    [[nodiscard, gnu::always_inline]] bool is_raw() const noexcept {
      return (first_ >> 44 & kind_mask) == 0;
    }
    [[nodiscard, gnu::always_inline]] std::uint8_t db() const noexcept {
      return static_cast<std::uint8_t>((first_ >> 47) & 15);
    }
    [[nodiscard, gnu::always_inline]] Version version() const noexcept {
      return ((first_ & ~pending_bit) >> 52 << 48) | (second_ & low_version);
    }
    [[nodiscard, gnu::always_inline]] Bytes key() const noexcept {
      if (is_long()) [[unlikely]]
        return {rest_ + 8, long_sizes() & 0xffff'ffff};
      return {rest_, (second_ >> 48) & 0xff};
    }
    [[nodiscard, gnu::always_inline]] Bytes value() const noexcept {
      if (is_long()) [[unlikely]] {
        const std::uint64_t sizes = long_sizes();
        return {rest_ + 8 + (sizes & 0xffff'ffff), sizes >> 32};
      }
      return {rest_ + ((second_ >> 48) & 0xff), second_ >> 56};
    }
    [[nodiscard, gnu::always_inline]] std::size_t bytes() const noexcept {
      if (is_long()) [[unlikely]] {
        const std::uint64_t sizes = long_sizes();
        return 24 + (sizes & 0xffff'ffff) + (sizes >> 32);
      }
      return 16 + ((second_ >> 48) & 0xff) + (second_ >> 56);
    }

    [[nodiscard, gnu::always_inline]] bool has_early_timer() const noexcept {
      return (first_ & early_bit) != 0;
    }
    [[nodiscard, gnu::always_inline]] bool is_long() const noexcept {
      return ((second_ >> 48) & 0xff) == 0;
    }
    [[nodiscard, gnu::always_inline]] bool is_of(std::uint8_t database, Bytes key) const noexcept {
      SEMEL_ASSERT_SLOW(!key.empty());
      if (db() != database) [[unlikely]]
        return false;
      if (((second_ >> 48) & 0xff) == key.size()) [[likely]]
        return same_bytes(rest_, key.data(), key.size());
      return is_long() && is_long_with(rest_, key);
    }
    /// Of the head of a record that others may answer from, see Entry::settled_head().
    [[nodiscard, gnu::always_inline]] bool is_pending() const noexcept {
      return (first_ & pending_bit) != 0;
    }

   private:
    friend class Entry;
    Head(std::uint64_t first, const Entry& entry) noexcept
        : first_(first), second_(entry.word1_), rest_(reinterpret_cast<const char*>(&entry + 1)) {}

    /// Whether a record of the long form has this key. It gets no head, which so is in registers.
    [[nodiscard, gnu::noinline]] static bool is_long_with(const char* rest, Bytes key) noexcept {
      std::uint32_t size;
      std::memcpy(&size, rest, sizeof size);
      return size == key.size() && same_bytes(rest + 8, key.data(), key.size());
    }
    [[nodiscard]] std::uint64_t long_sizes() const noexcept {
      std::uint64_t sizes;
      std::memcpy(&sizes, rest_, 8);
      return sizes;
    }

    std::uint64_t first_ = 0;
    std::uint64_t second_ = 0;
    const char* rest_ = nullptr;  // behind the words
  };
  [[nodiscard]] Head head() const noexcept { return Head{*this}; }
  /// The same for a thread that answers from the record, unless it is_pending().
  [[nodiscard, gnu::always_inline]] Head settled_head() const noexcept {
    // mo: acquire [entry.pending]: the append happened before the answer.
    return Head{word0_.load(std::memory_order_acquire), *this};
  }

  [[nodiscard]] Timestamp due() const noexcept { return head().due(); }
  [[nodiscard]] bool is_delete_marker() const noexcept { return head().is_delete_marker(); }
  [[nodiscard]] bool lives_at(Timestamp now) const noexcept { return head().lives_at(now); }
  [[nodiscard]] Kind kind() const noexcept { return head().kind(); }
  [[nodiscard]] bool is_raw() const noexcept { return head().is_raw(); }
  [[nodiscard]] std::uint8_t db() const noexcept { return head().db(); }
  [[nodiscard]] Version version() const noexcept { return head().version(); }
  [[nodiscard]] Bytes key() const noexcept { return head().key(); }
  [[nodiscard]] Bytes value() const noexcept { return head().value(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return head().bytes(); }

  /// True until the journal has it. A thread that answers from the record waits for that first.
  [[nodiscard]] bool pending() const noexcept {
    // mo: acquire [entry.pending]: the append happened before the answer.
    return (word0_.load(std::memory_order_acquire) & pending_bit) != 0;
  }
  /// By the thread that published it. One step: the mark of an early timer, which another thread
  /// may take away meanwhile, must not come back.
  void set_journalled() const noexcept {
    SEMEL_ASSERT(pending());
    word0_.fetch_and(~pending_bit, std::memory_order_release);  // mo: release [entry.pending]
  }

  [[nodiscard]] bool has_key(std::uint8_t database, Bytes key) const noexcept {
    return head().is_of(database, key);
  }

  [[nodiscard]] bool has_early_timer() const noexcept { return head().has_early_timer(); }
  /// True: by the thread that made the record, before it is published. False: once another timer
  /// stands for its end.
  void note_early_timer(bool has_one) const noexcept {
    if (has_one) {
      word0_.store(word0() | early_bit, std::memory_order_relaxed);  // mo: relaxed: not published
    } else {
      word0_.fetch_and(~early_bit, std::memory_order_relaxed);  // mo: relaxed: see head of file
    }
  }

 private:
  static constexpr std::uint64_t due_mask = (std::uint64_t{1} << 44) - 1;
  static constexpr std::uint64_t kind_mask = 7;  // of the bits from 44 on
  static constexpr std::uint64_t early_bit = std::uint64_t{1} << 51;
  static constexpr std::uint64_t pending_bit = std::uint64_t{1} << 63;
  static constexpr std::uint64_t low_version = (std::uint64_t{1} << 48) - 1;

  [[nodiscard]] static std::uint64_t pack_due(Timestamp due) noexcept {
    const std::int64_t ms = due.time_since_epoch().count();
    if (ms < 0) return 0;
    return static_cast<std::uint64_t>(ms) < due_mask ? static_cast<std::uint64_t>(ms) : due_mask;
  }
  [[nodiscard]] std::uint64_t word0() const noexcept {
    // mo: relaxed: all but the pending bit was complete when the record was published.
    return word0_.load(std::memory_order_relaxed);
  }

  mutable std::atomic<std::uint64_t> word0_;
  std::uint64_t word1_;
};
static_assert(sizeof(Entry) == 16);
static_assert(static_cast<int>(Kind::string) == 1, "raw has the number before it");
static_assert(Entry::bytes(32, 8) == 56, "the figure of docs/decisions/0003-table-layout.md");

}  // namespace semel::engine
