#include "net/streams/stream_reply.hpp"

#include <array>
#include <charconv>
#include <limits>

#include "net/streams/stream_words.hpp"

namespace semel::net {
namespace {

std::string quoted_name(std::string_view name) {
  std::string text{"'"};
  return text.append(c_string_in(name)).append("'");
}

}  // namespace

void write_id(RespWriter& reply, engine::StreamId id) {
  constexpr std::size_t digits_max = std::numeric_limits<std::uint64_t>::digits10 + 1;
  std::array<char, 2 * digits_max + 1> room;
  char* at = std::to_chars(room.data(), room.data() + digits_max, id.ms).ptr;
  *at++ = '-';
  at = std::to_chars(at, at + digits_max, id.seq).ptr;
  reply.bulk({room.data(), static_cast<std::size_t>(at - room.data())});
}

void write_entry(RespWriter& reply, const engine::Element& entry) {
  reply.array(2);
  write_id(reply, engine::id_of(entry.key));
  const engine::EntryFields fields{entry.value};
  reply.array(fields.parts());
  fields.each([&](Bytes part) { reply.bulk(part); });
}

void write_entries(RespWriter& reply, const engine::ObjectReader& stream, engine::Ranks ranks,
                   std::uint64_t count, bool is_back) {
  ranks = is_back ? last_ranks(ranks, count) : first_ranks(ranks, count);
  reply.array(ranks.count());
  const auto write = [&](const engine::Element& entry) {
    write_entry(reply, entry);
    return !reply.is_cut();
  };
  is_back ? stream.each_back(ranks.from, ranks.to, write)
          : stream.each(ranks.from, ranks.to, write);
}

void fail_no_group(Call& call, std::string_view key, std::string_view group) {
  call.fail("NOGROUP No such key " + quoted_name(key) + " or consumer group " + quoted_name(group));
}

void fail_no_such_group(Call& call, std::string_view key, std::string_view group) {
  call.fail("NOGROUP No such consumer group " + quoted_name(group) + " for key name " +
            quoted_name(key));
}

void fail_subcommand(Call& call, std::string_view container) {
  constexpr std::size_t shown_bytes_max = 128;
  std::string text = "ERR unknown subcommand or wrong number of arguments for '";
  text.append(c_string_in(call.args[1]).substr(0, shown_bytes_max)).append("'. Try ");
  call.fail(text.append(container).append(" HELP."));
}

}  // namespace semel::net
