# SPDX-License-Identifier: BSD-3-Clause
# Writes OUTPUT, which defines qcts::page_file(name) for the FILES (a list of paths).
string(REPLACE " " ";" FILES "${FILES}")
set(text "// Made by embed.cmake.\n#include \"reports/page/page_files.h\"\n\nnamespace qcts {\n\nstd::string_view page_file(std::string_view name) {\n")
foreach(path IN LISTS FILES)
  get_filename_component(name "${path}" NAME)
  file(READ "${path}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${bytes}")
  string(LENGTH "${bytes}" length)
  string(APPEND text "  if (name == \"${name}\") {\n    static constexpr char kText[] = \"${bytes}\";\n    return {kText, sizeof kText - 1};\n  }\n")
endforeach()
string(APPEND text "  return {};\n}\n\n}  // namespace qcts\n")
file(WRITE "${OUTPUT}" "${text}")
