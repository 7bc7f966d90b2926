// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/device_check/program.h"

int main(int argc, char** argv) {
  return qcts::device_check::program(argc, argv, qcts::device_check::kDevice);
}
