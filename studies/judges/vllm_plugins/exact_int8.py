"""A plugin for vLLM's CPU build: int8 judges whose products are right on processors without VNNI.

Without VNNI units, oneDNN adds two products of int8 numbers in 16 bits. The sum overflows, is cut
off without a word, and the judge's answers mean nothing. With this plugin, activations are rounded
to int8 as before, and the same integers are multiplied in float32. So the judge answers as it does on
a processor with VNNI, at the speed of float32.

`serve_vllm.sh` puts this folder on PYTHONPATH on such a processor; vLLM finds the plugin by its
entry point, in every process.
"""

from __future__ import annotations

from typing import Any


def register() -> None:
    """Replace the int8 products of vLLM's CPU build; called by vLLM."""
    import torch
    from vllm import _custom_ops as ops
    from vllm.model_executor.kernels.linear.scaled_mm.cpu import CPUInt8ScaledMMLinearKernel

    def keep_weights(kernel: Any, layer: torch.nn.Module) -> None:
        weight_name, scale_name, input_scale_name, *_ = kernel.layer_param_names
        config = kernel.config
        if not (config.input_symmetric and config.is_channelwise):
            raise ValueError("exact_int8 computes int8 judges made by quantize_int8.py only")
        if getattr(layer, input_scale_name) is not None:
            raise ValueError("exact_int8 computes int8 judges made by quantize_int8.py only")
        kernel.exact_weight = getattr(layer, weight_name).data.float()
        kernel.exact_scale = getattr(layer, scale_name).data.float().reshape(1, -1)
        setattr(layer, weight_name, None)

    def multiply(
        kernel: Any, layer: torch.nn.Module, x: torch.Tensor, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        rounded, scale, _ = ops.onednn_scaled_int8_quant(rows, None, None, True)
        product = torch.nn.functional.linear(rounded.float(), kernel.exact_weight)
        product.mul_(scale.reshape(-1, 1)).mul_(kernel.exact_scale)
        if bias is not None:
            product.add_(bias)
        return product.to(x.dtype).reshape(*x.shape[:-1], -1)

    CPUInt8ScaledMMLinearKernel.process_weights_after_loading = keep_weights
    CPUInt8ScaledMMLinearKernel.apply_weights = multiply
