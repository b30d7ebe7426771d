"""A plugin for vLLM's CPU build: int8 products without overflow on processors without VNNI.

Without VNNI units, oneDNN adds pairs of int8 products in 16 bits. Sums that do not fit are cut off
without a warning, and the judge's answers shift. With this plugin, activations are rounded to int8
as before, and the same integers are multiplied in float32: the products of a processor with VNNI,
at the speed of float32.

`serve_vllm.sh` puts this folder on PYTHONPATH where it is needed; vLLM finds the plugin by its
entry point, in every process. With vLLM's Python, the file says how wrong oneDNN's products are:

    python studies/judges/vllm_plugins/exact_int8.py
"""

from __future__ import annotations

from typing import Any

CHANNELS, ROWS = 1536, 256
"""Of the checked product; as in the 1.5B judge."""


def register() -> None:
    """Replace the int8 products of vLLM's CPU build; called by vLLM."""
    import torch
    from vllm import _custom_ops as ops
    from vllm.model_executor.kernels.linear.scaled_mm.cpu import CPUInt8ScaledMMLinearKernel

    def keep_weights(kernel: Any, layer: torch.nn.Module) -> None:
        weight, scale, input_scale, *_ = kernel.layer_param_names
        config = kernel.config
        fixed = getattr(layer, input_scale) is not None
        if fixed or not (config.input_symmetric and config.is_channelwise):
            raise ValueError("exact_int8 is for judges made by quantize_int8.py")
        kernel.exact_weight = getattr(layer, weight).data.float()
        kernel.exact_scale = getattr(layer, scale).data.float().reshape(1, -1)
        setattr(layer, weight, None)

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


def largest_error(outlier: float) -> float:
    """Return the largest error of oneDNN's int8 products, relative to their mean size.

    `outlier` is how much larger the activations of every hundredth channel are.
    """
    import torch
    from vllm import _custom_ops as ops
    from vllm.platforms import current_platform

    current_platform.import_kernels()
    draw = torch.Generator().manual_seed(0)
    weights = torch.randn(CHANNELS, CHANNELS, generator=draw)
    scale = weights.abs().amax(0) / 127
    integers = (weights / scale).round().to(torch.int8)
    activations = torch.randn(ROWS, CHANNELS, generator=draw)
    activations[:, ::100] *= outlier
    rounded, rows, _ = ops.onednn_scaled_int8_quant(activations, None, None, True)
    product = torch.empty(ROWS, CHANNELS)
    columns = integers.t().contiguous().t()
    handler = ops.create_onednn_scaled_mm(columns, scale, torch.float32, True, False)
    ops.onednn_scaled_mm(handler, rounded, product, rows, None, None, None)
    exact = (rounded.double() @ integers.double()) * rows.double() * scale.double()
    return float((product - exact).abs().max() / exact.abs().mean())


if __name__ == "__main__":
    for size in (1, 30):
        print(
            f"channels up to {size} times as large: "
            f"int8 products wrong by up to {100 * largest_error(size):.3g}% of their mean size"
        )
