# SPDX-License-Identifier: BSD-3-Clause
"""Tests that check_sass.py sees a missing instruction, local memory, serialized wgmma and loops over their budget, and checks the real
plug-in where it is built."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_sass
import sass
import sass_budget

TILES = "_ZN4qcts4sm8039_GLOBAL__N__8a1535fd_7_sm80_cu_b404d54716dequantize_tilesINS1_4BF16ENS1_13Int8RowPlanesEEEvT0_NS1_4RowsE"
QUANTIZE = TILES.replace("16dequantize_tiles", "14quantize_tiles")
OF_TILES = "_ZN4qcts4sm8039_GLOBAL__N__9bec1742_7_sm80_cu_2c6c1d74"
GEMV = OF_TILES + "4gemvINS1_4BF16ENS1_11Int4DecoderILb1EEEEEvNS1_6WeightENS1_7ProductENS1_6GroupsE"
GEMV_TILES = OF_TILES + "10gemv_tilesINS1_4BF16ENS1_17TilePackedDecoderEEEvNS1_6WeightENS1_7ProductE"
FLOAT_GEMV = GEMV_TILES.replace("10gemv_tiles", "10float_gemv").replace("17TilePackedDecoder", "4BF16")
DECODE = OF_TILES + "6decodeINS1_4BF16ENS1_11Int4DecoderILb1EEELi1ELi1EEEvNS1_6WeightENS1_7ProductENS1_12DecodeGroupsE"
GEMM_TILES = GEMV_TILES.replace("10gemv_tiles", "4gemm").replace("DecoderE", "DecoderELi4E")
FP8 = "_ZN4qcts5sm90a40_GLOBAL__N__1f33b3fb_8_sm90a_cu_9e1ad9528fp8_gemmINS1_7Fp8TileILi16ELi1EEEEEvNS1_10Fp8ProductE"
INT4 = FP8.replace("8fp8_gemm", "9int4_gemm")
BOXES = ["@!P0 UTMALDG.2D [UR8], [UR4], desc[UR6] ;"]
BACK = "@P0 BRA 0x0 ;"
FP8_CODE = [*BOXES, "QGMMA.64x16x32.F32.E4M3.E4M3 R24, gdesc[UR8], R24, gsb0 ;", BACK]
INT4_CODE = [*BOXES, "HGMMA.64x16x16.F32.BF16 R24, R4, gdesc[UR8], R24, gsb0 ;", BACK]
GEMM_CODE = [
    "LDGSTS.E.BYPASS.LTC128B.128 [R4], [R2.64] ;",
    "LDSM.16.M88.4 R4, [R8] ;",
    "HMMA.16816.F32.BF16 R4, R8, R12, R4 ;",
    BACK,
]
DECODE_CODE = [GEMM_CODE[0], *6 * GEMM_CODE[2:3], BACK]
CODES = ["@!P0 LDG.E.NA.LTC128B.128.CONSTANT R4, [R2.64] ;", BACK]
WIDE = ["@!P0 LDG.E.NA.LTC128B.128.CONSTANT R4, [R2.64] ;", "STG.E.128 [R14.64], R8 ;"]


def text_of(kernels):
    lines = ["arch = sm_80"]
    for function, instructions in kernels.items():
        lines.append(f"\t\tFunction : {function}")
        lines += [f"        /*{16 * i:04x}*/    {text}    /* 0x0000000402048981 */" for i, text in enumerate(instructions)]
    return lines


def dump(kernels):
    return check_sass.kernels_of(text_of(kernels), {})


GOOD = {
    TILES: WIDE,
    QUANTIZE: WIDE,
    GEMV: CODES,
    GEMV_TILES: CODES,
    DECODE: DECODE_CODE,
    FLOAT_GEMV: WIDE[:1],
    GEMM_TILES: GEMM_CODE,
    FP8: FP8_CODE,
    INT4: INT4_CODE,
}


def test_names_frames():
    names = ["dequantize_tiles", "quantize_tiles", "gemv", "gemv_tiles", "decode", "float_gemv", "gemm", "fp8_gemm", "int4_gemm"]
    assert [sass.frame_of(name) for name in GOOD] == names
    assert sass.frame_of("_Z6kernelPf") == "kernel"


def test_takes_what_keeps_its_promises():
    assert list(check_sass.faults(dump(GOOD), {})) == []
    counts = dump(GOOD)[0].counts
    assert counts["LDG.128"] == 1 and counts["STG.128"] == 1 and counts["LDGSTS.128"] == 0


@pytest.mark.parametrize(("change", "resources", "text"), [
    ({TILES: WIDE[:1]}, {}, "dequantize_tiles"),
    ({TILES: [WIDE[0], "STG.E.64 [R2.64], R8 ;"]}, {}, "no STG.128"),
    ({QUANTIZE: ["LDGSTS.E.BYPASS.LTC128B.128 [R4], [R2.64] ;", WIDE[1]]}, {}, "no LDG.128"),
    ({GEMV: ["@P1 STL [R1], R4 ;", *CODES]}, {}, "1 STL"),
    ({GEMV: ["LDL.LU R4, [R1] ;", *CODES]}, {}, "1 LDL"),
    ({FLOAT_GEMV: ["LDG.E.64 R4, [R2.64] ;"]}, {}, "no LDG.128"),
    ({GEMM_TILES: GEMM_CODE[1:]}, {}, "no LDGSTS.128"),
    ({DECODE: DECODE_CODE[1:]}, {}, "no LDGSTS.128"),
    ({GEMM_TILES: [GEMM_CODE[0], *GEMM_CODE[2:]]}, {}, "no LDSM"),
    ({FP8: FP8_CODE[1:]}, {}, "no UTMALDG"),
    ({INT4: [*BOXES, *FP8_CODE[1:]]}, {}, "no HGMMA"),
    ({}, {("sm_80", GEMV): (40, 16)}, "16 bytes of stack"),
])
def test_finds(change, resources, text):
    found = list(check_sass.faults(dump(GOOD | change), resources))
    assert len(found) == 1 and text in found[0], found


def test_misses_a_frame_that_is_gone():
    found = list(check_sass.faults(dump({name: code for name, code in GOOD.items() if name != GEMV}), {}))
    assert len(found) == 1 and "no kernel matches" in found[0]


def test_reads_resources():
    text = f"arch = sm_80\n Function {GEMV}:\n  REG:48 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:408\n"
    assert check_sass.resources_of(text.splitlines()) == {("sm_80", GEMV): (48, 0)}


def test_names_have_no_part_of_a_path():
    assert sass.name_of(GEMV) == "gemv<BF16, Int4Decoder, 1>"
    assert sass.name_of(GEMM_TILES) == "gemm<BF16, TilePackedDecoder, 4>"
    assert sass.name_of(INT4) == "int4_gemm<Fp8Tile, 16, 1>" and sass.name_of("_Z6kernelPf") == "kernel"


def kernel_of(function, instructions):
    (kernel,) = sass.read_kernels(text_of({function: instructions}))
    return kernel


ADD, MARK = "IADD3 R4, R4, 0x1, RZ ;", "HMMA.16816.F32.BF16 R4, R8, R12, R4 ;"


@pytest.mark.parametrize(("code", "cold", "count"), [
    ([ADD, MARK, "@P0 BRA 0x10 ;", ADD], (), 2),
    ([ADD, MARK, MARK, "@P0 BRA 0x20 ;", "@P1 BRA 0x0 ;"], (), 2),  # the inner of two
    ([ADD, MARK, "BRA 0x50 ;", ADD, "@P1 BRA 0x0 ;", "@P0 BRA 0x10 ;", "EXIT ;"], (), 3),  # forward over what is not part of the loop
    ([MARK, "@P0 BRA 0x0 ;", MARK, "EXIT ;"], (), 2),  # the rest of a row after an unrolled loop
    ([MARK, "@!P1 BRA 0x40 ;", "LDG.E.U8 R4, [R2.64] ;", ADD, "@P0 BRA 0x0 ;", "EXIT ;"], (r"LDG\S*U8",), 3),
    ([MARK, "@!P1 BRA 0x70 ;", ADD, "@P2 BRA 0x60 ;", "LDG.E.U8 R4, [R2.64] ;", "BRA 0x70 ;", "LDG.E.U8 R4, [R2.64] ;", "@P0 BRA 0x0 ;"],
     (r"LDG\S*U8",), 3),  # what leads only to cold blocks is cold
    ([MARK, "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R14], R2 ;", "@!P0 BRA 0x50 ;", "@P1 BRA 0x0 ;", "EXIT ;",
      "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R14], R2 ;", "@!P0 BRA 0x50 ;", "BRA 0x30 ;"], (), 4),  # waiting for a barrier
    ([MARK, ADD, "EXIT ;"], (), 0),
])
def test_finds_the_loop(code, cold, count):
    assert len(sass.hot_loop(kernel_of("_Z6kernelPf", code), r"HMMA\b", cold)) == count


def decode_row(others, registers=80):
    """A loop of 24 products, which 2048 bytes of codes make."""
    return sass_budget.row_of(kernel_of(DECODE, [*24 * [MARK], *others * [ADD], BACK]), registers)


def test_counts_per_byte():
    row = decode_row(others=311)
    assert (row.key, row.per, row.instructions, row.marks) == ("sm_80 decode<BF16, Int4Decoder, 1, 1, 1>", "byte", 336, 24)
    assert row.value == round(336 / 2048, 3) and not row.misses and row.share == 1
    assert (row.blocks, row.in_flight_bytes) == (3, 3 * 8 * 2 * 2048)
    assert decode_row(others=311, registers=200).blocks == 1
    assert decode_row(others=400).misses


def test_counts_per_product():
    row = sass_budget.row_of(kernel_of(GEMM_TILES, [*2 * [MARK], *9 * [ADD], BACK]), 128)
    assert (row.per, row.value, row.limit, row.misses) == ("mma", 6.0, 6.0, False)
    row = sass_budget.row_of(kernel_of(FP8.replace("Li16ELi1E", "Li128ELi2E"), [FP8_CODE[1].replace("64x16", "64x128"), ADD, BACK]), 128)
    assert (row.per, row.value, row.limit) == ("wgmma", 12.0, 64 * 4 * 0.6)


def test_a_budgeted_kernel_must_have_its_loop():
    with pytest.raises(ValueError, match="no loop has"):
        sass_budget.row_of(kernel_of(GEMV, [CODES[0]]), 32)
    assert sass_budget.row_of(kernel_of(TILES, WIDE), 32) is None


def test_rows_over_their_budget_may_only_improve():
    row = decode_row(others=400)
    key, value = row.key, row.value
    faults, improved, misses = sass_budget.ratchet([row], {key: value})
    assert (faults, improved, misses) == ([], [], {key: value})
    faults, _, _ = sass_budget.ratchet([row], {})
    assert len(faults) == 1 and "over the budget of 0.17" in faults[0]
    faults, _, _ = sass_budget.ratchet([decode_row(others=401)], {key: value - 0.001})
    assert len(faults) == 1 and "may only improve" in faults[0]
    faults, improved, misses = sass_budget.ratchet([decode_row(others=380)], {key: value})
    assert faults == [] and len(improved) == 1 and misses == {key: decode_row(others=380).value}
    faults, improved, misses = sass_budget.ratchet([decode_row(others=100)], {key: value})
    assert faults == [] and len(improved) == 1 and misses == {}
    assert sass_budget.ratchet([], {key: value})[1] == [f"{key}: is gone"]


def test_hashes_tell_machine_code_and_nothing_else():
    other_file = GEMV.replace("9bec1742", "00000000")
    same, changed = dump({other_file: CODES}), dump({GEMV: [ADD, *CODES]})
    before = check_sass.hashes_of(dump({GEMV: CODES}))
    assert list(before) == ["sm_80 gemv<BF16, Int4Decoder, 1>"]
    assert check_sass.changes(same, before) == []
    assert "1 of 1 kernels" in check_sass.changes(changed, before)[0]
    assert "1 of 0 kernels" in check_sass.changes([], before)[0]


def test_finds_serialized_products_in_the_log():
    log = "ptxas info    : (C7518) Potential Performance Loss: wgmma.mma_async instructions are serialized\nptxas info : ok\n"
    assert len(check_sass.log_faults(log)) == 1 and check_sass.log_faults("C7x") == []


def test_the_plugin_or_a_named_skip():
    run = subprocess.run([sys.executable, Path(check_sass.__file__)], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "keep what their frames promise" in run.stdout or ("check_sass: skipped: no " in run.stdout and "sass.json" in run.stdout)
