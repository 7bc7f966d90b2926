// 8da4w and its wider and narrower siblings by tiles: kernels/vnni/int8_linear.h, kernels/amx/intx.h.
#include "kernels/amx/intx.h"

const qcts_kernel qcts_kernel_linear_intx_dyn_amx = qcts::vnni::intx_linear_of<
    qcts_kernel_linear_intx_dyn_amx, qcts::avx512::Lanes, qcts::amx::IntxTiles, qcts::amx::NibbleTiles,
    qcts::amx::ByteTiles>(
    "amx",
    "nibbles to a panel of bytes in L1 while the first 16 rows meet them, tiles of bytes into exact integer "
    "sums; bound by reading weights up to m = 16, then by the tile multiplications, in small groups by their "
    "scales");
