// `semel inspect DIR [--records] [--json]`
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdio>

#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/units.hpp"
#include "tools/semel/storage/storage_commands.hpp"

namespace semel::tool {
namespace {

namespace json = boost::json;

std::string wall_time(std::int64_t unix_ms) {
  const std::time_t seconds = static_cast<std::time_t>(unix_ms / 1000);
  struct tm parts {};
  if (gmtime_r(&seconds, &parts) == nullptr) return fmt::format("{} ms", unix_ms);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", parts, unix_ms % 1000);
}

const char* name_of_type(const Mutation& mutation) {
  if (is_delta(mutation)) return "delta";
  switch (mutation.type) {
    case Mutation::Type::put:
      return "put";
    case Mutation::Type::erase:
      return "erase";
    case Mutation::Type::flush:
      return "flush";
    case Mutation::Type::db_map:
      return "db_map";
  }
  return "unknown";
}

const char* name_of_state(ClaimState state) {
  switch (state) {
    case ClaimState::held:
      return "held";
    case ClaimState::done:
      return "done";
    case ClaimState::failed:
      return "failed";
    default:
      return "vacant";
  }
}

/// Printable, so that a line is a line: other bytes are \xNN.
std::string printable(Bytes bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  return out;
}

std::size_t value_bytes(const Mutation& mutation) {
  if (is_delta(mutation)) return mutation.trail.size();
  return mutation.claim ? mutation.claim->result.size() : mutation.value.size();
}

void print_record(const StoredMutation& stored) {
  const Mutation& mutation = stored.mutation;
  const auto time = [](Timestamp when) {
    return when == no_end ? std::string{"-"} : wall_time(when.time_since_epoch().count());
  };
  print_out("{} {} db {} version {} due {} value {} {} {}\n", name_of_type(mutation),
            mutation.claim ? std::string_view{name_of_state(mutation.claim->state)}
                           : name_of(mutation.kind),
            mutation.db, mutation.version, time(mutation.due), value_bytes(mutation),
            printable(mutation.key), stored.file);
}

json::object json_of(const StoredMutation& stored) {
  const Mutation& mutation = stored.mutation;
  json::object one{{"file", stored.file},
                   {"place", stored.place},
                   {"type", name_of_type(mutation)},
                   {"kind", name_of(mutation.kind)},
                   {"db", mutation.db},
                   {"version", mutation.version},
                   {"key", printable(mutation.key)},
                   {"key_bytes", mutation.key.size()},
                   {"value_bytes", value_bytes(mutation)},
                   {"bytes", stored.bytes}};
  if (is_delta(mutation)) one["base"] = mutation.base;
  if (mutation.due != no_end) one["due"] = wall_time(mutation.due.time_since_epoch().count());
  if (mutation.claim) {
    one["state"] = name_of_state(mutation.claim->state);
    one["epoch"] = mutation.claim->epoch;
    one["owner"] = printable(mutation.claim->owner);
  }
  return one;
}

json::object json_of(const StorageInfo::ColdInfo& info) {
  json::array parts;
  for (const auto& part : info.parts) {
    parts.push_back({{"number", part.number},
                     {"generation", part.generation},
                     {"records", part.records},
                     {"bytes", part.bytes},
                     {"file", part.file}});
  }
  return {{"needed_id", info.needed_id},   {"needed_generation", info.needed_generation},
          {"directory", info.directory},   {"id", info.id},
          {"generation", info.generation}, {"parts", std::move(parts)}};
}

json::object json_of(const StorageInfo& info) {
  json::array segments;
  for (const auto& segment : info.segments) {
    segments.push_back({{"file", segment.file},
                        {"number", segment.number},
                        {"begin", segment.begin},
                        {"end", segment.end},
                        {"records", segment.records},
                        {"unfinished", segment.unfinished},
                        {"damaged", segment.damaged}});
  }
  json::array files;
  for (const auto& file : info.files) {
    files.push_back({{"file", file.file},
                     {"family", file.family},
                     {"bytes", file.bytes},
                     {"entries", file.entries},
                     {"span_first", file.span_first},
                     {"span_last", file.span_last}});
  }
  return {{"format", info.format},     {"storage", info.storage_id},
          {"versions", info.versions}, {"floor", info.floor},
          {"drained", info.drained},   {"tail", info.tail},
          {"synced", info.synced},     {"time", wall_time(info.line_ms)},
          {"boot", info.boot_id},      {"segments", std::move(segments)},
          {"files", std::move(files)}, {"cold", json_of(info.cold)}};
}

class Inspect final : public StorageCommand {
 public:
  explicit Inspect(CLI::App& program)
      : StorageCommand(program, "inspect", "Show what a storage holds, without changing it") {
    add_directory("DIR", directory_, "Directory of the storage");
    add_flag("--records", records_,
             "Show every mutation; with --json one document a line, the storage last");
    add_cold(cold_);
    set_footer(
        "A key may be shown several times: of its mutations the one with the "
        "largest version counts. Of a cold store the parts are shown, not the records.");
  }

  [[nodiscard]] StorageExit run() const override {
    const auto visit = [&](const StoredMutation& stored) {
      if (json_) {
        print_out("{}\n", json::serialize(json_of(stored)));
      } else {
        print_record(stored);
      }
    };
    const Result<StorageInfo> info = records_ ? inspect_storage(directory_, visit, cold_)
                                              : inspect_storage(directory_, {}, cold_);
    if (!info) return fail(info.error(), "A copy made by Storage::backup() can be inspected");
    put_json(json_of(*info));
    if (!json_) print(*info);
    if (!json_) print(info->cold);
    return StorageExit::ok;
  }

 private:
  static void print(const StorageInfo& info) {
    print_out("format    {}\nstorage   {:016x}\nversions  up to {}\ntime      {}\n", info.format,
              info.storage_id, info.versions, wall_time(info.line_ms));
    print_out("log       drained to {}, written to {}, synced to {}; void before {}\n",
              info.drained, info.tail, info.synced, info.floor);
    for (const auto& segment : info.segments) {
      print_out("segment   {}: offsets {} to {}, {} records, {} unfinished{}\n", segment.file,
                segment.begin, segment.end, format_count(segment.records),
                format_count(segment.unfinished), segment.damaged ? ", DAMAGED" : "");
    }
    for (const auto& file : info.files) {
      const std::string last =
          file.span_last == UINT64_MAX ? "the end" : std::to_string(file.span_last);
      print_out("file      {}: {}, {}, {} entries", file.file, file.family,
                format_bytes(file.bytes), format_count(file.entries));
      print_out("{}\n", file.span_last == 0 ? "" : ", spans to " + last);
    }
  }

  static void print(const StorageInfo::ColdInfo& cold) {
    if (cold.needed_id != 0) {
      print_out("cold      needs {:016x}, generation {} or newer\n", cold.needed_id,
                cold.needed_generation);
    }
    if (cold.directory.empty()) {
      if (cold.needed_id != 0) print_out("cold      not here: name it with --cold\n");
      return;
    }
    print_out("cold      {:016x}, generation {}, in {}\n", cold.id, cold.generation,
              cold.directory);
    for (const auto& part : cold.parts) {
      print_out("{}: part {} of generation {}, {} records, {}\n", part.file, part.number,
                part.generation, format_count(part.records), format_bytes(part.bytes));
    }
  }

  std::string directory_;
  std::string cold_;
  bool records_ = false;
};

}  // namespace

std::unique_ptr<StorageCommand> inspect_command(CLI::App& program) {
  return std::make_unique<Inspect>(program);
}

}  // namespace semel::tool
