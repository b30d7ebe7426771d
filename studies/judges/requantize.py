"""Write a GGUF file again with its matrices in another quantization.

    python studies/judges/requantize.py MODEL.gguf OUT.gguf [--type Q4_0]

It needs the `gguf` package, which vLLM's environment has. Metadata, and tensors that are not
quantized, are copied. The result is a judge with the same name and slightly different weights, as
a provider might serve it: `studies/robustness/continuity.py` checks that a run notices.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gguf
import numpy as np

KEPT = {gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16}
OWN_FIELDS = {"GGUF.version", "GGUF.tensor_count", "GGUF.kv_count", "general.architecture"}


def requantize(source: Path, target: Path, kind: gguf.GGMLQuantizationType) -> int:
    """Write `target`; return the number of tensors in the new quantization."""
    reader, changed = gguf.GGUFReader(source), 0
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for name, own in reader.fields.items():
        if name not in OWN_FIELDS:
            inner = own.types[-1] if own.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, own.contents(), own.types[0], inner)
    for tensor in reader.tensors:
        content, stored = tensor.data, tensor.tensor_type
        if stored not in KEPT:
            values = gguf.quants.dequantize(content, stored).astype(np.float32)
            content, stored, changed = gguf.quants.quantize(values, kind), kind, changed + 1
        writer.add_tensor(tensor.name, content, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return changed


def main() -> None:
    """Write one file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--type", default="Q4_0")
    args = parser.parse_args()
    kind = gguf.GGMLQuantizationType[args.type]
    print(f"{requantize(args.source, args.target, kind)} tensors in {args.type}: {args.target}")


if __name__ == "__main__":
    main()
