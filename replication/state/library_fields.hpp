// Libraries of functions as bytes: in commands and in snapshots.
//
//   library    name | code | where its body begins | count of functions | function | ..
//   function   name | whether it has a description, description | flags
#pragma once

#include "engine/logged/command.hpp"
#include "replication/state/fields.hpp"

namespace semel::replication {

template <class Fields>
void all(Fields& fields, LibraryCommand::Function& function) {
  fields.bytes(function.name);
  perhaps(fields, function.description, [](auto& f, Bytes& text) { f.bytes(text); });
  auto flags = static_cast<std::uint8_t>(function.flags);
  fields.small(flags, library_flags_end - 1);
  function.flags = flags;
  if (!is_library_name(function.name)) fields.fail();
}

template <class Fields>
void all(Fields& fields, LibraryCommand::Library& library) {
  fields.bytes(library.name);
  fields.bytes(library.code);
  fields.number(library.body_begin);
  list(fields, library.functions,
       [](auto& f, LibraryCommand::Function& function) { all(f, function); });
  if (!is_library_name(library.name) || library.body_begin > library.code.size()) fields.fail();
}

/// Points into `text`.
[[nodiscard]] inline LibraryCommand::Library view_of(const LibraryText& text) {
  LibraryCommand::Library library{
      .name = text.name, .code = text.code, .body_begin = text.body_begin};
  library.functions.reserve(text.functions.size());
  for (const LibraryFunction& each : text.functions) {
    auto& function = library.functions.emplace_back();
    function.name = each.name;
    if (each.description) function.description = *each.description;
    function.flags = each.flags;
  }
  return library;
}

/// With bytes of its own.
[[nodiscard]] inline SharedLibraryText text_of(const LibraryCommand::Library& library) {
  auto text = std::make_shared<LibraryText>();
  text->name = library.name;
  text->code = library.code;
  text->body_begin = library.body_begin;
  text->functions.reserve(library.functions.size());
  for (const LibraryCommand::Function& each : library.functions) {
    LibraryFunction& function = text->functions.emplace_back();
    function.name = each.name;
    if (each.description) function.description = *each.description;
    function.flags = each.flags;
  }
  return text;
}

/// Points into `change`.
[[nodiscard]] inline LibraryCommand command_of(const LibraryChange& change) {
  LibraryCommand command{.what = change.what, .name = change.name};
  for (const SharedLibraryText& each : change.libraries)
    command.libraries.push_back(view_of(*each));
  return command;
}

/// With bytes of its own.
[[nodiscard]] inline LibraryChange change_of(const LibraryCommand& command) {
  LibraryChange change{.what = command.what, .name = std::string{command.name}};
  for (const LibraryCommand::Library& each : command.libraries) {
    change.libraries.push_back(text_of(each));
  }
  return change;
}

}  // namespace semel::replication
