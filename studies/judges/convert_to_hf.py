"""Convert a GGUF judge into a Hugging Face folder (bf16 safetensors) that vLLM can load.

    python studies/judges/convert_to_hf.py MODEL.gguf OUTPUT_FOLDER

Run it with the Python of the vLLM environment: it needs torch, transformers, gguf, accelerate.
The weights stay those of the quantized file, unpacked and rounded to bf16; converting does not
restore what quantization lost. Standard output is one line, the folder.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any


def convert(gguf: Path, output: Path) -> Path:
    """Write weights, tokenizer, chat template and a greedy generation config; return the folder."""
    tokenizer = load_tokenizer(gguf)
    judge = load_judge(gguf, tokenizer)

    partial = output.with_name(f"{output.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    judge.save_pretrained(str(partial))
    tokenizer.save_pretrained(str(partial))
    shutil.rmtree(output, ignore_errors=True)
    partial.rename(output)
    return output


def load_tokenizer(gguf: Path) -> Any:
    """Return the tokenizer of the file; exit if it has no chat template, which a judge needs."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    if not tokenizer.chat_template:
        raise SystemExit(f"{gguf.name} has no chat template; use an instruct variant.")
    return tokenizer


def load_judge(gguf: Path, tokenizer: Any) -> Any:
    """Return a plain bf16 copy of the quantized causal model, ready to be saved."""
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig

    quantized = AutoModelForCausalLM.from_pretrained(
        str(gguf.parent), gguf_file=gguf.name, dtype=torch.bfloat16
    )
    config = quantized.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config

    # A model loaded from GGUF cannot be saved, so its weights move into a fresh copy. The copy is
    # created on "meta" so that the two never take memory at once.
    with torch.device("meta"):
        plain = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    unpacked = {name: weight.to(torch.bfloat16) for name, weight in quantized.state_dict().items()}
    plain.load_state_dict(unpacked, strict=True, assign=True)
    plain.tie_weights()

    # vLLM reads its default sampling settings from this file, so it must contain none.
    plain.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return plain


def main() -> int:
    """Convert the named file and print the folder's path."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("gguf", type=Path, help="the GGUF file")
    parser.add_argument("output", type=Path, help="output folder; an existing one is replaced")
    arguments = parser.parse_args()
    if not arguments.gguf.is_file():
        parser.error(f"{arguments.gguf} is not a file; get one with fetch_weights.py.")
    folder = convert(arguments.gguf.resolve(), arguments.output.resolve())
    sys.stdout.write(f"{folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
