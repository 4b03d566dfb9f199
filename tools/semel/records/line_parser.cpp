#include "tools/semel/records/line_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/ascii.hpp"
#include "tools/semel/records/csv.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {
namespace {

constexpr bool is_blank(char byte) {
  return byte == ' ' || byte == '\t';
}

bool has_quoted_field(Bytes line, char delimiter) {
  for (std::size_t at = line.find('"'); at != Bytes::npos; at = line.find('"', at + 1)) {
    if (at == 0 || line[at - 1] == delimiter) return true;
  }
  return false;
}

void fold(char* text, std::size_t size) {
  std::transform(text, text + size, text, base::to_lower);
}

constexpr std::string_view utf16_text =
    "the text is UTF-16: convert it first, as by iconv -f UTF-16 -t UTF-8";

bool is_utf16(Bytes text) {
  return text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
}

std::string in_quotes(Bytes text) {
  constexpr std::size_t shown_max = 80;
  if (text.size() <= shown_max) return fmt::format("'{}'", text);
  return fmt::format("'{}...'", text.substr(0, shown_max));
}

/// The first names of a header.
std::string columns_text(const std::vector<Bytes>& columns) {
  constexpr std::size_t shown_max = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(columns.size(), shown_max); ++i) {
    text += (i == 0 ? "" : ", ") + in_quotes(columns[i]);
  }
  if (columns.size() > shown_max) text += fmt::format(" and {} more", columns.size() - shown_max);
  return text;
}

}  // namespace

std::size_t record_size(const LineRule& rule, Bytes text) noexcept {
  if (rule.is_csv) return csv_record_size(text, rule.delimiter.value_or(','));
  const std::size_t end = text.find(rule.terminator);
  return end == Bytes::npos ? 0 : end + 1;
}

std::size_t first_record_size(const LineRule& rule, Bytes text) noexcept {
  const std::size_t mark = rule.is_csv ? mark_size(text) : 0;
  const std::size_t size = record_size(rule, text.substr(mark));
  return size == 0 ? 0 : mark + size;
}

Result<std::vector<unsigned>> parse_fields(Bytes text) {
  std::vector<unsigned> fields;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    unsigned field = 0;
    const auto [stop, error] = std::from_chars(at, end, field);
    if (error != std::errc{} || field < 1 || field > field_max ||
        (stop != end && (*stop != ',' || stop + 1 == end))) {
      return Error{ErrorCode::bad_option,
                   fmt::format("fields '{}': write numbers from 1 to {}, separated by commas, "
                               "such as 1,7",
                               text, field_max)};
    }
    fields.push_back(field);
    if (stop == end) break;
    at = stop + 1;
  }
  if (fields.size() > key_parts_max) {
    return Error{ErrorCode::bad_option, fmt::format("{} fields are more than the limit of {}",
                                                    fields.size(), key_parts_max)};
  }
  return fields;
}

LineParser::LineParser(LineRule rule) : rule_(std::move(rule)) {
  prepare();
}

Status LineParser::resolve(Bytes header) {
  if (is_utf16(header)) return data_error(std::string{utf16_text});
  header.remove_prefix(mark_size(header));
  fields_needed_ = field_max;
  if (split(header) != LineError::none) return data_error("in the header " + explanation_);
  const auto number_of = [this](const std::string& name) -> Result<unsigned> {
    const auto found = std::find(fields_.begin(), fields_.end(), name);
    if (found == fields_.end()) {
      return data_error(fmt::format("the header has no column '{}'; it has {}{}", name,
                                    columns_text(fields_), separator_hint()));
    }
    if (std::find(found + 1, fields_.end(), name) != fields_.end()) {
      return data_error(fmt::format("the header has more than one column '{}'", name));
    }
    return static_cast<unsigned>(found - fields_.begin()) + 1;
  };
  if (!rule_.key_names.empty()) rule_.key_fields.assign(rule_.key_names.size(), 0);
  for (std::size_t i = 0; i < rule_.key_names.size(); ++i) {
    SEMEL_TRY(number, number_of(rule_.key_names[i]));
    rule_.key_fields[i] = number;
  }
  if (!rule_.time_name.empty()) {
    SEMEL_TRY(number, number_of(rule_.time_name));
    rule_.time_field = number;
  }
  prepare();
  return Done{};
}

void LineParser::prepare() {
  const bool uses_json = !rule_.key_pointers.empty() || rule_.time_pointer.has_value();
  if (uses_json && json_ == nullptr) json_ = std::make_unique<JsonLine>(rule_.folds_case);
  fields_needed_ = rule_.time_field;
  for (const unsigned field : rule_.key_fields) {
    fields_needed_ = std::max<std::size_t>(fields_needed_, field);
  }
  fields_.reserve(fields_needed_);
  whole_line_ = rule_.key_fields.empty() && rule_.key_pointers.empty() && !rule_.time_format &&
                !rule_.folds_case && !rule_.is_table;
}

