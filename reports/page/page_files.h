// SPDX-License-Identifier: BSD-3-Clause
// The template, style and scripts of this folder. The build embeds them in the program (embed.cmake).
#pragma once

#include <string_view>

namespace qcts {

std::string_view page_file(std::string_view name);  // "page.html"; "" if there is none

}  // namespace qcts
