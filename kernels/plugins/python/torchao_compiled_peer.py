#!/usr/bin/env python3
"""torchao under torch.compile as a provider. torchao_peer.py says the rest."""

from torchao_peer import serve

if __name__ == "__main__":
    serve("torchaocompiled", True)