LineError LineParser::parse_parts(Bytes line, char* buffer, ParsedLine& parsed) {
  parsed.unix_ms.reset();
  if (rule_.is_table) {
    if (is_blank_record(line)) return LineError::blank;
    if (!rule_.is_csv && line.ends_with('\r')) line.remove_suffix(1);
  }
  if (fields_needed_ > 0) {
    const LineError error = split(line);
    if (error != LineError::none) return error;
  }
  if (json_ != nullptr) {
    if (const Status parsed_json = json_->parse(line); !parsed_json) {
      explanation_ = is_utf16(line) ? utf16_text : parsed_json.error().detail;
      return LineError::bad_json;
    }
  }
  LineError error = LineError::none;
  if (!rule_.key_fields.empty()) {
    error = read_key_fields(buffer, parsed);
  } else if (!rule_.key_pointers.empty()) {
    error = read_key_json(buffer, parsed);
  } else if (rule_.is_csv) {
    error = read_record(line, buffer, parsed);
  } else {
    error = use_alone("the line", line, buffer, parsed);
  }
  if (error != LineError::none || !rule_.time_format) return error;
  return rule_.time_field > 0 ? read_time_field(line, parsed) : read_time_json(parsed);
}

LineError LineParser::split(Bytes line) {
  if (rule_.is_csv) {
    if (split_csv(line, rule_.delimiter.value_or(','), fields_needed_, fields_, unquoted_))
      return LineError::none;
    return bad_csv();
  }
  fields_.clear();
  const char* at = line.data();
  const char* const end = line.data() + line.size();
  if (rule_.delimiter) {
    if (!rule_.takes_quotes && has_quoted_field(line, *rule_.delimiter)) {
      explanation_ =
          "a field begins with a quote: --csv reads quoted fields, --quotes-literal takes quotes "
          "as they are";
      return LineError::quoted_field;
    }
    while (fields_.size() < fields_needed_) {
      const char* const stop = std::find(at, end, *rule_.delimiter);
      fields_.emplace_back(at, static_cast<std::size_t>(stop - at));
      if (stop == end) return LineError::none;
      at = stop + 1;
    }
    return LineError::none;
  }
  while (fields_.size() < fields_needed_) {
    while (at != end && is_blank(*at)) ++at;
    if (at == end) break;
    const char* const start = at;
    while (at != end && !is_blank(*at)) ++at;
    fields_.emplace_back(start, static_cast<std::size_t>(at - start));
  }
  return LineError::none;
}

LineError LineParser::bad_csv() {
  explanation_ = "a quoted field does not end where the next one begins";
  return LineError::bad_csv;
}

/// All fields of a record are the key, however they are written.
LineError LineParser::read_record(Bytes line, char* buffer, ParsedLine& parsed) {
  if (!rule_.folds_case && line.find('"') == Bytes::npos) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    return use_alone("the record", line, buffer, parsed);
  }
  KeyBuffer key{buffer, rule_.key_bytes_max};
  const CsvForm form{.delimiter = rule_.delimiter.value_or(','), .folds_case = rule_.folds_case};
  if (!append_same_csv(line, form, field_, key)) return bad_csv();
  if (key.size_wanted() == 0) key.append(empty_key());
  return finish_key(key, parsed);
}

LineError LineParser::read_key_fields(char* buffer, ParsedLine& parsed) {
  for (const unsigned field : rule_.key_fields) {
    if (field > fields_.size() && !rule_.missing_is_key) {
      return missing_field(LineError::missing_key, field);
    }
  }
  const auto part = [&](unsigned field) {
    return field <= fields_.size() ? fields_[field - 1] : Bytes{};
  };
  if (rule_.key_fields.size() == 1) {
    return use_alone("the key", part(rule_.key_fields.front()), buffer, parsed);
  }
  const char joint = rule_.delimiter.value_or(' ');
  KeyBuffer key{buffer, rule_.key_bytes_max};
  for (std::size_t i = 0; i < rule_.key_fields.size(); ++i) {
    const Bytes field = part(rule_.key_fields[i]);
    // A quoted field may hold any byte, and folding may make a letter the delimiter.
    if (rule_.is_csv || rule_.folds_case) {
      key.append(fmt::format("{}:", field.size()));
    } else if (i > 0) {
      key.append({&joint, 1});
    }
    key.append(field);
  }
  if (rule_.folds_case) fold(buffer, key.bytes().size());
  return finish_key(key, parsed);
}

