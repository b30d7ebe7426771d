"""Quantize a converted judge to 8-bit integers (W8A8), which vLLM computes on VNNI and AMX units.

    python studies/judges/quantize_int8.py MODEL_FOLDER OUTPUT_FOLDER

Run it with the Python of the vLLM environment. Weights get one scale per output channel, and
activations get one per token while the judge runs. A few input channels are much larger than the
others, and one scale for all of them would lose the small ones. Therefore each channel's size is
first divided between activations and weights (SmoothQuant, Xiao et al. 2023). Before rounding, this
changes nothing in what the judge computes; `--strength 0` leaves it out. The sizes are measured on
the texts of the gallery. A matrix whose largest channel exceeds the median one by more than
`--uneven` times is not quantized. Standard output is one line, the folder.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

GALLERY = Path(__file__).resolve().parents[2] / "gallery"
PER_FILE = 1500
"""Characters to read of each file; all together, a few minutes of computing."""
SMALLEST = 1e-5
LARGEST_INT = 127

Sizes = dict[str, Any]
"""Largest absolute input of each channel, by the name of the matrix that reads it."""


def prompts() -> Iterator[str]:
    """Yield texts in the form of a judge's prompt, from the runs of the gallery."""
    for path in sorted(GALLERY.rglob("*.jsonl")):
        records = path.read_text(encoding="utf-8")[:PER_FILE]
        yield f"{records}\nIs every record above complete? Answer Yes or No."


def measure(judge: Any, tokenizer: Any) -> Sizes:
    """Return the size of every input channel of every matrix over the prompts."""
    import torch

    sizes: Sizes = {}

    def watch(name: str) -> Any:
        def hook(_: Any, inputs: Any) -> None:
            largest = inputs[0].abs().flatten(0, -2).amax(0)
            sizes[name] = torch.maximum(sizes[name], largest) if name in sizes else largest

        return hook

    hooks = [matrix.register_forward_pre_hook(watch(name)) for name, matrix in matrices(judge)]
    with torch.no_grad():
        for text in prompts():
            tokens = tokenizer.apply_chat_template(
                [{"role": "user", "content": text}], add_generation_prompt=True, return_dict=False
            )
            judge.model(torch.tensor([tokens]))
    for hook in hooks:
        hook.remove()
    return sizes


def matrices(judge: Any) -> list[tuple[str, Any]]:
    """Return the layers' matrices with their names."""
    import torch

    return [
        (f"model.{name}", module)
        for name, module in judge.model.named_modules()
        if isinstance(module, torch.nn.Linear)
    ]


def smooth(judge: Any, sizes: Sizes, strength: float) -> None:
    """Divide channel sizes between activations and weights."""
    for number, layer in enumerate(judge.model.layers):
        name = f"model.layers.{number}"
        attention, mlp = layer.self_attn, layer.mlp
        move(
            layer.input_layernorm,
            (attention.q_proj, attention.k_proj, attention.v_proj),
            sizes[f"{name}.self_attn.q_proj"],
            strength,
        )
        move(
            layer.post_attention_layernorm,
            (mlp.gate_proj, mlp.up_proj),
            sizes[f"{name}.mlp.gate_proj"],
            strength,
        )
        move(mlp.up_proj, (mlp.down_proj,), sizes[f"{name}.mlp.down_proj"], strength)


def move(writer: Any, readers: Sequence[Any], sizes: Any, strength: float) -> None:
    """Divide what `writer` writes per channel, and multiply the readers' weights by the same."""
    import torch

    weights = torch.stack([reader.weight.data.abs().amax(0) for reader in readers]).amax(0)
    factor = sizes.clamp_min(SMALLEST) ** strength / weights.clamp_min(SMALLEST) ** (1 - strength)
    written = writer.weight.data
    written /= factor if written.dim() == 1 else factor[:, None]
    for reader in readers:
        reader.weight.data *= factor


def quantized(judge: Any, kept: Collection[str]) -> dict[str, Any]:
    """Return the judge's tensors by name, the matrices as integers with their scales."""
    import torch

    chosen = {name for name, _ in matrices(judge)}.difference(kept)
    tensors: dict[str, Any] = {}
    for name, tensor in judge.state_dict().items():
        matrix = name.removesuffix(".weight")
        if name == "lm_head.weight" and judge.config.tie_word_embeddings:
            continue
        if matrix not in chosen:
            exact = torch.equal(tensor.bfloat16().float(), tensor)
            tensors[name] = tensor.bfloat16() if exact else tensor
            continue
        scale = tensor.abs().amax(1, keepdim=True) / LARGEST_INT
        tensors[name] = (tensor / scale).round().to(torch.int8)
        tensors[f"{matrix}.weight_scale"] = scale
    return tensors


def describe(kept: Sequence[str]) -> dict[str, Any]:
    """Return the description of the format that vLLM reads from the model's config."""
    common = {"num_bits": 8, "type": "int", "symmetric": True}
    return {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "quantization_status": "compressed",
        "ignore": ["lm_head", *kept],
        "config_groups": {
            "all": {
                "targets": ["Linear"],
                "weights": {**common, "strategy": "channel", "dynamic": False},
                "input_activations": {**common, "strategy": "token", "dynamic": True},
            }
        },
    }


def main() -> None:
    """Read the folder, quantize it, and write the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--strength", type=float, default=0.5)
    parser.add_argument("--uneven", type=float, default=30.0)
    given = parser.parse_args()

    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(given.model))
    judge = AutoModelForCausalLM.from_pretrained(str(given.model), dtype=torch.float32).eval()
    sizes = measure(judge, tokenizer)
    kept = [name for name, size in sizes.items() if size.max() > given.uneven * size.median()]
    print(f"not quantized: {len(kept)} of {len(sizes)} matrices: {' '.join(kept)}", file=sys.stderr)
    if given.strength:
        smooth(judge, sizes, given.strength)

    partial = given.output.with_name(f"{given.output.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(
        given.model, partial, ignore=shutil.ignore_patterns("*.safetensors", "*.index.json")
    )
    save_file(quantized(judge, kept), partial / "model.safetensors", {"format": "pt"})
    config = json.loads((partial / "config.json").read_text(encoding="utf-8"))
    config |= {"dtype": "float32", "quantization_config": describe(kept)}
    (partial / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    shutil.rmtree(given.output, ignore_errors=True)
    partial.rename(given.output)
    print(given.output)


if __name__ == "__main__":
    main()
