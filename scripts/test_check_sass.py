# SPDX-License-Identifier: BSD-3-Clause
"""Tests that check_sass.py sees a missing instruction, local memory and serialized wgmma, and checks the real plug-in where it is built."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_sass

TILES = "_ZN4qcts4sm8039_GLOBAL__N__8a1535fd_7_sm80_cu_b404d54716dequantize_tilesINS1_4BF16ENS1_13Int8RowPlanesEEEvT0_NS1_4RowsE"
QUANTIZE = TILES.replace("16dequantize_tiles", "14quantize_tiles")
GEMV = "_ZN4qcts4sm8039_GLOBAL__N__9bec1742_7_sm80_cu_2c6c1d744gemvINS1_4BF16ENS1_14TinygemmWeightELi4ELb1EEEvT0_NS1_7ProductE"
OF_TILES = "_ZN4qcts4sm8039_GLOBAL__N__9bec1742_7_sm80_cu_2c6c1d74"
GEMV_TILES = OF_TILES + "10gemv_tilesINS1_4BF16ENS1_17TilePackedDecoderEEEvNS1_6WeightENS1_7ProductE"
FLOAT_GEMV = GEMV_TILES.replace("10gemv_tiles", "10float_gemv").replace("17TilePackedDecoder", "4BF16")
GEMM_TILES = GEMV_TILES.replace("10gemv_tiles", "4gemm").replace("DecoderE", "DecoderELi4E")
FP8 = "_ZN4qcts5sm90a40_GLOBAL__N__1f33b3fb_8_sm90a_cu_9e1ad9528fp8_gemmINS1_7Fp8TileILi16ELi1EEEEEvNS1_10Fp8ProductE"
INT4 = FP8.replace("8fp8_gemm", "9int4_gemm")
BOXES = ["@!P0 UTMALDG.2D [UR8], [UR4], desc[UR6] ;"]
FP8_CODE = [*BOXES, "QGMMA.64x16x32.F32.E4M3.E4M3 R24, gdesc[UR8], R24, gsb0 ;"]
INT4_CODE = [*BOXES, "HGMMA.64x16x16.F32.BF16 R24, R4, gdesc[UR8], R24, gsb0 ;"]
GEMM_CODE = [
    "LDGSTS.E.BYPASS.LTC128B.128 [R4], [R2.64] ;",
    "LDSM.16.M88.4 R4, [R8] ;",
    "HMMA.16816.F32.BF16 R4, R8, R12, R4 ;",
]
WIDE = ["@!P0 LDG.E.NA.LTC128B.128.CONSTANT R4, [R2.64] ;", "STG.E.128 [R14.64], R8 ;"]


def dump(kernels):
    lines = ["arch = sm_80"]
    for function, instructions in kernels.items():
        lines.append(f"\t\tFunction : {function}")
        lines += [f"        /*{16 * i:04x}*/    {text}    /* 0x0000000402048981 */" for i, text in enumerate(instructions)]
    return check_sass.kernels_of("\n".join(lines))


GOOD = {
    TILES: WIDE,
    QUANTIZE: WIDE,
    GEMV: WIDE[:1],
    GEMV_TILES: WIDE[:1],
    FLOAT_GEMV: WIDE[:1],
    GEMM_TILES: GEMM_CODE,
    FP8: FP8_CODE,
    INT4: INT4_CODE,
}


def test_names_frames():
    names = ["dequantize_tiles", "quantize_tiles", "gemv", "gemv_tiles", "float_gemv", "gemm", "fp8_gemm", "int4_gemm"]
    assert [check_sass.frame_of(name) for name in GOOD] == names
    assert check_sass.frame_of("_Z6kernelPf") == "kernel"


def test_takes_what_keeps_its_promises():
    assert list(check_sass.faults(dump(GOOD), {})) == []
    counts = dump(GOOD)[0][2]
    assert counts["LDG.128"] == 1 and counts["STG.128"] == 1 and counts["LDGSTS.128"] == 0


@pytest.mark.parametrize(("change", "resources", "text"), [
    ({TILES: WIDE[:1]}, {}, "dequantize_tiles"),
    ({TILES: [WIDE[0], "STG.E.64 [R2.64], R8 ;"]}, {}, "no STG.128"),
    ({QUANTIZE: ["LDGSTS.E.BYPASS.LTC128B.128 [R4], [R2.64] ;", WIDE[1]]}, {}, "no LDG.128"),
    ({GEMV: []}, {}, "no LDG.128"),
    ({GEMV: [WIDE[0], "@P1 STL [R1], R4 ;"]}, {}, "1 STL"),
    ({GEMV: [WIDE[0], "LDL.LU R4, [R1] ;"]}, {}, "1 LDL"),
    ({GEMV_TILES: ["LDG.E.64 R4, [R2.64] ;"]}, {}, "no LDG.128"),
    ({FLOAT_GEMV: ["LDG.E.64 R4, [R2.64] ;"]}, {}, "no LDG.128"),
    ({GEMM_TILES: GEMM_CODE[1:]}, {}, "no LDGSTS.128"),
    ({GEMM_TILES: [GEMM_CODE[0], GEMM_CODE[2]]}, {}, "no LDSM"),
    ({GEMM_TILES: GEMM_CODE[:2]}, {}, "no HMMA"),
    ({FP8: BOXES}, {}, "no QGMMA"),
    ({FP8: FP8_CODE[1:]}, {}, "no UTMALDG"),
    ({INT4: [*BOXES, FP8_CODE[1]]}, {}, "no HGMMA"),
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
    assert check_sass.resources_of(text) == {("sm_80", GEMV): (48, 0)}


def test_finds_serialized_products_in_the_log():
    log = "ptxas info    : (C7518) Potential Performance Loss: wgmma.mma_async instructions are serialized\nptxas info : ok\n"
    assert len(check_sass.log_faults(log)) == 1 and check_sass.log_faults("C7x") == []


def test_the_plugin_or_a_named_skip():
    run = subprocess.run([sys.executable, Path(check_sass.__file__)], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "keep what their frames promise" in run.stdout or ("check_sass: skipped: no " in run.stdout and "sass.json" in run.stdout)
