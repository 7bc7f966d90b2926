# SPDX-License-Identifier: BSD-3-Clause
# The peers that the latency scripts time together with the kernels under judgement. Sourced after common.sh, never run.

peers_python=${QCTS_PEERS_PYTHON:-$venv/bin/python}

# find_peers: sets `peers` to the options of `qcts run` that name the installed peers.
find_peers() {
  peers=()
  mkdir -p build/peers
  local name peer
  for name in aten onednn; do
    if [ -f "build/release/lib/plugins/libqcts_$name.so" ]; then peers+=(--peer "$name"); else say "skipping $name: the plug-in was not built"; fi
  done
  for peer in onnxruntime:onnx,onnxruntime openvino:openvino torchao:torchao torchao_compiled:torchao; do
    name=${peer%%:*}
    if "$peers_python" -c "import numpy, ${peer#*:}" 2>/dev/null; then
      printf '#!/bin/sh\nexec "%s" "%s"\n' "$peers_python" "$PWD/kernels/plugins/python/${name}_peer.py" >build/peers/"$name"
      chmod +x build/peers/"$name"
      peers+=(--peer "build/peers/$name")
    else
      say "skipping $name: $peers_python cannot import ${peer#*:}"
    fi
  done
}

# time_generate FOLDER: times a tiny Llama with torchao, a peer, and writes FOLDER/generate.json. Returns its exit code.
time_generate() {
  if "$peers_python" -c "import transformers, torchao" 2>/dev/null; then
    "$peers_python" suites/bench/generate_bench.py --out "$1/generate.json"
  else
    say "skipping generation with a tiny Llama: $peers_python cannot import transformers and torchao"
  fi
}
