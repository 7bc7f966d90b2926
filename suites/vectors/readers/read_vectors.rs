// SPDX-License-Identifier: BSD-3-Clause
// Reads exported vectors: read_vectors FILE.tsv. Prints how many there are, their bytes, and FNV-1a of all bytes.

struct Vector {
    x: Vec<u8>,
    codes: Vec<u8>,
    scales: Vec<Vec<u8>>,
    y: Vec<u8>,
}
fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

fn read(line: &str) -> Vector {
    let cells: Vec<&str> = line.split('\t').collect(); // id, scheme, dtype, n, k, x, codes, scales, y, flags
    let scales = cells[7].split(',').map(unhex).collect();
    Vector { x: unhex(cells[5]), codes: unhex(cells[6]), scales, y: unhex(cells[8]) }
}

fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).expect("FILE.tsv")).unwrap();
    let vectors: Vec<Vector> = text.lines().skip(1).map(read).collect();
    let bytes = vectors.iter().flat_map(|v| v.x.iter().chain(&v.codes).chain(v.scales.iter().flatten()).chain(&v.y));
    let (mut size, mut fnv) = (0u64, 0xCBF29CE484222325u64);
    for byte in bytes {
        size += 1;
        fnv = (fnv ^ u64::from(*byte)).wrapping_mul(0x100000001B3);
    }
    println!("{} vectors, {} bytes, fnv {:016x}", vectors.len(), size, fnv);
}