/// A key of one text. A quoted field may be nothing but newlines, of which one stands for the empty
/// text: it gets one more.
LineError LineParser::use_alone(const char* what, Bytes text, char* buffer, ParsedLine& parsed) {
  if (text.size() > rule_.key_bytes_max) return too_long(what, text.size());
  parsed.key = text.empty() ? empty_key() : text;
  const bool is_newlines = rule_.is_csv && !text.empty() && text.front() == '\n' &&
                           text.find_first_not_of('\n') == Bytes::npos;
  if (is_newlines && text.size() == rule_.key_bytes_max) return too_long(what, text.size() + 1);
  if (!is_newlines && !rule_.folds_case) return LineError::none;
  KeyBuffer key{buffer, rule_.key_bytes_max};
  key.append(parsed.key);
  if (is_newlines) key.append(empty_key());
  if (rule_.folds_case) fold(buffer, key.bytes().size());
  return finish_key(key, parsed);
}

LineError LineParser::read_key_json(char* buffer, ParsedLine& parsed) {
  KeyBuffer key{buffer, rule_.key_bytes_max};
  for (const std::string& pointer : rule_.key_pointers) {
    const JsonLine::Found found = json_->append_key(pointer, key);
    switch (found) {
      case JsonLine::Found::ok:
        break;
      case JsonLine::Found::missing:
      case JsonLine::Found::null:
        if (!rule_.missing_is_key) {
          explanation_ = fmt::format("no value at JSON pointer '{}'", pointer);
          return LineError::missing_key;
        }
        found == JsonLine::Found::null ? JsonLine::append_null(key) : JsonLine::append_missing(key);
        break;
      case JsonLine::Found::inexact:
        explanation_ = fmt::format(
            "the number at JSON pointer '{}' cannot be compared in full, as the line names a "
            "member twice; write it as a string",
            pointer);
        return LineError::key_inexact;
    }
  }
  return finish_key(key, parsed);
}

LineError LineParser::finish_key(const KeyBuffer& key, ParsedLine& parsed) {
  if (key.size_wanted() > rule_.key_bytes_max) return too_long("the key", key.size_wanted());
  parsed.key = key.bytes();
  return LineError::none;
}

LineError LineParser::read_time_field(Bytes line, ParsedLine& parsed) {
  if (rule_.time_field > fields_.size()) {
    if (rule_.missing_is_key) return LineError::none;
    return missing_field(LineError::missing_time, rule_.time_field);
  }
  // A time may go beyond its field (apache has a blank before the zone): it is read from the start
  // of the field as far as it goes, and must end where a field ends.
  const Bytes field = fields_[rule_.time_field - 1];
  // A quoted field is read completely.
  const bool is_whole = rule_.is_csv;
  const Bytes rest =
      is_whole ? field : line.substr(static_cast<std::size_t>(field.data() - line.data()));
  const std::optional<TimeFormat::Reading> reading = rule_.time_format->read(rest);
  const auto ends_field = [&](std::size_t at) {
    if (at == rest.size() || rest[at] == '\r') return true;
    return rule_.delimiter ? rest[at] == *rule_.delimiter : is_blank(rest[at]);
  };
  if (!reading || !ends_field(reading->size)) {
    explanation_ = fmt::format("field {} is {}, not a time of the format '{}'", rule_.time_field,
                               in_quotes(field), rule_.time_format->name());
    return LineError::bad_time;
  }
  parsed.unix_ms = reading->unix_ms;
  return LineError::none;
}

LineError LineParser::read_time_json(ParsedLine& parsed) {
  const JsonLine::Time time = json_->time(*rule_.time_pointer, *rule_.time_format);
  parsed.unix_ms = time.unix_ms;
  if (time.unix_ms || (time.text.empty() && rule_.missing_is_key)) return LineError::none;
  if (time.text.empty()) {
    explanation_ = fmt::format("no value at JSON pointer '{}'", *rule_.time_pointer);
    return LineError::missing_time;
  }
  explanation_ = fmt::format("the value at JSON pointer '{}' is {}, not a time of the format '{}'",
                             *rule_.time_pointer, in_quotes(time.text), rule_.time_format->name());
  return LineError::bad_time;
}

LineError LineParser::too_long(const char* what, std::size_t size) {
  explanation_ = fmt::format("{} has {} bytes, the limit of a key is {}{}", what, size,
                             rule_.key_bytes_max, rule_.key_limit_name);
  return LineError::key_too_long;
}

LineError LineParser::missing_field(LineError error, unsigned field) {
  explanation_ =
      fmt::format("no field {}: the line has {}{}", field, fields_.size(), separator_hint());
  return error;
}

/// The flag for a table that has another separator: all of its line is one field.
std::string LineParser::separator_hint() const {
  if (!rule_.is_table || fields_.size() != 1) return {};
  const Bytes field = fields_.front();
  if (field.find('\t') != Bytes::npos) return "; tabs seem to separate its fields: use --tsv";
  for (const char separator : {';', '|', ','}) {
    if (field.find(separator) == Bytes::npos) continue;
    return fmt::format("; '{0}' seems to separate its fields: use --csv --delimiter '{0}'",
                       separator);
  }
  return {};
}

}  // namespace semel::tool
