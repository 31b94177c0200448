#!/usr/bin/env bash
# What a machine with a GPU adds to the checks that run everywhere; ends in under eight minutes.
#
#   kernels/cuda/device_check.sh [BUILD] [OUT]
#
# BUILD: a build folder with kvcheck and kvcheck_device_bench (default build/release, made by
# `./kvcheck test` or by cmake where it is missing); OUT: where the table and the records go (default
# build/device_check). Exit code 0: everything held; 1: a finding, or a tool that failed; 77: there
# is no GPU here, and nothing was checked.
set -uo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd) || exit 1
build=${1:-$root/build/release}
out=${2:-$root/build/device_check}
table=$out/device_check.md
status=0

mkdir -p "$out" || exit 1
say() { printf '%s\n' "$*" | tee -a "$table"; }
stage() {  # words, seconds at most, command ...
  local words=$1 most=$2 begin=$SECONDS
  shift 2
  timeout "$most" "$@" >"$out/stage.log" 2>&1
  local code=$?
  cat "$out/stage.log" >>"$out/all.log"
  case $code in
    0) say "| $words | held | $((SECONDS - begin)) s |" ;;
    77) say "| $words | skipped: $(tail -n 1 "$out/stage.log") | $((SECONDS - begin)) s |" ;;
    124) say "| $words | not ended after $most s | $((SECONDS - begin)) s |"; status=1 ;;
    *) say "| $words | failed ($code): $(tail -n 1 "$out/stage.log") | $((SECONDS - begin)) s |"; status=1 ;;
  esac
  return $code
}

: >"$table"
: >"$out/all.log"
say "# Device check, $(date -u +%Y-%m-%d)"
say ''
if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L >/dev/null 2>&1; then
  say 'No GPU here: nothing was checked.'
  exit 77
fi
say "$(nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,memory.total --format=csv,noheader)"
say ''

if [[ ! -x $build/kvcheck || ! -x $build/kvcheck_device_bench ]]; then
  (cd "$root" && cmake --preset release -DKVCHECK_CUDA=ON -DKVCHECK_BUILD_TESTS=OFF &&
    cmake --build --preset release --target kvcheck kvcheck_device_bench) >>"$out/all.log" 2>&1 || {
    say "The build failed; see $out/all.log"
    exit 1
  }
fi

say '| check | result | time |'
say '|---|---|---|'
stage 'properties of cuda' 50 "$build/kvcheck" run --target cuda --time 40 --seed 1 \
  --out "$out/run-cuda" --quiet
stage 'properties of cuda-q8' 30 "$build/kvcheck" run --target cuda-q8 --time 20 --seed 1 \
  --out "$out/run-cuda-q8" --quiet
# Each tool slows a run down by one or two orders of magnitude.
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck initcheck synccheck; do
    stage "compute-sanitizer $tool" 35 compute-sanitizer --tool "$tool" --error-exitcode 9 \
      "$build/kvcheck" run --target cuda --phases random --cases 12 --seed 2 \
      --out "$out/sanitizer-$tool" --quiet
  done
else
  say '| compute-sanitizer | not installed | 0 s |'
fi
say ''
timeout 80 "$build/kvcheck_device_bench" 2>>"$out/all.log" | tee -a "$table"
((PIPESTATUS[0] == 0)) || status=1
say ''
timeout 50 python3 "$root/kernels/cuda/torch_attention.py" 2>>"$out/all.log" | tee -a "$table" ||
  say 'PyTorch was not timed.'
say ''
say "The SIMT runtime's counters are compared with the profiler's by:"
say '  ncu --clock-control none --metrics l1tex__data_bank_conflicts_pipe_lsu.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum kvcheck_device_bench'
if command -v ncu >/dev/null; then
  timeout 40 ncu --clock-control none --launch-count 6 --csv --metrics \
    l1tex__data_bank_conflicts_pipe_lsu.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum \
    "$build/kvcheck_device_bench" >"$out/ncu.csv" 2>>"$out/all.log" && say 'Counted: ncu.csv' ||
    say 'ncu did not end well; see all.log'
fi
exit $status
