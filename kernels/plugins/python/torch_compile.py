# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile as torchao's documentation uses it: its inductor settings, then mode="max-autotune"."""

import torch
import torch._dynamo.config
import torch._inductor.config
from torch._inductor import cpp_builder
from torch._inductor.exc import InvalidCxxCompiler
from torchao.quantization.utils import recommended_inductor_config_setter

MODE = "max-autotune"
RECOMPILE_LIMIT = 64


def why_not_compiled():
    """Returns why torch.compile cannot work here, or None if it can. CXX names another compiler, as for inductor."""
    try:
        cpp_builder.get_cpp_compiler()
    except (InvalidCxxCompiler, RuntimeError):
        return "not compiled: torch.compile finds no C++ compiler"
    return None


def set_up(emulate_precision_casts=False):
    """Sets inductor's options for what is compiled from now on. `emulate_precision_casts`: round where eager code rounds.

    Models of one class share the limit on recompilations. Beyond it torch.compile would run them eagerly and mention that only in its log.
    """
    torch._dynamo.config.recompile_limit = RECOMPILE_LIMIT
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    recommended_inductor_config_setter()
    torch._inductor.config.emulate_precision_casts = emulate_precision_casts
