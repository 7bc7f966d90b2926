# SPDX-License-Identifier: BSD-3-Clause
# Writes OUTPUT, which defines the commit that the program names: GIVEN, what git says of SOURCE, what git wrote into suites/commit.txt when
# it made an archive, or "unknown". A file that would not change keeps its time.
set(commit "${GIVEN}")
if(commit STREQUAL "")
  find_program(GIT git)
  if(GIT)
    execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --show-prefix RESULT_VARIABLE failed OUTPUT_VARIABLE prefix
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(failed EQUAL 0 AND prefix STREQUAL "")  # a source tree inside another project's repository is not its commit
      execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --exclude * OUTPUT_VARIABLE commit
                      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
  endif()
endif()
if(commit STREQUAL "" AND EXISTS ${SOURCE}/suites/commit.txt)
  file(STRINGS ${SOURCE}/suites/commit.txt commit LIMIT_COUNT 1)
endif()
if(NOT commit MATCHES "^[0-9A-Za-z._-]+$")
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/program.h"

const char* const qcts::cli::kBuiltCommit = "@commit@";
]])
